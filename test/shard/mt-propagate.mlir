// SPDX-License-Identifier: Apache-2.0
// RUN: mt-opt %s --mt-annotate --mt-propagate | FileCheck %s
// RUN: mt-opt %s --mt-annotate --mt-propagate | mt-opt --mt-propagate | FileCheck %s

// Every value is annotated: what walks the batch is split, weights, their gradients and sums over the batch are
// replicated.

module attributes {mt.compilation = #mt.compilation<shards = 8>} {
  mt.declare "w" trainable tensor<4x3xf32>
  mt.declare "b" trainable tensor<3xf32>

  // CHECK-LABEL: mt.program @train_step
  // CHECK-DAG: %[[SPLIT:.*]] = shard.sharding @shards split_axes = {{\[\[}}0]]
  // CHECK-DAG: %[[SHARDTED:.*]] = shard.sharding @shards split_axes = {{\[\[}}]]
  mt.program @train_step {
    %x = mt.input "x" : tensor<?x4xf32>
    %y = mt.target "y" : tensor<?x3xf32>
    %w = mt.read "w" : tensor<4x3xf32>
    %b = mt.read "b" : tensor<3xf32>

    // CHECK: %[[XW0:.*]] = mt.matmul
    // CHECK-NEXT: %[[XW:.*]] = shard.shard %[[XW0]] to %[[SPLIT]] : tensor<?x3xf32>
    %xw = mt.matmul %x, %w : tensor<?x4xf32>, tensor<4x3xf32>
    // A replicated operand that is broadcast along the batch.
    // CHECK: %[[Z0:.*]] = mt.add %[[XW]], %{{.*}} : tensor<?x3xf32>, tensor<3xf32>
    // CHECK-NEXT: shard.shard %[[Z0]] to %[[SPLIT]] : tensor<?x3xf32>
    %z = mt.add %xw, %b : tensor<?x3xf32>, tensor<3xf32>
    %d = mt.sub %z, %y : tensor<?x3xf32>, tensor<?x3xf32>
    %dd = mt.square %d : tensor<?x3xf32>
    // A sum inside a sample.
    // CHECK: %[[L0:.*]] = mt.reduce sum, %{{.*}} over [1]
    // CHECK-NEXT: shard.shard %[[L0]] to %[[SPLIT]] : tensor<?xf32>
    %l = mt.reduce sum, %dd over [1] : tensor<?x3xf32>
    // A sum over the batch.
    // CHECK: %[[T0:.*]] = mt.reduce sum, %{{.*}} over [0] : tensor<?xf32>
    // CHECK-NEXT: shard.shard %[[T0]] to %[[SHARDTED]] : tensor<f32>
    %t = mt.reduce sum, %l over [0] : tensor<?xf32>
    // CHECK: %[[N0:.*]] = mt.batch_size
    // CHECK-NEXT: shard.shard %[[N0]] to %[[SHARDTED]] : tensor<f32>
    %n = mt.batch_size
    %loss = mt.div %t, %n : tensor<f32>, tensor<f32>
    // Values made from no operand that is split: their type says whose rows they have.
    // CHECK: %[[K0:.*]] = mt.broadcast %{{.*}} : tensor<f32> to tensor<?x3xf32>
    // CHECK-NEXT: shard.shard %[[K0]] to %[[SPLIT]] : tensor<?x3xf32>
    %k = mt.broadcast %n : tensor<f32> to tensor<?x3xf32>
    %dk = mt.div %d, %k : tensor<?x3xf32>, tensor<?x3xf32>
    // CHECK: %[[R0:.*]] = mt.random_uniform "noise" : tensor<?x3xf32>
    // CHECK-NEXT: shard.shard %[[R0]] to %[[SPLIT]] : tensor<?x3xf32>
    %r = mt.random_uniform "noise" : tensor<?x3xf32>
    %dz = mt.mul %dk, %r : tensor<?x3xf32>, tensor<?x3xf32>
    // CHECK: %[[DW0:.*]] = mt.matmul %{{.*}}, %{{.*}} transpose_a
    // CHECK-NEXT: shard.shard %[[DW0]] to %[[SHARDTED]] : tensor<4x3xf32>
    %dw = mt.matmul %x, %dz transpose_a : tensor<?x4xf32>, tensor<?x3xf32>
    // CHECK: %[[DB0:.*]] = mt.reduce sum, %{{.*}} over [0] : tensor<?x3xf32>
    // CHECK-NEXT: shard.shard %[[DB0]] to %[[SHARDTED]] : tensor<3xf32>
    %db = mt.reduce sum, %dz over [0] : tensor<?x3xf32>
    // CHECK: %[[NW0:.*]] = mt.sub
    // CHECK-NEXT: %[[NW:.*]] = shard.shard %[[NW0]] to %[[SHARDTED]] : tensor<4x3xf32>
    %nw = mt.sub %w, %dw : tensor<4x3xf32>, tensor<4x3xf32>
    %nb = mt.sub %b, %db : tensor<3xf32>, tensor<3xf32>
    // CHECK: mt.assign "w", %[[NW]]
    mt.assign "w", %nw : tensor<4x3xf32>
    mt.assign "b", %nb : tensor<3xf32>
    mt.result "loss", %loss, %n loss
  }

  // Nothing is read that was annotated: the program gets its sharding here, unread inputs and results do no harm.
  // CHECK-LABEL: mt.program @init
  // CHECK: shard.sharding @shards split_axes = {{\[\[}}]]
  // CHECK: mt.constant
  // CHECK-NEXT: shard.shard
  mt.program @init {
    %zero = mt.constant dense<0.0> : tensor<4x3xf32>
    %unread = mt.constant dense<1.0> : tensor<3xf32>
    mt.assign "w", %zero : tensor<4x3xf32>
  }
}
