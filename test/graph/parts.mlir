// SPDX-License-Identifier: Apache-2.0
// RUN: mt-opt %s --graph-layout | FileCheck %s --implicit-check-not=graph.

// Parts of values.
module attributes {graph.version = 1 : i32} {
  // CHECK-LABEL: mt.model @parts
  mt.model @parts {
    %y = mt.target "y" : tensor<?xf32>
    %v1t = mt.input "x" : tensor<?x8x4xf32>
    %v1 = graph.logical %v1t : tensor<?x8x4xf32> -> !graph.value<[b, 8, 4], f32>
    %v2t = mt.input "i" : tensor<?x3xi32>
    %v2 = graph.logical %v2t : tensor<?x3xi32> -> !graph.value<[b, 3], i32>
    %v3t = mt.variable "w" init(zeros) : tensor<10x4xf32>
    %v3 = graph.logical %v3t : tensor<10x4xf32> -> !graph.value<[10, 4], f32>
    %v4 = graph.transpose %v1 by [2, 0, 1] : (!graph.value<[b, 8, 4], f32>) -> !graph.value<[4, b, 8], f32>
    %v5 = graph.slice %v4 starts [1, 0, 0] strides [2, 1, 1] : (!graph.value<[4, b, 8], f32>) -> !graph.value<[2, b, 8], f32>
    %v5o = graph.tensor %v5 : !graph.value<[2, b, 8], f32> -> tensor<?x2x8xf32>
    mt.output "o5", %v5o : tensor<?x2x8xf32>
    // CHECK: mt.slice %[[X:.*]] starts = [0, 1] sizes = [8, 2] strides = [1, 2] : tensor<?x8x4xf32>
    // CHECK: mt.output "o5"
    %v6 = graph.pad %v4 value = 1.0 low [1, 0, -1] high [0, 0, 2] : (!graph.value<[4, b, 8], f32>) -> !graph.value<[5, b, 9], f32>
    %v6o = graph.tensor %v6 : !graph.value<[5, b, 9], f32> -> tensor<?x5x9xf32>
    mt.output "o6", %v6o : tensor<?x5x9xf32>
    // CHECK: mt.pad %[[X]] low = [0, 1] high = [2, 0] value = 1.000000e+00
    // CHECK: mt.slice %{{.*}} starts = [1, 0] sizes = [9, 5]
    // CHECK: mt.output "o6"
    %v7 = graph.concat %v4, %v4 dim = 0 : (!graph.value<[4, b, 8], f32>, !graph.value<[4, b, 8], f32>) -> !graph.value<[8, b, 8], f32>
    %v7o = graph.tensor %v7 : !graph.value<[8, b, 8], f32> -> tensor<?x8x8xf32>
    mt.output "o7", %v7o : tensor<?x8x8xf32>
    // CHECK: mt.concat %[[X]], %[[X]] dim = 2
    // CHECK: mt.output "o7"
    %v8 = graph.reverse %v4 over [2] : (!graph.value<[4, b, 8], f32>) -> !graph.value<[4, b, 8], f32>
    %v8o = graph.tensor %v8 : !graph.value<[4, b, 8], f32> -> tensor<?x4x8xf32>
    mt.output "o8", %v8o : tensor<?x4x8xf32>
    // CHECK: mt.reverse %[[X]] over [1]
    // CHECK: mt.output "o8"
    // A table.
    %v9 = graph.take %v3, %v2 dim = 0 : (!graph.value<[10, 4], f32>, !graph.value<[b, 3], i32>) -> !graph.value<[b, 3, 4], f32>
    %v9o = graph.tensor %v9 : !graph.value<[b, 3, 4], f32> -> tensor<?x3x4xf32>
    mt.output "o9", %v9o : tensor<?x3x4xf32>
    // CHECK: mt.gather %{{.*}}, %{{.*}} : tensor<10x4xf32>, tensor<?x3xi32>
    // CHECK: mt.output "o9"
    // Ids of each sample.
    %v10 = graph.take %v1, %v2 dim = 1 : (!graph.value<[b, 8, 4], f32>, !graph.value<[b, 3], i32>) -> !graph.value<[b, 3, 4], f32>
    %v10o = graph.tensor %v10 : !graph.value<[b, 3, 4], f32> -> tensor<?x3x4xf32>
    mt.output "o10", %v10o : tensor<?x3x4xf32>
    // CHECK: mt.take %[[X]], %{{.*}} dim = 1 : tensor<?x8x4xf32>, tensor<?x3xi32>
    // CHECK: mt.output "o10"
    %v11t = mt.constant dense<[0, 2]> : tensor<2xi32>
    %v11 = graph.logical %v11t : tensor<2xi32> -> !graph.value<[2], i32>
    // Ids of all samples.
    %v12 = graph.take %v1, %v11 dim = 1 : (!graph.value<[b, 8, 4], f32>, !graph.value<[2], i32>) -> !graph.value<[b, 2, 4], f32>
    %v12o = graph.tensor %v12 : !graph.value<[b, 2, 4], f32> -> tensor<?x2x4xf32>
    mt.output "o12", %v12o : tensor<?x2x4xf32>
    // CHECK: mt.take %[[X]], %{{.*}} dim = 1 : tensor<?x8x4xf32>, tensor<2xi32>
    // CHECK: mt.output "o12"
    %v13t = mt.constant dense<9> : tensor<i32>
    %v13 = graph.logical %v13t : tensor<i32> -> !graph.value<[], i32>
    // One id is a slice.
    %v14 = graph.take %v1, %v13 dim = 1 : (!graph.value<[b, 8, 4], f32>, !graph.value<[], i32>) -> !graph.value<[b, 4], f32>
    %v14o = graph.tensor %v14 : !graph.value<[b, 4], f32> -> tensor<?x4xf32>
    mt.output "o14", %v14o : tensor<?x4xf32>
    // CHECK: mt.slice %[[X]] starts = [7, 0] sizes = [1, 4]
    // CHECK: mt.output "o14"
    %v15 = graph.broadcast %v3 dims [1, 2] : (!graph.value<[10, 4], f32>) -> !graph.value<[b, 10, 4], f32>
    // All samples share the table.
    %v16 = graph.take %v15, %v2 dim = 1 : (!graph.value<[b, 10, 4], f32>, !graph.value<[b, 3], i32>) -> !graph.value<[b, 3, 4], f32>
    %v16o = graph.tensor %v16 : !graph.value<[b, 3, 4], f32> -> tensor<?x3x4xf32>
    mt.output "o16", %v16o : tensor<?x3x4xf32>
    // CHECK-NOT: mt.take
    // CHECK: mt.output "o16"
    // The samples stay first, whichever axis is looked up.
    %v22 = graph.transpose %v15 by [0, 2, 1] : (!graph.value<[b, 10, 4], f32>) -> !graph.value<[b, 4, 10], f32>
    %v21 = graph.take %v22, %v2 dim = 2 : (!graph.value<[b, 4, 10], f32>, !graph.value<[b, 3], i32>) -> !graph.value<[b, 4, 3], f32>
    %v21o = graph.tensor %v21 : !graph.value<[b, 4, 3], f32> -> tensor<?x4x3xf32>
    mt.output "o21", %v21o : tensor<?x4x3xf32>
    // CHECK: %[[ROWS:.*]] = mt.transpose %{{.*}} by [0, 2, 1] : tensor<?x3x4xf32>
    // CHECK: mt.output "o21", %[[ROWS]]
    %v17 = graph.slice %v1 starts [0, 0, 0] : (!graph.value<[b, 8, 4], f32>) -> !graph.value<[b, 3, 4], f32>
    %v18 = graph.scatter_rows %v2, %v17 : (!graph.value<[b, 3], i32>, !graph.value<[b, 3, 4], f32>) -> !graph.value<[10, 4], f32>
    // CHECK: mt.scatter_add %{{.*}}, %{{.*}} : tensor<?x3xi32>, tensor<?x3x4xf32> to tensor<10x4xf32>
    %v19 = graph.broadcast %v18 dims [1, 2] : (!graph.value<[10, 4], f32>) -> !graph.value<[b, 10, 4], f32>
    %v19o = graph.tensor %v19 : !graph.value<[b, 10, 4], f32> -> tensor<?x10x4xf32>
    mt.output "o19", %v19o : tensor<?x10x4xf32>
    // CHECK: mt.broadcast %{{.*}} : tensor<10x4xf32> to tensor<?x10x4xf32>
    // CHECK: mt.output "o19"
    %v20 = graph.one_hot %v2 : (!graph.value<[b, 3], i32>) -> !graph.value<[b, 3, 5], f32>
    %v20o = graph.tensor %v20 : !graph.value<[b, 3, 5], f32> -> tensor<?x3x5xf32>
    mt.output "o20", %v20o : tensor<?x3x5xf32>
    // CHECK: mt.one_hot %{{.*}} : tensor<?x3xi32> to tensor<?x3x5xf32>
    // CHECK: mt.output "o20"
    mt.loss "loss", %y : tensor<?xf32>
    mt.sgd <{learning_rate = 0.1 : f32}>
  }
}
