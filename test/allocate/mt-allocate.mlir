// SPDX-License-Identifier: Apache-2.0
// RUN: mt-opt %source/test/allocate/inputs/train_step.mlir --mt-fuse --mt-schedule --mt-allocate --plan-check | FileCheck %s
// RUN: not mt-opt %source/test/allocate/inputs/train_step.mlir --mt-fuse --mt-schedule --mt-allocate=device-memory=100 2>&1 \
// RUN:   | FileCheck %s --check-prefix=NOTHING
// RUN: mt-opt %source/test/allocate/inputs/train_step.mlir --mt-fuse --mt-schedule --mt-allocate=device-memory=2700 2>&1 \
// RUN:   | FileCheck %s --check-prefix=SOME

// CHECK: plan.variable @w tensor<8x4xf32> at 0
// CHECK: plan.variable @b tensor<4xf32> at 128
// CHECK: plan.kernel @"matmul+add+relu" attributes {bytes_fixed = 144 : i64, bytes_per_row = 48 : i64, flops_fixed = 0 : i64, flops_per_row = 72 : i64

// Four variants, each at its bound.
// CHECK: plan.program @train_step
// CHECK-SAME: variant_arena = array<i64: [[ARENA:[0-9, ]+]]>, variant_bound = array<i64: [[ARENA]]>
// CHECK: plan.signature input "x" tensor<?x8xf32>
// CHECK: %[[W:.*]] = plan.buffer "w" variable [] of "w"
// Partial sums of a bucket are contiguous, the largest first, and the results in the same order.
// CHECK: plan.all_reduce 0 bytes 196 partials(
// CHECK: plan.launch @"w/update" wait none share reads({{.*}}%[[W]] {{.*}} writes({{.*}}%[[W]] {{.*}}counts [32]
// Updates with one formula are segments of one launch.
// CHECK: plan.launch @update {{.*}} counts [4, 12]
// CHECK: plan.result "loss"

// NOTHING: error: expected a plan that fits in 100 B a device, found none up to 8 devices; @train_step needs {{[0-9.]+ K?i?B}} with 1 shard on a device: variables {{[0-9.]+ K?i?B}}; largest at the peak: "partial sums of all-reduce 0" 256 B
// SOME: warning: the model does not fit on one device of 2.64 KiB; it takes {{[248]}} devices
// SOME: min_devices = {{[248]}}>
