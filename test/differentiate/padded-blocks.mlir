// SPDX-License-Identifier: Apache-2.0
// RUN: mt-opt %s --mt-pad-classes --mt-block-losses="gpus=true blocks=2" --mt-expand-optimizer --mt-differentiate --mt-decompose --mt-block-logits --mt-crop-gradients > %t.program
// RUN: FileCheck %s < %t.program
// RUN: grep "// INPUT" %s > %t.mlir && cat %t.program >> %t.mlir
// RUN: mt-interpret %t.mlir --run=train_step,eval_step > %t.blocks
// RUN: mt-interpret %s --run=train_step,eval_step > %t.whole
// RUN: diff %t.blocks %t.whole
//
// 259 classes, which are 264 for the kernels of GPUs, by blocks of 192 and of 72. The gradients of the matrix and of
// the bias take 67 classes of the second block.
// INPUT x = 0.5 -1 0.25 2 1 -0.5
// INPUT label = 3 191 258
module attributes {mt.compilation = #mt.compilation<name = "padded", precision = bf16>} {
mt.model @padded {
  %x = mt.input "x" : tensor<?x3x2xf32>
  %label = mt.target "label" : tensor<?x3xi32>
  %w = mt.variable "w" init(uniform = 1.0) : tensor<2x259xf32>
  %b = mt.variable "b" init(uniform = 1.0) : tensor<259xf32>
  %0 = mt.matmul %x, %w : tensor<?x3x2xf32>, tensor<2x259xf32>
  %1 = mt.add %0, %b : tensor<?x3x259xf32>, tensor<259xf32>
  %l = mt.sparse_categorical_crossentropy %1, %label from_logits : tensor<?x3x259xf32>, tensor<?x3xi32>
  mt.loss "loss", %l : tensor<?x3xf32>
  %hit = mt.sparse_top_k_categorical_accuracy %1, %label k = 100 : tensor<?x3x259xf32>, tensor<?x3xi32>
  mt.metric "top_k", %hit : tensor<?x3xf32>
  mt.sgd <{learning_rate = 1.0 : f32}>
}
}

// CHECK-LABEL: mt.program @train_step
// CHECK:       %[[W:.*]] = mt.pad %{{.*}} low = [0, 0] high = [0, 5]
// CHECK-DAG:   mt.slice %[[W]] starts = [0, 0] sizes = [2, 192] : tensor<2x264xf32>
// CHECK-DAG:   mt.slice %[[W]] starts = [0, 192] sizes = [2, 72] : tensor<2x264xf32>
// CHECK:       %[[D:.*]] = mt.slice %{{.*}} starts = [0, 0] sizes = [3, 67] {mt.turn = array<i64: 0, 1>} : tensor<?x3x72xf32>
// CHECK-NOT:   264xf32>
// CHECK:       mt.matmul %{{.*}}, %[[D]] transpose_a {mt.turn = array<i64: 0, 1>}
// CHECK:       mt.concat %{{.*}} dim = 1 {mt.blocks = array<i64: 0, 192>} : tensor<2x192xf32>, tensor<2x67xf32>
// CHECK-LABEL: mt.program @eval_step
