// SPDX-License-Identifier: Apache-2.0
// Dense layers over the rows of images and attention among them: the same bits on any number of devices. The last batch
// has 3 samples of 20, so that most shards are empty.
// RUN: mtc compile %s -o %t.mtp --batch 20 --shards 8
// RUN: %python %S/same_bits.py %t.mtp --data mnist:%examples/mnist,split=test,range=0:63 --epochs 1 --configurations cpu:1 cpu:2 cpu:3 cpu:8 cpu:1x3 "cpu:3 --private-variables"
mt.model @sequences {
  %image = mt.input "image" : tensor<?x784xf32>
  %label = mt.target "label" : tensor<?xi32>
  %wq = mt.variable "query/kernel" init(glorot_uniform) : tensor<28x24xf32>
  %wv = mt.variable "value/kernel" init(glorot_uniform) : tensor<28x24xf32>
  %bv = mt.variable "value/bias" init(zeros) : tensor<24xf32>
  %wo = mt.variable "out/kernel" init(glorot_uniform) : tensor<24x10xf32>
  %wc = mt.variable "column/kernel" init(glorot_uniform) : tensor<4x4xf32>
  %x = mt.reshape %image : tensor<?x784xf32> to tensor<?x28x28xf32>
  %q = mt.matmul %x, %wq : tensor<?x28x28xf32>, tensor<28x24xf32>
  %v0 = mt.matmul %x, %wv : tensor<?x28x28xf32>, tensor<28x24xf32>
  %v1 = mt.add %v0, %bv : tensor<?x28x24xf32>, tensor<24xf32>
  %v = mt.gelu %v1 : tensor<?x28x24xf32>
  %s = mt.matmul %q, %q transpose_b : tensor<?x28x24xf32>, tensor<?x28x24xf32>
  %p = mt.softmax %s : tensor<?x28x28xf32>
  %o = mt.matmul %p, %v : tensor<?x28x28xf32>, tensor<?x28x24xf32>
  %c0 = mt.reshape %o : tensor<?x28x24xf32> to tensor<?x28x6x4xf32>
  %c1 = mt.matmul %c0, %wc : tensor<?x28x6x4xf32>, tensor<4x4xf32>
  %c = mt.reshape %c1 : tensor<?x28x6x4xf32> to tensor<?x28x24xf32>
  %each = mt.matmul %c, %wo : tensor<?x28x24xf32>, tensor<24x10xf32>
  %logits = mt.reduce sum, %each over [1] : tensor<?x28x10xf32>
  %loss = mt.sparse_categorical_crossentropy %logits, %label from_logits : tensor<?x10xf32>, tensor<?xi32>
  mt.loss "loss", %loss : tensor<?xf32>
  mt.output "logits", %logits : tensor<?x10xf32>
  mt.adam
}
