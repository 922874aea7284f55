// SPDX-License-Identifier: Apache-2.0
// RUN: mt-opt %s --mt-bucket --split-input-file --verify-diagnostics

// What the stage promises of all-reduces is checked apart from the passes that make them: faults are found.

// A sum over the batch without an all-reduce.
module {
  shard.grid @shards(shape = 8)
  mt.program @p {
    %x = mt.input "x" : tensor<?x4xf32>
    // expected-error @below {{expected one use of a shard's sum over the batch, by an all-reduce, found 1 use by another op}}
    %s = mt.reduce sum, %x over [0] : tensor<?x4xf32>
    mt.assign "w", %s : tensor<4xf32>
  }
}

// -----

// One that is read before it is all-reduced, too.
module {
  shard.grid @shards(shape = 8)
  mt.program @p {
    %x = mt.input "x" : tensor<?x4xf32>
    // expected-error @below {{expected one use of a shard's sum over the batch, by an all-reduce, found 2 uses}}
    %s = mt.reduce sum, %x over [0] : tensor<?x4xf32>
    %r = shard.all_reduce %s on @shards grid_axes = [0] : tensor<4xf32> -> tensor<4xf32>
    mt.assign "w", %s : tensor<4xf32>
    mt.assign "v", %r : tensor<4xf32>
  }
}

// -----

// An all-reduce of a value that is whole on each shard: it would count it R times.
module {
  shard.grid @shards(shape = 8)
  mt.program @p {
    %x = mt.input "x" : tensor<?x4xf32>
    %s = mt.reduce sum, %x over [0] : tensor<?x4xf32>
    %r = shard.all_reduce %s on @shards grid_axes = [0] : tensor<4xf32> -> tensor<4xf32>
    // expected-error @below {{expected the result of a sum over the batch, found another value}}
    %q = shard.all_reduce %r on @shards grid_axes = [0] : tensor<4xf32> -> tensor<4xf32>
    mt.assign "w", %q : tensor<4xf32>
  }
}

// -----

// Another reduction.
module {
  shard.grid @shards(shape = 8)
  mt.program @p {
    %x = mt.input "x" : tensor<?x4xf32>
    %s = mt.reduce sum, %x over [0] : tensor<?x4xf32>
    // expected-error @below {{expected a sum on @shards grid_axes = [0], found another all-reduce}}
    %r = shard.all_reduce %s on @shards grid_axes = [0] reduction = max : tensor<4xf32> -> tensor<4xf32>
    mt.assign "w", %r : tensor<4xf32>
  }
}
