// SPDX-License-Identifier: Apache-2.0
// RUN: mt-opt %s --mt-block-losses=block-bytes=3000 --mt-expand-optimizer --mt-differentiate --mt-decompose --mt-block-logits --mt-annotate --mt-propagate --mt-partition --mt-bucket --mt-fuse | FileCheck %s
// RUN: mt-opt %s --mt-block-losses=block-bytes=3000 --mt-expand-optimizer --mt-differentiate --mt-decompose --mt-block-logits --mt-annotate --mt-propagate --mt-partition --mt-bucket --mt-fuse --mt-schedule --mt-allocate --plan-check | FileCheck %s --check-prefix=PLAN
//
// Logits by two blocks of classes, of 4 samples. A product reads its part of the table where it lies. The second
// block's sums and its gradient are one kernel, in turn 1. Turn 2 computes the first block again. The weight gradients
// are zeros of which each kernel replaces a part, and leave in one all-reduce.
module attributes {mt.compilation = #mt.compilation<name = "blocks", batch = 4, shards = 2, shard_rows = 2>} {
mt.model @blocks {
  %x = mt.input "x" : tensor<?x3x8xf32>
  %label = mt.target "label" : tensor<?x3xi32>
  %table = mt.variable "table" init(glorot_uniform) : tensor<101x8xf32>
  %logits = mt.matmul %x, %table transpose_b : tensor<?x3x8xf32>, tensor<101x8xf32>
  %l = mt.sparse_categorical_crossentropy %logits, %label from_logits : tensor<?x3x101xf32>, tensor<?x3xi32>
  mt.loss "loss", %l : tensor<?x3xf32>
  %hit = mt.sparse_categorical_accuracy %logits, %label : tensor<?x3x101xf32>, tensor<?x3xi32>
  mt.metric "accuracy", %hit : tensor<?x3xf32>
  mt.sgd
}
}

// CHECK-LABEL: mt.program @train_step
// CHECK:       %[[L0:.*]] = mt.kernel {{.*}} matmul {{.*}} -> (tensor<?x3x51xf32>) {{ *}}attributes {mt.turn = array<i64: 0, 0>}{
// CHECK-NEXT:    mt.slice %arg0 starts = [0, 0] sizes = [51, 8]
// CHECK-NEXT:    mt.matmul %arg1
// CHECK:       mt.kernel {{.*}} rows (%arg0 = %[[L0]]
// CHECK:       %[[L1:.*]] = mt.kernel {{.*}} matmul {{.*}} -> (tensor<?x3x50xf32>) {{ *}}attributes {mt.turn = array<i64: 0, 1>}{
// CHECK-NEXT:    mt.slice %arg0 starts = [51, 0] sizes = [50, 8]
// CHECK:       %[[D1:.*]]:6 = mt.kernel {{.*}} rows (%arg0 = %[[L1]]
// CHECK:       %[[ZERO:.*]] = mt.kernel "add" elementwise () -> (tensor<101x8xf32>)
// CHECK:       %[[G1:.*]] = mt.kernel "table_gradient" matmul_wgrad (%arg0 = %[[D1]]#5 {{.*}}, %arg2 = %[[ZERO]] {{.*}} attributes {mt.turn = array<i64: 0, 1>}{
// CHECK:         %[[REST:.*]] = mt.slice %arg2 starts = [0, 0] sizes = [51, 8]
// CHECK-NEXT:    mt.concat %[[REST]], %{{.*}} dim = 0
// CHECK:       %[[L2:.*]] = mt.kernel {{.*}} matmul {{.*}} -> (tensor<?x3x51xf32>) {{ *}}attributes {mt.turn = array<i64: 0, 2>}{
// CHECK:       %[[D2:.*]] = mt.kernel {{.*}} rows (%arg0 = %[[L2]]
// CHECK:       %[[G2:.*]] = mt.kernel "table_gradient" matmul_wgrad (%arg0 = %[[D2]] {{.*}}, %arg2 = %[[G1]] {{.*}} attributes {mt.turn = array<i64: 0, 2>}{
// CHECK:       shard.all_reduce %[[G2]]
// CHECK-NOT:   tensor<?x3x101xf32>

// PLAN-LABEL: plan.program @train_step
// PLAN:       %[[ZERO:.*]] = plan.buffer "partial sum table_gradient.0" {{ *}}arena [[PLACE:\[.*\]]] :
// PLAN:       %[[G1:.*]] = plan.buffer "partial sum table_gradient.0" {{ *}}arena [[PLACE]] :
// PLAN:       %[[L2:.*]] = plan.buffer "slice+matmul" {{ *}}arena [[BLOCK:\[.*\]]] : <tensor<?x3x51xf32>>
// PLAN:       %[[D2:.*]] = plan.buffer "sub+exp+compare+cast+mul" {{ *}}arena [[BLOCK]] : <tensor<?x3x51xf32>>
// PLAN:       %[[G2:.*]] = plan.buffer "partial sum table_gradient.0" {{ *}}arena [[PLACE]] :
// PLAN:       plan.launch @table_gradient wait {{.*}}, %[[ZERO]] : {{.*}} writes(%[[G1]] :
// PLAN:       plan.launch @table_gradient_1 wait {{.*}} reads(%[[D2]], {{.*}}, %[[G1]] : {{.*}} writes(%[[G2]] :
// PLAN:       plan.all_reduce 0 bytes {{.*}} partials(%[[G2]],
