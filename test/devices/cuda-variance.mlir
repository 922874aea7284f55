// SPDX-License-Identifier: Apache-2.0
// Batch normalisation of 64 channels, whose mean and variance a GPU sums in one pass, of values that are far from zero;
// and a max pool with a border. In f32 and bf16, two steps, the second of 3 samples: the same bits on any number of
// simulated GPUs; the losses of a plan for CPUs, whose variance is of differences from the mean. (In float64 the loss
// of the second step is 4.488675; CPUs give 4.488667, a sum of the pixels in one order or another 4.48871 or 4.48862.)
// REQUIRES: no-sanitizer
// RUN: for p in f32 bf16; do mtc compile %s -o %t.$p.mtp --batch 10 --shards 8 --target cuda:simulated --precision $p && mtc compile %s -o %t.cpu.$p.mtp --batch 10 --shards 8 --precision $p || exit 1; done
// RUN: for p in f32 bf16; do mtc inspect %t.$p.mtp | FileCheck %s || exit 1; done
// CHECK: norm/sum+slice+{{.*}}sub+square rows
// CHECK-NOT: relu/slice
// CHECK-NOT: relu/pad
// RUN: export MTRUN_CUDA_DRIVER=%build/lib/libcuda-simulated.so MTC_SIM_DEVICES=8
// RUN: for p in f32 bf16; do %python %source/test/exactness/same_bits.py %t.$p.mtp --data mnist:%examples/mnist,split=test,range=0:13 --epochs 1 --configurations cuda:0 cuda:0-1 cuda:0-2 cuda:0-7 || exit 1; done
// RUN: %python %S/inputs/same_loss.py %t.cpu.f32.mtp %t.f32.mtp --data mnist:%examples/mnist,split=test,range=0:13 --devices cpu:1 cuda:0-1 --tolerance 2e-5
// RUN: %python %S/inputs/same_loss.py %t.cpu.bf16.mtp %t.bf16.mtp --data mnist:%examples/mnist,split=test,range=0:13 --devices cpu:1 cuda:0-1 --tolerance 1e-2
mt.model @variance {
  %pixels = mt.input "image" : tensor<?x784xf32>
  %label = mt.target "label" : tensor<?xi32>
  %x = mt.reshape %pixels : tensor<?x784xf32> to tensor<?x28x28x1xf32>
  %w1 = mt.variable "conv/kernel" init(glorot_uniform) : tensor<3x3x1x64xf32>
  %c1 = mt.variable "conv/bias" init(ones) : tensor<64xf32>
  %g1 = mt.variable "norm/gamma" init(ones) : tensor<64xf32>
  %b1 = mt.variable "norm/beta" init(zeros) : tensor<64xf32>
  %m1 = mt.variable "norm/moving_mean" init(zeros) frozen : tensor<64xf32>
  %v1 = mt.variable "norm/moving_variance" init(ones) frozen : tensor<64xf32>
  %z0 = mt.conv2d %x, %w1 strides = [2, 2] padding = [1, 1, 1, 1] : tensor<?x28x28x1xf32>, tensor<3x3x1x64xf32>
  %far = mt.constant dense<20.0> : tensor<f32>
  %bias = mt.mul %c1, %far : tensor<64xf32>, tensor<f32>
  %z1 = mt.add %z0, %bias : tensor<?x14x14x64xf32>, tensor<64xf32>
  %n1 = mt.batch_normalization %z1, %g1, %b1, %m1, %v1 momentum = 0.9
       : tensor<?x14x14x64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>
  %r1 = mt.relu %n1 : tensor<?x14x14x64xf32>
  %p1 = mt.pad %r1 low = [1, 1, 0] high = [1, 1, 0] : tensor<?x14x14x64xf32>
  %y1 = mt.pool max, %p1 window = [3, 3] strides = [2, 2] : tensor<?x16x16x64xf32>
  %flat = mt.reshape %y1 : tensor<?x7x7x64xf32> to tensor<?x3136xf32>
  %w2 = mt.variable "dense/kernel" init(glorot_uniform) : tensor<3136x10xf32>
  %logits = mt.matmul %flat, %w2 : tensor<?x3136xf32>, tensor<3136x10xf32>
  %l = mt.sparse_categorical_crossentropy %logits, %label from_logits : tensor<?x10xf32>, tensor<?xi32>
  mt.loss "loss", %l : tensor<?xf32>
  mt.output "logits", %logits : tensor<?x10xf32>
  mt.sgd <{learning_rate = 1.0e-2 : f32}>
}
