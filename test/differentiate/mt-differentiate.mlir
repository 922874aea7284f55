// SPDX-License-Identifier: Apache-2.0
// RUN: mt-opt %s --mt-expand-optimizer --mt-differentiate | FileCheck %s
//
// Declarations in the plan's order, then four programs. Only what reaches a trainable variable is differentiated: the
// frozen first layer has neither gradient nor slots.
mt.model @two_layers {
  %x = mt.input "x" : tensor<?x3xf32>
  %t = mt.target "t" : tensor<?xi32>
  %w1 = mt.variable "a/kernel" init(he_normal) frozen : tensor<3x4xf32>
  %w2 = mt.variable "b/kernel" init(glorot_uniform) : tensor<4x2xf32>
  %0 = mt.matmul %x, %w1 : tensor<?x3xf32>, tensor<3x4xf32>
  %1 = mt.tanh %0 : tensor<?x4xf32>
  %2 = mt.matmul %1, %w2 : tensor<?x4xf32>, tensor<4x2xf32>
  %l = mt.sparse_categorical_crossentropy %2, %t from_logits : tensor<?x2xf32>, tensor<?xi32>
  %hit = mt.sparse_categorical_accuracy %2, %t : tensor<?x2xf32>, tensor<?xi32>
  mt.loss "loss", %l : tensor<?xf32>
  mt.metric "accuracy", %hit : tensor<?xf32>
  mt.output "y", %2 : tensor<?x2xf32>
  mt.sgd <{momentum = 0.9 : f32}>
}
// CHECK:      mt.declare "a/kernel" non_trainable tensor<3x4xf32>
// CHECK-NEXT: mt.declare "b/kernel" trainable tensor<4x2xf32>
// CHECK-NEXT: mt.declare "sgd/iteration" non_trainable role iteration tensor<i32>
// CHECK-NEXT: mt.declare "sgd/learning_rate" non_trainable role learning_rate tensor<f32>
// CHECK-NEXT: mt.declare "sgd/b_kernel_momentum" slot tensor<4x2xf32>
// CHECK-NOT:  mt.declare

// Truncated normal: sqrt(2 / 3) / 0.8796... * sqrt(2) scales erf_inv.
// CHECK-LABEL: mt.program @init
// CHECK:      mt.random_uniform "a/kernel" : tensor<3x4xf32>
// CHECK:      mt.erf_inv
// CHECK:      mt.constant dense<1.31271{{.*}}>
// CHECK:      mt.assign "a/kernel"
// CHECK:      mt.random_uniform "b/kernel" : tensor<4x2xf32>
// CHECK:      mt.assign "b/kernel"
// CHECK:      mt.assign "sgd/b_kernel_momentum"

// CHECK-LABEL: mt.program @train_step
// CHECK:      %[[X:.*]] = mt.input "x"
// CHECK:      %[[T:.*]] = mt.target "t" limit = 2 : tensor<?xi32>
// CHECK:      %[[H:.*]] = mt.tanh
// CHECK:      %[[L:.*]] = mt.sparse_categorical_crossentropy
// CHECK:      %[[N:.*]] = mt.batch_size
// CHECK:      %[[SUM:.*]] = mt.reduce sum, %[[L]] over [0]
// CHECK:      %[[MEAN:.*]] = mt.div %[[SUM]], %[[N]]
// CHECK:      mt.result "loss", %[[MEAN]], %[[N]] loss
// CHECK:      mt.result "accuracy", %{{.*}}, %[[N]]
// CHECK:      %[[D:.*]] = mt.mul %{{.*}}, %{{.*}} : tensor<?x2xf32>, tensor<?x1xf32>
// CHECK:      %[[DW:.*]] = mt.matmul %[[H]], %[[D]] transpose_a : tensor<?x4xf32>, tensor<?x2xf32>
// CHECK-NOT:  mt.matmul
// CHECK:      mt.read "sgd/b_kernel_momentum"
// CHECK:      mt.assign "b/kernel"
// CHECK:      mt.assign "sgd/b_kernel_momentum"
// CHECK:      mt.assign "sgd/iteration"

// CHECK-LABEL: mt.program @eval_step
// CHECK-NOT:  mt.assign
// CHECK:      mt.result "loss"

// CHECK-LABEL: mt.program @predict
// CHECK-NOT:  mt.target
// CHECK:      mt.output "y"
