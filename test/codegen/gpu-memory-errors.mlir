// SPDX-License-Identifier: Apache-2.0
// RUN: mt-opt %s --plan-codegen=gpus=simulated -verify-diagnostics
module attributes {mt.compilation = #mt.compilation<batch = 32, shards = 8, shard_rows = 4>} {
  // The sums of pairs are read by a search, so that they must lie somewhere.
  // expected-error @below {{expected a kernel of at most 49152 bytes of workgroup memory for a GPU, found @pairs with}}
  plan.kernel @pairs attributes {kind = #mt<kernel_kind rows>, flops_per_row = 0 : i64, flops_fixed = 0 : i64, bytes_per_row = 0 : i64, bytes_fixed = 0 : i64} {
  ^bb0(%x: tensor<?x16384x2xf32>):
    %0 = mt.reduce sum, %x over [2] : tensor<?x16384x2xf32>
    %1 = mt.argmax %0 : tensor<?x16384xf32>
    mt.yield %1 : tensor<?xi32>
  }
}
