// SPDX-License-Identifier: Apache-2.0
// A decay that is a part of the gradient is added after the gradient is clipped, by hand: dw = x = 2 is clipped to 1,
// db = 1, learning rate 0.1, so w = 4 - (1 + 0.5 * 4) * 0.1 and b = 8 - 0.1.
// RUN: mt-interpret %s --run=train_step | FileCheck %s
// INPUT x = 2
// SET w = 4
// SET b = 8
mt.model @line {
  %x = mt.input "x" : tensor<?x1xf32>
  %w = mt.variable "w" init(glorot_uniform) {mt.gradient_decay = 5.0e-01 : f32} : tensor<1x1xf32>
  %b = mt.variable "b" init(zeros) : tensor<1xf32>
  %0 = mt.matmul %x, %w : tensor<?x1xf32>, tensor<1x1xf32>
  %p = mt.add %0, %b : tensor<?x1xf32>, tensor<1xf32>
  %l = mt.reduce sum, %p over [1] : tensor<?x1xf32>
  mt.loss "loss", %l : tensor<?xf32>
  mt.sgd <{learning_rate = 0.1 : f32, clipvalue = 1.0 : f32}>
}
// CHECK: variables
// CHECK-NEXT: b [1] = 7.9
// CHECK: w [1, 1] = 3.7
