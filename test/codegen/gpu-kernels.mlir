// SPDX-License-Identifier: Apache-2.0
// Kernels of each kind as gpu.funcs: grids, where blocks wait, and what lies in workgroup memory.
// RUN: mt-opt %s --plan-codegen="gpus=sm_75 keep-gpu-kernels ptx=%t.ptx" | FileCheck %s
// RUN: FileCheck %s --check-prefix=PTX --input-file=%t.ptx
// RUN: FileCheck %s --check-prefix=ROUNDED --input-file=%t.ptx
// ROUNDED-NOT: {{\.ftz|\.approx|(add|sub|mul)\.f32|\.local}}
// PTX: .target sm_75
module attributes {mt.compilation = #mt.compilation<batch = 32, shards = 8, shard_rows = 4>} {
  // CHECK: plan.kernel @dense attributes
  // CHECK-SAME: gpu_grid = #plan.gpu_grid<threads = 128, rows_per_tile = 32, inner_tiles = 8, shared_bytes = 18432>
  plan.kernel @dense attributes {kind = #mt<kernel_kind matmul>, flops_per_row = 0 : i64, flops_fixed = 0 : i64, bytes_per_row = 0 : i64, bytes_fixed = 0 : i64} {
  ^bb0(%x: tensor<?x784xf32>, %w: tensor<784x256xf32>, %b: tensor<256xf32>):
    %0 = mt.matmul %x, %w : tensor<?x784xf32>, tensor<784x256xf32>
    %1 = mt.add %0, %b : tensor<?x256xf32>, tensor<256xf32>
    %2 = mt.relu %1 : tensor<?x256xf32>
    mt.yield %2 : tensor<?x256xf32>
  }
  // CHECK: plan.kernel @dense_gradient attributes
  // CHECK-SAME: gpu_grid = #plan.gpu_grid<threads = 128, inner_tiles = 200, shared_bytes = {{[0-9]+}}>
  plan.kernel @dense_gradient attributes {kind = #mt<kernel_kind matmul_wgrad>, flops_per_row = 0 : i64, flops_fixed = 0 : i64, bytes_per_row = 0 : i64, bytes_fixed = 0 : i64} {
  ^bb0(%x: tensor<?x784xf32>, %g: tensor<?x256xf32>):
    %0 = mt.matmul %x, %g transpose_a : tensor<?x784xf32>, tensor<?x256xf32>
    mt.yield %0 : tensor<784x256xf32>
  }
  // CHECK: plan.kernel @loss attributes
  // CHECK-SAME: gpu_grid = #plan.gpu_grid<threads = 128, rows_per_tile = 4>
  plan.kernel @loss attributes {kind = #mt<kernel_kind rows>, flops_per_row = 0 : i64, flops_fixed = 0 : i64, bytes_per_row = 0 : i64, bytes_fixed = 0 : i64} {
  ^bb0(%x: tensor<?x10xf32>):
    %0 = mt.exp %x : tensor<?x10xf32>
    %1 = mt.reduce sum, %0 over [1] : tensor<?x10xf32>
    mt.yield %1 : tensor<?xf32>
  }
  // CHECK: plan.kernel @sgd attributes
  // CHECK-SAME: gpu_grid = #plan.gpu_grid<threads = 256, elements_per_tile = 1024>
  plan.kernel @sgd attributes {kind = #mt<kernel_kind elementwise>, flops_per_row = 0 : i64, flops_fixed = 0 : i64, bytes_per_row = 0 : i64, bytes_fixed = 0 : i64} {
  ^bb0(%w: tensor<300xf32>, %g: tensor<300xf32>):
    %0 = mt.add %w, %g : tensor<300xf32>, tensor<300xf32>
    mt.yield %0 : tensor<300xf32>
  }
  // CHECK: plan.kernel @turn attributes
  // CHECK-SAME: gpu_grid = #plan.gpu_grid<threads = 256, inner_tiles = 200, shared_bytes = 4224>
  plan.kernel @turn attributes {kind = #mt<kernel_kind transpose>, flops_per_row = 0 : i64, flops_fixed = 0 : i64, bytes_per_row = 0 : i64, bytes_fixed = 0 : i64} {
  ^bb0(%w: tensor<784x256xf32>):
    %0 = mt.transpose %w by [1, 0] : tensor<784x256xf32>
    mt.yield %0 : tensor<256x784xf32>
  }
}
// CHECK: gpu.module @kernels
// CHECK: gpu.func @dense(%{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr) workgroup(%{{.*}} : memref<{{[0-9]+}}xi8, #gpu.address_space<workgroup>>) kernel
// CHECK-DAG: gpu.thread_id x
// CHECK-DAG: gpu.block_id x
// CHECK-DAG: gpu.block_id y
// CHECK: gpu.barrier
// CHECK: scf.for
// CHECK: llvm.intr.fma
// CHECK: gpu.barrier
// CHECK: gpu.return
// CHECK: gpu.func @dense_gradient
// CHECK: llvm.intr.cttz
// CHECK: gpu.func @loss
// CHECK-NOT: gpu.barrier
// CHECK: nvvm.shfl.sync bfly
// CHECK-NOT: gpu.barrier
// CHECK: gpu.func @sgd
// CHECK-NOT: gpu.barrier
// CHECK: gpu.return
// CHECK: gpu.func @turn
// CHECK: gpu.barrier
// CHECK: gpu.func @mt_sum
// PTX: .visible .entry dense(
// PTX: .reqntid 128
// PTX: bar.sync
// PTX: fma.rn.f32
// PTX: st{{(.global)?(.v4)?}}.b32
// PTX: .visible .entry dense_gradient(
// PTX: .visible .entry loss(
// PTX: add.rn.f32
// PTX: .visible .entry mt_sum(
