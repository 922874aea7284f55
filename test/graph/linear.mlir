// SPDX-License-Identifier: Apache-2.0
// RUN: mt-opt %s --graph-layout | FileCheck %s --implicit-check-not=graph.

// Half the rows first, then the rest without what those explain. A system of two rows: two divisions.
module attributes {graph.version = 1 : i32} {
  mt.model @linear {
    %x = mt.input "x" : tensor<?x2x2xf32>
    %1 = graph.logical %x : tensor<?x2x2xf32> -> !graph.value<[b, 2, 2], f32>
    %2 = graph.solve_triangular %1, %1 : (!graph.value<[b, 2, 2], f32>, !graph.value<[b, 2, 2], f32>) -> !graph.value<[b, 2, 2], f32>
    // CHECK: mt.div
    // CHECK: mt.matmul
    // CHECK: mt.sub
    // CHECK: mt.div
    // CHECK: mt.concat
    %3 = graph.cholesky %2 : (!graph.value<[b, 2, 2], f32>) -> !graph.value<[b, 2, 2], f32>
    // CHECK: mt.stop_gradient
    // CHECK: mt.sqrt
    // CHECK: mt.div
    // CHECK: mt.sqrt
    %4 = graph.tensor %3 : !graph.value<[b, 2, 2], f32> -> tensor<?x2x2xf32>
    mt.output "y", %4 : tensor<?x2x2xf32>
    %5 = mt.reduce sum, %4 over [1, 2] : tensor<?x2x2xf32>
    mt.loss "loss", %5 : tensor<?xf32>
    mt.sgd <{learning_rate = 0.1 : f32}>
  }
}
