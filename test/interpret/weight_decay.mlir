// SPDX-License-Identifier: Apache-2.0
// Weight decay leaves out the variables that say so, by hand: dw = x = 2, db = 1, learning rate 0.1, so
// w = 4 - 4 * 0.5 * 0.1 - 0.2 and b = 8 - 0.1.
// RUN: mt-interpret %s --run=train_step | FileCheck %s
// INPUT x = 2
// SET w = 4
// SET b = 8
mt.model @line {
  %x = mt.input "x" : tensor<?x1xf32>
  %w = mt.variable "w" init(glorot_uniform) : tensor<1x1xf32>
  %b = mt.variable "b" init(zeros) no_weight_decay : tensor<1xf32>
  %0 = mt.matmul %x, %w : tensor<?x1xf32>, tensor<1x1xf32>
  %p = mt.add %0, %b : tensor<?x1xf32>, tensor<1xf32>
  %l = mt.reduce sum, %p over [1] : tensor<?x1xf32>
  mt.loss "loss", %l : tensor<?xf32>
  mt.sgd <{learning_rate = 0.1 : f32, weight_decay = 0.5 : f32}>
}
// CHECK: variables
// CHECK-NEXT: b [1] = 7.9
// CHECK: w [1, 1] = 3.6
