// SPDX-License-Identifier: Apache-2.0
// RUN: mt-opt %s --mt-partition --split-input-file --verify-diagnostics

module {
  shard.grid @shards(shape = 8)
  mt.program @p {
    %x = mt.input "x" : tensor<?x4xf32>
    // expected-error @below {{expected every value to be annotated by mt-propagate, found an operand that is not}}
    mt.output "x", %x : tensor<?x4xf32>
  }
}

// -----

module {
  shard.grid @shards(shape = 8)
  mt.program @p {
    %replicated = shard.sharding @shards split_axes = [[]] : !shard.sharding
    %w = mt.read "w" : tensor<4xf32>
    %wr = shard.shard %w to %replicated : tensor<4xf32>
    // expected-error @below {{expected no all-reduce before mt-partition, found one}}
    %s = shard.all_reduce %wr on @shards grid_axes = [0] : tensor<4xf32> -> tensor<4xf32>
    mt.assign "w", %s : tensor<4xf32>
  }
}
