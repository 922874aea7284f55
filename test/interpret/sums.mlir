// SPDX-License-Identifier: Apache-2.0
// A metric of sums is told with all its sums, not the first alone: rows (hits, predicted, true) of two classes, over
// two samples.
// RUN: mt-interpret %s --run=eval_step | FileCheck %s
// INPUT x = 1 2 3 4
// INPUT counts = 1 0 1 0 0 1 0 1 1 1 0 1
mt.model @counts {
  %x = mt.input "x" : tensor<?x2xf32>
  %counts = mt.input "counts" : tensor<?x3x2xf32>
  %w = mt.variable "w" init(constant = 1.0) : tensor<2x1xf32>
  %p = mt.matmul %x, %w : tensor<?x2xf32>, tensor<2x1xf32>
  %l = mt.mean_squared_error %p, %p : tensor<?x1xf32>, tensor<?x1xf32>
  mt.loss "loss", %l : tensor<?xf32>
  mt.metric "f1", %counts finalizer f1_macro : tensor<?x3x2xf32>
  mt.output "p", %p : tensor<?x1xf32>
  mt.sgd <{learning_rate = 0.1 : f32}>
}
// CHECK: eval_step
// CHECK-NEXT: f1 [3, 2] = 1 1 2 1 0 2 weight 2
// CHECK-NEXT: loss = 0 weight 2
