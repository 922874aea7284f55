// SPDX-License-Identifier: Apache-2.0
// RUN: mt-opt %s --mt-expand-optimizer --mt-differentiate | FileCheck %s
// Spreads that the model gives: normal by the inverse of the distribution function, uniform between both ends.
mt.model @given {
  %x = mt.input "x" : tensor<?x4xf32>
  %n = mt.variable "n" init(normal = 0.02) : tensor<4x4xf32>
  %u = mt.variable "u" init(uniform = 0.25) : tensor<4xf32>
  %0 = mt.matmul %x, %n : tensor<?x4xf32>, tensor<4x4xf32>
  %1 = mt.mul %0, %u : tensor<?x4xf32>, tensor<4xf32>
  %t = mt.target "t" : tensor<?x4xf32>
  %l = mt.mean_squared_error %1, %t : tensor<?x4xf32>, tensor<?x4xf32>
  mt.loss "loss", %l : tensor<?xf32>
  mt.sgd <{learning_rate = 1.0e-1 : f32}>
}
// CHECK-LABEL: mt.program @init
// CHECK: mt.random_uniform "n" : tensor<4x4xf32>
// CHECK: mt.constant dense<2.0{{.*}}> : tensor<f32>
// CHECK: mt.erf_inv
// CHECK: mt.constant dense<0.0282842{{[0-9]*}}> : tensor<f32>
// CHECK: mt.assign "n"
// CHECK: mt.random_uniform "u" : tensor<4xf32>
// CHECK: mt.constant dense<5.0{{.*}}e-01> : tensor<f32>
// CHECK: mt.constant dense<2.5{{.*}}e-01> : tensor<f32>
// CHECK: mt.assign "u"
