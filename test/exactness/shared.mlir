// SPDX-License-Identifier: Apache-2.0
// Layers that are called twice: the gradient of each variable is one all-reduce, and the bits are the same on any
// number of devices.
// RUN: mtc compile %s --batch 12 --shards 8 --stop-after shard -o - | FileCheck %s
// RUN: mtc compile %s -o %t.mtp --batch 12 --shards 8
// RUN: %python %S/same_bits.py %t.mtp --data text:%s,length=16,range=0:40 --epochs 1 --configurations cpu:1 cpu:2 cpu:8 cpu:1x3 "cpu:3 --private-variables" "cpu:8 --private-variables" "cpu:2 --micro-batches 2"
// CHECK-LABEL:   @train_step
// CHECK-COUNT-1: shard.all_reduce {{.*}} : tensor<128x24xf32>
// CHECK-NOT:     shard.all_reduce {{.*}} : tensor<128x24xf32>
// CHECK-LABEL:   @eval_step
mt.model @shared {
  %text = mt.input "text" : tensor<?x16xi32>
  %next = mt.target "next" : tensor<?x16xi32>
  %table = mt.variable "tokens/embeddings" init(glorot_normal) : tensor<128x24xf32>
  %w = mt.variable "dense/kernel" init(glorot_uniform) : tensor<24x24xf32>
  %b = mt.variable "dense/bias" init(zeros) : tensor<24xf32>
  %head = mt.variable "head/kernel" init(glorot_uniform) : tensor<24x128xf32>
  %x = mt.gather %table, %text : tensor<128x24xf32>, tensor<?x16xi32>
  %back = mt.reverse %text over [1] : tensor<?x16xi32>
  %z = mt.gather %table, %back : tensor<128x24xf32>, tensor<?x16xi32>
  %p = mt.matmul %x, %w : tensor<?x16x24xf32>, tensor<24x24xf32>
  %p1 = mt.add %p, %b : tensor<?x16x24xf32>, tensor<24xf32>
  %h = mt.gelu %p1 : tensor<?x16x24xf32>
  %s = mt.add %h, %z : tensor<?x16x24xf32>, tensor<?x16x24xf32>
  %q = mt.matmul %s, %w : tensor<?x16x24xf32>, tensor<24x24xf32>
  %q1 = mt.add %q, %b : tensor<?x16x24xf32>, tensor<24xf32>
  %y = mt.gelu %q1 : tensor<?x16x24xf32>
  %logits = mt.matmul %y, %head : tensor<?x16x24xf32>, tensor<24x128xf32>
  %loss = mt.sparse_categorical_crossentropy %logits, %next from_logits : tensor<?x16x128xf32>, tensor<?x16xi32>
  mt.loss "loss", %loss : tensor<?x16xf32>
  mt.output "logits", %logits : tensor<?x16x128xf32>
  mt.adamw <{global_clipnorm = 1.0 : f32}>
}
