// SPDX-License-Identifier: Apache-2.0
// The syntax of mt.update and of the words of variables, twice through the parser.
// RUN: mt-opt %s | FileCheck %s
// RUN: mt-opt %s | mt-opt - | FileCheck %s
mt.model @updated {
  %x = mt.input "x" : tensor<?x4xf32>
  %w = mt.variable "w" init(zeros) : tensor<4xf32>
  // CHECK: %[[M:.*]] = mt.variable "optimizer/m/w" init(zeros) slot : tensor<4xf32>
  %m = mt.variable "optimizer/m/w" init(zeros) slot : tensor<4xf32>
  // CHECK: mt.variable "optimizer/average" init(zeros) slot role(average) of "w" : tensor<4xf32>
  %a = mt.variable "optimizer/average" init(zeros) slot role(average) of "w" : tensor<4xf32>
  // CHECK: mt.variable "optimizer/count" init(constant = 3.000000e+00) slot : tensor<i32>
  %c = mt.variable "optimizer/count" init(constant = 3.0) slot : tensor<i32>
  // CHECK: mt.variable "optimizer/learning_rate" init(constant = 1.000000e-01) frozen role(learning_rate) : tensor<f32>
  %r = mt.variable "optimizer/learning_rate" init(constant = 0.1) frozen role(learning_rate) : tensor<f32>
  // CHECK: mt.variable "optimizer/iteration" init(zeros) frozen role(iteration) : tensor<i32>
  %i = mt.variable "optimizer/iteration" init(zeros) frozen role(iteration) : tensor<i32>
  %p = mt.mul %x, %w : tensor<?x4xf32>, tensor<4xf32>
  mt.loss "loss", %p : tensor<?x4xf32>
  // CHECK: mt.update {
  mt.update {
    // CHECK: %[[G:.*]] = mt.gradient "w" : tensor<4xf32>
    %g = mt.gradient "w" : tensor<4xf32>
    // CHECK: mt.gradient "w" required : tensor<4xf32>
    %h = mt.gradient "w" required : tensor<4xf32>
    // CHECK: %[[D:.*]] = mt.mul %[[G]], %{{.*}} : tensor<4xf32>, tensor<f32>
    %0 = mt.mul %g, %r : tensor<4xf32>, tensor<f32>
    // CHECK: mt.rate %{{.*}}
    mt.rate %r
    // CHECK: mt.assign "w", %[[D]] : tensor<4xf32>
    mt.assign "w", %0 : tensor<4xf32>
    // CHECK: %[[A:.*]] = mt.argument %{{.*}} : tensor<4xf32>
    %b = mt.argument %w : tensor<4xf32>
    %1 = mt.reduce sum, %b over [0] : tensor<4xf32>
    // CHECK: %{{.*}} = mt.derivative %[[L:.*]] by %[[A]] : tensor<4xf32>
    %d = mt.derivative %1 by %b : tensor<4xf32>
    // CHECK: mt.result "loss", %[[L]], %{{.*}}
    mt.result "loss", %1, %r
  }
}
