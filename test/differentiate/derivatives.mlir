// SPDX-License-Identifier: Apache-2.0
// Whole steps: one backward pass for each loss, in program order.
// RUN: mt-opt %s --split-input-file --mt-differentiate | FileCheck %s

// The second loss reads what the first updated. The first has one backward pass for both arguments; a derivative by an
// argument that the loss does not depend on is zeros. Without losses and metrics there is no eval_step.
mt.model @two_losses {
  %x = mt.input "x" : tensor<?x4xf32>
  %w = mt.variable "w" init(ones) : tensor<4x3xf32>
  %b = mt.variable "b" init(ones) : tensor<3xf32>
  %i = mt.variable "iteration" init(zeros) frozen role(iteration) : tensor<i32>
  mt.update {
    %n = mt.batch_size
    %aw = mt.argument %w : tensor<4x3xf32>
    %ab = mt.argument %b : tensor<3xf32>
    %au = mt.argument %b : tensor<3xf32>
    %0 = mt.matmul %x, %aw : tensor<?x4xf32>, tensor<4x3xf32>
    %1 = mt.add %0, %ab : tensor<?x3xf32>, tensor<3xf32>
    %2 = mt.square %1 : tensor<?x3xf32>
    %each_3 = mt.reduce sum, %2 over [1] : tensor<?x3xf32>
    %3 = mt.reduce sum, %each_3 over [0] : tensor<?xf32>
    %first = mt.div %3, %n : tensor<f32>, tensor<f32>
    mt.result "first", %first, %n
    %gw = mt.derivative %first by %aw : tensor<4x3xf32>
    %gb = mt.derivative %first by %ab : tensor<3xf32>
    %gu = mt.derivative %first by %au : tensor<3xf32>
    %nw = mt.sub %w, %gw : tensor<4x3xf32>, tensor<4x3xf32>
    %4 = mt.sub %b, %gb : tensor<3xf32>, tensor<3xf32>
    %nb = mt.sub %4, %gu : tensor<3xf32>, tensor<3xf32>
    %a2 = mt.argument %nw : tensor<4x3xf32>
    %5 = mt.matmul %x, %a2 : tensor<?x4xf32>, tensor<4x3xf32>
    %6 = mt.exp %5 : tensor<?x3xf32>
    %each_second = mt.reduce sum, %6 over [1] : tensor<?x3xf32>
    %second = mt.reduce sum, %each_second over [0] : tensor<?xf32>
    %g2 = mt.derivative %second by %a2 : tensor<4x3xf32>
    %n2 = mt.sub %nw, %g2 : tensor<4x3xf32>, tensor<4x3xf32>
    mt.result "loss", %second, %n
    mt.assign "w", %n2 : tensor<4x3xf32>
    mt.assign "b", %nb : tensor<3xf32>
  }
}
// CHECK:       mt.program @train_step
// CHECK-NOT:   mt.argument
// CHECK-DAG:   %[[X:.*]] = mt.input "x"
// CHECK-DAG:   %[[W:.*]] = mt.read "w"
// CHECK-DAG:   %[[B:.*]] = mt.read "b"
// CHECK:       mt.matmul %[[X]], %[[W]] : tensor<?x4xf32>, tensor<4x3xf32>
// CHECK:       mt.result "first", %{{.*}}, %{{[^ ]*}} {{$}}
// CHECK:       %[[GB:.*]] = mt.reduce sum, %[[DY:.*]] over [0] : tensor<?x3xf32>
// CHECK:       %[[GW:.*]] = mt.matmul %[[X]], %[[DY]] transpose_a : tensor<?x4xf32>, tensor<?x3xf32>
// CHECK:       %[[ZERO:.*]] = mt.broadcast %{{.*}} : tensor<f32> to tensor<3xf32>
// CHECK:       %[[NW:.*]] = mt.sub %[[W]], %[[GW]]
// CHECK:       %[[B1:.*]] = mt.sub %[[B]], %[[GB]]
// CHECK:       %[[NB:.*]] = mt.sub %[[B1]], %[[ZERO]]
// CHECK:       mt.matmul %[[X]], %[[NW]] : tensor<?x4xf32>, tensor<4x3xf32>
// CHECK:       mt.matmul %[[X]], %{{.*}} transpose_a : tensor<?x4xf32>, tensor<?x3xf32>
// CHECK:       mt.result "loss", %{{.*}}, %{{.*}} loss
// CHECK:       mt.assign "w", %{{.*}} : tensor<4x3xf32>
// CHECK:       mt.assign "b", %[[NB]] : tensor<3xf32>
// CHECK-NOT:   mt.program @eval_step
// CHECK:       mt.program @predict

