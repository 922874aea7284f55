// SPDX-License-Identifier: Apache-2.0
// RUN: mt-opt %s --mt-fuse | FileCheck %s
// What chooses between a number extended from 16 bits and a constant that 16 bits hold is stored as 16 bits; not so
// with a constant that they do not hold.

// CHECK-LABEL: mt.program @eval_step
// CHECK: mt.kernel "{{.*}}" matmul ({{.*}}) -> (tensor<?x128xbf16>)
// CHECK: mt.kernel "{{.*}}" matmul ({{.*}}) -> (tensor<?x128xf32>)
shard.grid @shards(shape = 8)
mt.program @eval_step {
  %x = mt.input "x" : tensor<?x64xbf16>
  %m = mt.input "m" : tensor<?x128xi1>
  %k = mt.read "k" : tensor<64x128xbf16>
  %0 = mt.matmul %x, %k : tensor<?x64xbf16>, tensor<64x128xbf16>
  %1 = mt.cast %0 : tensor<?x128xf32> to tensor<?x128xbf16>
  %2 = mt.cast %1 : tensor<?x128xbf16> to tensor<?x128xf32>
  %zero = mt.constant dense<0.0> : tensor<f32>
  %third = mt.constant dense<0.333333343> : tensor<f32>
  %3 = mt.select %m, %2, %zero : tensor<?x128xi1>, tensor<?x128xf32>, tensor<f32>
  %4 = mt.reduce sum, %3 over [1] : tensor<?x128xf32>
  %5 = mt.matmul %x, %k : tensor<?x64xbf16>, tensor<64x128xbf16>
  %6 = mt.cast %5 : tensor<?x128xf32> to tensor<?x128xbf16>
  %7 = mt.cast %6 : tensor<?x128xbf16> to tensor<?x128xf32>
  %8 = mt.select %m, %7, %third : tensor<?x128xi1>, tensor<?x128xf32>, tensor<f32>
  %9 = mt.reduce sum, %8 over [1] : tensor<?x128xf32>
  mt.output "a", %4 : tensor<?xf32>
  mt.output "b", %9 : tensor<?xf32>
}
