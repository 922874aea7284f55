// SPDX-License-Identifier: Apache-2.0
// RUN: mt-opt %s --mt-annotate --split-input-file --verify-diagnostics

// expected-error @below {{expected `shards` in the module's `mt.compilation`, found none}}
module {
}

// -----

// expected-error @below {{expected the number of shards to be a power of two up to 65536, found 6}}
module attributes {mt.compilation = #mt.compilation<shards = 6>} {
}

// -----

// expected-error @below {{expected the number of shards to be a power of two up to 65536, found -8}}
module attributes {mt.compilation = #mt.compilation<shards = -8>} {
}

// -----

module attributes {mt.compilation = #mt.compilation<shards = 8>} {
  // expected-error @below {{expected a module without @shards, found this one}}
  shard.grid @shards(shape = 4)
}
