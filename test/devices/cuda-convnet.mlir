// SPDX-License-Identifier: Apache-2.0
// Convolutions, batch normalisation over all devices, a global average and dropout on simulated GPUs: the guides'
// convolutional model with half its filters. Three steps, the last of 3 samples, and validation: the same bits on any
// number of GPUs, the CPU's losses.
// RUN: mtc compile %s -o %t.mtp --batch 10 --shards 8 --target cpu,cuda:simulated
// RUN: export MTRUN_CUDA_DRIVER=%build/lib/libcuda-simulated.so MTC_SIM_DEVICES=8
// RUN: %python %source/test/exactness/same_bits.py %t.mtp --data mnist:%examples/mnist,split=test,range=0:23 --epochs 1 --configurations cuda:0 cuda:0-1 cuda:0-2 cuda:0-7 "cuda:0-2 --processes 1"
// RUN: %python %S/inputs/same_loss.py %t.mtp --data mnist:%examples/mnist,split=test,range=0:23 --devices cpu:1 cuda:0-1
mt.model @convnet {
  %pixels = mt.input "image" : tensor<?x784xf32>
  %label = mt.target "label" : tensor<?xi32>
  %x = mt.reshape %pixels : tensor<?x784xf32> to tensor<?x28x28x1xf32>
  %w1 = mt.variable "a/kernel" init(glorot_uniform) : tensor<3x3x1x6xf32>
  %w2 = mt.variable "b/kernel" init(glorot_uniform) : tensor<6x6x6x12xf32>
  %w3 = mt.variable "c/kernel" init(glorot_uniform) : tensor<6x6x12x16xf32>
  %g1 = mt.variable "a/norm/gamma" init(ones) : tensor<6xf32>
  %b1 = mt.variable "a/norm/beta" init(zeros) : tensor<6xf32>
  %m1 = mt.variable "a/norm/moving_mean" init(zeros) frozen : tensor<6xf32>
  %v1 = mt.variable "a/norm/moving_variance" init(ones) frozen : tensor<6xf32>
  %g2 = mt.variable "b/norm/gamma" init(ones) : tensor<12xf32>
  %b2 = mt.variable "b/norm/beta" init(zeros) : tensor<12xf32>
  %m2 = mt.variable "b/norm/moving_mean" init(zeros) frozen : tensor<12xf32>
  %v2 = mt.variable "b/norm/moving_variance" init(ones) frozen : tensor<12xf32>
  %z1 = mt.conv2d %x, %w1 padding = [1, 1, 1, 1] : tensor<?x28x28x1xf32>, tensor<3x3x1x6xf32>
  %n1 = mt.batch_normalization %z1, %g1, %b1, %m1, %v1 momentum = 0.9
       : tensor<?x28x28x6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>
  %r1 = mt.relu %n1 : tensor<?x28x28x6xf32>
  %z2 = mt.conv2d %r1, %w2 strides = [2, 2] : tensor<?x28x28x6xf32>, tensor<6x6x6x12xf32>
  %n2 = mt.batch_normalization %z2, %g2, %b2, %m2, %v2 momentum = 0.9
       : tensor<?x12x12x12xf32>, tensor<12xf32>, tensor<12xf32>, tensor<12xf32>, tensor<12xf32>
  %r2 = mt.relu %n2 : tensor<?x12x12x12xf32>
  %z3 = mt.conv2d %r2, %w3 strides = [2, 2] padding = [2, 2, 2, 2] : tensor<?x12x12x12xf32>, tensor<6x6x12x16xf32>
  %r3 = mt.relu %z3 : tensor<?x6x6x16xf32>
  %sum = mt.reduce sum, %r3 over [1, 2] : tensor<?x6x6x16xf32>
  %part = mt.constant dense<0.0277777778> : tensor<f32>
  %mean = mt.mul %sum, %part : tensor<?x16xf32>, tensor<f32>
  %d = mt.dropout %mean "drop" rate = 0.4 : tensor<?x16xf32>
  %w4 = mt.variable "d/kernel" init(glorot_uniform) : tensor<16x10xf32>
  %logits = mt.matmul %d, %w4 : tensor<?x16xf32>, tensor<16x10xf32>
  %l = mt.sparse_categorical_crossentropy %logits, %label from_logits : tensor<?x10xf32>, tensor<?xi32>
  %hit = mt.sparse_categorical_accuracy %logits, %label : tensor<?x10xf32>, tensor<?xi32>
  mt.loss "loss", %l : tensor<?xf32>
  mt.metric "accuracy", %hit : tensor<?xf32>
  mt.output "logits", %logits : tensor<?x10xf32>
  mt.adam <{learning_rate = 3.0e-3 : f32}>
}
