// SPDX-License-Identifier: Apache-2.0
// RUN: mt-opt %s --mt-expand-optimizer --mt-differentiate --mt-decompose --mt-precision | FileCheck %s
//
// The gradient of a value that is rounded in the forward pass, because products read it, is rounded once: after the
// gradients of both products and of the residual path have been added in f32. A sum that is f32 in the forward pass has
// an f32 gradient; only the product that reads the gradient rounds it.
module attributes {mt.compilation = #mt.compilation<precision = bf16>} {
mt.model @residual {
  %x = mt.input "x" : tensor<?x4xf32>
  %t = mt.target "t" : tensor<?x6xf32>
  %w = mt.variable "w" init(glorot_uniform) : tensor<4x6xf32>
  %a = mt.variable "a" init(glorot_uniform) : tensor<6x6xf32>
  %b = mt.variable "b" init(glorot_uniform) : tensor<6x6xf32>
  %0 = mt.matmul %x, %w : tensor<?x4xf32>, tensor<4x6xf32>
  %v = mt.tanh %0 : tensor<?x6xf32>
  %1 = mt.matmul %v, %a : tensor<?x6xf32>, tensor<6x6xf32>
  %2 = mt.matmul %v, %b : tensor<?x6xf32>, tensor<6x6xf32>
  %3 = mt.mul %1, %2 : tensor<?x6xf32>, tensor<?x6xf32>
  %y = mt.add %3, %v : tensor<?x6xf32>, tensor<?x6xf32>
  %d = mt.sub %y, %t : tensor<?x6xf32>, tensor<?x6xf32>
  %s = mt.square %d : tensor<?x6xf32>
  %l = mt.reduce sum, %s over [1] : tensor<?x6xf32>
  mt.loss "loss", %l : tensor<?xf32>
  mt.sgd
}
}
// CHECK-LABEL: mt.program @train_step
// CHECK:      %[[VN:.*]] = mt.cast %{{.*}} : tensor<?x6xf32> to tensor<?x6xbf16>
// CHECK:      %[[G2:.*]] = mt.matmul %{{.*}}, %{{.*}} transpose_b : tensor<?x6xbf16>, tensor<6x6xbf16>
// CHECK-NOT:  mt.cast %[[G2]]
// CHECK:      %[[S2:.*]] = mt.add %{{.*}}, %[[G2]] : tensor<?x6xf32>, tensor<?x6xf32>
// CHECK-NOT:  mt.cast %[[S2]]
// CHECK:      %[[G1:.*]] = mt.matmul %{{.*}}, %{{.*}} transpose_b : tensor<?x6xbf16>, tensor<6x6xbf16>
// CHECK-NOT:  mt.cast %[[G1]]
// CHECK:      %[[S1:.*]] = mt.add %[[S2]], %[[G1]] : tensor<?x6xf32>, tensor<?x6xf32>
// CHECK-NEXT: %[[N:.*]] = mt.cast %[[S1]] : tensor<?x6xf32> to tensor<?x6xbf16>
// CHECK-NEXT: mt.cast %[[N]] : tensor<?x6xbf16> to tensor<?x6xf32>
// CHECK-NOT:  mt.complete_gradient
