// SPDX-License-Identifier: Apache-2.0
// RUN: mtc compile %s --batch 8 --shards 1 --stop-after allocate -o - | FileCheck %s
// RUN: mtc compile %s --batch 8 -o %t.mtp
// The gradient of the logits lies where the logits were: the op that makes it is the last to read them.
// CHECK-LABEL: plan.program @train_step
// CHECK: [[LOGITS:%.*]] = plan.buffer "k/matmul"  arena [0] : <tensor<?x40xf32>>
// CHECK: [[GRADIENT:%.*]] = plan.buffer "k/max+sub+exp+sum+log+more"  arena [0] : <tensor<?x40xf32>>
// CHECK: plan.launch @"k/max+sub+exp+sum+log+more" {{.*}} reads([[LOGITS]], {{.*}} writes({{.*}}, [[GRADIENT]] :

mt.model @losses {
  %x = mt.input "x" : tensor<?x4xf32>
  %y = mt.target "y" limit = 40 : tensor<?xi32>
  %k = mt.variable "k" init(glorot_uniform) : tensor<4x40xf32>
  %0 = mt.matmul %x, %k : tensor<?x4xf32>, tensor<4x40xf32>
  %1 = mt.reduce max, %0 over [1] : tensor<?x40xf32>
  %2 = mt.reshape %1 : tensor<?xf32> to tensor<?x1xf32>
  %3 = mt.sub %0, %2 : tensor<?x40xf32>, tensor<?x1xf32>
  %4 = mt.exp %3 : tensor<?x40xf32>
  %5 = mt.reduce sum, %4 over [1] : tensor<?x40xf32>
  %6 = mt.log %5 : tensor<?xf32>
  %7 = mt.reshape %6 : tensor<?xf32> to tensor<?x1xf32>
  %8 = mt.sub %3, %7 : tensor<?x40xf32>, tensor<?x1xf32>
  %9 = mt.reshape %y : tensor<?xi32> to tensor<?x1xi32>
  %10 = mt.iota dim = 0 : tensor<40xi32>
  %11 = mt.compare eq, %9, %10 : tensor<?x1xi32>, tensor<40xi32>
  %zero = mt.constant dense<0.0> : tensor<f32>
  %12 = mt.select %11, %8, %zero : tensor<?x40xi1>, tensor<?x40xf32>, tensor<f32>
  %13 = mt.reduce sum, %12 over [1] : tensor<?x40xf32>
  %loss = mt.neg %13 : tensor<?xf32>
  mt.loss "loss", %loss : tensor<?xf32>
  mt.sgd <{learning_rate = 0.1 : f32}>
}
