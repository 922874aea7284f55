// SPDX-License-Identifier: Apache-2.0
// Both parts of a file are compiled: the linker of the first one resets the options of the process.
// RUN: mt-opt %s --split-input-file --plan-codegen="cpus=x86-64-v3" | FileCheck %s
module attributes {mt.compilation = #mt.compilation<shards = 8, shard_rows = 4>} {
  // CHECK: plan.kernel @first attributes
  // CHECK-SAME: rows_per_tile = 4 : i64
  plan.kernel @first attributes {kind = #mt<kernel_kind rows>, flops_per_row = 0 : i64, flops_fixed = 0 : i64, bytes_per_row = 0 : i64, bytes_fixed = 0 : i64} {
  ^bb0(%x: tensor<?x10xf32>):
    %0 = mt.exp %x : tensor<?x10xf32>
    mt.yield %0 : tensor<?x10xf32>
  }
}

// -----

module attributes {mt.compilation = #mt.compilation<shards = 8, shard_rows = 4>} {
  // CHECK: plan.kernel @second attributes
  // CHECK-SAME: rows_per_tile = 4 : i64
  plan.kernel @second attributes {kind = #mt<kernel_kind rows>, flops_per_row = 0 : i64, flops_fixed = 0 : i64, bytes_per_row = 0 : i64, bytes_fixed = 0 : i64} {
  ^bb0(%x: tensor<?x10xf32>):
    %0 = mt.log %x : tensor<?x10xf32>
    mt.yield %0 : tensor<?x10xf32>
  }
}
