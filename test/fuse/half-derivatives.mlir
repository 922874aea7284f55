// SPDX-License-Identifier: Apache-2.0
// RUN: mt-opt %s --mt-fuse | FileCheck %s
//
// A derivative of what a product computes in 16 bits is computed again in the epilogue that reads it: the product's
// kernel stores the 16-bit value, and not the derivative in f32. One that two kernels read stays where it is.
module attributes {mt.compilation = #mt.compilation<precision = bf16, shards = 1, shard_rows = 8>} {
// CHECK-LABEL: mt.program @train_step
// CHECK:      mt.kernel {{.*}} matmul ({{.*}}) -> (tensor<?x16xbf16>, tensor<?x16xbf16>) {
// CHECK-NEXT:   mt.matmul
// CHECK-NOT:    mt.square
// CHECK:      mt.kernel {{.*}} matmul ({{.*}}) -> (tensor<?x16xbf16>) {
// CHECK:        mt.square
// CHECK:        mt.yield
mt.program @train_step {
  %x = mt.input "x" : tensor<?x8xf32>
  %xn = mt.cast %x : tensor<?x8xf32> to tensor<?x8xbf16>
  %w = mt.read "w" : tensor<8x16xf32>
  %wn = mt.cast %w : tensor<8x16xf32> to tensor<8x16xbf16>
  %v = mt.read "v" : tensor<16x16xf32>
  %vn = mt.cast %v : tensor<16x16xf32> to tensor<16x16xbf16>
  %z = mt.matmul %xn, %wn : tensor<?x8xbf16>, tensor<8x16xbf16>
  %zn = mt.cast %z : tensor<?x16xf32> to tensor<?x16xbf16>
  %zw = mt.cast %zn : tensor<?x16xbf16> to tensor<?x16xf32>
  %t = mt.tanh %zw : tensor<?x16xf32>
  %tn = mt.cast %t : tensor<?x16xf32> to tensor<?x16xbf16>
  %y = mt.matmul %tn, %vn : tensor<?x16xbf16>, tensor<16x16xbf16>
  %one = mt.constant dense<1.0> : tensor<f32>
  %s = mt.square %zw : tensor<?x16xf32>
  %d = mt.sub %one, %s : tensor<f32>, tensor<?x16xf32>
  %g = mt.mul %y, %d : tensor<?x16xf32>, tensor<?x16xf32>
  %gn = mt.cast %g : tensor<?x16xf32> to tensor<?x16xbf16>
  mt.output "g", %gn : tensor<?x16xbf16>
}
}
