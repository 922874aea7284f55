// SPDX-License-Identifier: Apache-2.0
// RUN: mt-opt %s --mt-expand-optimizer | FileCheck %s
//
// A short form becomes its variables and an update: clip, state, decay, formula, average.
mt.model @short {
  %x = mt.input "x" : tensor<?x4xf32>
  %f = mt.variable "a/f" init(ones) frozen no_weight_decay {mt.gradient_decay = 0.5 : f32} : tensor<4xf32>
  %w = mt.variable "a/w" init(ones) : tensor<4xf32>
  %b = mt.variable "a/b" init(ones) no_weight_decay {mt.gradient_decay = 0.25 : f32} : tensor<4xf32>
  %0 = mt.mul %x, %w : tensor<?x4xf32>, tensor<4xf32>
  %1 = mt.mul %0, %f : tensor<?x4xf32>, tensor<4xf32>
  %p = mt.add %1, %b : tensor<?x4xf32>, tensor<4xf32>
  mt.loss "loss", %p : tensor<?x4xf32>
  mt.nadam <{learning_rate = 0.5 : f32, weight_decay = 0.125 : f32, clipvalue = 2.0 : f32, ema_momentum = 0.75 : f32}>
}
// CHECK:      mt.variable "a/f" init(ones) frozen : tensor<4xf32>
// CHECK:      %[[W:.*]] = mt.variable "a/w" init(ones) : tensor<4xf32>
// CHECK:      %[[B:.*]] = mt.variable "a/b" init(ones) : tensor<4xf32>
// CHECK-NOT:  mt.nadam
// CHECK:      mt.variable "nadam/iteration" init(zeros) frozen role(iteration) : tensor<i32>
// CHECK-NEXT: %[[RATE:.*]] = mt.variable "nadam/learning_rate" init(constant = 5.000000e-01) frozen role(learning_rate) : tensor<f32>
// CHECK-NEXT: %[[U:.*]] = mt.variable "nadam/u_product" init(constant = 1.000000e+00) frozen : tensor<f32>
// CHECK-NEXT: mt.variable "nadam/a_w_momentum" init(zeros) slot : tensor<4xf32>
// CHECK-NEXT: mt.variable "nadam/a_w_velocity" init(zeros) slot : tensor<4xf32>
// CHECK-NEXT: mt.variable "nadam/a_w_average" init(zeros) slot role(average) of "a/w" : tensor<4xf32>
// CHECK-NEXT: mt.variable "nadam/a_b_momentum" init(zeros) slot : tensor<4xf32>
// CHECK-NEXT: mt.variable "nadam/a_b_velocity" init(zeros) slot : tensor<4xf32>
// CHECK-NEXT: mt.variable "nadam/a_b_average" init(zeros) slot role(average) of "a/b" : tensor<4xf32>
// CHECK-NEXT: mt.update {
// CHECK-NEXT: %[[I:.*]] = mt.iteration
// CHECK-NEXT: %[[GW:.*]] = mt.gradient "a/w" required : tensor<4xf32>
// CHECK-NEXT: %[[GB:.*]] = mt.gradient "a/b" required : tensor<4xf32>
// CHECK:      mt.maximum %[[GW]], %{{.*}} : tensor<4xf32>, tensor<f32>
// CHECK:      mt.maximum %[[GB]], %{{.*}} : tensor<4xf32>, tensor<f32>
// CHECK:      %[[CB:.*]] = mt.minimum %{{.*}} : tensor<4xf32>, tensor<f32>
// CHECK:      mt.mul %[[U]], %{{.*}} : tensor<f32>, tensor<f32>
// CHECK:      mt.assign "nadam/u_product"
// CHECK:      %[[D:.*]] = mt.mul %[[W]], %{{.*}} : tensor<4xf32>, tensor<f32>
// CHECK-NEXT: %[[S:.*]] = mt.mul %[[D]], %[[RATE]] : tensor<4xf32>, tensor<f32>
// CHECK-NEXT: mt.sub %[[W]], %[[S]] : tensor<4xf32>, tensor<4xf32>
// CHECK:      mt.assign "nadam/a_w_average"
// CHECK:      mt.assign "a/w"
// CHECK:      mt.assign "nadam/a_w_momentum"
// CHECK:      mt.assign "nadam/a_w_velocity"
// CHECK-NOT:  mt.sub %[[B]]
// CHECK:      %[[DECAY:.*]] = mt.mul %[[B]], %{{.*}} : tensor<4xf32>, tensor<f32>
// CHECK-NEXT: mt.add %[[CB]], %[[DECAY]] : tensor<4xf32>, tensor<4xf32>
// CHECK:      mt.assign "a/b"
