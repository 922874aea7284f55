// SPDX-License-Identifier: Apache-2.0
// Input gradients of queries, keys and values, and of two convolutions with strides, as one product of 16 bits each, in
// plans without code for CPUs: the same bits on any number of simulated GPUs, and losses near those of a plan for CPUs,
// where each is a kernel.
// REQUIRES: no-sanitizer
// RUN: mtc compile %s -o %t.mtp --batch 10 --shards 8 --target cuda:simulated --precision bf16
// RUN: mtc compile %s -o %t.cpu.mtp --batch 10 --shards 8 --precision bf16
// RUN: mtc compile %s -o %t.grids.mtp --batch 10 --shards 8 --target cuda:grids --precision bf16 --print-ir-after mt-fuse 2>&1 | FileCheck %s
// CHECK: kernel "{{.*}}" conv (
// CHECK: mt.conv2d_input_gradient
// CHECK-NEXT: mt.conv2d_input_gradient
// CHECK-NEXT: mt.add
// RUN: mtc compile %s -o %t.grids.mtp --batch 10 --shards 8 --target cuda:grids --precision bf16 --print-ir-after mt-fuse 2>&1 | FileCheck %s --check-prefix=MATMUL
// MATMUL: mt.matmul {{.*}} transpose_b : tensor<?x49x32xbf16>
// MATMUL-NEXT: mt.matmul {{.*}} transpose_b
// MATMUL-NEXT: mt.add
// MATMUL-NEXT: mt.matmul {{.*}} transpose_b
// MATMUL-NEXT: mt.add
// RUN: export MTRUN_CUDA_DRIVER=%build/lib/libcuda-simulated.so MTC_SIM_DEVICES=8
// RUN: %python %source/test/exactness/same_bits.py %t.mtp --data mnist:%examples/mnist,split=test,range=0:13 --epochs 1 --configurations cuda:0 cuda:0-1 cuda:0-2 cuda:0-7
// RUN: %python %S/inputs/same_loss.py %t.cpu.mtp %t.mtp --data mnist:%examples/mnist,split=test,range=0:13 --devices cpu:1 cuda:0-1 --tolerance 1e-2
mt.model @summed {
  %pixels = mt.input "image" : tensor<?x784xf32>
  %label = mt.target "label" : tensor<?xi32>
  %x = mt.reshape %pixels : tensor<?x784xf32> to tensor<?x28x28x1xf32>
  %w0 = mt.variable "a/kernel" init(glorot_uniform) : tensor<3x3x1x16xf32>
  %z0 = mt.conv2d %x, %w0 strides = [2, 2] padding = [1, 1, 1, 1] : tensor<?x28x28x1xf32>, tensor<3x3x1x16xf32>
  %r0 = mt.relu %z0 : tensor<?x14x14x16xf32>
  %w1 = mt.variable "b/kernel" init(glorot_uniform) : tensor<3x3x16x32xf32>
  %w2 = mt.variable "c/kernel" init(glorot_uniform) : tensor<1x1x16x32xf32>
  %z1 = mt.conv2d %r0, %w1 strides = [2, 2] padding = [1, 1, 1, 1] : tensor<?x14x14x16xf32>, tensor<3x3x16x32xf32>
  %r1 = mt.relu %z1 : tensor<?x7x7x32xf32>
  %z2 = mt.conv2d %r0, %w2 strides = [2, 2] : tensor<?x14x14x16xf32>, tensor<1x1x16x32xf32>
  %s = mt.add %r1, %z2 : tensor<?x7x7x32xf32>, tensor<?x7x7x32xf32>
  %t0 = mt.reshape %s : tensor<?x7x7x32xf32> to tensor<?x49x32xf32>
  %wq = mt.variable "query/kernel" init(glorot_uniform) : tensor<32x32xf32>
  %wk = mt.variable "key/kernel" init(glorot_uniform) : tensor<32x32xf32>
  %wv = mt.variable "value/kernel" init(glorot_uniform) : tensor<32x32xf32>
  %q = mt.matmul %t0, %wq : tensor<?x49x32xf32>, tensor<32x32xf32>
  %k = mt.matmul %t0, %wk : tensor<?x49x32xf32>, tensor<32x32xf32>
  %v = mt.matmul %t0, %wv : tensor<?x49x32xf32>, tensor<32x32xf32>
  %a = mt.attention %q, %k, %v heads = 2 : tensor<?x49x32xf32>, tensor<?x49x32xf32>, tensor<?x49x32xf32>
  %flat = mt.reshape %a : tensor<?x49x32xf32> to tensor<?x1568xf32>
  %w = mt.variable "dense/kernel" init(glorot_uniform) : tensor<1568x10xf32>
  %logits = mt.matmul %flat, %w : tensor<?x1568xf32>, tensor<1568x10xf32>
  %l = mt.sparse_categorical_crossentropy %logits, %label from_logits : tensor<?x10xf32>, tensor<?xi32>
  mt.loss "loss", %l : tensor<?xf32>
  mt.output "logits", %logits : tensor<?x10xf32>
  mt.sgd <{learning_rate = 1.0e-2 : f32}>
}
