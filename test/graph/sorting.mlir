// SPDX-License-Identifier: Apache-2.0
// RUN: mt-opt %s --graph-layout | FileCheck %s --implicit-check-not=graph.

// Up to 64 elements: the number of elements that come before each is its place. Elements of several lines of a sample
// are looked up in one line.
module attributes {graph.version = 1 : i32} {
  mt.model @short {
    %x = mt.input "x" : tensor<?x4x10xf32>
    %1 = graph.logical %x : tensor<?x4x10xf32> -> !graph.value<[b, 4, 10], f32>
    // CHECK-LABEL: mt.model @short
    // CHECK: mt.reduce sum{{.*}} : tensor<?x4x10x10xf32>
    // CHECK: mt.reduce sum{{.*}} : tensor<?x4x3x10xf32>
    %2 = graph.sort %1 dim = 2 descending : (!graph.value<[b, 4, 10], f32>) -> !graph.value<[b, 4, 3], i32>
    // CHECK: mt.take %{{.*}}, %{{.*}} : tensor<?x40xf32>, tensor<?x12xi32>
    %3 = graph.take_along %1, %2 dim = 2 : (!graph.value<[b, 4, 10], f32>, !graph.value<[b, 4, 3], i32>) ->
        !graph.value<[b, 4, 3], f32>
    %4 = graph.tensor %3 : !graph.value<[b, 4, 3], f32> -> tensor<?x4x3xf32>
    mt.output "y", %4 : tensor<?x4x3xf32>
    mt.loss "loss", %4 : tensor<?x4x3xf32>
    mt.sgd <{learning_rate = 0.1 : f32}>
  }
}

