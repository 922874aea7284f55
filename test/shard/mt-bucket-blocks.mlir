// SPDX-License-Identifier: Apache-2.0
// A table is the embedding's and the last product's. The gradient of the product comes by blocks of classes and is
// complete before the backward pass of what lies between: its all-reduce stands there, and not where the two gradients
// are added. --bucket-bytes sets the size of the exchanges behind it.
// RUN: mtc compile %s --batch 16 --bucket-bytes 2000 --stop-after shard -o - | FileCheck %s
// CHECK: %[[JOINED:.*]] = mt.concat {{.*}}mt.blocks
// CHECK-NEXT: shard.all_reduce %[[JOINED]] {{.*}} : tensor<60000x8xf32>
// CHECK: shard.all_reduce {{.*}} : tensor<8x32xf32>
// CHECK: mt.scatter_add
mt.model @tied {
  %text = mt.input "text" : tensor<?x64xi32>
  %next = mt.target "next" : tensor<?x64xi32>
  %table = mt.variable "embedding" init(normal = 0.05) : tensor<60000x8xf32>
  %0 = mt.gather %table, %text : tensor<60000x8xf32>, tensor<?x64xi32>
  %u = mt.variable "up" init(glorot_uniform) : tensor<8x32xf32>
  %1 = mt.matmul %0, %u : tensor<?x64x8xf32>, tensor<8x32xf32>
  %2 = mt.tanh %1 : tensor<?x64x32xf32>
  %d = mt.variable "down" init(glorot_uniform) : tensor<32x8xf32>
  %3 = mt.matmul %2, %d : tensor<?x64x32xf32>, tensor<32x8xf32>
  %4 = mt.matmul %3, %table transpose_b : tensor<?x64x8xf32>, tensor<60000x8xf32>
  %loss = mt.sparse_categorical_crossentropy %4, %next from_logits : tensor<?x64x60000xf32>, tensor<?x64xi32>
  mt.loss "loss", %loss : tensor<?x64xf32>
  mt.sgd <{learning_rate = 1.0e-2 : f32}>
}
