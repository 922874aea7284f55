// SPDX-License-Identifier: Apache-2.0
// RUN: mt-opt %s --mt-expand-optimizer --mt-differentiate --split-input-file --verify-diagnostics

mt.model @unreachable {
  %x = mt.input "x" : tensor<?xf32>
  %w = mt.variable "used" init(ones) : tensor<f32>
  // expected-error@+1 {{expected a differentiable path from "lost" to a loss, found none: make it `frozen`}}
  %u = mt.variable "lost" init(ones) : tensor<f32>
  %0 = mt.mul %x, %w : tensor<?xf32>, tensor<f32>
  mt.loss "loss", %0 : tensor<?xf32>
  mt.sgd
}

// -----

// expected-error@+1 {{expected no variable with the name of the optimizer's "sgd/iteration", found one}}
mt.model @taken {
  %x = mt.input "x" : tensor<?xf32>
  %w = mt.variable "sgd/iteration" init(ones) : tensor<f32>
  %0 = mt.mul %x, %w : tensor<?xf32>, tensor<f32>
  mt.loss "loss", %0 : tensor<?xf32>
  mt.sgd
}

// -----

mt.model @changed_by_both {
  %x = mt.input "x" : tensor<?x4xf32>
  %g = mt.variable "gamma" init(ones) : tensor<4xf32>
  %m = mt.variable "mean" init(zeros) frozen : tensor<4xf32>
  %v = mt.variable "variance" init(ones) frozen : tensor<4xf32>
  %i = mt.variable "iteration" init(zeros) frozen role(iteration) : tensor<i32>
  %0 = mt.batch_normalization %x, %g, %g, %m, %v : tensor<?x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  mt.loss "loss", %0 : tensor<?x4xf32>
  mt.update {
    // expected-error@+1 {{expected a variable that the forward pass does not change, found "mean"}}
    mt.assign "mean", %v : tensor<4xf32>
  }
}

// -----

// A step that computes its own losses does not scale them.
module attributes {mt.compilation = #mt.compilation<precision = f16>} {
  mt.model @scaled {
    %x = mt.input "x" : tensor<?xf32>
    %w = mt.variable "w" init(ones) : tensor<f32>
    %i = mt.variable "iteration" init(zeros) frozen role(iteration) : tensor<i32>
    // expected-error@+1 {{expected a precision of f32, tf32 or bf16 for a step that computes its own losses, which are not scaled, found f16}}
    mt.update {
      %n = mt.batch_size
      mt.result "loss", %n, %n
    }
  }
}

// -----

mt.model @no_gradient {
  %x = mt.input "x" : tensor<?x4xf32>
  %w = mt.variable "w" init(ones) : tensor<4xf32>
  %i = mt.variable "iteration" init(zeros) frozen role(iteration) : tensor<i32>
  mt.update {
    %n = mt.batch_size
    %a = mt.argument %w : tensor<4xf32>
    %0 = mt.mul %x, %a : tensor<?x4xf32>, tensor<4xf32>
    // expected-error@+1 {{expected an op with a gradient between a trainable variable and a loss, found one without}}
    %1 = mt.categorical_accuracy %0, %x : tensor<?x4xf32>, tensor<?x4xf32>
    %2 = mt.reduce sum, %1 over [0] : tensor<?xf32>
    mt.result "loss", %2, %n
    %h = mt.derivative %2 by %a : tensor<4xf32>
    mt.assign "w", %h : tensor<4xf32>
  }
}

// -----

mt.model @moves_statistics {
  %x = mt.input "x" : tensor<?x4xf32>
  %g = mt.variable "gamma" init(ones) : tensor<4xf32>
  %m = mt.variable "mean" init(zeros) frozen : tensor<4xf32>
  %i = mt.variable "iteration" init(zeros) frozen role(iteration) : tensor<i32>
  mt.update {
    %n = mt.batch_size
    // expected-error@+1 {{expected an op that changes no variable inside mt.update, where mt.assign does, found this}}
    %0 = mt.batch_normalization %x, %g, %g, %m, %m : tensor<?x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
    mt.result "loss", %n, %n
  }
}
