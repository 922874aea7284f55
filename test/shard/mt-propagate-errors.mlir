// SPDX-License-Identifier: Apache-2.0
// RUN: mt-opt %s --mt-propagate --split-input-file --verify-diagnostics

// A static axis annotated split.
module {
  shard.grid @shards(shape = 8)
  mt.program @p {
    %split = shard.sharding @shards split_axes = [[0]] : !shard.sharding
    %w = mt.read "w" : tensor<4x3xf32>
    // expected-error @below {{expected axis 0 of 'tensor<4x3xf32>' to be replicated, found it split}}
    %ws = shard.shard %w to %split : tensor<4x3xf32>
    mt.assign "w", %ws : tensor<4x3xf32>
  }
}

// -----

// The batch axis annotated replicated.
module {
  shard.grid @shards(shape = 8)
  mt.program @p {
    %replicated = shard.sharding @shards split_axes = [[]] : !shard.sharding
    %x = mt.input "x" : tensor<?x4xf32>
    // expected-error @below {{expected axis 0 of 'tensor<?x4xf32>' to be split, found it replicated}}
    %xr = shard.shard %x to %replicated : tensor<?x4xf32>
    mt.output "x", %xr : tensor<?x4xf32>
  }
}

// -----

// An annotation that contradicts what the operands say.
module {
  shard.grid @shards(shape = 8)
  mt.program @p {
    %split = shard.sharding @shards split_axes = [[0]] : !shard.sharding
    %replicated = shard.sharding @shards split_axes = [[]] : !shard.sharding
    %x = mt.input "x" : tensor<?x4xf32>
    %xs = shard.shard %x to %split : tensor<?x4xf32>
    %y = mt.relu %xs : tensor<?x4xf32>
    // expected-error @below {{expected axis 0 of 'tensor<?x4xf32>' to be split, found it replicated}}
    %yr = shard.shard %y to %replicated : tensor<?x4xf32>
    mt.output "y", %yr : tensor<?x4xf32>
  }
}

// -----

// An input that mt-annotate has not seen.
module {
  shard.grid @shards(shape = 8)
  mt.program @p {
    // expected-error @below {{expected a result that is annotated, or loops to find its sharding by, found neither}}
    %x = mt.input "x" : tensor<?x4xf32>
    mt.output "x", %x : tensor<?x4xf32>
  }
}
