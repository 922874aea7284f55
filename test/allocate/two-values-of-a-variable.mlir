// SPDX-License-Identifier: Apache-2.0
// Of two values that a kernel reads to write a variable only one may be in the variable's memory: both are live until
// the kernel runs.
// RUN: mtc compile %s --batch 8 -o %t.mtp && mtc inspect %t.mtp | FileCheck %s
// CHECK: norm
mt.model @two {
  %x = mt.input "x" : tensor<?x4xf32>
  %a = mt.variable "a" init(ones) : tensor<4xf32>
  %b = mt.variable "b" init(zeros) : tensor<4xf32>
  %i = mt.variable "i" init(zeros) frozen role(iteration) : tensor<i32>
  %k = mt.variable "k" init(constant = 0.25) frozen : tensor<f32>
  // The program never reads it.
  %n = mt.variable "norm" init(zeros) slot : tensor<f32>
  %0 = mt.mul %x, %a : tensor<?x4xf32>, tensor<4xf32>
  %p = mt.add %0, %b : tensor<?x4xf32>, tensor<4xf32>
  mt.loss "loss", %p : tensor<?x4xf32>
  mt.update {
    %ga = mt.gradient "a" : tensor<4xf32>
    %gb = mt.gradient "b" : tensor<4xf32>
    %na = mt.reduce sum, %ga over [0] : tensor<4xf32>
    %nb = mt.reduce sum, %gb over [0] : tensor<4xf32>
    %zero = mt.constant dense<0> : tensor<i32>
    %even = mt.compare eq, %i, %zero : tensor<i32>, tensor<i32>
    %norm = mt.select %even, %na, %nb : tensor<i1>, tensor<f32>, tensor<f32>
    %sa = mt.mul %ga, %k : tensor<4xf32>, tensor<f32>
    %sb = mt.mul %gb, %k : tensor<4xf32>, tensor<f32>
    %wa = mt.sub %a, %sa : tensor<4xf32>, tensor<4xf32>
    %wb = mt.sub %b, %sb : tensor<4xf32>, tensor<4xf32>
    mt.assign "a", %wa : tensor<4xf32>
    mt.assign "b", %wb : tensor<4xf32>
    mt.assign "norm", %norm : tensor<f32>
  }
}
