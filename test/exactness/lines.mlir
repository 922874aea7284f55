// SPDX-License-Identifier: Apache-2.0
// A language model whose samples no cache holds: its loss and its normalisation work by line, with dropout; the last
// batch has 3 samples of 10. The same bits for any number of threads and devices.
// RUN: mtc compile %s -o %t.mtp --batch 10 --shards 8
// RUN: %python %S/same_bits.py %t.mtp --data text:%source/LICENSE,length=64,range=0:23 --epochs 1 --configurations cpu:1 cpu:1x3 cpu:2x2 "cpu:3 --private-variables" "cpu:8 --private-variables" "cpu:1 --cpu x86-64-v3" | FileCheck %s
// CHECK: 6 runs, one result
mt.model @lines {
  %text = mt.input "text" : tensor<?x64xi32>
  %next = mt.target "next" : tensor<?x64xi32>
  %table = mt.variable "embedding" init(glorot_uniform) : tensor<2000x48xf32>
  %places = mt.variable "positions" init(glorot_uniform) : tensor<64x48xf32>
  %0 = mt.gather %table, %text : tensor<2000x48xf32>, tensor<?x64xi32>
  %1 = mt.add %0, %places : tensor<?x64x48xf32>, tensor<64x48xf32>
  %2 = mt.normalize %1 over [2] : tensor<?x64x48xf32>
  %3 = mt.dropout %2 "drop" rate = 0.1 : tensor<?x64x48xf32>
  %w = mt.variable "logits/kernel" init(glorot_uniform) : tensor<48x2000xf32>
  %b = mt.variable "logits/bias" init(zeros) : tensor<2000xf32>
  %4 = mt.matmul %3, %w : tensor<?x64x48xf32>, tensor<48x2000xf32>
  %5 = mt.add %4, %b : tensor<?x64x2000xf32>, tensor<2000xf32>
  %loss = mt.sparse_categorical_crossentropy %5, %next from_logits : tensor<?x64x2000xf32>, tensor<?x64xi32>
  mt.loss "loss", %loss : tensor<?x64xf32>
  %hit = mt.sparse_categorical_accuracy %5, %next : tensor<?x64x2000xf32>, tensor<?x64xi32>
  mt.metric "accuracy", %hit : tensor<?x64xf32>
  mt.adam <{learning_rate = 1.0e-2 : f32}>
}
