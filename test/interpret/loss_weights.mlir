// SPDX-License-Identifier: Apache-2.0
// Each of several losses is reported as it is, as Keras does, and the total with their weights: the second was reported
// times its weight. p = x w = [3, 7]; a: (0 + 4) / 2 = 2; b: (|3 - 2| + |7 - 1|) / 2 = 3.5; total 2 + 0.5 * 3.5. dw =
// x^T ([0, -2] + 0.5 * [0.5, 0.5]) = [-5, -6].
// RUN: mt-interpret %s --run=train_step,eval_step | FileCheck %s
// INPUT x = 1 2 3 4
// INPUT a_target = 3 9
// INPUT b_target = 2 1
// SET w = 1 1
mt.model @two {
  %x = mt.input "x" : tensor<?x2xf32>
  %a = mt.target "a_target" : tensor<?x1xf32>
  %b = mt.target "b_target" : tensor<?x1xf32>
  %w = mt.variable "w" init(zeros) : tensor<2x1xf32>
  %p = mt.matmul %x, %w : tensor<?x2xf32>, tensor<2x1xf32>
  %la = mt.mean_squared_error %p, %a : tensor<?x1xf32>, tensor<?x1xf32>
  mt.loss "a_loss", %la : tensor<?xf32>
  %lb = mt.mean_absolute_error %p, %b : tensor<?x1xf32>, tensor<?x1xf32>
  mt.loss "b_loss", %lb scale = 0.5 : tensor<?xf32>
  mt.output "p", %p : tensor<?x1xf32>
  mt.sgd <{learning_rate = 0.1 : f32}>
}
// CHECK: train_step
// CHECK-NEXT: a_loss = 2 weight 2
// CHECK-NEXT: b_loss = 3.5 weight 2
// CHECK-NEXT: loss = 3.75 weight 2
// CHECK: eval_step
// CHECK: b_loss =
// CHECK: w [2, 1] = 1.5 1.6
