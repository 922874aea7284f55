// SPDX-License-Identifier: Apache-2.0
// Losses by blocks of classes on simulated GPUs, which a limit of memory chooses: of the table of an embedding and of a
// matrix and a bias of its own, of 517 classes, which are 520 in 16 bits. The last batch has 3 samples of 10. The same
// bits on any number of GPUs, and on any number of CPU devices; losses near those of the CPU code, and of a plan that
// stores all logits.
// Most of it is generated code, which sanitizers do not see; other tests of devices run with them.
// REQUIRES: no-sanitizer
// RUN: mtc compile %s -o %t.f32.mtp --batch 10 --shards 8 --target cpu,cuda:simulated --device-memory 1400KiB 2>&1 | FileCheck %s
// RUN: mtc compile %s -o %t.bf16.mtp --batch 10 --shards 8 --precision bf16 --target cpu,cuda:simulated --device-memory 1320KiB 2>&1 | FileCheck %s --check-prefix=BF16
// CHECK: with all logits at once the step does not fit in 1.37 MiB on one device; they are computed by {{2|4}} blocks of classes
// BF16: with all logits at once the step does not fit in 1.29 MiB on one device; they are computed by {{2|4}} blocks of classes
// RUN: mtc compile %s -o %t.whole.f32.mtp --batch 10 --shards 8
// RUN: mtc compile %s -o %t.whole.bf16.mtp --batch 10 --shards 8 --precision bf16 --target cpu,cuda:simulated 2>&1 | FileCheck %s --check-prefix=WHOLE
// WHOLE-NOT: blocks of classes
// RUN: export MTRUN_CUDA_DRIVER=%build/lib/libcuda-simulated.so MTC_SIM_DEVICES=8
// RUN: for p in f32 bf16; do %python %source/test/exactness/same_bits.py %t.$p.mtp --data text:%source/LICENSE,length=16,range=0:23 --epochs 1 --configurations cuda:0 cuda:0-1 cuda:0-2 cuda:0-7 || exit 1; done
// RUN: for p in f32 bf16; do %python %source/test/exactness/same_bits.py %t.$p.mtp --data text:%source/LICENSE,length=16,range=0:23 --epochs 1 --configurations cpu:1 "cpu:3 --private-variables" cpu:8 || exit 1; done
// RUN: %python %S/inputs/same_loss.py %t.f32.mtp --data text:%source/LICENSE,length=16,range=0:23 --devices cpu:1 cuda:0-1
// RUN: %python %S/inputs/same_loss.py %t.f32.mtp %t.whole.f32.mtp --data text:%source/LICENSE,length=16,range=0:23 --devices cuda:0-2 cpu:1
// RUN: %python %S/inputs/same_loss.py %t.bf16.mtp --data text:%source/LICENSE,length=16,range=0:23 --devices cpu:1 cuda:0-1 --tolerance 1e-3
// RUN: %python %S/inputs/same_loss.py %t.bf16.mtp %t.whole.bf16.mtp --data text:%source/LICENSE,length=16,range=0:23 --devices cuda:0-2 cuda:0 --tolerance 1e-3
// RUN: mtc compile %s -o %t.mtp --batch 10 --shards 8 --precision bf16 --target cuda:sm_90 --device-memory 1320KiB
mt.model @class_blocks {
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
  %near = mt.sparse_top_k_categorical_accuracy %other, %next k = 20 : tensor<?x16x517xf32>, tensor<?x16xi32>
  mt.metric "top_k", %near : tensor<?x16xf32>
  mt.adam <{learning_rate = 1.0e-2 : f32}>
}
