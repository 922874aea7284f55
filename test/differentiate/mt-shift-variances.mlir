// SPDX-License-Identifier: Apache-2.0
// RUN: mt-opt %s --mt-shift-variances | FileCheck %s
//
// The squares of differences from a mean over the batch become those of differences from each sample's first pixel, of
// 16 bits where the images are, and a correction. Without pixels, or with a mean of something else, they stay.

// CHECK-LABEL: mt.program @train_step
// CHECK:      %[[X:.*]] = mt.input "x"
// CHECK:      %[[SUM:.*]] = mt.reduce sum, %[[H:.*]] over [1, 2] : tensor<?x4x8x16xbf16>
// CHECK:      %[[MEAN:.*]] = mt.div
// CHECK:      %[[W:.*]] = mt.cast %[[H]] : tensor<?x4x8x16xbf16> to tensor<?x4x8x16xf32>
// CHECK:      %[[F:.*]] = mt.slice %[[H]] starts = [0, 0, 0] sizes = [1, 1, 16] : tensor<?x4x8x16xbf16>
// CHECK-NEXT: %[[FW:.*]] = mt.cast %[[F]] : tensor<?x1x1x16xbf16> to tensor<?x1x1x16xf32>
// CHECK-NEXT: %[[D:.*]] = mt.sub %[[W]], %[[FW]]
// CHECK-NEXT: %[[A:.*]] = mt.reduce sum, %[[D]] over [1, 2]
// CHECK:      %[[WHOLE:.*]] = mt.mul %[[MEAN]], %{{.*}} : tensor<16xf32>, tensor<f32>
// CHECK-NEXT: %[[REST:.*]] = mt.sub %[[SUM]], %[[WHOLE]]
// CHECK-NEXT: %[[FIRST:.*]] = mt.sub %[[REST]], %[[A]]
// CHECK:      %[[OFF:.*]] = mt.div %[[FIRST]], %{{.*}} : tensor<?x16xf32>, tensor<f32>
// CHECK:      %[[Q:.*]] = mt.square %[[D]]
// CHECK-NEXT: %[[B:.*]] = mt.reduce sum, %[[Q]] over [1, 2]
// CHECK:      mt.reduce sum, %{{.*}} over [0]
// CHECK:      %[[OTHER:.*]] = mt.sub %[[X]]
// CHECK-NEXT: %[[SQUARE:.*]] = mt.square %[[OTHER]]
// CHECK-NEXT: mt.reduce sum, %[[SQUARE]] over [1, 2]
mt.program @train_step {
  %x = mt.input "x" : tensor<?x4x8x16xf32>
  %h = mt.cast %x : tensor<?x4x8x16xf32> to tensor<?x4x8x16xbf16>
  %sum = mt.reduce sum, %h over [1, 2] : tensor<?x4x8x16xbf16>
  %all = mt.reduce sum, %sum over [0] : tensor<?x16xf32>
  %n = mt.batch_size
  %mean = mt.div %all, %n : tensor<16xf32>, tensor<f32>
  %w = mt.cast %h : tensor<?x4x8x16xbf16> to tensor<?x4x8x16xf32>
  %d = mt.sub %w, %mean : tensor<?x4x8x16xf32>, tensor<16xf32>
  %q = mt.square %d : tensor<?x4x8x16xf32>
  %s = mt.reduce sum, %q over [1, 2] : tensor<?x4x8x16xf32>
  %v = mt.reduce sum, %s over [0] : tensor<?x16xf32>
  mt.assign "v", %v : tensor<16xf32>
  %o = mt.sub %x, %mean : tensor<?x4x8x16xf32>, tensor<16xf32>
  %oq = mt.square %o : tensor<?x4x8x16xf32>
  %os = mt.reduce sum, %oq over [1, 2] : tensor<?x4x8x16xf32>
  %ov = mt.reduce sum, %os over [0] : tensor<?x16xf32>
  mt.assign "o", %ov : tensor<16xf32>
}
