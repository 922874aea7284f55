// SPDX-License-Identifier: Apache-2.0
// A language model of 517 classes, once with the table of the embedding and once with a matrix and a bias of its own:
// in 16 bits the logits have three more classes for GPUs (docs/ir.md, "Classes that pad logits"). The last batch has 3
// samples of 10. The same bits on any number of GPUs; losses near those of a CPU, and of a plan without these classes.
// Most of it is generated code, which sanitizers do not see; other tests of devices run with them.
// REQUIRES: no-sanitizer
// RUN: mtc compile %s -o %t.mtp --batch 10 --shards 8 --precision bf16 --target cpu,cuda:simulated
// RUN: mtc compile %s -o %t.cpu.mtp --batch 10 --shards 8 --precision bf16
// RUN: export MTRUN_CUDA_DRIVER=%build/lib/libcuda-simulated.so MTC_SIM_DEVICES=8
// RUN: %python %source/test/exactness/same_bits.py %t.mtp --data text:%source/LICENSE,length=16,range=0:23 --epochs 1 --configurations cuda:0 cuda:0-1 cuda:0-2 cuda:0-7
// RUN: %python %S/inputs/same_loss.py %t.mtp --data text:%source/LICENSE,length=16,range=0:23 --devices cpu:1 cuda:0-1 --tolerance 1e-3
// RUN: %python %S/inputs/same_loss.py %t.mtp %t.cpu.mtp --data text:%source/LICENSE,length=16,range=0:23 --devices cuda:0-2 cpu:1 --tolerance 1e-3
// The padded table of 20,032 classes is more than a CPU kernel may keep for itself.
// RUN: %python %examples/gpt.py --layers 1 --width 64 --heads 2 --tokens 16 --vocabulary 20001 > %t.gpt.mlir
// RUN: mtc compile %t.gpt.mlir -o %t.gpt.mtp --batch 8 --precision bf16 --target cpu,cuda:simulated
// RUN: %python %S/inputs/same_loss.py %t.gpt.mtp --data text:%source/LICENSE,length=16,range=0:23 --devices cpu:1 cuda:0-1 --tolerance 1e-3
mt.model @classes {
  %text = mt.input "text" : tensor<?x16xi32>
  %next = mt.target "next" : tensor<?x16xi32>
  %table = mt.variable "embedding" init(normal = 0.2) : tensor<517x24xf32>
  %0 = mt.gather %table, %text : tensor<517x24xf32>, tensor<?x16xi32>
  %1 = mt.normalize %0 over [2] : tensor<?x16x24xf32>
  %tied = mt.matmul %1, %table transpose_b : tensor<?x16x24xf32>, tensor<517x24xf32>
  %w = mt.variable "other/kernel" init(glorot_uniform) : tensor<24x517xf32>
  %b = mt.variable "other/bias" init(zeros) : tensor<517xf32>
  %2 = mt.matmul %1, %w : tensor<?x16x24xf32>, tensor<24x517xf32>
  %other = mt.add %2, %b : tensor<?x16x517xf32>, tensor<517xf32>
  %loss = mt.sparse_categorical_crossentropy %tied, %next from_logits : tensor<?x16x517xf32>, tensor<?x16xi32>
  mt.loss "tied", %loss : tensor<?x16xf32>
  %also = mt.sparse_categorical_crossentropy %other, %next from_logits : tensor<?x16x517xf32>, tensor<?x16xi32>
  mt.loss "other", %also : tensor<?x16xf32>
  %hit = mt.sparse_categorical_accuracy %other, %next : tensor<?x16x517xf32>, tensor<?x16xi32>
  mt.metric "accuracy", %hit : tensor<?x16xf32>
  mt.output "logits", %other : tensor<?x16x517xf32>
  mt.adam <{learning_rate = 1.0e-2 : f32}>
}
