// SPDX-License-Identifier: Apache-2.0
// RUN: mt-opt %s --graph-layout | FileCheck %s
// RUN: mtc compile %s --batch 32 -o %t.plan
module attributes {graph.version = 1 : i32} {
  mt.model @"mlp" {
    %x = mt.input "x" : tensor<?x784xf32>
    %w = mt.variable "dense/kernel" init(glorot_uniform) : tensor<10x784xf32>
    %b = mt.variable "dense/bias" init(zeros) : tensor<10xf32>
    %y = mt.target "y" : tensor<?xi32>
    %1 = graph.logical %x : tensor<?x784xf32> -> !graph.value<[b, 784], f32>
    %2 = graph.logical %w : tensor<10x784xf32> -> !graph.value<[10, 784], f32>
    %3 = graph.logical %b : tensor<10xf32> -> !graph.value<[10], f32>
    %4 = graph.logical %y : tensor<?xi32> -> !graph.value<[b], i32>
    %5 = graph.transpose %2 by [1, 0] : (!graph.value<[10, 784], f32>) -> !graph.value<[784, 10], f32> loc("layer"("file.py":12:5))
    %6 = graph.dot_general %1, %5 contract [1] x [0] : (!graph.value<[b, 784], f32>, !graph.value<[784, 10], f32>) -> !graph.value<[b, 10], f32> loc("layer"("file.py":13:5))
    %7 = graph.elementwise "add"(%6, %3) : (!graph.value<[b, 10], f32>, !graph.value<[10], f32>) -> !graph.value<[b, 10], f32>
    %8 = graph.cross_entropy %7, %4 : (!graph.value<[b, 10], f32>, !graph.value<[b], i32>) -> !graph.value<[b], f32>
    %9 = graph.tensor %8 : !graph.value<[b], f32> -> tensor<?xf32>
    %l = graph.tensor %7 : !graph.value<[b, 10], f32> -> tensor<?x10xf32>
    mt.output "o", %l : tensor<?x10xf32>
    mt.loss "loss", %9 by samples : tensor<?xf32>
    mt.sgd <{learning_rate = 0.1 : f32}>
  }
}

// CHECK-LABEL: mt.model @mlp
// CHECK-NOT: graph.
// CHECK: %[[P:.*]] = mt.matmul %{{.*}}, %{{.*}} transpose_b : tensor<?x784xf32>, tensor<10x784xf32>
// CHECK-NEXT: %[[S:.*]] = mt.add %[[P]], %{{.*}} : tensor<?x10xf32>, tensor<10xf32>
// CHECK-NEXT: mt.sparse_categorical_crossentropy %[[S]], %{{.*}} from_logits : tensor<?x10xf32>, tensor<?xi32>
// CHECK-NOT: graph.