// -----

// A derivative of a derivative: of x^3, 6 x.
mt.model @twice {
  %x = mt.input "x" : tensor<?xf32>
  %w = mt.variable "w" init(ones) : tensor<f32>
  %i = mt.variable "iteration" init(zeros) frozen role(iteration) : tensor<i32>
  mt.update {
    %n = mt.batch_size
    %a = mt.argument %w : tensor<f32>
    %0 = mt.square %a : tensor<f32>
    %1 = mt.mul %0, %a : tensor<f32>, tensor<f32>
    %g = mt.derivative %1 by %a : tensor<f32>
    %h = mt.derivative %g by %a : tensor<f32>
    mt.result "value", %1, %n
    mt.assign "w", %h : tensor<f32>
  }
}
// CHECK:       mt.program @train_step
// CHECK:       mt.result "value", %{{.*}}, %{{.*}} loss
// CHECK:       mt.assign "w", %{{.*}} : tensor<f32>

// -----

// Losses and metrics are those of eval_step, and train_step reports the results of the update. mt.gradient still
// differentiates the losses. Dropout has its training form.
mt.model @both {
  %x = mt.input "x" : tensor<?x4xf32>
  %w = mt.variable "w" init(ones) : tensor<4xf32>
  %i = mt.variable "iteration" init(zeros) frozen role(iteration) : tensor<i32>
  %0 = mt.mul %x, %w : tensor<?x4xf32>, tensor<4xf32>
  mt.loss "error", %0 : tensor<?x4xf32>
  mt.update {
    %n = mt.batch_size
    %g = mt.gradient "w" : tensor<4xf32>
    %1 = mt.dropout %x "noise" rate = 0.5 : tensor<?x4xf32>
    %each_2 = mt.reduce sum, %1 over [1] : tensor<?x4xf32>
    %2 = mt.reduce sum, %each_2 over [0] : tensor<?xf32>
    mt.result "kept", %2, %n better higher
    mt.assign "w", %g : tensor<4xf32>
  }
}
// CHECK:       mt.program @train_step
// CHECK-NOT:   mt.result "loss"
// CHECK:       %[[STEP:.*]] = mt.read "iteration"
// CHECK:       mt.dropout %{{.*}} "noise" rate = 5.000000e-01 step(%[[STEP]])
// CHECK:       mt.result "kept", %{{.*}}, %{{.*}} loss better higher
// CHECK:       mt.assign "w"
// CHECK:       mt.program @eval_step
// CHECK:       mt.result "loss", %{{.*}}, %{{.*}} loss

// -----

// A derivative in the forward pass: the loss is the square of the slope of w x^2, and an output is the slope. All
// programs compute it; only train_step differentiates it again.
mt.model @slope {
  %x = mt.input "x" : tensor<?xf32>
  %w = mt.variable "w" init(ones) : tensor<f32>
  %i = mt.variable "iteration" init(zeros) frozen role(iteration) : tensor<i32>
  %a = mt.argument %x : tensor<?xf32>
  %0 = mt.square %a : tensor<?xf32>
  %1 = mt.mul %0, %w : tensor<?xf32>, tensor<f32>
  %2 = mt.reduce sum, %1 over [0] : tensor<?xf32>
  %g = mt.derivative %2 by %a : tensor<?xf32>
  %3 = mt.square %g : tensor<?xf32>
  mt.loss "loss", %3 : tensor<?xf32>
  mt.output "slope", %g : tensor<?xf32>
  mt.update {
    %d = mt.gradient "w" : tensor<f32>
    mt.assign "w", %d : tensor<f32>
  }
}
// CHECK:       mt.program @train_step
// CHECK-NOT:   mt.argument
// CHECK:       %[[W:.*]] = mt.read "w"
// CHECK:       mt.mul %{{.*}}, %{{.*}} : tensor<?xf32>, tensor<?xf32>
// CHECK:       mt.result "loss"
// CHECK:       mt.reduce sum, %{{.*}} over [0] : tensor<?xf32>
// CHECK:       mt.assign "w"
// CHECK:       mt.program @eval_step
// CHECK-NOT:   mt.argument
// CHECK:       mt.result "loss"
// CHECK:       mt.program @predict
// CHECK-NOT:   mt.argument
// CHECK:       mt.mul
// CHECK:       mt.output "slope"
