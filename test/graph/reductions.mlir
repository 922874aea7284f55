// SPDX-License-Identifier: Apache-2.0
// RUN: mt-opt %s --graph-layout | FileCheck %s --implicit-check-not=graph.

// Over axes.
module attributes {graph.version = 1 : i32} {
  // CHECK-LABEL: mt.model @reductions
  mt.model @reductions {
    %y = mt.target "y" : tensor<?xf32>
    %v1t = mt.input "x" : tensor<?x8x4xf32>
    %v1 = graph.logical %v1t : tensor<?x8x4xf32> -> !graph.value<[b, 8, 4], f32>
    %v2t = mt.input "i" : tensor<?x8xi32>
    %v2 = graph.logical %v2t : tensor<?x8xi32> -> !graph.value<[b, 8], i32>
    %v3 = graph.reshape %v1 : (!graph.value<[b, 8, 4], f32>) -> !graph.value<[8*b, 4], f32>
    %v4 = graph.reduce max, %v3 over [1] : (!graph.value<[8*b, 4], f32>) -> !graph.value<[8*b], f32>
    %v4o = graph.tensor %v4 : !graph.value<[8*b], f32> -> tensor<?x8xf32>
    mt.output "o4", %v4o : tensor<?x8xf32>
    // CHECK: mt.reduce max, %[[X:.*]] over [2]
    // CHECK: mt.output "o4"
    // The batch stays.
    %v5 = graph.reduce sum, %v3 over [0] within_samples : (!graph.value<[8*b, 4], f32>) -> !graph.value<[b, 4], f32>
    %v5o = graph.tensor %v5 : !graph.value<[b, 4], f32> -> tensor<?x4xf32>
    mt.output "o5", %v5o : tensor<?x4xf32>
    // CHECK: mt.reduce sum, %[[X]] over [1]
    // CHECK: mt.output "o5"
    %v6 = graph.reduce sum, %v3 over [0] : (!graph.value<[8*b, 4], f32>) -> !graph.value<[4], f32>
    // CHECK: mt.reduce sum, %{{.*}} over [0] : tensor<?x4xf32>
    %v7 = graph.broadcast %v6 dims [1] : (!graph.value<[4], f32>) -> !graph.value<[b, 4], f32>
    %v7o = graph.tensor %v7 : !graph.value<[b, 4], f32> -> tensor<?x4xf32>
    mt.output "o7", %v7o : tensor<?x4xf32>
    // CHECK: mt.output "o7"
    // Integers are summed as integers.
    %v8 = graph.reduce sum, %v2 over [1] : (!graph.value<[b, 8], i32>) -> !graph.value<[b], i32>
    %v8o = graph.tensor %v8 : !graph.value<[b], i32> -> tensor<?xi32>
    mt.output "o8", %v8o : tensor<?xi32>
    // CHECK: mt.reduce sum, %{{.*}} over [1] : tensor<?x8xi32>
    // CHECK: mt.output "o8"
    %v9 = graph.reduce max, %v3 over [1] : (!graph.value<[8*b, 4], f32>) -> !graph.value<[8*b], f32>
    %v10 = graph.broadcast %v9 dims [0] : (!graph.value<[8*b], f32>) -> !graph.value<[8*b, 5], f32>
    // What is stored once is multiplied.
    %v11 = graph.reduce sum, %v10 over [1] : (!graph.value<[8*b, 5], f32>) -> !graph.value<[8*b], f32>
    %v11o = graph.tensor %v11 : !graph.value<[8*b], f32> -> tensor<?x8xf32>
    mt.output "o11", %v11o : tensor<?x8xf32>
    // CHECK: mt.mul %{{.*}} : tensor<?x8xf32>, tensor<f32>
    // CHECK: mt.output "o11"
    %v12 = graph.cumsum %v1 dim = 1 reverse : (!graph.value<[b, 8, 4], f32>) -> !graph.value<[b, 8, 4], f32>
    %v12o = graph.tensor %v12 : !graph.value<[b, 8, 4], f32> -> tensor<?x8x4xf32>
    mt.output "o12", %v12o : tensor<?x8x4xf32>
    // CHECK: mt.cumsum %[[X]] dim = 1 reverse
    // CHECK: mt.output "o12"
    %v13 = graph.transpose %v1 by [2, 0, 1] : (!graph.value<[b, 8, 4], f32>) -> !graph.value<[4, b, 8], f32>
    // The last axis of what is stored.
    %v14 = graph.normalize %v13 over [0] epsilon = 1.0e-5 : (!graph.value<[4, b, 8], f32>) -> !graph.value<[4, b, 8], f32>
    %v14o = graph.tensor %v14 : !graph.value<[4, b, 8], f32> -> tensor<?x4x8xf32>
    mt.output "o14", %v14o : tensor<?x4x8xf32>
    // CHECK-NOT: mt.transpose
    // CHECK: mt.normalize %[[X]] over [2] epsilon = 9.99999974E-6
    // CHECK: mt.output "o14"
    %v15 = graph.reshape %v2 : (!graph.value<[b, 8], i32>) -> !graph.value<[8*b], i32>
    %v16 = graph.cross_entropy %v3, %v15 : (!graph.value<[8*b, 4], f32>, !graph.value<[8*b], i32>) -> !graph.value<[8*b], f32>
    %v16o = graph.tensor %v16 : !graph.value<[8*b], f32> -> tensor<?x8xf32>
    mt.output "o16", %v16o : tensor<?x8xf32>
    // CHECK: mt.sparse_categorical_crossentropy %[[X]], %{{.*}} from_logits : tensor<?x8x4xf32>, tensor<?x8xi32>
    // CHECK: mt.output "o16"
    mt.loss "loss", %y : tensor<?xf32>
    mt.sgd <{learning_rate = 0.1 : f32}>
  }
}
