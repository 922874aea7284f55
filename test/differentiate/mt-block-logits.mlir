// SPDX-License-Identifier: Apache-2.0
// RUN: mt-opt %s --mt-block-losses=block-bytes=700 --mt-expand-optimizer --mt-differentiate --mt-decompose --mt-block-logits | FileCheck %s
// RUN: grep "// INPUT" %s > %t.mlir
// RUN: mt-opt %s --mt-block-losses=block-bytes=700 --mt-expand-optimizer --mt-differentiate --mt-decompose --mt-block-logits >> %t.mlir
// RUN: mt-interpret %t.mlir --run=train_step,eval_step > %t.blocks
// RUN: mt-interpret %s --run=train_step,eval_step > %t.whole
// RUN: diff %t.blocks %t.whole
//
// A product with a table and a bias by two blocks, of 51 and of 50 classes. Turns 0 and 1 are the blocks of the forward
// pass; turn 1 also has the gradient of the second block, which is there still; turn 2 computes the first one again.
// The logits above the label's, which is known after turn 1, are counted in the turns of the gradients.
// What is interpreted is the same, by blocks and as a whole.
// INPUT x = 0.5 -1 0.25 2 1 -0.5
// INPUT label = 3 70 99
mt.model @tied {
  %x = mt.input "x" : tensor<?x3x2xf32>
  %label = mt.target "label" : tensor<?x3xi32>
  %w = mt.variable "w" init(uniform = 1.0) : tensor<101x2xf32>
  %b = mt.variable "b" init(zeros) : tensor<101xf32>
  %0 = mt.matmul %x, %w transpose_b : tensor<?x3x2xf32>, tensor<101x2xf32>
  %1 = mt.add %0, %b : tensor<?x3x101xf32>, tensor<101xf32>
  %l = mt.sparse_categorical_crossentropy %1, %label from_logits : tensor<?x3x101xf32>, tensor<?x3xi32>
  mt.loss "loss", %l : tensor<?x3xf32>
  %hit = mt.sparse_categorical_accuracy %1, %label : tensor<?x3x101xf32>, tensor<?x3xi32>
  mt.metric "accuracy", %hit : tensor<?x3xf32>
  %near = mt.sparse_top_k_categorical_accuracy %1, %label k = 40 : tensor<?x3x101xf32>, tensor<?x3xi32>
  mt.metric "top_k", %near : tensor<?x3xf32>
  mt.output "logits", %1 : tensor<?x3x101xf32>
  mt.sgd <{learning_rate = 1.0 : f32}>
}

// Of eval_step, the forward pass and what is counted of the blocks that are computed again; predict is whole.
// CHECK-LABEL: mt.program @train_step
// CHECK-DAG:   %[[X:.*]] = mt.input "x"
// CHECK-DAG:   %[[W:.*]] = mt.read "w"
// CHECK-DAG:   %[[W0:.*]] = mt.slice %[[W]] starts = [0, 0] sizes = [51, 2]
// CHECK-DAG:   %[[W1:.*]] = mt.slice %[[W]] starts = [51, 0] sizes = [50, 2]
// CHECK-DAG:   %[[P0:.*]] = mt.matmul %[[X]], %[[W0]] transpose_b {mt.turn = array<i64: 0, 0>}
// CHECK-DAG:   %[[L0:.*]] = mt.add %[[P0]], %{{.*}} {mt.turn = array<i64: 0, 0>}
// CHECK-DAG:   %[[P1:.*]] = mt.matmul %[[X]], %[[W1]] transpose_b {mt.turn = array<i64: 0, 1>}
// CHECK-DAG:   %[[L1:.*]] = mt.add %[[P1]], %{{.*}} {mt.turn = array<i64: 0, 1>}
// CHECK-DAG:   mt.reduce {{ *}}max, %[[L0]] over [2] {mt.turn = array<i64: 0, 0>}
// CHECK-DAG:   mt.reduce {{ *}}min, %{{.*}} over [2] {mt.turn = array<i64: 0, 0>}
// CHECK-DAG:   mt.reduce {{ *}}max, %[[L1]] over [2] {mt.turn = array<i64: 0, 1>}
// CHECK-DAG:   mt.reduce {{ *}}min, %{{.*}} over [2] {mt.turn = array<i64: 0, 1>}
// CHECK-DAG:   mt.matmul %[[X]], %[[W0]] transpose_b {mt.turn = array<i64: 0, 2>}
// CHECK-NOT:   transpose_b {mt.turn = array<i64: 0, 3>}
// CHECK:       %[[G0:.*]] = mt.matmul %{{.*}}, %[[X]] transpose_a {mt.turn = array<i64: 0, 2>}
// CHECK:       %[[G1:.*]] = mt.matmul %{{.*}}, %[[X]] transpose_a {mt.turn = array<i64: 0, 1>}
// CHECK:       %[[S0:.*]] = mt.reduce {{ *}}sum, %[[G0]] over [0] : tensor<?x51x2xf32>
// CHECK:       %[[S1:.*]] = mt.reduce {{ *}}sum, %[[G1]] over [0] : tensor<?x50x2xf32>
// CHECK:       mt.concat %[[S0]], %[[S1]] dim = 0 {mt.blocks = array<i64: 0, 51>}
// CHECK-LABEL: mt.program @eval_step
// CHECK-DAG:   mt.matmul %{{.*}} transpose_b {mt.turn = array<i64: 0, 2>}
// CHECK-DAG:   mt.compare gt, %{{.*}} {mt.turn = array<i64: 0, 1>}
// CHECK-DAG:   mt.compare gt, %{{.*}} {mt.turn = array<i64: 0, 2>}
// CHECK-LABEL: mt.program @predict
// CHECK-NOT:   mt.turn
