// SPDX-License-Identifier: Apache-2.0
// One table as embedding and as head: its gradient is the sum of both, by hand. x = t[0] = [1, 2], logits = t x =
// [5, 11, 17], loss = y . logits = 95. Of the head: dt[v] = y[v] x = [1, 2], [2, 4], [4, 8]; of the embedding: dt[0] +=
// sum of y[v] t[v] = [27, 34]. Learning rate 1.
// RUN: mt-interpret %s --run=train_step | FileCheck %s
// INPUT id = 0
// INPUT y = 1 2 4
// SET t = 1 2 3 4 5 6
mt.model @tied {
  %id = mt.input "id" : tensor<?x1xi32>
  %y = mt.target "y" : tensor<?x1x3xf32>
  %t = mt.variable "t" init(glorot_uniform) : tensor<3x2xf32>
  %x = mt.gather %t, %id : tensor<3x2xf32>, tensor<?x1xi32>
  %logits = mt.matmul %x, %t transpose_b : tensor<?x1x2xf32>, tensor<3x2xf32>
  %weighted = mt.mul %y, %logits : tensor<?x1x3xf32>, tensor<?x1x3xf32>
  %l = mt.reduce sum, %weighted over [1, 2] : tensor<?x1x3xf32>
  mt.loss "loss", %l : tensor<?xf32>
  mt.sgd <{learning_rate = 1.0 : f32}>
}
// CHECK: train_step
// CHECK-NEXT: loss = 95 weight 1
// CHECK: variables
// CHECK: t [3, 2] = -27 -34 1 0 1 -2
