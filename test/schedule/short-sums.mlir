// SPDX-License-Identifier: Apache-2.0
// RUN: mt-opt %s --mt-schedule=gpus=true | FileCheck %s
// On GPUs the last block of a kernel of rows also sums its results over the batch, if they are 128 KiB or less: 200
// columns of 128 samples, and not 300.
module attributes {mt.compilation = #mt.compilation<batch = 128, shards = 8>} {
  shard.grid @shards(shape = 8)
  // CHECK: mt.kernel "short" reduce {{.*}}mt.tail
  // CHECK: mt.kernel "long" reduce
  // CHECK-NOT: mt.tail
  mt.program @sums {
    %x = mt.input "x" : tensor<?x200xf32>
    %y = mt.input "y" : tensor<?x300xf32>
    %a = mt.kernel "a" rows (%i = %x : tensor<?x200xf32>) -> (tensor<?x200xf32>) {
      %0 = mt.exp %i : tensor<?x200xf32>
      mt.yield %0 : tensor<?x200xf32>
    }
    %s = mt.kernel "short" reduce (%i = %a : tensor<?x200xf32>) -> (tensor<200xf32>) {
      %0 = mt.reduce sum, %i over [0] : tensor<?x200xf32>
      mt.yield %0 : tensor<200xf32>
    }
    %s1 = shard.all_reduce %s on @shards grid_axes = [0] {mt.bucket = 0 : i64} : tensor<200xf32> -> tensor<200xf32>
    %b = mt.kernel "b" rows (%i = %y : tensor<?x300xf32>) -> (tensor<?x300xf32>) {
      %0 = mt.exp %i : tensor<?x300xf32>
      mt.yield %0 : tensor<?x300xf32>
    }
    %l = mt.kernel "long" reduce (%i = %b : tensor<?x300xf32>) -> (tensor<300xf32>) {
      %0 = mt.reduce sum, %i over [0] : tensor<?x300xf32>
      mt.yield %0 : tensor<300xf32>
    }
    %l1 = shard.all_reduce %l on @shards grid_axes = [0] {mt.bucket = 0 : i64} : tensor<300xf32> -> tensor<300xf32>
    %v = mt.kernel "s/update" elementwise (%i = %s1 : tensor<200xf32>) -> (tensor<200xf32>) {
      %0 = mt.neg %i : tensor<200xf32>
      mt.yield %0 : tensor<200xf32>
    }
    %w = mt.kernel "l/update" elementwise (%i = %l1 : tensor<300xf32>) -> (tensor<300xf32>) {
      %0 = mt.neg %i : tensor<300xf32>
      mt.yield %0 : tensor<300xf32>
    }
    mt.assign "s", %v : tensor<200xf32>
    mt.assign "l", %w : tensor<300xf32>
  }
}
