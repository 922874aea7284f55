// SPDX-License-Identifier: Apache-2.0
// RUN: mt-opt %s --mt-annotate | FileCheck %s --check-prefixes=CHECK,EIGHT
// RUN: mt-opt %s --mt-annotate=shards=2 | FileCheck %s --check-prefixes=CHECK,TWO
// RUN: mt-opt %s --mt-annotate | mt-opt | FileCheck %s --check-prefixes=CHECK,EIGHT

// Signature values are split along the batch axis, variables are replicated, and nothing else is annotated.

// EIGHT: shard.grid @shards(shape = 8)
// TWO: shard.grid @shards(shape = 2)
module attributes {mt.compilation = #mt.compilation<shards = 8>} {
  mt.declare "w" trainable tensor<4x3xf32>

  // CHECK-LABEL: mt.program @eval_step
  // CHECK-DAG: %[[SPLIT:.*]] = shard.sharding @shards split_axes = {{\[\[}}0]]
  // CHECK-DAG: %[[SHARDTED:.*]] = shard.sharding @shards split_axes = {{\[\[}}]]
  mt.program @eval_step {
    // CHECK: %[[X0:.*]] = mt.input "x"
    // CHECK-NEXT: %[[X:.*]] = shard.shard %[[X0]] to %[[SPLIT]] : tensor<?x4xf32>
    %x = mt.input "x" : tensor<?x4xf32>
    // CHECK: %[[Y0:.*]] = mt.target "y"
    // CHECK-NEXT: %[[Y:.*]] = shard.shard %[[Y0]] to %[[SPLIT]] : tensor<?x3xf32>
    %y = mt.target "y" : tensor<?x3xf32>
    // CHECK: %[[S0:.*]] = mt.sample_weight "s"
    // CHECK-NEXT: shard.shard %[[S0]] to %[[SPLIT]] : tensor<?xf32>
    %s = mt.sample_weight "s" : tensor<?xf32>
    // CHECK: %[[W0:.*]] = mt.read "w"
    // CHECK-NEXT: %[[W:.*]] = shard.shard %[[W0]] to %[[SHARDTED]] : tensor<4x3xf32>
    %w = mt.read "w" : tensor<4x3xf32>
    // CHECK: %[[Z:.*]] = mt.matmul %[[X]], %[[W]]
    // CHECK-NOT: shard.shard
    // CHECK: mt.sub %[[Z]], %[[Y]]
    %z = mt.matmul %x, %w : tensor<?x4xf32>, tensor<4x3xf32>
    %d = mt.sub %z, %y : tensor<?x3xf32>, tensor<?x3xf32>
    mt.output "d", %d : tensor<?x3xf32>
  }

  // A program without a signature and reads needs no annotation.
  // CHECK-LABEL: mt.program @init
  // CHECK-NOT: shard
  mt.program @init {
    %zero = mt.constant dense<0.0> : tensor<4x3xf32>
    mt.assign "w", %zero : tensor<4x3xf32>
  }
}
