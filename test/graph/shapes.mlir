// SPDX-License-Identifier: Apache-2.0
// RUN: mt-opt %s --graph-layout | FileCheck %s --implicit-check-not=graph.

// Shapes: what a value is stored as changes where an op needs it.
module attributes {graph.version = 1 : i32} {
  // CHECK-LABEL: mt.model @shapes
  mt.model @shapes {
    %y = mt.target "y" : tensor<?xf32>
    %v1t = mt.input "x" : tensor<?x16x64xf32>
    %v1 = graph.logical %v1t : tensor<?x16x64xf32> -> !graph.value<[b, 16, 64], f32>
    %v2t = mt.input "q" : tensor<?x6xf32>
    %v2 = graph.logical %v2t : tensor<?x6xf32> -> !graph.value<[b, 6], f32>
    %v3 = graph.reshape %v1 : (!graph.value<[b, 16, 64], f32>) -> !graph.value<[16*b, 64], f32>
    %v4t = mt.constant dense<[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0, 16.0, 17.0, 18.0, 19.0, 20.0, 21.0, 22.0, 23.0, 24.0, 25.0, 26.0, 27.0, 28.0, 29.0, 30.0, 31.0, 32.0, 33.0, 34.0, 35.0, 36.0, 37.0, 38.0, 39.0, 40.0, 41.0, 42.0, 43.0, 44.0, 45.0, 46.0, 47.0, 48.0, 49.0, 50.0, 51.0, 52.0, 53.0, 54.0, 55.0, 56.0, 57.0, 58.0, 59.0, 60.0, 61.0, 62.0, 63.0]> : tensor<64xf32>
    %v4 = graph.logical %v4t : tensor<64xf32> -> !graph.value<[64], f32>
    // A folded batch is stored apart.
    %v5 = graph.elementwise "add"(%v3, %v4) : (!graph.value<[16*b, 64], f32>, !graph.value<[64], f32>) -> !graph.value<[16*b, 64], f32>
    %v5o = graph.tensor %v5 : !graph.value<[16*b, 64], f32> -> tensor<?x16x64xf32>
    mt.output "o5", %v5o : tensor<?x16x64xf32>
    // CHECK: mt.add %[[X:.*]], %{{.*}} : tensor<?x16x64xf32>, tensor<64xf32>
    // CHECK: mt.output "o5"
    %v6 = graph.reshape %v3 : (!graph.value<[16*b, 64], f32>) -> !graph.value<[b, 1024], f32>
    %v6o = graph.tensor %v6 : !graph.value<[b, 1024], f32> -> tensor<?x1024xf32>
    mt.output "o6", %v6o : tensor<?x1024xf32>
    // CHECK: mt.reshape %[[X]] : tensor<?x16x64xf32> to tensor<?x1024xf32>
    // CHECK: mt.output "o6"
    %v7 = graph.transpose %v1 by [1, 0, 2] : (!graph.value<[b, 16, 64], f32>) -> !graph.value<[16, b, 64], f32>
    // Here the batch is behind the 16.
    %v8 = graph.reshape %v7 : (!graph.value<[16, b, 64], f32>) -> !graph.value<[16*b, 64], f32>
    %v8o = graph.tensor %v8 : !graph.value<[16*b, 64], f32> -> tensor<?x16x64xf32>
    mt.output "o8", %v8o : tensor<?x16x64xf32>
    // CHECK: mt.output "o8"
    %v9 = graph.transpose %v1 by [0, 2, 1] : (!graph.value<[b, 16, 64], f32>) -> !graph.value<[b, 64, 16], f32>
    %v10 = graph.reshape %v9 : (!graph.value<[b, 64, 16], f32>) -> !graph.value<[b, 64, 4, 4], f32>
    %v10o = graph.tensor %v10 : !graph.value<[b, 64, 4, 4], f32> -> tensor<?x64x4x4xf32>
    mt.output "o10", %v10o : tensor<?x64x4x4xf32>
    // CHECK: mt.transpose %{{.*}} by [0, 3, 1, 2] : tensor<?x4x4x64xf32>
    // CHECK: mt.output "o10"
    %v11 = graph.reshape %v2 : (!graph.value<[b, 6], f32>) -> !graph.value<[1, b, 2, 1, 3], f32>
    %v11o = graph.tensor %v11 : !graph.value<[1, b, 2, 1, 3], f32> -> tensor<?x2x3xf32>
    mt.output "o11", %v11o : tensor<?x2x3xf32>
    // CHECK: mt.reshape %{{.*}} : tensor<?x6xf32> to tensor<?x2x3xf32>
    // CHECK: mt.output "o11"
    %v12t = mt.constant dense<0.0> : tensor<f32>
    %v12 = graph.logical %v12t : tensor<f32> -> !graph.value<[], f32>
    // A constant has a folded batch of any order.
    %v13 = graph.broadcast %v12 dims [] : (!graph.value<[], f32>) -> !graph.value<[16*b, 64], f32>
    %v14 = graph.reshape %v7 : (!graph.value<[16, b, 64], f32>) -> !graph.value<[16*b, 64], f32>
    %v15 = graph.elementwise "maximum"(%v14, %v13) : (!graph.value<[16*b, 64], f32>, !graph.value<[16*b, 64], f32>) -> !graph.value<[16*b, 64], f32>
    %v15o = graph.tensor %v15 : !graph.value<[16*b, 64], f32> -> tensor<?x16x64xf32>
    mt.output "o15", %v15o : tensor<?x16x64xf32>
    // CHECK: mt.maximum %{{.*}}, %{{.*}} : tensor<?x16x64xf32>, tensor<f32>
    // CHECK: mt.output "o15"
    %v16t = mt.constant dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]> : tensor<2x3xf32>
    %v16 = graph.logical %v16t : tensor<2x3xf32> -> !graph.value<[2, 3], f32>
    %v17 = graph.transpose %v16 by [1, 0] : (!graph.value<[2, 3], f32>) -> !graph.value<[3, 2], f32>
    // A transposed constant is a constant.
    %v18 = graph.broadcast %v17 dims [1, 2] : (!graph.value<[3, 2], f32>) -> !graph.value<[b, 3, 2], f32>
    %v18o = graph.tensor %v18 : !graph.value<[b, 3, 2], f32> -> tensor<?x3x2xf32>
    mt.output "o18", %v18o : tensor<?x3x2xf32>
    // CHECK: mt.constant dense<{{\[\[}}1.000000e+00, 4.000000e+00], [2.000000e+00, 5.000000e+00], [3.000000e+00, 6.000000e+00]]> : tensor<3x2xf32>
    // CHECK: mt.broadcast
    // CHECK: mt.output "o18"
    %v19 = graph.elementwise "neg"(%v2) : (!graph.value<[b, 6], f32>) -> !graph.value<[b, 6], f32>
    %v20 = graph.elementwise "neg"(%v2) : (!graph.value<[b, 6], f32>) -> !graph.value<[b, 6], f32>
    // Equal ops are made once.
    %v21 = graph.elementwise "mul"(%v19, %v20) : (!graph.value<[b, 6], f32>, !graph.value<[b, 6], f32>) -> !graph.value<[b, 6], f32>
    %v21o = graph.tensor %v21 : !graph.value<[b, 6], f32> -> tensor<?x6xf32>
    mt.output "o21", %v21o : tensor<?x6xf32>
    // CHECK: %[[N:.*]] = mt.neg
    // CHECK-NOT: mt.neg
    // CHECK: mt.mul %[[N]], %[[N]]
    // CHECK: mt.output "o21"
    mt.loss "loss", %y : tensor<?xf32>
    mt.sgd <{learning_rate = 0.1 : f32}>
  }
}
