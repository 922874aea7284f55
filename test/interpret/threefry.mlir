// SPDX-License-Identifier: Apache-2.0
// The known answers of Threefry 2x32-20 whose counter begins with 0, as `jax.random` has them: counter (0, 0) and key
// (0, 0), 0x6b200159 and 0x99ba4efe; then the key (0, 42) and the counters 0, 1 and 2.
// RUN: mt-interpret %s --run=predict | FileCheck %s
// INPUT x = 0 1 2
mt.model @words {
  %x = mt.input "x" : tensor<?xi32>
  %zero = mt.constant dense<0> : tensor<i32>
  %seed = mt.constant dense<42> : tensor<i32>
  %a = mt.threefry first, %zero, %zero, %x : tensor<i32>, tensor<i32>, tensor<?xi32>
  %b = mt.threefry second, %zero, %zero, %x : tensor<i32>, tensor<i32>, tensor<?xi32>
  %c = mt.threefry both, %zero, %seed, %x : tensor<i32>, tensor<i32>, tensor<?xi32>
  %d = mt.threefry uniform, %zero, %seed, %x : tensor<i32>, tensor<i32>, tensor<?xi32>
  %w = mt.variable "w" init(ones) : tensor<f32>
  %l = mt.mul %d, %w : tensor<?xf32>, tensor<f32>
  mt.loss "loss", %l : tensor<?xf32>
  mt.output "first", %a : tensor<?xi32>
  mt.output "second", %b : tensor<?xi32>
  mt.output "both", %c : tensor<?xi32>
  mt.output "uniform", %d : tensor<?xf32>
  mt.sgd <{learning_rate = 0.1 : f32}>
}
// CHECK-DAG: both [3] = 2.09899e+09 -1.37526e+09 -1.6481e+09
// CHECK-DAG: first [3] = 1.79726e+09 9.28982e+08 -1.48943e+08
// CHECK-DAG: second [3] = -1.71584e+09 -8.4128e+08 -1.57612e+09
// CHECK-DAG: uniform [3] = 0.48871 0.679797 0.616271
