// SPDX-License-Identifier: Apache-2.0
// RUN: mt-opt %s --mt-fuse=images=false | FileCheck %s
// A convolution takes bias, activation and the sum with another image; its gradients are kernels of their own; pools
// join the rows around them.

// CHECK-LABEL: mt.program @predict
// CHECK: %[[Y:.*]] = mt.kernel "conv/conv2d+add+relu" conv (%{{.*}} = %{{.*}} : tensor<?x8x8x3xf32>, %{{.*}} = %{{.*}} : tensor<3x3x3x16xf32>
// CHECK-NEXT: mt.conv2d
// CHECK-NEXT: mt.add {{.*}}tensor<16xf32>
// CHECK-NEXT: mt.relu
// CHECK-NEXT: mt.yield
// CHECK: mt.kernel "pool+neg" rows (%{{.*}} = %[[Y]]
// CHECK: mt.pool max
// CHECK-NEXT: mt.neg
mt.program @predict {
  %x = mt.input "x" : tensor<?x8x8x3xf32>
  %w = mt.read "conv/kernel" : tensor<3x3x3x16xf32>
  %b = mt.read "conv/bias" : tensor<16xf32>
  %0 = mt.conv2d %x, %w padding = [1, 1, 1, 1] : tensor<?x8x8x3xf32>, tensor<3x3x3x16xf32>
  %1 = mt.add %0, %b : tensor<?x8x8x16xf32>, tensor<16xf32>
  %2 = mt.relu %1 : tensor<?x8x8x16xf32>
  %3 = mt.pool max, %2 window = [2, 2] strides = [2, 2] : tensor<?x8x8x16xf32>
  %4 = mt.neg %3 : tensor<?x4x4x16xf32>
  mt.output "y", %4 : tensor<?x4x4x16xf32>
}
