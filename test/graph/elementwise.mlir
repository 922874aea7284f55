// SPDX-License-Identifier: Apache-2.0
// RUN: mt-opt %s --graph-layout | FileCheck %s --implicit-check-not=graph.

// Ops of mt element by element.
module attributes {graph.version = 1 : i32} {
  // CHECK-LABEL: mt.model @elementwise
  mt.model @elementwise {
    %y = mt.target "y" : tensor<?xf32>
    %v1t = mt.input "x" : tensor<?x8x4xf32>
    %v1 = graph.logical %v1t : tensor<?x8x4xf32> -> !graph.value<[b, 8, 4], f32>
    %v2t = mt.input "i" : tensor<?xi32>
    %v2 = graph.logical %v2t : tensor<?xi32> -> !graph.value<[b], i32>
    %v3t = mt.variable "w" init(zeros) : tensor<4xf32>
    %v3 = graph.logical %v3t : tensor<4xf32> -> !graph.value<[4], f32>
    %v4t = mt.variable "v" init(zeros) : tensor<8x1xf32>
    %v4 = graph.logical %v4t : tensor<8x1xf32> -> !graph.value<[8, 1], f32>
    %v5 = graph.elementwise "exp"(%v1) : (!graph.value<[b, 8, 4], f32>) -> !graph.value<[b, 8, 4], f32>
    %v5o = graph.tensor %v5 : !graph.value<[b, 8, 4], f32> -> tensor<?x8x4xf32>
    mt.output "o5", %v5o : tensor<?x8x4xf32>
    // CHECK: mt.exp %[[X:.*]] : tensor<?x8x4xf32>
    // CHECK: mt.output "o5"
    %v6 = graph.elementwise "leaky_relu"(%v1) {negative_slope = 1.0e-2 : f32} : (!graph.value<[b, 8, 4], f32>) -> !graph.value<[b, 8, 4], f32>
    %v6o = graph.tensor %v6 : !graph.value<[b, 8, 4], f32> -> tensor<?x8x4xf32>
    mt.output "o6", %v6o : tensor<?x8x4xf32>
    // CHECK: mt.leaky_relu %[[X]] negative_slope = 0.00999999977 : tensor<?x8x4xf32>
    // CHECK: mt.output "o6"
    // A function that mt has no op for is a formula.
    %vt = graph.elementwise "tan"(%v1) : (!graph.value<[b, 8, 4], f32>) -> !graph.value<[b, 8, 4], f32>
    %vto = graph.tensor %vt : !graph.value<[b, 8, 4], f32> -> tensor<?x8x4xf32>
    mt.output "ot", %vto : tensor<?x8x4xf32>
    // CHECK-DAG: %[[COS:.*]] = mt.cos %[[X]]
    // CHECK-DAG: %[[SIN:.*]] = mt.sin %[[X]]
    // CHECK: mt.div %[[SIN]], %[[COS]]
    // CHECK: mt.output "ot"
    %vp = graph.along "product"(%v1) dim = 2 : (!graph.value<[b, 8, 4], f32>) -> !graph.value<[b, 8], f32>
    %vpo = graph.tensor %vp : !graph.value<[b, 8], f32> -> tensor<?x8xf32>
    mt.output "op", %vpo : tensor<?x8xf32>
    // CHECK: mt.mul {{.*}} : tensor<?x8x2xf32>, tensor<?x8x2xf32>
    // CHECK: mt.mul {{.*}} : tensor<?x8xf32>, tensor<?x8xf32>
    // CHECK: mt.output "op"
    %v7 = graph.transpose %v1 by [2, 0, 1] : (!graph.value<[b, 8, 4], f32>) -> !graph.value<[4, b, 8], f32>
    %v8 = graph.reshape %v3 : (!graph.value<[4], f32>) -> !graph.value<[4, 1, 1], f32>
    // A transpose moves nothing.
    %v9 = graph.elementwise "add"(%v7, %v8) : (!graph.value<[4, b, 8], f32>, !graph.value<[4, 1, 1], f32>) -> !graph.value<[4, b, 8], f32>
    %v9o = graph.tensor %v9 : !graph.value<[4, b, 8], f32> -> tensor<?x4x8xf32>
    mt.output "o9", %v9o : tensor<?x4x8xf32>
    // CHECK-NOT: mt.transpose
    // CHECK: mt.add %[[X]], %{{.*}} : tensor<?x8x4xf32>, tensor<4xf32>
    // CHECK: mt.output "o9"
    %v10 = graph.elementwise "mul"(%v1, %v4) : (!graph.value<[b, 8, 4], f32>, !graph.value<[8, 1], f32>) -> !graph.value<[b, 8, 4], f32>
    %v10o = graph.tensor %v10 : !graph.value<[b, 8, 4], f32> -> tensor<?x8x4xf32>
    mt.output "o10", %v10o : tensor<?x8x4xf32>
    // CHECK: mt.mul %[[X]], %{{.*}} : tensor<?x8x4xf32>, tensor<8x1xf32>
    // CHECK: mt.output "o10"
    %v11 = graph.elementwise "compare"(%v1, %v3) {kind = #mt<compare_kind lt>} : (!graph.value<[b, 8, 4], f32>, !graph.value<[4], f32>) -> !graph.value<[b, 8, 4], i1>
    %v12t = mt.constant dense<0.0> : tensor<f32>
    %v12 = graph.logical %v12t : tensor<f32> -> !graph.value<[], f32>
    %v13 = graph.elementwise "select"(%v11, %v1, %v12) : (!graph.value<[b, 8, 4], i1>, !graph.value<[b, 8, 4], f32>, !graph.value<[], f32>) -> !graph.value<[b, 8, 4], f32>
    %v13o = graph.tensor %v13 : !graph.value<[b, 8, 4], f32> -> tensor<?x8x4xf32>
    mt.output "o13", %v13o : tensor<?x8x4xf32>
    // CHECK: %[[C:.*]] = mt.compare lt, %[[X]]
    // CHECK: mt.select %[[C]], %[[X]], %{{.*}} : tensor<?x8x4xi1>, tensor<?x8x4xf32>, tensor<f32>
    // CHECK: mt.output "o13"
    %v14 = graph.broadcast %v4 dims [1, 2] : (!graph.value<[8, 1], f32>) -> !graph.value<[b, 8, 4], f32>
    // Operands that mt wants of one type.
    %v15 = graph.elementwise "while_training"(%v1, %v14) : (!graph.value<[b, 8, 4], f32>, !graph.value<[b, 8, 4], f32>) -> !graph.value<[b, 8, 4], f32>
    %v15o = graph.tensor %v15 : !graph.value<[b, 8, 4], f32> -> tensor<?x8x4xf32>
    mt.output "o15", %v15o : tensor<?x8x4xf32>
    // CHECK: %[[V:.*]] = mt.broadcast %{{.*}} to tensor<?x8x4xf32>
    // CHECK: mt.while_training %[[X]] else %[[V]]
    // CHECK: mt.output "o15"
    %v16 = graph.elementwise "cast"(%v2) : (!graph.value<[b], i32>) -> !graph.value<[b], f32>
    %v16o = graph.tensor %v16 : !graph.value<[b], f32> -> tensor<?xf32>
    mt.output "o16", %v16o : tensor<?xf32>
    // CHECK: mt.cast %{{.*}} : tensor<?xi32> to tensor<?xf32>
    // CHECK: mt.output "o16"
    %v17 = graph.broadcast %v3 dims [2] : (!graph.value<[4], f32>) -> !graph.value<[b, 8, 4], f32>
    // Each element has a random number of its own.
    %v18 = graph.elementwise "dropout"(%v17) {stream = "s", rate = 5.0e-1 : f32} : (!graph.value<[b, 8, 4], f32>) -> !graph.value<[b, 8, 4], f32>
    %v18o = graph.tensor %v18 : !graph.value<[b, 8, 4], f32> -> tensor<?x8x4xf32>
    mt.output "o18", %v18o : tensor<?x8x4xf32>
    // CHECK: mt.broadcast %{{.*}} : tensor<4xf32> to tensor<?x8x4xf32>
    // CHECK: mt.dropout %{{.*}} "s" rate = 5.000000e-01 : tensor<?x8x4xf32>
    // CHECK: mt.output "o18"
    %v19 = graph.along "softmax"(%v1) dim = 2 : (!graph.value<[b, 8, 4], f32>) -> !graph.value<[b, 8, 4], f32>
    %v19o = graph.tensor %v19 : !graph.value<[b, 8, 4], f32> -> tensor<?x8x4xf32>
    mt.output "o19", %v19o : tensor<?x8x4xf32>
    // CHECK-NOT: mt.transpose
    // CHECK: mt.softmax %[[X]]
    // CHECK: mt.output "o19"
    %v20 = graph.along "argmax"(%v1) dim = 1 : (!graph.value<[b, 8, 4], f32>) -> !graph.value<[b, 4], i32>
    %v20o = graph.tensor %v20 : !graph.value<[b, 4], i32> -> tensor<?x4xi32>
    mt.output "o20", %v20o : tensor<?x4xi32>
    // CHECK: mt.transpose %[[X]] by [0, 2, 1]
    // CHECK: mt.argmax %{{.*}} : tensor<?x4x8xf32>
    // CHECK: mt.output "o20"
    %v21 = graph.round %v1 to bf16 : (!graph.value<[b, 8, 4], f32>) -> !graph.value<[b, 8, 4], f32>
    %v21o = graph.tensor %v21 : !graph.value<[b, 8, 4], f32> -> tensor<?x8x4xf32>
    mt.output "o21", %v21o : tensor<?x8x4xf32>
    // CHECK: %[[SHORT:.*]] = mt.cast %[[X]] : tensor<?x8x4xf32> to tensor<?x8x4xbf16>
    // CHECK: mt.cast %[[SHORT]] : tensor<?x8x4xbf16> to tensor<?x8x4xf32>
    // CHECK: mt.output "o21"
    mt.loss "loss", %y : tensor<?xf32>
    mt.sgd <{learning_rate = 0.1 : f32}>
  }
}
