// SPDX-License-Identifier: Apache-2.0
// Attention of grouped heads, causal, in a window, with dropout and a mask that hides all keys from some queries: the
// same bits on any number of devices and threads. The last batch has 3 samples of 20, so that most shards are empty.
// RUN: mtc compile %s -o %t.mtp --batch 20 --shards 8
// RUN: %python %S/same_bits.py %t.mtp --data mnist:%examples/mnist,split=test,range=0:63 --epochs 1 --configurations cpu:1 cpu:2 cpu:3 cpu:8 cpu:1x2 cpu:1x4 "cpu:3 --private-variables"
mt.model @attention {
  %image = mt.input "image" : tensor<?x784xf32>
  %label = mt.target "label" : tensor<?xi32>
  %wq = mt.variable "query/kernel" init(glorot_uniform) : tensor<8x24xf32>
  %wk = mt.variable "key/kernel" init(glorot_uniform) : tensor<8x12xf32>
  %wv = mt.variable "value/kernel" init(glorot_uniform) : tensor<8x10xf32>
  %wo = mt.variable "out/kernel" init(glorot_uniform) : tensor<20x24xf32>
  %wl = mt.variable "logits/kernel" init(glorot_uniform) : tensor<24x10xf32>
  %x = mt.reshape %image : tensor<?x784xf32> to tensor<?x98x8xf32>
  // Lines of black pixels alone are seen by no query.
  %zero = mt.constant dense<0.0> : tensor<f32>
  %ink = mt.reduce sum, %x over [2] : tensor<?x98x8xf32>
  %inked = mt.compare gt, %ink, %zero : tensor<?x98xf32>, tensor<f32>
  %mask = mt.reshape %inked : tensor<?x98xi1> to tensor<?x1x1x98xi1>
  %q = mt.matmul %x, %wq : tensor<?x98x8xf32>, tensor<8x24xf32>
  %k = mt.matmul %x, %wk : tensor<?x98x8xf32>, tensor<8x12xf32>
  %v = mt.matmul %x, %wv : tensor<?x98x8xf32>, tensor<8x10xf32>
  %a = mt.attention %q, %k, %v mask %mask heads = 4 key_heads = 2 causal dropout "drop" rate = 0.2 :
    tensor<?x98x24xf32>, tensor<?x98x12xf32>, tensor<?x98x10xf32>, tensor<?x1x1x98xi1>
  %o = mt.matmul %a, %wo : tensor<?x98x20xf32>, tensor<20x24xf32>
  %b = mt.attention %o, %o, %q heads = 3 window = 20 : tensor<?x98x24xf32>, tensor<?x98x24xf32>, tensor<?x98x24xf32>
  %each = mt.matmul %b, %wl : tensor<?x98x24xf32>, tensor<24x10xf32>
  %logits = mt.reduce sum, %each over [1] : tensor<?x98x10xf32>
  %loss = mt.sparse_categorical_crossentropy %logits, %label from_logits : tensor<?x10xf32>, tensor<?xi32>
  mt.loss "loss", %loss : tensor<?xf32>
  mt.output "logits", %logits : tensor<?x10xf32>
  mt.adam
}
