// SPDX-License-Identifier: Apache-2.0
// Convolutions with max pools on simulated GPUs. Three steps, the last of 3 samples, and validation: the same bits on
// any number of GPUs, the CPU's losses. Rows of the first pool are more than a block's workgroup memory.
// RUN: mtc compile %s -o %t.mtp --batch 10 --shards 8 --target cpu,cuda:simulated
// RUN: export MTRUN_CUDA_DRIVER=%build/lib/libcuda-simulated.so MTC_SIM_DEVICES=8
// RUN: %python %source/test/exactness/same_bits.py %t.mtp --data mnist:%examples/mnist,split=test,range=0:23 --epochs 1 --configurations cuda:0 cuda:0-1 cuda:0-2 cuda:0-7
// RUN: %python %S/inputs/same_loss.py %t.mtp --data mnist:%examples/mnist,split=test,range=0:23 --devices cpu:1 cuda:0-1
mt.model @cnn {
  %pixels = mt.input "image" : tensor<?x784xf32>
  %label = mt.target "label" : tensor<?xi32>
  %x = mt.reshape %pixels : tensor<?x784xf32> to tensor<?x28x28x1xf32>
  %w1 = mt.variable "a/kernel" init(glorot_uniform) : tensor<3x3x1x20xf32>
  %b1 = mt.variable "a/bias" init(zeros) : tensor<20xf32>
  %z1 = mt.conv2d %x, %w1 : tensor<?x28x28x1xf32>, tensor<3x3x1x20xf32>
  %a1 = mt.add %z1, %b1 : tensor<?x26x26x20xf32>, tensor<20xf32>
  %r1 = mt.relu %a1 : tensor<?x26x26x20xf32>
  %h1 = mt.pool max, %r1 window = [2, 2] strides = [2, 2] : tensor<?x26x26x20xf32>
  %w2 = mt.variable "b/kernel" init(glorot_uniform) : tensor<3x3x20x8xf32>
  %b2 = mt.variable "b/bias" init(zeros) : tensor<8xf32>
  %z2 = mt.conv2d %h1, %w2 : tensor<?x13x13x20xf32>, tensor<3x3x20x8xf32>
  %a2 = mt.add %z2, %b2 : tensor<?x11x11x8xf32>, tensor<8xf32>
  %r2 = mt.relu %a2 : tensor<?x11x11x8xf32>
  %h2 = mt.pool max, %r2 window = [3, 3] strides = [2, 2] padding = [1, 1, 1, 1] : tensor<?x11x11x8xf32>
  %flat = mt.reshape %h2 : tensor<?x6x6x8xf32> to tensor<?x288xf32>
  %w3 = mt.variable "c/kernel" init(glorot_uniform) : tensor<288x10xf32>
  %b3 = mt.variable "c/bias" init(zeros) : tensor<10xf32>
  %z3 = mt.matmul %flat, %w3 : tensor<?x288xf32>, tensor<288x10xf32>
  %logits = mt.add %z3, %b3 : tensor<?x10xf32>, tensor<10xf32>
  %l = mt.sparse_categorical_crossentropy %logits, %label from_logits : tensor<?x10xf32>, tensor<?xi32>
  %hit = mt.sparse_categorical_accuracy %logits, %label : tensor<?x10xf32>, tensor<?xi32>
  mt.loss "loss", %l : tensor<?xf32>
  mt.metric "accuracy", %hit : tensor<?xf32>
  mt.output "logits", %logits : tensor<?x10xf32>
  mt.adam <{learning_rate = 3.0e-3 : f32}>
}
