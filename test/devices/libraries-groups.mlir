// SPDX-License-Identifier: Apache-2.0
// Groups, dilation, uneven padding, a bias and the gradient to images that nothing masks, through calls of simulated
// libraries.
// RUN: mtc compile %s -o %t.mtp --batch 5 --shards 4 --target cpu,cuda:simulated
// RUN: export MTRUN_CUDA_DRIVER=%build/lib/libcuda-simulated.so MTC_SIM_DEVICES=4 MTRUN_CUDA_CUBLASLT=%build/lib/libcublasLt-simulated.so MTRUN_CUDA_CUDNN=%build/lib/libcudnn-simulated.so
// RUN: %python %source/test/exactness/same_bits.py %t.mtp --data mnist:%examples/mnist,split=test,range=0:8 --epochs 1 --configurations "cuda:0 --libraries require" "cuda:0-1 --libraries require" "cuda:0-3 --libraries require"
// RUN: %python %S/inputs/same_loss.py %t.mtp --data mnist:%examples/mnist,split=test,range=0:8 --devices cpu:1 "cuda:0-1 --libraries require"
// RUN: mtc inspect %t.mtp | FileCheck %s
// CHECK: library calls
// CHECK-DAG: a/conv2d+add+relu {{ *}}convolution {{ *}}14 x 14 x 4 {{ *}}3 x 3 x 2 x 8 {{ *}}bias_relu
// CHECK-DAG: c/input_gradient{{[+a-z]*}} {{ *}}convolution_input {{ *}}
mt.model @groups {
  %pixels = mt.input "image" : tensor<?x784xf32>
  %label = mt.target "label" : tensor<?xi32>
  %x = mt.reshape %pixels : tensor<?x784xf32> to tensor<?x14x14x4xf32>
  %w1 = mt.variable "a/kernel" init(glorot_uniform) : tensor<3x3x2x8xf32>
  %b1 = mt.variable "a/bias" init(ones) : tensor<8xf32>
  %w2 = mt.variable "b/kernel" init(glorot_uniform) : tensor<3x2x8x6xf32>
  %w3 = mt.variable "c/kernel" init(glorot_uniform) : tensor<3x3x6x5xf32>
  %z1 = mt.conv2d %x, %w1 strides = [2, 1] padding = [1, 0, 2, 1] dilation = [1, 2] groups = 2 : tensor<?x14x14x4xf32>, tensor<3x3x2x8xf32>
  %a1 = mt.add %z1, %b1 : tensor<?x7x13x8xf32>, tensor<8xf32>
  %r1 = mt.relu %a1 : tensor<?x7x13x8xf32>
  %z2 = mt.conv2d %r1, %w2 strides = [1, 2] : tensor<?x7x13x8xf32>, tensor<3x2x8x6xf32>
  %z3 = mt.conv2d %z2, %w3 : tensor<?x5x6x6xf32>, tensor<3x3x6x5xf32>
  %flat = mt.reshape %z3 : tensor<?x3x4x5xf32> to tensor<?x60xf32>
  %w4 = mt.variable "d/kernel" init(glorot_uniform) : tensor<60x10xf32>
  %logits = mt.matmul %flat, %w4 : tensor<?x60xf32>, tensor<60x10xf32>
  %l = mt.sparse_categorical_crossentropy %logits, %label from_logits : tensor<?x10xf32>, tensor<?xi32>
  mt.loss "loss", %l : tensor<?xf32>
  mt.sgd <{learning_rate = 1.0e-2 : f32}>
}
