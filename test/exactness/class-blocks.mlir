// SPDX-License-Identifier: Apache-2.0
// A language model of so many tokens that logits exist for a block of them at a time, with the table of the embedding
// and a matrix of its own; some labels are ignored; the last batch has 3 samples of 10. The same bits for any number of
// threads, devices and micro-batches.
// RUN: mtc compile %s -o %t.mtp --batch 10 --shards 8
// RUN: %python %S/same_bits.py %t.mtp --data text:%source/LICENSE,length=64,range=0:13 --epochs 1 --configurations cpu:1 "cpu:1x3 --micro-batches 4" cpu:2x2 "cpu:2 --private-variables" "cpu:3 --private-variables --micro-batches 2" "cpu:8 --private-variables" "cpu:1 --cpu x86-64-v3" | FileCheck %s
// CHECK: 7 runs, one result
mt.model @class_blocks {
  %text = mt.input "text" : tensor<?x64xi32>
  %next = mt.target "next" : tensor<?x64xi32>
  %table = mt.variable "embedding" init(normal = 0.05) : tensor<60000x8xf32>
  %0 = mt.gather %table, %text : tensor<60000x8xf32>, tensor<?x64xi32>
  %1 = mt.normalize %0 over [2] : tensor<?x64x8xf32>
  %2 = mt.matmul %1, %table transpose_b : tensor<?x64x8xf32>, tensor<60000x8xf32>
  %w = mt.variable "other/kernel" init(glorot_uniform) : tensor<8x60000xf32>
  %b = mt.variable "other/bias" init(zeros) : tensor<60000xf32>
  %3 = mt.matmul %1, %w : tensor<?x64x8xf32>, tensor<8x60000xf32>
  %4 = mt.add %3, %b : tensor<?x64x60000xf32>, tensor<60000xf32>
  %space = mt.constant dense<32> : tensor<i32>
  %other = mt.compare ne, %next, %space : tensor<?x64xi32>, tensor<i32>
  %counted = mt.cast %other : tensor<?x64xi1> to tensor<?x64xf32>
  %loss = mt.sparse_categorical_crossentropy %2, %next from_logits : tensor<?x64x60000xf32>, tensor<?x64xi32>
  mt.loss "tied", %loss weights(%counted : tensor<?x64xf32>) by weights : tensor<?x64xf32>
  %hit = mt.sparse_categorical_accuracy %2, %next : tensor<?x64x60000xf32>, tensor<?x64xi32>
  mt.metric "accuracy", %hit weights(%counted : tensor<?x64xf32>) : tensor<?x64xf32>
  %near = mt.sparse_top_k_categorical_accuracy %2, %next : tensor<?x64x60000xf32>, tensor<?x64xi32>
  mt.metric "top_k", %near weights(%counted : tensor<?x64xf32>) : tensor<?x64xf32>
  %hot = mt.one_hot %next : tensor<?x64xi32> to tensor<?x64x60000xf32>
  %smooth = mt.categorical_crossentropy %4, %hot from_logits label_smoothing = 0.1 : tensor<?x64x60000xf32>, tensor<?x64x60000xf32>
  mt.loss "smooth", %smooth : tensor<?x64xf32>
  mt.adam <{learning_rate = 1.0e-2 : f32}>
}
