// SPDX-License-Identifier: Apache-2.0
// A module that does not say how many shards there are has one shard, on a CPU and on a GPU alike: to code generation
// it had 4,096, to the plan 1.
// RUN: mt-opt %s --plan-codegen="cpus=x86-64-v3 object=%t.one.so" -o /dev/null
// RUN: sed 's/shards = 1, //' %s | mt-opt - --plan-codegen="cpus=x86-64-v3 object=%t.none.so" -o /dev/null
// RUN: cmp %t.one.so %t.none.so
// RUN: mt-opt %s --plan-codegen="gpus=sm_75 ptx=%t.one.ptx" | grep gpu_grid > %t.one
// RUN: sed 's/shards = 1, //' %s | mt-opt - --plan-codegen="gpus=sm_75 ptx=%t.none.ptx" | grep gpu_grid > %t.none
// RUN: cmp %t.one %t.none
// RUN: cmp %t.one.ptx %t.none.ptx
module attributes {mt.compilation = #mt.compilation<shards = 1, shard_rows = 4>} {
  plan.kernel @weight_gradient attributes {kind = #mt<kernel_kind matmul_wgrad>, flops_per_row = 0 : i64, flops_fixed = 0 : i64, bytes_per_row = 0 : i64, bytes_fixed = 0 : i64} {
  ^bb0(%x: tensor<?x32xf32>, %g: tensor<?x16xf32>):
    %0 = mt.matmul %x, %g transpose_a : tensor<?x32xf32>, tensor<?x16xf32>
    mt.yield %0 : tensor<32x16xf32>
  }
}
