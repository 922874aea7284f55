// SPDX-License-Identifier: Apache-2.0
// How kernels reach memory on a GPU: neighbours in one access, columns of a row by several blocks; a kernel of
// too much workgroup memory is refused by name.
// RUN: mt-opt %s --plan-codegen="gpus=simulated keep-gpu-kernels" | FileCheck %s
// RUN: mt-opt %s --plan-codegen="gpus=sm_75 keep-gpu-kernels ptx=%t.ptx" -o /dev/null
// RUN: FileCheck %s --check-prefix=PTX --input-file=%t.ptx
module attributes {mt.compilation = #mt.compilation<batch = 32, shards = 8, shard_rows = 4>} {
  // PTX-LABEL: .visible .entry difference(
  // PTX-COUNT-2: ld.global.v4.b32
  // PTX: st.global.v4.b32
  plan.kernel @difference attributes {kind = #mt<kernel_kind elementwise>, flops_per_row = 0 : i64, flops_fixed = 0 : i64, bytes_per_row = 0 : i64, bytes_fixed = 0 : i64} {
  ^bb0(%w: tensor<300xf32>, %g: tensor<300xf32>):
    %0 = mt.sub %w, %g : tensor<300xf32>, tensor<300xf32>
    mt.yield %0 : tensor<300xf32>
  }
  // CHECK: plan.kernel @centred attributes
  // CHECK-SAME: gpu_grid = #plan.gpu_grid<threads = 256, rows_per_tile = 1, inner_tiles = 4>
  // PTX-LABEL: .visible .entry centred(
  // PTX: ld.global.v4.b32
  // PTX: ld.global.v4.b32
  // PTX: st.global.v4.b32
  plan.kernel @centred attributes {kind = #mt<kernel_kind rows>, flops_per_row = 0 : i64, flops_fixed = 0 : i64, bytes_per_row = 0 : i64, bytes_fixed = 0 : i64} {
  ^bb0(%x: tensor<?x8x8x64xf32>, %m: tensor<64xf32>):
    %0 = mt.sub %x, %m : tensor<?x8x8x64xf32>, tensor<64xf32>
    mt.yield %0 : tensor<?x8x8x64xf32>
  }
  // A block for 64 columns, 16 threads for each 32nd line of them; four lines at once.
  // CHECK: plan.kernel @columns attributes
  // CHECK-SAME: gpu_grid = #plan.gpu_grid<threads = 512, rows_per_tile = 1, shared_bytes = 8192>
  // PTX-LABEL: .visible .entry columns(
  // PTX-COUNT-4: ld.global.v4.b32
  // PTX: st.shared.v4.b32
  plan.kernel @columns attributes {kind = #mt<kernel_kind rows>, flops_per_row = 0 : i64, flops_fixed = 0 : i64, bytes_per_row = 0 : i64, bytes_fixed = 0 : i64} {
  ^bb0(%x: tensor<?x28x28x64xf32>):
    %0 = mt.reduce sum, %x over [1, 2] : tensor<?x28x28x64xf32>
    mt.yield %0 : tensor<?x64xf32>
  }
}
