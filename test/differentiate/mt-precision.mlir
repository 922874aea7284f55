// SPDX-License-Identifier: Apache-2.0
// RUN: mt-opt %s --mt-expand-optimizer --mt-differentiate --mt-decompose --mt-precision | FileCheck %s
//
// The image and the matrices are rounded for the contractions alone, a contraction's result with its bias, what the
// next one reads for all readers. A product that is kept in f32 reads what others rounded; its gradients are kept too.
module attributes {mt.compilation = #mt.compilation<precision = bf16>} {
mt.model @three {
  %x = mt.input "x" : tensor<?x4xf32>
  %t = mt.target "t" : tensor<?xi32>
  %w1 = mt.variable "w1" init(glorot_uniform) : tensor<4x6xf32>
  %b1 = mt.variable "b1" init(zeros) : tensor<6xf32>
  %w2 = mt.variable "w2" init(glorot_uniform) : tensor<3x5xf32>
  %w3 = mt.variable "w3" init(glorot_uniform) : tensor<10x2xf32>
  %0 = mt.matmul %x, %w1 : tensor<?x4xf32>, tensor<4x6xf32>
  %1 = mt.add %0, %b1 : tensor<?x6xf32>, tensor<6xf32>
  %2 = mt.tanh %1 : tensor<?x6xf32>
  %3 = mt.reshape %2 : tensor<?x6xf32> to tensor<?x2x3xf32>
  %4 = mt.matmul %3, %w2 : tensor<?x2x3xf32>, tensor<3x5xf32>
  %5 = mt.reshape %4 : tensor<?x2x5xf32> to tensor<?x10xf32>
  %6 = mt.matmul %5, %w3 {mt.precision = "f32"} : tensor<?x10xf32>, tensor<10x2xf32>
  %l = mt.sparse_categorical_crossentropy %6, %t from_logits : tensor<?x2xf32>, tensor<?xi32>
  mt.loss "loss", %l : tensor<?xf32>
  mt.output "y", %6 : tensor<?x2xf32>
  mt.sgd
}
}
// CHECK-LABEL: mt.program @train_step
// CHECK-DAG:  %[[X:.*]] = mt.input "x"
// CHECK-DAG:  %[[W1:.*]] = mt.read "w1"
// CHECK-DAG:  %[[W2:.*]] = mt.read "w2"
// CHECK-DAG:  %[[W3:.*]] = mt.read "w3"
// CHECK-DAG:  %[[XN:.*]] = mt.cast %[[X]] : tensor<?x4xf32> to tensor<?x4xbf16>
// CHECK-DAG:  %[[W1N:.*]] = mt.cast %[[W1]] : tensor<4x6xf32> to tensor<4x6xbf16>
// CHECK:      %[[Z:.*]] = mt.matmul %[[XN]], %[[W1N]] : tensor<?x4xbf16>, tensor<4x6xbf16>
// CHECK-NEXT: %[[B:.*]] = mt.add %[[Z]]
// CHECK-NEXT: %[[BN:.*]] = mt.cast %[[B]] : tensor<?x6xf32> to tensor<?x6xbf16>
// CHECK-NEXT: %[[BW:.*]] = mt.cast %[[BN]] : tensor<?x6xbf16> to tensor<?x6xf32>
// CHECK-NEXT: %[[A:.*]] = mt.tanh %[[BW]] : tensor<?x6xf32>
// CHECK-NEXT: %[[AN:.*]] = mt.cast %[[A]] : tensor<?x6xf32> to tensor<?x6xbf16>
// CHECK-NEXT: %[[AW:.*]] = mt.cast %[[AN]]
// CHECK-NEXT: %[[R:.*]] = mt.reshape %[[AN]] : tensor<?x6xbf16> to tensor<?x2x3xbf16>
// CHECK:      %[[W2N:.*]] = mt.cast %[[W2]]
// CHECK:      %[[H:.*]] = mt.matmul %[[R]], %[[W2N]] : tensor<?x2x3xbf16>, tensor<3x5xbf16>
// CHECK-NEXT: %[[HN:.*]] = mt.cast %[[H]]
// CHECK:      %[[HR:.*]] = mt.reshape %[[HN]] : tensor<?x2x5xbf16> to tensor<?x10xbf16>
// CHECK:      mt.matmul %[[HR]], %[[W3]] {mt.precision = "f32"} : tensor<?x10xbf16>, tensor<10x2xf32>
// CHECK-NOT:  mt.matmul
// The gradient of the product that is kept: of the matrix from the value that was rounded.
// CHECK:      mt.matmul %{{.*}}, %[[W3]] transpose_b {mt.precision = "f32"} : tensor<?x2xf32>, tensor<10x2xf32>
// CHECK:      mt.matmul %[[HR]], %{{.*}} transpose_a {mt.precision = "f32"} : tensor<?x10xbf16>, tensor<?x2xf32>
// Products of single samples that are summed over the batch, the gradient of w2, are not rounded.
// CHECK:      %[[D2:.*]] = mt.matmul %[[R]], %{{.*}} transpose_a : tensor<?x2x3xbf16>, tensor<?x2x5xbf16>
// CHECK-NEXT: mt.reduce sum, %[[D2]] over [0] : tensor<?x3x5xf32>
// The gradient of w1 is of 16-bit values, and f32.
// CHECK:      %[[D1:.*]] = mt.matmul %[[XN]], %{{.*}} transpose_a : tensor<?x4xbf16>, tensor<?x6xbf16>
// CHECK-NOT:  mt.cast %[[D1]]
// CHECK:      mt.assign "w1"
