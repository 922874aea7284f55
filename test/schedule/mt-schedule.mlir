// SPDX-License-Identifier: Apache-2.0
// RUN: mt-opt %source/test/allocate/inputs/train_step.mlir --mt-fuse --mt-schedule | FileCheck %s
// RUN: mt-opt %s --mt-schedule | FileCheck %s --check-prefix=MORE

// CHECK: mt.kernel "matmul_w" {{.*}}mt.wait = "none"
// CHECK: mt.kernel "matmul_w2" {{.*}}mt.wait = "device"
// The weight gradient runs beside the input gradient, as early as it can.
// CHECK: mt.kernel "rows" {{.*}}mt.wait = "device"
// CHECK: mt.kernel "gradient_w2" {{.*}}mt.wait = "none"
// CHECK: mt.kernel "matmul_t_w2" {{.*}}mt.wait = "none"
// CHECK: mt.kernel "reduce" {{.*}}mt.wait = "device"
// CHECK: mt.kernel "gradient_w" {{.*}}mt.wait = "none"
// Scalars stand just before their reader.
// CHECK: mt.kernel "whole" {{.*}}mt.share, mt.wait = "none"
// CHECK-COUNT-4: shard.all_reduce
// The all-reduce orders every update after all readers of the variables; the step counter changes with them.
// CHECK-COUNT-5: mt.share, mt.wait = "none"
// CHECK-NOT: mt.wait = "all"

// Two variables that trade values: one must be copied before it is overwritten.
// MORE-LABEL: @swap
mt.program @swap {
  %a = mt.read "a" : tensor<4xf32>
  %b = mt.read "b" : tensor<4xf32>
  // MORE: %[[NEW:.*]] = mt.kernel "to_b"
  %x = mt.kernel "to_a" map (%i = %b : tensor<4xf32>) -> (tensor<4xf32>) {
    %0 = mt.neg %i : tensor<4xf32>
    mt.yield %0 : tensor<4xf32>
  }
  // MORE: mt.kernel "to_a" {{.*}}mt.share, mt.wait = "all"
  %y = mt.kernel "to_b" map (%i = %a : tensor<4xf32>) -> (tensor<4xf32>) {
    %0 = mt.square %i : tensor<4xf32>
    mt.yield %0 : tensor<4xf32>
  }
  // MORE: mt.kernel "copy" map (%{{.*}} = %[[NEW]] {{.*}}mt.share, mt.wait = "all"
  mt.assign "a", %x : tensor<4xf32>
  mt.assign "b", %y : tensor<4xf32>
}
