// SPDX-License-Identifier: Apache-2.0
// Sums that the last blocks of a launch compute: batch normalisation of 16, 32 and 128 channels behind convolutions in
// 16 bits, with samples that share tiles (7 x 7), several tiles side by side, a stride and a residual sum. Two steps,
// the second of 3 samples: the same bits on any number of simulated GPUs, where blocks run in random order, in one
// process and in several; on CPUs, where each sum is a launch, by any number of threads.
// REQUIRES: no-sanitizer
// RUN: mtc compile %s -o %t.mtp --batch 10 --shards 8 --target cpu,cuda:simulated --precision bf16
// RUN: mtc inspect %t.mtp --json | FileCheck %s
// CHECK-COUNT-12: "wait": "tail"
// RUN: export MTRUN_CUDA_DRIVER=%build/lib/libcuda-simulated.so MTC_SIM_DEVICES=8
// RUN: %python %source/test/exactness/same_bits.py %t.mtp --data mnist:%examples/mnist,split=test,range=0:13 --epochs 1 --configurations cuda:0 cuda:0-1 cuda:0-2 cuda:0-7 "cuda:0*4"
// RUN: %python %source/test/exactness/same_bits.py %t.mtp --data mnist:%examples/mnist,split=test,range=0:13 --epochs 1 --configurations cpu:1 cpu:3 "cpu:3 --private-variables"
// RUN: %python %S/inputs/same_loss.py %t.mtp --data mnist:%examples/mnist,split=test,range=0:13 --devices cpu:1 cuda:0-1 --tolerance 1e-2

// In float32.
// RUN: mtc compile %s -o %t.f32.mtp --batch 10 --shards 8 --target cuda:simulated
// RUN: %python %source/test/exactness/same_bits.py %t.f32.mtp --data mnist:%examples/mnist,split=test,range=0:13 --epochs 1 --configurations cuda:0 cuda:0-2
mt.model @tails {
  %pixels = mt.input "image" : tensor<?x784xf32>
  %label = mt.target "label" : tensor<?xi32>
  %x = mt.reshape %pixels : tensor<?x784xf32> to tensor<?x28x28x1xf32>
  %w1 = mt.variable "a/kernel" init(glorot_uniform) : tensor<3x3x1x16xf32>
  %w2 = mt.variable "b/kernel" init(glorot_uniform) : tensor<3x3x16x32xf32>
  %w3 = mt.variable "c/kernel" init(glorot_uniform) : tensor<3x3x32x128xf32>
  %w4 = mt.variable "d/kernel" init(glorot_uniform) : tensor<1x1x128x128xf32>
  %g1 = mt.variable "a/norm/gamma" init(ones) : tensor<16xf32>
  %b1 = mt.variable "a/norm/beta" init(zeros) : tensor<16xf32>
  %m1 = mt.variable "a/norm/moving_mean" init(zeros) frozen : tensor<16xf32>
  %v1 = mt.variable "a/norm/moving_variance" init(ones) frozen : tensor<16xf32>
  %g2 = mt.variable "b/norm/gamma" init(ones) : tensor<32xf32>
  %b2 = mt.variable "b/norm/beta" init(zeros) : tensor<32xf32>
  %m2 = mt.variable "b/norm/moving_mean" init(zeros) frozen : tensor<32xf32>
  %v2 = mt.variable "b/norm/moving_variance" init(ones) frozen : tensor<32xf32>
  %g3 = mt.variable "c/norm/gamma" init(ones) : tensor<128xf32>
  %b3 = mt.variable "c/norm/beta" init(zeros) : tensor<128xf32>
  %m3 = mt.variable "c/norm/moving_mean" init(zeros) frozen : tensor<128xf32>
  %v3 = mt.variable "c/norm/moving_variance" init(ones) frozen : tensor<128xf32>
  %g4 = mt.variable "d/norm/gamma" init(ones) : tensor<128xf32>
  %b4 = mt.variable "d/norm/beta" init(zeros) : tensor<128xf32>
  %m4 = mt.variable "d/norm/moving_mean" init(zeros) frozen : tensor<128xf32>
  %v4 = mt.variable "d/norm/moving_variance" init(ones) frozen : tensor<128xf32>
  %z1 = mt.conv2d %x, %w1 strides = [2, 2] padding = [1, 1, 1, 1] : tensor<?x28x28x1xf32>, tensor<3x3x1x16xf32>
  %n1 = mt.batch_normalization %z1, %g1, %b1, %m1, %v1 momentum = 0.9
       : tensor<?x14x14x16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>
  %r1 = mt.relu %n1 : tensor<?x14x14x16xf32>
  %z2 = mt.conv2d %r1, %w2 padding = [1, 1, 1, 1] : tensor<?x14x14x16xf32>, tensor<3x3x16x32xf32>
  %n2 = mt.batch_normalization %z2, %g2, %b2, %m2, %v2 momentum = 0.9
       : tensor<?x14x14x32xf32>, tensor<32xf32>, tensor<32xf32>, tensor<32xf32>, tensor<32xf32>
  %r2 = mt.relu %n2 : tensor<?x14x14x32xf32>
  %z3 = mt.conv2d %r2, %w3 strides = [2, 2] padding = [1, 1, 1, 1] : tensor<?x14x14x32xf32>, tensor<3x3x32x128xf32>
  %n3 = mt.batch_normalization %z3, %g3, %b3, %m3, %v3 momentum = 0.9
       : tensor<?x7x7x128xf32>, tensor<128xf32>, tensor<128xf32>, tensor<128xf32>, tensor<128xf32>
  %r3 = mt.relu %n3 : tensor<?x7x7x128xf32>
  %z4 = mt.conv2d %r3, %w4 : tensor<?x7x7x128xf32>, tensor<1x1x128x128xf32>
  %n4 = mt.batch_normalization %z4, %g4, %b4, %m4, %v4 momentum = 0.9
       : tensor<?x7x7x128xf32>, tensor<128xf32>, tensor<128xf32>, tensor<128xf32>, tensor<128xf32>
  %s4 = mt.add %n4, %r3 : tensor<?x7x7x128xf32>, tensor<?x7x7x128xf32>
  %r4 = mt.relu %s4 : tensor<?x7x7x128xf32>
  %sum = mt.reduce sum, %r4 over [1, 2] : tensor<?x7x7x128xf32>
  %part = mt.constant dense<0.0204081628> : tensor<f32>
  %mean = mt.mul %sum, %part : tensor<?x128xf32>, tensor<f32>
  %w5 = mt.variable "e/kernel" init(glorot_uniform) : tensor<128x10xf32>
  %logits = mt.matmul %mean, %w5 : tensor<?x128xf32>, tensor<128x10xf32>
  %l = mt.sparse_categorical_crossentropy %logits, %label from_logits : tensor<?x10xf32>, tensor<?xi32>
  mt.loss "loss", %l : tensor<?xf32>
  mt.output "logits", %logits : tensor<?x10xf32>
  mt.sgd <{learning_rate = 1.0e-2 : f32}>
}
