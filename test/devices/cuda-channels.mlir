// SPDX-License-Identifier: Apache-2.0
// Convolutions of images of three channels, which have four for GPUs in 16 bits (docs/ir.md, "Channels that pad
// images"): one of each column, one with a border and a stride, whose columns are an odd number, and one of images
// that are multiplied by a variable and so have a gradient. The last batch has 3 samples of 10. The same bits on
// any number of GPUs; losses near those of a CPU, and of a plan without these channels.
// Most of it is generated code, which sanitizers do not see; other tests of devices run with them.
// REQUIRES: no-sanitizer
// RUN: mtc compile %s -o %t.mtp --batch 10 --shards 8 --precision bf16 --target cpu,cuda:simulated
// RUN: mtc compile %s -o %t.cpu.mtp --batch 10 --shards 8 --precision bf16
// RUN: export MTRUN_CUDA_DRIVER=%build/lib/libcuda-simulated.so MTC_SIM_DEVICES=8
// RUN: %python %source/test/exactness/same_bits.py %t.mtp --data mnist:%examples/mnist,split=test,range=0:23 --epochs 1 --configurations cuda:0 cuda:0-1 cuda:0-2 cuda:0-7
// RUN: %python %S/inputs/same_loss.py %t.mtp --data mnist:%examples/mnist,split=test,range=0:23 --devices cpu:1 cuda:0-1 --tolerance 1e-3
// RUN: %python %S/inputs/same_loss.py %t.mtp %t.cpu.mtp --data mnist:%examples/mnist,split=test,range=0:23 --devices cuda:0-2 cpu:1 --tolerance 1e-3
mt.model @channels {
  %pixels = mt.input "image" : tensor<?x784xf32>
  %label = mt.target "label" : tensor<?xi32>
  %part = mt.slice %pixels starts = [0] sizes = [783] : tensor<?x784xf32>
  %x = mt.reshape %part : tensor<?x783xf32> to tensor<?x29x9x3xf32>
  %w1 = mt.variable "a/kernel" init(glorot_uniform) : tensor<3x3x3x12xf32>
  %w2 = mt.variable "b/kernel" init(glorot_uniform) : tensor<7x7x3x20xf32>
  %w3 = mt.variable "c/kernel" init(glorot_uniform) : tensor<6x6x3x24xf32>
  %scale = mt.variable "c/scale" init(ones) : tensor<3xf32>
  %z1 = mt.conv2d %x, %w1 padding = [1, 1, 1, 1] : tensor<?x29x9x3xf32>, tensor<3x3x3x12xf32>
  %border = mt.pad %x low = [3, 3, 0] high = [3, 3, 0] : tensor<?x29x9x3xf32>
  %z2 = mt.conv2d %border, %w2 strides = [2, 2] : tensor<?x35x15x3xf32>, tensor<7x7x3x20xf32>
  %scaled = mt.mul %x, %scale : tensor<?x29x9x3xf32>, tensor<3xf32>
  %z3 = mt.conv2d %scaled, %w3 strides = [4, 4] padding = [2, 3, 2, 3] : tensor<?x29x9x3xf32>, tensor<6x6x3x24xf32>
  %r1 = mt.relu %z1 : tensor<?x29x9x12xf32>
  %r2 = mt.relu %z2 : tensor<?x15x5x20xf32>
  %r3 = mt.relu %z3 : tensor<?x8x3x24xf32>
  %s1 = mt.reduce sum, %r1 over [1, 2] : tensor<?x29x9x12xf32>
  %s2 = mt.reduce sum, %r2 over [1, 2] : tensor<?x15x5x20xf32>
  %s3 = mt.reduce sum, %r3 over [1, 2] : tensor<?x8x3x24xf32>
  %all = mt.concat %s1, %s2, %s3 dim = 1 : tensor<?x12xf32>, tensor<?x20xf32>, tensor<?x24xf32>
  %less = mt.constant dense<0.03> : tensor<f32>
  %features = mt.mul %all, %less : tensor<?x56xf32>, tensor<f32>
  %w4 = mt.variable "d/kernel" init(glorot_uniform) : tensor<56x10xf32>
  %logits = mt.matmul %features, %w4 : tensor<?x56xf32>, tensor<56x10xf32>
  %l = mt.sparse_categorical_crossentropy %logits, %label from_logits : tensor<?x10xf32>, tensor<?xi32>
  mt.loss "loss", %l : tensor<?xf32>
  %hit = mt.sparse_categorical_accuracy %logits, %label : tensor<?x10xf32>, tensor<?xi32>
  mt.metric "accuracy", %hit : tensor<?xf32>
  mt.output "logits", %logits : tensor<?x10xf32>
  mt.adam <{learning_rate = 3.0e-3 : f32}>
}
