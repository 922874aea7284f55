// SPDX-License-Identifier: Apache-2.0
// RUN: mt-opt %s --mt-differentiate --split-input-file --verify-diagnostics

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
