// SPDX-License-Identifier: Apache-2.0
// RUN: mt-opt %s --graph-layout | FileCheck %s --implicit-check-not=graph.

// Products, convolutions and pools.
module attributes {graph.version = 1 : i32} {
  // CHECK-LABEL: mt.model @products
  mt.model @products {
    %y = mt.target "y" : tensor<?xf32>
    %v1t = mt.input "x" : tensor<?x16x64xf32>
    %v1 = graph.logical %v1t : tensor<?x16x64xf32> -> !graph.value<[b, 16, 64], f32>
    %v2t = mt.variable "w" init(zeros) : tensor<32x64xf32>
    %v2 = graph.logical %v2t : tensor<32x64xf32> -> !graph.value<[32, 64], f32>
    %v3t = mt.input "z" : tensor<?x3x9x9xf32>
    %v3 = graph.logical %v3t : tensor<?x3x9x9xf32> -> !graph.value<[b, 3, 9, 9], f32>
    %v4t = mt.variable "k" init(zeros) : tensor<6x3x3x3xf32>
    %v4 = graph.logical %v4t : tensor<6x3x3x3xf32> -> !graph.value<[6, 3, 3, 3], f32>
    %v5 = graph.reshape %v1 : (!graph.value<[b, 16, 64], f32>) -> !graph.value<[16*b, 64], f32>
    %v6 = graph.dot_general %v5, %v2 contract [1] x [1] : (!graph.value<[16*b, 64], f32>, !graph.value<[32, 64], f32>) -> !graph.value<[16*b, 32], f32>
    %v6o = graph.tensor %v6 : !graph.value<[16*b, 32], f32> -> tensor<?x16x32xf32>
    mt.output "o6", %v6o : tensor<?x16x32xf32>
    // CHECK: mt.matmul %[[X:.*]], %[[W:.*]] transpose_b : tensor<?x16x64xf32>, tensor<32x64xf32>
    // CHECK: mt.output "o6"
    // A sum over the samples.
    %v7 = graph.dot_general %v5, %v6 contract [0] x [0] : (!graph.value<[16*b, 64], f32>, !graph.value<[16*b, 32], f32>) -> !graph.value<[64, 32], f32>
    %v8 = graph.broadcast %v7 dims [1, 2] : (!graph.value<[64, 32], f32>) -> !graph.value<[b, 64, 32], f32>
    %v8o = graph.tensor %v8 : !graph.value<[b, 64, 32], f32> -> tensor<?x64x32xf32>
    mt.output "o8", %v8o : tensor<?x64x32xf32>
    // CHECK: %[[G:.*]] = mt.matmul %[[X]], %{{.*}} transpose_a : tensor<?x16x64xf32>, tensor<?x16x32xf32>
    // CHECK: mt.reduce sum, %[[G]] over [0]
    // CHECK: mt.output "o8"
    %v9 = graph.dot_general %v1, %v1 contract [2] x [2] common [0] x [0] : (!graph.value<[b, 16, 64], f32>, !graph.value<[b, 16, 64], f32>) -> !graph.value<[b, 16, 16], f32>
    %v9o = graph.tensor %v9 : !graph.value<[b, 16, 16], f32> -> tensor<?x16x16xf32>
    mt.output "o9", %v9o : tensor<?x16x16xf32>
    // CHECK: mt.matmul %[[X]], %[[X]] transpose_b : tensor<?x16x64xf32>, tensor<?x16x64xf32>
    // CHECK: mt.output "o9"
    %v10t = mt.constant dense<1.0> : tensor<f32>
    %v10 = graph.logical %v10t : tensor<f32> -> !graph.value<[], f32>
    %v11 = graph.broadcast %v10 dims [] : (!graph.value<[], f32>) -> !graph.value<[64, 2], f32>
    %v12 = graph.reduce sum, %v2 over [1] : (!graph.value<[32, 64], f32>) -> !graph.value<[32], f32>
    %v13 = graph.broadcast %v12 dims [0] : (!graph.value<[32], f32>) -> !graph.value<[32, 64], f32>
    // What is contracted and stored in none is a factor.
    %v14 = graph.dot_general %v13, %v11 contract [1] x [0] : (!graph.value<[32, 64], f32>, !graph.value<[64, 2], f32>) -> !graph.value<[32, 2], f32>
    %v15 = graph.broadcast %v14 dims [1, 2] : (!graph.value<[32, 2], f32>) -> !graph.value<[b, 32, 2], f32>
    %v15o = graph.tensor %v15 : !graph.value<[b, 32, 2], f32> -> tensor<?x32x2xf32>
    mt.output "o15", %v15o : tensor<?x32x2xf32>
    // CHECK: mt.constant dense<6.400000e+01>
    // CHECK: mt.mul
    // CHECK: mt.output "o15"
    // Images are stored with their channels last.
    %v16 = graph.convolution %v3, %v4 strides [2, 2] padding [1, 1, 1, 1] : (!graph.value<[b, 3, 9, 9], f32>, !graph.value<[6, 3, 3, 3], f32>) -> !graph.value<[b, 6, 5, 5], f32>
    %v16o = graph.tensor %v16 : !graph.value<[b, 6, 5, 5], f32> -> tensor<?x6x5x5xf32>
    mt.output "o16", %v16o : tensor<?x6x5x5xf32>
    // CHECK: mt.transpose %{{.*}} by [0, 2, 3, 1]
    // CHECK: mt.conv2d %{{.*}}, %{{.*}} strides = [2, 2] padding = [1, 1, 1, 1]
    // CHECK: mt.transpose %{{.*}} by [0, 3, 1, 2]
    // CHECK: mt.output "o16"
    %v17 = graph.transposed_convolution %v16, %v4 strides [2, 2] padding [1, 1, 1, 1] : (!graph.value<[b, 6, 5, 5], f32>, !graph.value<[6, 3, 3, 3], f32>) -> !graph.value<[b, 3, 9, 9], f32>
    %v17o = graph.tensor %v17 : !graph.value<[b, 3, 9, 9], f32> -> tensor<?x3x9x9xf32>
    mt.output "o17", %v17o : tensor<?x3x9x9xf32>
    // CHECK: mt.conv2d_input_gradient %{{.*}} strides = [2, 2] padding = [1, 1, 1, 1]
    // CHECK: mt.output "o17"
    // Padding that mt.pool does not take.
    %v18 = graph.pool max, %v3 window [3, 3] strides [2, 2] padding [0, 1, 4, 0] : (!graph.value<[b, 3, 9, 9], f32>) -> !graph.value<[b, 3, 4, 6], f32>
    %v18o = graph.tensor %v18 : !graph.value<[b, 3, 4, 6], f32> -> tensor<?x3x4x6xf32>
    mt.output "o18", %v18o : tensor<?x3x4x6xf32>
    // CHECK: mt.pad %{{.*}} low = [0, 0, 4] high = [0, 0, 0] value = -3.40282347E+38
    // CHECK: mt.pool max, %{{.*}} window = [3, 3] strides = [2, 2] padding = [0, 1, 0, 0]
    // CHECK: mt.output "o18"
    %v19t = mt.variable "vocabulary" init(zeros) : tensor<2048x64xf32>
    %v19 = graph.logical %v19t : tensor<2048x64xf32> -> !graph.value<[2048, 64], f32>
    %v20 = graph.dot_general %v1, %v19 contract [2] x [1] : (!graph.value<[b, 16, 64], f32>, !graph.value<[2048, 64], f32>) -> !graph.value<[b, 16, 2048], f32>
    // Logits of all tokens but the last are a product.
    %v21 = graph.slice %v20 starts [0, 0, 0] : (!graph.value<[b, 16, 2048], f32>) -> !graph.value<[b, 15, 2048], f32>
    %v21o = graph.tensor %v21 : !graph.value<[b, 15, 2048], f32> -> tensor<?x15x2048xf32>
    mt.output "o21", %v21o : tensor<?x15x2048xf32>
    // CHECK: %[[T:.*]] = mt.slice %[[X]] starts = [0, 0] sizes = [15, 64]
    // CHECK-NOT: mt.slice
    // CHECK: mt.matmul %[[T]], %{{.*}} transpose_b : tensor<?x15x64xf32>, tensor<2048x64xf32>
    // CHECK: mt.output "o21"
    mt.loss "loss", %y : tensor<?xf32>
    mt.sgd <{learning_rate = 0.1 : f32}>
  }
}
