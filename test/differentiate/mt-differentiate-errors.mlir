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
