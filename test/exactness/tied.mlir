// SPDX-License-Identifier: Apache-2.0
// A model of bytes whose one table is the embedding and, transposed, the head: the same bits on any number of devices.
// RUN: mtc compile %s -o %t.mtp --batch 12 --shards 8
// RUN: %python %S/same_bits.py %t.mtp --data text:%s,length=16,range=0:40 --epochs 1 --configurations cpu:1 cpu:2 cpu:8 cpu:1x3 "cpu:2 --private-variables" "cpu:8 --private-variables"
mt.model @tied {
  %text = mt.input "text" : tensor<?x16xi32>
  %next = mt.target "next" : tensor<?x16xi32>
  %table = mt.variable "tokens/embeddings" init(glorot_normal) : tensor<128x48xf32>
  %w = mt.variable "dense/kernel" init(glorot_uniform) : tensor<48x48xf32>
  %x = mt.gather %table, %text : tensor<128x48xf32>, tensor<?x16xi32>
  %h = mt.matmul %x, %w : tensor<?x16x48xf32>, tensor<48x48xf32>
  %a = mt.gelu %h : tensor<?x16x48xf32>
  %y = mt.add %x, %a : tensor<?x16x48xf32>, tensor<?x16x48xf32>
  %logits = mt.matmul %y, %table transpose_b : tensor<?x16x48xf32>, tensor<128x48xf32>
  %loss = mt.sparse_categorical_crossentropy %logits, %next from_logits : tensor<?x16x128xf32>, tensor<?x16xi32>
  mt.loss "loss", %loss : tensor<?x16xf32>
  mt.output "logits", %logits : tensor<?x16x128xf32>
  mt.adamw <{global_clipnorm = 1.0 : f32}>
}
