// SPDX-License-Identifier: Apache-2.0
// RUN: mt-opt %s --mt-annotate --mt-propagate --mt-partition | FileCheck %s
// RUN: mt-opt %s --mt-annotate --mt-propagate --mt-partition | FileCheck %s --check-prefix=COUNT

// One shard's view: no annotations, the same types, exactly one all-reduce after each sum over the batch.

// COUNT-NOT: shard.shard
// COUNT-COUNT-3: shard.all_reduce
// COUNT-NOT: shard.{{all_reduce|shard}}
module attributes {mt.compilation = #mt.compilation<shards = 8>} {
  mt.declare "w" trainable tensor<4x3xf32>
  mt.declare "b" trainable tensor<3xf32>

  // CHECK: shard.grid @shards(shape = 8)
  // CHECK-LABEL: mt.program @train_step
  mt.program @train_step {
    %x = mt.input "x" : tensor<?x4xf32>
    %g = mt.target "g" : tensor<?x3xf32>
    %w = mt.read "w" : tensor<4x3xf32>
    %b = mt.read "b" : tensor<3xf32>
    %n = mt.batch_size
    // CHECK: %[[L:.*]] = mt.reduce sum, %{{.*}} over [1]
    // CHECK-NOT: shard
    // CHECK: %[[T:.*]] = mt.reduce sum, %[[L]] over [0] : tensor<?xf32>
    // CHECK-NEXT: %[[TR:.*]] = shard.all_reduce %[[T]] on @shards grid_axes = [0] : tensor<f32> -> tensor<f32>
    // CHECK-NEXT: %[[LOSS:.*]] = mt.div %[[TR]]
    %l = mt.reduce sum, %g over [1] : tensor<?x3xf32>
    %t = mt.reduce sum, %l over [0] : tensor<?xf32>
    %loss = mt.div %t, %n : tensor<f32>, tensor<f32>
    // CHECK: %[[DW:.*]] = mt.matmul %{{.*}}, %{{.*}} transpose_a
    // CHECK-NEXT: %[[DWR:.*]] = shard.all_reduce %[[DW]] on @shards grid_axes = [0] : tensor<4x3xf32> -> tensor<4x3xf32>
    // CHECK: %[[DB:.*]] = mt.reduce sum, %{{.*}} over [0] : tensor<?x3xf32>
    // CHECK-NEXT: %[[DBR:.*]] = shard.all_reduce %[[DB]] on @shards grid_axes = [0] : tensor<3xf32> -> tensor<3xf32>
    %dw = mt.matmul %x, %g transpose_a : tensor<?x4xf32>, tensor<?x3xf32>
    %db = mt.reduce sum, %g over [0] : tensor<?x3xf32>
    // CHECK: mt.sub %{{.*}}, %[[DWR]]
    // CHECK: mt.sub %{{.*}}, %[[DBR]]
    %nw = mt.sub %w, %dw : tensor<4x3xf32>, tensor<4x3xf32>
    %nb = mt.sub %b, %db : tensor<3xf32>, tensor<3xf32>
    mt.assign "w", %nw : tensor<4x3xf32>
    mt.assign "b", %nb : tensor<3xf32>
    mt.result "loss", %loss, %n loss
  }

  // Sums that do not cross the split: a static first axis, a contraction of static axes.
  mt.program @init {
    %c = mt.constant dense<0.5> : tensor<4x3xf32>
    %s = mt.reduce sum, %c over [0] : tensor<4x3xf32>
    mt.assign "b", %s : tensor<3xf32>
    mt.assign "w", %c : tensor<4x3xf32>
  }
}
