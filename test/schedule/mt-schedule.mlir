// SPDX-License-Identifier: Apache-2.0
// RUN: mt-opt %source/test/allocate/inputs/train_step.mlir --mt-fuse --mt-schedule | FileCheck %s
// RUN: mt-opt %s --mt-schedule | FileCheck %s --check-prefix=MORE
// RUN: mt-opt %s --mt-schedule=gpus=true | FileCheck %s --check-prefix=GPUS

// CHECK: mt.kernel "matmul+add+relu" {{.*}}wait none
// CHECK: mt.kernel "matmul+sub+square+mul" {{.*}}wait device
// The weight gradient runs beside the input gradient, as early as it can.
// CHECK: mt.kernel "sum" {{.*}}wait device
// CHECK: mt.kernel "w2_gradient" {{.*}}wait none
// CHECK: mt.kernel "input_gradient+compare+more" {{.*}}wait none
// CHECK: mt.kernel "sums" {{.*}}wait device
// CHECK: mt.kernel "w_gradient" {{.*}}wait none
// Scalars stand just before their reader.
// CHECK: mt.kernel "cast+div" {{.*}}wait none share
// CHECK-COUNT-4: shard.all_reduce
// The all-reduce orders every update after all readers of the variables; the step counter changes with them.
// CHECK-COUNT-5: wait none share
// CHECK-NOT: wait all

// Two variables that trade values: one must be copied before it is overwritten.
// MORE-LABEL: @swap
mt.program @swap {
  %a = mt.read "a" : tensor<4xf32>
  %b = mt.read "b" : tensor<4xf32>
  // MORE: %[[NEW:.*]] = mt.kernel "to_b"
  %x = mt.kernel "to_a" elementwise (%i = %b : tensor<4xf32>) -> (tensor<4xf32>) {
    %0 = mt.neg %i : tensor<4xf32>
    mt.yield %0 : tensor<4xf32>
  }
  // MORE: mt.kernel "to_a" {{.*}}wait all share
  %y = mt.kernel "to_b" elementwise (%i = %a : tensor<4xf32>) -> (tensor<4xf32>) {
    %0 = mt.square %i : tensor<4xf32>
    mt.yield %0 : tensor<4xf32>
  }
  // MORE: mt.kernel "copy" elementwise (%{{.*}} = %[[NEW]] {{.*}}wait all share
  mt.assign "a", %x : tensor<4xf32>
  mt.assign "b", %y : tensor<4xf32>
}

