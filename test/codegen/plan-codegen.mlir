// SPDX-License-Identifier: Apache-2.0
// Grids are set by kind; the object exports the kernels and mt_sum, needs nothing, and is the same each time.
// RUN: mt-opt %s --plan-codegen="cpus=x86-64-v3 object=%t.v3.so" | FileCheck %s
// RUN: mt-opt %s --plan-codegen="cpus=x86-64-v4 object=%t.v4.so" | FileCheck %s
// RUN: mt-opt %s --plan-codegen="cpus=x86-64-v3 object=%t.again.so" -o /dev/null && cmp %t.v3.so %t.again.so
// RUN: llvm-nm -D --defined-only %t.v3.so | FileCheck %s --check-prefix=SYMBOLS
// RUN: llvm-nm -D --defined-only %t.v4.so | FileCheck %s --check-prefix=SYMBOLS
// RUN: llvm-nm -D --undefined-only %t.v3.so %t.v4.so | FileCheck %s --check-prefix=UNDEFINED --allow-empty
// RUN: not mt-opt %s --plan-codegen="cpus=pentium" -o /dev/null 2>&1 | FileCheck %s --check-prefix=CPU
// SYMBOLS: T dense
// SYMBOLS: T dense_gradient
// SYMBOLS: T loss
// SYMBOLS: T mt_sum
// SYMBOLS: T sgd
// UNDEFINED-NOT: {{ U }}
// CPU: error: expected the CPU to be native, x86-64-v4-bf16, x86-64-v4, x86-64-v3 or armv8-a, found 'pentium'
module attributes {mt.compilation = #mt.compilation<shards = 8, shard_rows = 4>} {
  // CHECK: plan.kernel @dense attributes
  // CHECK-SAME: inner_tiles = 4 : i64
  // CHECK-SAME: rows_per_tile = 8 : i64
  plan.kernel @dense attributes {kind = #mt<kernel_kind matmul>, flops_per_row = 0 : i64, flops_fixed = 0 : i64, bytes_per_row = 0 : i64, bytes_fixed = 0 : i64} {
  ^bb0(%x: tensor<?x784xf32>, %w: tensor<784x256xf32>, %b: tensor<256xf32>):
    %0 = mt.matmul %x, %w : tensor<?x784xf32>, tensor<784x256xf32>
    %1 = mt.add %0, %b : tensor<?x256xf32>, tensor<256xf32>
    %2 = mt.relu %1 : tensor<?x256xf32>
    mt.yield %2 : tensor<?x256xf32>
  }
  // CHECK: plan.kernel @dense_gradient attributes
  // CHECK-SAME: inner_tiles = 264 : i64
  // CHECK-SAME: rows_per_tile = 0 : i64
  plan.kernel @dense_gradient attributes {kind = #mt<kernel_kind matmul_wgrad>, flops_per_row = 0 : i64, flops_fixed = 0 : i64, bytes_per_row = 0 : i64, bytes_fixed = 0 : i64} {
  ^bb0(%x: tensor<?x784xf32>, %g: tensor<?x256xf32>):
    %0 = mt.matmul %x, %g transpose_a : tensor<?x784xf32>, tensor<?x256xf32>
    mt.yield %0 : tensor<784x256xf32>
  }
  // CHECK: plan.kernel @loss attributes
  // CHECK-SAME: rows_per_tile = 4 : i64
  plan.kernel @loss attributes {kind = #mt<kernel_kind rows>, flops_per_row = 0 : i64, flops_fixed = 0 : i64, bytes_per_row = 0 : i64, bytes_fixed = 0 : i64} {
  ^bb0(%x: tensor<?x10xf32>):
    %0 = mt.exp %x : tensor<?x10xf32>
    %1 = mt.reduce sum, %0 over [1] : tensor<?x10xf32>
    %2 = mt.log %1 : tensor<?xf32>
    mt.yield %2 : tensor<?xf32>
  }
  // CHECK: plan.kernel @sgd attributes
  // CHECK-SAME: elements_per_tile = 2048 : i64
  plan.kernel @sgd attributes {kind = #mt<kernel_kind elementwise>, flops_per_row = 0 : i64, flops_fixed = 0 : i64, bytes_per_row = 0 : i64, bytes_fixed = 0 : i64} {
  ^bb0(%v: tensor<256xf32>, %g: tensor<256xf32>, %r: tensor<f32>):
    %0 = mt.mul %g, %r : tensor<256xf32>, tensor<f32>
    %1 = mt.sub %v, %0 : tensor<256xf32>, tensor<256xf32>
    mt.yield %1 : tensor<256xf32>
  }
}
