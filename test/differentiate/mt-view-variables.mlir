// SPDX-License-Identifier: Apache-2.0
// RUN: mt-opt %s --mt-view-variables | FileCheck %s
//
// A kernel [2, 2, 3] that a product reads as [2, 6], and its update by the gradient of the product: neither needs a
// reshape. The second variable is read in its own shape too.

// CHECK-LABEL: mt.program @train_step
// CHECK:       %[[W:.*]] = mt.read "kernel" : tensor<2x6xf32>
// CHECK:       mt.matmul %{{.*}}, %[[W]]
// CHECK:       %[[G:.*]] = mt.matmul %{{.*}} transpose_a : {{.*}}
// CHECK-NEXT:  %[[S:.*]] = mt.mul %[[G]], %{{.*}} : tensor<2x6xf32>, tensor<f32>
// CHECK-NEXT:  %[[N:.*]] = mt.sub %{{.*}}, %[[S]] : tensor<2x6xf32>, tensor<2x6xf32>
// CHECK-NEXT:  mt.assign "kernel", %[[N]] : tensor<2x6xf32>
// CHECK-DAG:   mt.read "own" : tensor<2x3xf32>
// CHECK-DAG:   mt.read "own" : tensor<6xf32>
mt.declare "kernel" trainable tensor<2x2x3xf32>
mt.declare "own" trainable tensor<2x3xf32>
mt.declare "rate" non_trainable tensor<f32>
mt.program @train_step {
  %x = mt.input "x" : tensor<?x2xf32>
  %w = mt.read "kernel" : tensor<2x2x3xf32>
  %rate = mt.read "rate" : tensor<f32>
  %0 = mt.reshape %w : tensor<2x2x3xf32> to tensor<2x6xf32>
  %1 = mt.matmul %x, %0 : tensor<?x2xf32>, tensor<2x6xf32>
  %2 = mt.matmul %x, %1 transpose_a : tensor<?x2xf32>, tensor<?x6xf32>
  %3 = mt.reshape %2 : tensor<2x6xf32> to tensor<2x2x3xf32>
  %4 = mt.mul %3, %rate : tensor<2x2x3xf32>, tensor<f32>
  %5 = mt.sub %w, %4 : tensor<2x2x3xf32>, tensor<2x2x3xf32>
  mt.assign "kernel", %5 : tensor<2x2x3xf32>
  %own = mt.read "own" : tensor<2x3xf32>
  %6 = mt.reshape %own : tensor<2x3xf32> to tensor<6xf32>
  %7 = mt.add %1, %6 : tensor<?x6xf32>, tensor<6xf32>
  mt.output "y", %7 : tensor<?x6xf32>
  %8 = mt.mul %own, %rate : tensor<2x3xf32>, tensor<f32>
  mt.assign "own", %8 : tensor<2x3xf32>
}
