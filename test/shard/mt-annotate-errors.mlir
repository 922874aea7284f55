// SPDX-License-Identifier: Apache-2.0
// RUN: mt-opt %s --mt-annotate --split-input-file --verify-diagnostics

// expected-error @below {{expected the number of shards in `mt.shards`, found no such attribute}}
module {
}

// -----

// expected-error @below {{expected the number of shards to be a power of two, found 6}}
module attributes {mt.shards = 6 : i64} {
}

// -----

// expected-error @below {{expected the number of shards to be a power of two, found -8}}
module attributes {mt.shards = -8 : i64} {
}

// -----

module attributes {mt.shards = 8 : i64} {
  // expected-error @below {{expected a module without @shards, found this one}}
  shard.grid @shards(shape = 4)
}
