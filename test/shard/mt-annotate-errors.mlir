// SPDX-License-Identifier: Apache-2.0
// RUN: mt-opt %s --mt-annotate --split-input-file --verify-diagnostics

// expected-error @below {{expected the number of replicas in `mt.replicas`, found no such attribute}}
module {
}

// -----

// expected-error @below {{expected the number of replicas to be a power of two, found 6}}
module attributes {mt.replicas = 6 : i64} {
}

// -----

// expected-error @below {{expected the number of replicas to be a power of two, found -8}}
module attributes {mt.replicas = -8 : i64} {
}

// -----

module attributes {mt.replicas = 8 : i64} {
  // expected-error @below {{expected a module without @replicas, found this one}}
  shard.grid @replicas(shape = 4)
}
