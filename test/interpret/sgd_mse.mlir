// SPDX-License-Identifier: Apache-2.0
// One step of linear regression, by hand: p = x w + b = [3.5, 7.5], t = [3, 9], loss = (0.25 + 2.25) / 2 = 1.25,
// dp = (p - t) * 2 / 2 = [0.5, -1.5], dw = x^T dp = [-4, -5], db = -1; learning rate 0.1.
// RUN: mt-interpret %s --run=train_step,predict | FileCheck %s
// INPUT x = 1 2 3 4
// INPUT t = 3 9
// SET w = 1 1
// SET b = 0.5
mt.model @line {
  %x = mt.input "x" : tensor<?x2xf32>
  %t = mt.target "t" : tensor<?x1xf32>
  %w = mt.variable "w" init(glorot_uniform) : tensor<2x1xf32>
  %b = mt.variable "b" init(zeros) : tensor<1xf32>
  %0 = mt.matmul %x, %w : tensor<?x2xf32>, tensor<2x1xf32>
  %p = mt.add %0, %b : tensor<?x1xf32>, tensor<1xf32>
  %l = mt.mean_squared_error %p, %t : tensor<?x1xf32>, tensor<?x1xf32>
  mt.loss "loss", %l : tensor<?xf32>
  mt.output "p", %p : tensor<?x1xf32>
  mt.sgd <{learning_rate = 0.1 : f32}>
}
// CHECK: train_step
// CHECK-NEXT: loss = 1.25 weight 2
// CHECK: predict
// CHECK-NEXT: p [2, 1] = 5 10.8
// CHECK: variables
// CHECK-NEXT: b [1] = 0.6
// CHECK-NEXT: sgd/iteration [] = 1
// CHECK-NEXT: sgd/learning_rate [] = 0.1
// CHECK-NEXT: w [2, 1] = 1.4 1.5
