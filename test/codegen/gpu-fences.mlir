// SPDX-License-Identifier: Apache-2.0
//
// The block that adds the other blocks' partial sums reads what all of their threads stored. By PTX' memory model the
// fences that order this are the first thread's: behind the barrier of its block and before the atomic, and behind the
// atomic and before the next barrier. A fence of every thread before the barrier orders nothing by the letter.
// RUN: mt-opt %s --plan-codegen="gpus=sm_75 keep-gpu-kernels ptx=%t.ptx" -o %t.mlir
// RUN: FileCheck %s --input-file=%t.ptx
// CHECK: .visible .entry gradient(
// CHECK-NOT: fence
// CHECK: bar.sync 0;{{[[:space:]]+}}setp.ne.b32 [[OTHERS:%p[0-9]+]], %r{{[0-9]+}}, 0;{{[[:space:]]+}}@[[OTHERS]] bra [[BEHIND:.*]];
// CHECK-NOT: bar.sync
// CHECK: fence.acq_rel.gpu;
// CHECK-NEXT: atom.global.add.u32
// CHECK-NEXT: fence.acq_rel.gpu;
// CHECK-NOT: bar.sync
// CHECK: [[BEHIND]]:
// CHECK-NEXT: bar.sync
// CHECK-NOT: fence
// CHECK: bar.sync 0;{{[[:space:]]+}}@[[OTHERS]] bra
// CHECK-NOT: bar.sync
// CHECK: fence.acq_rel.gpu;
// CHECK-NEXT: atom.global.add.u32
// CHECK-NEXT: fence.acq_rel.gpu;
// CHECK: .visible .entry mt_sum(
// CHECK-NOT: {{fence|membar}}
module attributes {mt.compilation = #mt.compilation<batch = 32, shards = 8, shard_rows = 4>} {
  plan.kernel @gradient attributes {kind = #mt<kernel_kind conv_wgrad>, flops_per_row = 0 : i64, flops_fixed = 0 : i64, bytes_per_row = 0 : i64, bytes_fixed = 0 : i64} {
  ^bb0(%x: tensor<?x56x56x64xf32>, %g: tensor<?x56x56x64xf32>):
    %0 = mt.conv2d_kernel_gradient %x, %g padding = [1, 1, 1, 1] : tensor<?x56x56x64xf32>, tensor<?x56x56x64xf32> to tensor<3x3x64x64xf32>
    mt.yield %0 : tensor<3x3x64x64xf32>
  }
}
