// SPDX-License-Identifier: Apache-2.0
// Products for queries, keys and values, their weight gradients and the sums of their biases are segments of a launch
// each in plans with code for GPUs: the same bits on any number of simulated GPUs; on CPUs, by any number of threads,
// the bits of a plan in which they are launches of their own.
// REQUIRES: no-sanitizer
// RUN: mtc compile %s -o %t.mtp --batch 10 --shards 8 --target cpu,cuda:simulated --precision bf16
// RUN: mtc compile %s -o %t.cpu.mtp --batch 10 --shards 8 --precision bf16
// RUN: mtc inspect %t.mtp | FileCheck %s && mtc inspect %t.cpu.mtp | FileCheck %s --check-prefix=ALONE
// CHECK-DAG: matmul+add+cast (3 segments)
// CHECK-DAG: gradient{{.*}} (3 segments)
// ALONE-NOT: matmul{{.*}} segments)
// RUN: export MTRUN_CUDA_DRIVER=%build/lib/libcuda-simulated.so MTC_SIM_DEVICES=8
// RUN: %python %source/test/exactness/same_bits.py %t.mtp %t.cpu.mtp --data mnist:%examples/mnist,split=test,range=0:13 --epochs 1 --configurations cpu:1 cpu:3 "cpu:3 --private-variables"
// RUN: %python %source/test/exactness/same_bits.py %t.mtp --data mnist:%examples/mnist,split=test,range=0:13 --epochs 1 --configurations cuda:0 cuda:0-2 cuda:0-7

// A library computes one product of float32 at a time: only other launches are joined.
// RUN: mtc compile %s -o %t.f32.mtp --batch 10 --shards 8 --target cuda:grids && mtc inspect %t.f32.mtp | FileCheck %s --check-prefix=ALONE
mt.model @segments {
  %pixels = mt.input "image" : tensor<?x784xf32>
  %label = mt.target "label" : tensor<?xi32>
  %x = mt.reshape %pixels : tensor<?x784xf32> to tensor<?x28x28xf32>
  %wq = mt.variable "query/kernel" init(glorot_uniform) : tensor<28x32xf32>
  %bq = mt.variable "query/bias" init(zeros) : tensor<32xf32>
  %wk = mt.variable "key/kernel" init(glorot_uniform) : tensor<28x32xf32>
  %bk = mt.variable "key/bias" init(zeros) : tensor<32xf32>
  %wv = mt.variable "value/kernel" init(glorot_uniform) : tensor<28x32xf32>
  %bv = mt.variable "value/bias" init(zeros) : tensor<32xf32>
  %q0 = mt.matmul %x, %wq : tensor<?x28x28xf32>, tensor<28x32xf32>
  %q = mt.add %q0, %bq : tensor<?x28x32xf32>, tensor<32xf32>
  %k0 = mt.matmul %x, %wk : tensor<?x28x28xf32>, tensor<28x32xf32>
  %k = mt.add %k0, %bk : tensor<?x28x32xf32>, tensor<32xf32>
  %v0 = mt.matmul %x, %wv : tensor<?x28x28xf32>, tensor<28x32xf32>
  %v = mt.add %v0, %bv : tensor<?x28x32xf32>, tensor<32xf32>
  %a = mt.attention %q, %k, %v heads = 2 : tensor<?x28x32xf32>, tensor<?x28x32xf32>, tensor<?x28x32xf32>
  %flat = mt.reshape %a : tensor<?x28x32xf32> to tensor<?x896xf32>
  %w = mt.variable "dense/kernel" init(glorot_uniform) : tensor<896x10xf32>
  %logits = mt.matmul %flat, %w : tensor<?x896xf32>, tensor<896x10xf32>
  %l = mt.sparse_categorical_crossentropy %logits, %label from_logits : tensor<?x10xf32>, tensor<?xi32>
  mt.loss "loss", %l : tensor<?xf32>
  mt.output "logits", %logits : tensor<?x10xf32>
  mt.adam <{learning_rate = 1.0e-3 : f32}>
}
