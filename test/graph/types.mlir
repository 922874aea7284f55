// SPDX-License-Identifier: Apache-2.0
// RUN: mt-opt %s --split-input-file --verify-diagnostics | FileCheck %s

// CHECK: graph.reshape %{{.*}} : (!graph.value<[], f32>) -> !graph.value<[1, 1], f32>
// CHECK: graph.broadcast %{{.*}} dims [0, 1] : (!graph.value<[1, 1], f32>) -> !graph.value<[b, 16*b], f32>
module attributes {graph.version = 1 : i32} {
  mt.model @types {
    %x = mt.input "x" : tensor<?xf32>
    %c = mt.constant dense<1.0> : tensor<f32>
    %1 = graph.logical %c : tensor<f32> -> !graph.value<[], f32>
    %2 = graph.reshape %1 : (!graph.value<[], f32>) -> !graph.value<[1, 1], f32>
    %3 = graph.broadcast %2 dims [0, 1] : (!graph.value<[1, 1], f32>) -> !graph.value<[1*b, 16*b], f32>
    mt.loss "loss", %x : tensor<?xf32>
    mt.sgd <{learning_rate = 0.1 : f32}>
  }
}

// -----

// expected-error @+1 {{expected a size of 1 or more, found 0}}
func.func private @zero(!graph.value<[0], f32>)

// -----

// expected-error @+1 {{expected a size of 1 or more, found -3}}
func.func private @negative(!graph.value<[-3*b], f32>)

// -----

// expected-error @+1 {{expected 'b', the batch, or a number as a size}}
func.func private @letter(!graph.value<[2*c], f32>)

// -----

// expected-error @+1 {{expected elements of f32, f64, i32 or i1, found 'bf16'}}
func.func private @elements(!graph.value<[2], bf16>)

// -----

// expected-error @+1 {{expected at most 16 axes, found 17}}
func.func private @rank(!graph.value<[1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1], f32>)

// -----

// expected-error @+1 {{expected at most 2^46 elements, found more}}
func.func private @large(!graph.value<[4294967296, 2147483648*b, 2], f32>)

// -----

// expected-error @+1 {{integer value too large}}
func.func private @overflow(!graph.value<[99999999999999999999], f32>)