// A gradient that only the last all-reduce reads runs beside the one before, in front of what waits for that.
shard.grid @shards(shape = 8)
// MORE-LABEL: @beside
mt.program @beside {
  %x = mt.input "x" : tensor<?x4xf32>
  %w = mt.read "w" : tensor<4xf32>
  // MORE: mt.kernel "statistic"
  // MORE: shard.all_reduce {{.*}}mt.bucket = 0
  // MORE: mt.kernel "gradient" {{.*}}wait none
  // MORE: mt.kernel "normalised" {{.*}}wait none
  // MORE: mt.kernel "last"
  // MORE: shard.all_reduce {{.*}}mt.bucket = 1
  %a = mt.kernel "activation" rows (%i = %x : tensor<?x4xf32>) -> (tensor<?x4xf32>) {
    %0 = mt.square %i : tensor<?x4xf32>
    mt.yield %0 : tensor<?x4xf32>
  }
  %g = mt.kernel "gradient" reduce (%i = %a : tensor<?x4xf32>) -> (tensor<4xf32>) {
    %0 = mt.reduce sum, %i over [0] : tensor<?x4xf32>
    mt.yield %0 : tensor<4xf32>
  }
  %s = mt.kernel "statistic" reduce (%i = %a : tensor<?x4xf32>) -> (tensor<4xf32>) {
    %0 = mt.reduce sum, %i over [0] : tensor<?x4xf32>
    mt.yield %0 : tensor<4xf32>
  }
  %sum = shard.all_reduce %s on @shards grid_axes = [0] {mt.bucket = 0 : i64} : tensor<4xf32> -> tensor<4xf32>
  %n = mt.kernel "normalised" rows (%i = %a : tensor<?x4xf32>, %j = %sum : tensor<4xf32>) -> (tensor<?x4xf32>) {
    %0 = mt.sub %i, %j : tensor<?x4xf32>, tensor<4xf32>
    mt.yield %0 : tensor<?x4xf32>
  }
  %l = mt.kernel "last" reduce (%i = %n : tensor<?x4xf32>) -> (tensor<4xf32>) {
    %0 = mt.reduce sum, %i over [0] : tensor<?x4xf32>
    mt.yield %0 : tensor<4xf32>
  }
  %g2 = shard.all_reduce %g on @shards grid_axes = [0] {mt.bucket = 1 : i64} : tensor<4xf32> -> tensor<4xf32>
  %l2 = shard.all_reduce %l on @shards grid_axes = [0] {mt.bucket = 1 : i64} : tensor<4xf32> -> tensor<4xf32>
  %y = mt.kernel "update" elementwise (%i = %g2 : tensor<4xf32>, %j = %l2 : tensor<4xf32>, %k = %w : tensor<4xf32>) -> (tensor<4xf32>) {
    %0 = mt.add %i, %j : tensor<4xf32>, tensor<4xf32>
    %1 = mt.add %0, %k : tensor<4xf32>, tensor<4xf32>
    mt.yield %1 : tensor<4xf32>
  }
  mt.assign "w", %y : tensor<4xf32>
}

// On GPUs the first block of another kernel computes single numbers: after what they need, and before their readers.
// MORE-LABEL: @numbers
// MORE-NOT: mt.tail
// GPUS-LABEL: @numbers
mt.program @numbers {
  %x = mt.input "x" : tensor<?x4xf32>
  %w = mt.read "w" : tensor<4xf32>
  %t = mt.read "step" : tensor<f32>
  %n = mt.read "loss" : tensor<f32>
  // GPUS: mt.kernel "sum" reduce
  // GPUS: mt.kernel "rate" single {{.*}}wait none share {{.*}}mt.tail
  // GPUS: shard.all_reduce
  // GPUS: mt.kernel "update" elementwise
  // GPUS: mt.kernel "loss" single {{.*}}wait none share {{.*}}mt.tail
  %rate = mt.kernel "rate" single (%i = %t : tensor<f32>) -> (tensor<f32>) {
    %0 = mt.sqrt %i : tensor<f32>
    mt.yield %0 : tensor<f32>
  }
  %s = mt.kernel "sum" reduce (%i = %x : tensor<?x4xf32>) -> (tensor<4xf32>) {
    %0 = mt.reduce sum, %i over [0] : tensor<?x4xf32>
    mt.yield %0 : tensor<4xf32>
  }
  %sum = shard.all_reduce %s on @shards grid_axes = [0] {mt.bucket = 0 : i64} : tensor<4xf32> -> tensor<4xf32>
  %l = mt.kernel "loss" single (%i = %t : tensor<f32>, %j = %n : tensor<f32>) -> (tensor<f32>) {
    %0 = mt.div %j, %i : tensor<f32>, tensor<f32>
    mt.yield %0 : tensor<f32>
  }
  %y = mt.kernel "update" elementwise (%i = %sum : tensor<4xf32>, %j = %w : tensor<4xf32>, %k = %rate : tensor<f32>) -> (tensor<4xf32>) {
    %0 = mt.mul %i, %k : tensor<4xf32>, tensor<f32>
    %1 = mt.add %0, %j : tensor<4xf32>, tensor<4xf32>
    mt.yield %1 : tensor<4xf32>
  }
  mt.assign "w", %y : tensor<4xf32>
  mt.assign "loss", %l : tensor<f32>
}
