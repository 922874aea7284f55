// SPDX-License-Identifier: Apache-2.0
// RUN: mt-opt %s --mt-add-before-split --split-input-file | FileCheck %s

// CHECK-LABEL: mt.model @heads
// CHECK:       %[[B:.*]] = mt.variable "b"
// CHECK-NEXT:  %[[Y:.*]] = mt.matmul
// CHECK-NEXT:  %[[LINE:.*]] = mt.reshape %[[B]] : tensor<4x8xf32> to tensor<32xf32>
// CHECK-NEXT:  %[[SUM:.*]] = mt.add %[[Y]], %[[LINE]] : tensor<?x6x32xf32>, tensor<32xf32>
// CHECK-NEXT:  %[[HEADS:.*]] = mt.reshape %[[SUM]] : tensor<?x6x32xf32> to tensor<?x6x4x8xf32>
// CHECK-NEXT:  mt.output "y", %[[HEADS]]
mt.model @heads {
  %x = mt.input "x" : tensor<?x6x16xf32>
  %w = mt.variable "w" init(glorot_uniform) : tensor<16x32xf32>
  %b = mt.variable "b" init(zeros) : tensor<4x8xf32>
  %0 = mt.matmul %x, %w : tensor<?x6x16xf32>, tensor<16x32xf32>
  %1 = mt.reshape %0 : tensor<?x6x32xf32> to tensor<?x6x4x8xf32>
  %2 = mt.add %1, %b : tensor<?x6x4x8xf32>, tensor<4x8xf32>
  mt.output "y", %2 : tensor<?x6x4x8xf32>
  %l = mt.reduce sum, %2 over [1, 2, 3] : tensor<?x6x4x8xf32>
  mt.loss "loss", %l : tensor<?xf32>
  mt.sgd
}

// -----
// The bias of a part of the axis, one that broadcasts, and one that each sample has.

// CHECK-LABEL: mt.model @others
// CHECK-NOT:   mt.reshape {{.*}} to tensor<32xf32>
// CHECK:       mt.add {{.*}} : tensor<?x6x4x8xf32>, tensor<8xf32>
// CHECK-NEXT:  mt.add {{.*}} : tensor<?x6x4x8xf32>, tensor<4x1xf32>
// CHECK-NEXT:  mt.add {{.*}} : tensor<?x6x4x8xf32>, tensor<?x6x4x8xf32>
mt.model @others {
  %x = mt.input "x" : tensor<?x6x16xf32>
  %z = mt.input "z" : tensor<?x6x4x8xf32>
  %w = mt.variable "w" init(glorot_uniform) : tensor<16x32xf32>
  %b = mt.variable "b" init(zeros) : tensor<8xf32>
  %c = mt.variable "c" init(zeros) : tensor<4x1xf32>
  %0 = mt.matmul %x, %w : tensor<?x6x16xf32>, tensor<16x32xf32>
  %1 = mt.reshape %0 : tensor<?x6x32xf32> to tensor<?x6x4x8xf32>
  %2 = mt.add %1, %b : tensor<?x6x4x8xf32>, tensor<8xf32>
  %3 = mt.add %1, %c : tensor<?x6x4x8xf32>, tensor<4x1xf32>
  %4 = mt.add %1, %z : tensor<?x6x4x8xf32>, tensor<?x6x4x8xf32>
  %5 = mt.add %2, %3 : tensor<?x6x4x8xf32>, tensor<?x6x4x8xf32>
  %6 = mt.add %5, %4 : tensor<?x6x4x8xf32>, tensor<?x6x4x8xf32>
  mt.output "y", %6 : tensor<?x6x4x8xf32>
  %l = mt.reduce sum, %6 over [1, 2, 3] : tensor<?x6x4x8xf32>
  mt.loss "loss", %l : tensor<?xf32>
  mt.sgd
}
