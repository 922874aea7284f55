// SPDX-License-Identifier: Apache-2.0
// What the optimizer has a variable for stands in its declaration: a model may call its own variables as the
// optimizer's end.
// RUN: mt-opt %s --mt-expand-optimizer --mt-differentiate | FileCheck %s
// RUN: mt-opt %s --mt-expand-optimizer --mt-differentiate | sed 's/ of "w" / /' | not mt-opt - 2>&1 | FileCheck %s --check-prefix=OF
// OF: error: 'mt.declare' op expected `of` with the role average, and with no other role, found none
mt.model @line {
  %x = mt.input "x" : tensor<?x2xf32>
  %t = mt.target "t" : tensor<?x1xf32>
  %w = mt.variable "w" init(glorot_uniform) : tensor<2x1xf32>
  %a = mt.variable "w_average" init(zeros) : tensor<1xf32>
  %r = mt.variable "head/learning_rate" init(zeros) : tensor<1xf32>
  %0 = mt.matmul %x, %w : tensor<?x2xf32>, tensor<2x1xf32>
  %1 = mt.add %0, %a : tensor<?x1xf32>, tensor<1xf32>
  %p = mt.add %1, %r : tensor<?x1xf32>, tensor<1xf32>
  %l = mt.mean_squared_error %p, %t : tensor<?x1xf32>, tensor<?x1xf32>
  mt.loss "loss", %l : tensor<?xf32>
  mt.sgd <{learning_rate = 0.1 : f32, ema_momentum = 0.9 : f32}>
}
// CHECK:      mt.declare "w" trainable tensor<2x1xf32>
// CHECK-NEXT: mt.declare "w_average" trainable tensor<1xf32>
// CHECK-NEXT: mt.declare "head/learning_rate" trainable tensor<1xf32>
// CHECK-NEXT: mt.declare "sgd/iteration" non_trainable role iteration tensor<i32>
// CHECK-NEXT: mt.declare "sgd/learning_rate" non_trainable role learning_rate tensor<f32>
// CHECK-NEXT: mt.declare "sgd/w_average" slot role average of "w" tensor<2x1xf32>
// CHECK-NEXT: mt.declare "sgd/w_average_average" slot role average of "w_average" tensor<1xf32>
// CHECK-NEXT: mt.declare "sgd/head_learning_rate_average" slot role average of "head/learning_rate" tensor<1xf32>
