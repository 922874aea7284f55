// SPDX-License-Identifier: Apache-2.0
// RUN: mtc compile %s --batch 8 --stop-after fuse -o - | FileCheck %s
// RUN: mtc compile %s --batch 8 -o %t.mtp
// A kernel of a product or a transpose computes no operand: a constant that repeats one number, which other kernels
// hold themselves, has a buffer for them.

mt.model @constants {
  %x = mt.input "x" : tensor<?x4xf32>
  %y = mt.target "y" : tensor<?x3xf32>
  %w = mt.variable "w" init(glorot_uniform) : tensor<5x3xf32>
  %k = mt.variable "k" init(glorot_uniform) : tensor<4x3xf32>
  %ones = mt.constant dense<1.0> : tensor<1x5xf32>
  %zeros = mt.constant dense<0.0> : tensor<1x5xf32>
  %0 = mt.matmul %ones, %w : tensor<1x5xf32>, tensor<5x3xf32>
  %1 = mt.matmul %zeros, %w : tensor<1x5xf32>, tensor<5x3xf32>
  %2 = mt.add %0, %1 : tensor<1x3xf32>, tensor<1x3xf32>
  %3 = mt.reshape %2 : tensor<1x3xf32> to tensor<3xf32>
  %4 = mt.matmul %x, %k : tensor<?x4xf32>, tensor<4x3xf32>
  %5 = mt.add %4, %3 : tensor<?x3xf32>, tensor<3xf32>
  %6 = mt.sub %5, %y : tensor<?x3xf32>, tensor<?x3xf32>
  %7 = mt.square %6 : tensor<?x3xf32>
  %loss = mt.reduce sum, %7 over [1] : tensor<?x3xf32>
  mt.loss "loss", %loss : tensor<?xf32>
  mt.sgd <{learning_rate = 0.1 : f32}>
}

// CHECK-LABEL: mt.program @train_step
// CHECK: [[ONES:%.*]] = mt.kernel {{.*}} single () -> (tensor<1x5xf32>)
// CHECK: mt.kernel {{.*}} transpose (%{{.*}} = [[ONES]] : tensor<1x5xf32>) -> (tensor<5x1xf32>)
// CHECK: [[ZEROS:%.*]] = mt.kernel {{.*}} single () -> (tensor<1x5xf32>)
// CHECK: mt.kernel {{.*}} matmul (%{{.*}} = [[ZEROS]] : tensor<1x5xf32>, %{{.*}} : tensor<5x3xf32>)
// CHECK: mt.kernel {{.*}} matmul (%{{.*}} = [[ONES]] : tensor<1x5xf32>, %{{.*}} : tensor<5x3xf32>,
