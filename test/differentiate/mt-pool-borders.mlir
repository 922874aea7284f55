// SPDX-License-Identifier: Apache-2.0
// RUN: mt-opt %s --mt-pool-borders | FileCheck %s
//
// A border of zeros around what a ReLU computes becomes the max pool's padding. What may be negative, other borders,
// sums, and borders as wide as the window stay.

// CHECK-LABEL: mt.model @borders
// CHECK:      %[[R:.*]] = mt.relu
// CHECK:      mt.pool max, %[[R]] window = [3, 3] strides = [2, 2] padding = [1, 1, 1, 0] : tensor<?x8x8x4xf32>
// CHECK:      %[[BELOW:.*]] = mt.pad %[[R]] low = [1, 1, 0] high = [1, 1, 0] value = -1.000000e+00
// CHECK-NEXT: mt.pool max, %[[BELOW]] window = [3, 3] :
// CHECK:      %[[AT:.*]] = mt.pad %[[R]] low = [2, 2, 0] high = [0, 0, 0]
// CHECK-NEXT: mt.pool max, %[[AT]] window = [2, 2] :
// CHECK-NEXT: mt.pool sum, %[[AT]] window = [3, 3] :
// CHECK:      %[[CHANNELS:.*]] = mt.pad %[[R]] low = [0, 0, 0] high = [0, 0, 4]
// CHECK-NEXT: mt.pool max, %[[CHANNELS]] window = [2, 2] :
// CHECK:      %[[SIGNED:.*]] = mt.pad %{{.*}} low = [1, 1, 0] high = [1, 1, 0]
// CHECK-NEXT: mt.pool max, %[[SIGNED]] window = [3, 3] :
mt.model @borders {
  %x = mt.input "x" : tensor<?x8x8x4xf32>
  %r = mt.relu %x : tensor<?x8x8x4xf32>
  %p0 = mt.pad %r low = [1, 1, 0] high = [1, 0, 0] : tensor<?x8x8x4xf32>
  %y0 = mt.pool max, %p0 window = [3, 3] strides = [2, 2] : tensor<?x10x9x4xf32>
  %p1 = mt.pad %r low = [1, 1, 0] high = [1, 1, 0] value = -1.0 : tensor<?x8x8x4xf32>
  %y1 = mt.pool max, %p1 window = [3, 3] : tensor<?x10x10x4xf32>
  %p2 = mt.pad %r low = [2, 2, 0] high = [0, 0, 0] : tensor<?x8x8x4xf32>
  %y2 = mt.pool max, %p2 window = [2, 2] : tensor<?x10x10x4xf32>
  %y3 = mt.pool sum, %p2 window = [3, 3] : tensor<?x10x10x4xf32>
  %p4 = mt.pad %r low = [0, 0, 0] high = [0, 0, 4] : tensor<?x8x8x4xf32>
  %y4 = mt.pool max, %p4 window = [2, 2] : tensor<?x8x8x8xf32>
  %s = mt.tanh %x : tensor<?x8x8x4xf32>
  %p5 = mt.pad %s low = [1, 1, 0] high = [1, 1, 0] : tensor<?x8x8x4xf32>
  %y5 = mt.pool max, %p5 window = [3, 3] : tensor<?x10x10x4xf32>
  mt.output "y0", %y0 : tensor<?x4x4x4xf32>
  mt.output "y1", %y1 : tensor<?x8x8x4xf32>
  mt.output "y2", %y2 : tensor<?x9x9x4xf32>
  mt.output "y3", %y3 : tensor<?x8x8x4xf32>
  mt.output "y4", %y4 : tensor<?x7x7x8xf32>
  mt.output "y5", %y5 : tensor<?x8x8x4xf32>
  %w = mt.variable "w" init(zeros) : tensor<4xf32>
  %xw = mt.mul %x, %w : tensor<?x8x8x4xf32>, tensor<4xf32>
  %l = mt.reduce sum, %xw over [1, 2, 3] : tensor<?x8x8x4xf32>
  mt.loss "loss", %l : tensor<?xf32>
  mt.sgd
}
