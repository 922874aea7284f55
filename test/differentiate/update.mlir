// SPDX-License-Identifier: Apache-2.0
// The body of mt.update in train_step: variables have their values before the step, and gradients are those of the
// objective. Only what mt.gradient names is differentiated.
// RUN: mt-opt %s --mt-differentiate | FileCheck %s
// RUN: mt-opt %s --mt-differentiate | FileCheck %s --check-prefix=ONCE
mt.model @updated {
  %x = mt.input "x" : tensor<?x4xf32>
  %t = mt.target "t" : tensor<?x4xf32>
  %c = mt.variable "opt/count" init(constant = 2.0) slot : tensor<i32>
  %w = mt.variable "w" init(ones) : tensor<4xf32>
  %v = mt.variable "v" init(ones) : tensor<4xf32>
  %u = mt.variable "unused" init(ones) : tensor<2x3xf32>
  %i = mt.variable "opt/iteration" init(zeros) frozen role(iteration) : tensor<i32>
  %a = mt.variable "opt/average" init(zeros) slot role(average) of "w" : tensor<4xf32>
  %h = mt.variable "opt/decay" init(constant = 0.5) frozen : tensor<f32>
  %0 = mt.mul %x, %w : tensor<?x4xf32>, tensor<4xf32>
  %p = mt.mul %0, %v : tensor<?x4xf32>, tensor<4xf32>
  %l = mt.mean_squared_error %p, %t : tensor<?x4xf32>, tensor<?x4xf32>
  mt.loss "loss", %l : tensor<?xf32>
  mt.update {
    %g = mt.gradient "w" : tensor<4xf32>
    %n = mt.gradient "unused" : tensor<2x3xf32>
    %step = mt.iteration
    %1 = mt.mul %w, %h : tensor<4xf32>, tensor<f32>
    %2 = mt.sub %1, %g : tensor<4xf32>, tensor<4xf32>
    mt.assign "w", %2 : tensor<4xf32>
    mt.assign "opt/average", %w : tensor<4xf32>
    mt.assign "unused", %n : tensor<2x3xf32>
    mt.assign "opt/count", %step : tensor<i32>
  }
}
// The variables of the model, then those of the optimizer, the iteration first.
// CHECK:      mt.declare "w" trainable tensor<4xf32>
// CHECK-NEXT: mt.declare "v" trainable tensor<4xf32>
// CHECK-NEXT: mt.declare "unused" trainable tensor<2x3xf32>
// CHECK-NEXT: mt.declare "opt/iteration" non_trainable role iteration tensor<i32>
// CHECK-NEXT: mt.declare "opt/count" slot tensor<i32>
// CHECK-NEXT: mt.declare "opt/average" slot role average of "w" tensor<4xf32>
// CHECK-NEXT: mt.declare "opt/decay" non_trainable tensor<f32>

// CHECK-LABEL: mt.program @init
// CHECK:      %[[TWO:.*]] = mt.constant dense<2> : tensor<i32>
// CHECK:      mt.assign "opt/count", %[[TWO]] : tensor<i32>

// CHECK-LABEL: mt.program @train_step
// CHECK-DAG:  %[[W:.*]] = mt.read "w" : tensor<4xf32>
// CHECK:      %[[G:.*]] = mt.reduce sum, %{{.*}} over [0] : tensor<?x4xf32>
// CHECK-DAG:  %[[I:.*]] = mt.read "opt/iteration" : tensor<i32>
// CHECK-DAG:  %[[H:.*]] = mt.read "opt/decay" : tensor<f32>
// CHECK:      %[[D:.*]] = mt.mul %[[W]], %[[H]] : tensor<4xf32>, tensor<f32>
// CHECK:      %[[S:.*]] = mt.sub %[[D]], %[[G]] : tensor<4xf32>, tensor<4xf32>
// CHECK:      mt.assign "w", %[[S]] : tensor<4xf32>
// CHECK:      mt.assign "opt/average", %[[W]] : tensor<4xf32>
// CHECK:      mt.assign "unused", %{{.*}} : tensor<2x3xf32>
// CHECK:      mt.assign "opt/count", %[[I]] : tensor<i32>
// CHECK:      %[[NEXT:.*]] = mt.add %[[I]], %{{.*}} : tensor<i32>, tensor<i32>
// CHECK:      mt.assign "opt/iteration", %[[NEXT]] : tensor<i32>
// CHECK-NOT:  mt.assign
// CHECK-LABEL: mt.program @eval_step
// CHECK-NOT:  mt.read "opt/

// The sum of the loss and one gradient: none of "v", which no mt.gradient names.
// ONCE-LABEL: mt.program @train_step
// ONCE-COUNT-2: mt.reduce sum, %{{.*}} over [0]
// ONCE-NOT:   mt.reduce sum, %{{.*}} over [0]
// ONCE-LABEL: mt.program @eval_step
