// SPDX-License-Identifier: Apache-2.0
// RUN: mtc compile %s --batch 8 --stop-after fuse -o - | FileCheck %s
// RUN: mtc compile %s --batch 8 --stop-after allocate -o - | FileCheck %s --check-prefix=SHARED
// The streams of random numbers are operands of kernels, numbers between them, so that equal layers share kernels.
// Random first values are element-wise, one kernel for each formula.
mt.model @streams {
  %x = mt.input "x" : tensor<?x16x8xf32>
  %a = mt.variable "a" init(glorot_uniform) : tensor<8x8xf32>
  %b = mt.variable "b" init(glorot_uniform) : tensor<8x8xf32>
  %0 = mt.matmul %x, %a : tensor<?x16x8xf32>, tensor<8x8xf32>
  %1 = mt.dropout %0 "first" rate = 0.5 : tensor<?x16x8xf32>
  %2 = mt.attention %1, %1, %1 heads = 2 dropout "second" rate = 0.5 :
    tensor<?x16x8xf32>, tensor<?x16x8xf32>, tensor<?x16x8xf32>
  %3 = mt.matmul %2, %b : tensor<?x16x8xf32>, tensor<8x8xf32>
  %4 = mt.dropout %3 "third" rate = 0.5 : tensor<?x16x8xf32>
  %5 = mt.attention %4, %4, %4 heads = 2 dropout "fourth" rate = 0.5 :
    tensor<?x16x8xf32>, tensor<?x16x8xf32>, tensor<?x16x8xf32>
  %loss = mt.reduce sum, %5 over [1, 2] : tensor<?x16x8xf32>
  mt.loss "loss", %loss : tensor<?xf32>
  mt.sgd <{learning_rate = 0.1 : f32}>
}

// CHECK-LABEL: mt.program @init
// FNV-1a of "b" and "a" (0xe70c2de5, 0xe40c292c).
// CHECK:       %[[B:.*]] = mt.constant dense<-418632219> : tensor<i32>
// CHECK:       %[[A:.*]] = mt.constant dense<-468965076> : tensor<i32>
// CHECK:       mt.kernel "a/update" elementwise (%{{.*}} = %[[A]] : tensor<i32>) -> (tensor<8x8xf32>)
// CHECK:       mt.random_uniform hash(
// CHECK:       mt.kernel "b/update" elementwise (%{{.*}} = %[[B]] : tensor<i32>) -> (tensor<8x8xf32>)
// CHECK-LABEL: mt.program @train_step
// CHECK-NOT:   "first"
// CHECK:       mt.random_uniform hash(%{{.*}}) step(%{{.*}}) : tensor<?x16x8xf32>
// CHECK:       mt.attention %{{.*}} hash(%{{.*}}) rate = 5.000000e-01 step(%{{.*}})
// CHECK-LABEL: mt.program @eval_step
// CHECK:       mt.attention %{{.*}} heads = 2 :

// One kernel of each layer's parts, and one more attention, that of eval_step.
// SHARED:      plan.kernel @update
// SHARED:      plan.kernel @attention
// SHARED:      plan.kernel @attention_gradient
// SHARED:      plan.kernel @attention_1
// SHARED-NOT:  plan.kernel @attention
