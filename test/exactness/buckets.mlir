// SPDX-License-Identifier: Apache-2.0
// 40 MB of gradients are two all-reduces, of which the first runs beside the rest of the backward pass; the bits are
// those of one device.
// RUN: rm -rf %t && mkdir %t && cd %t && mtc compile %s -o m.mtp --batch 8 --shards 4 2>&1 | FileCheck %s
// CHECK: 2 all-reduces of 40.8 MiB a step
// RUN: %python %S/../devices/inputs/samples.py x.npy y.npy
// RUN: for d in 1 2 4; do mtrun train m.mtp --data npy:x.npy,y.npy --devices cpu:$d --epochs 1 --save $d.safetensors || exit 1; done; cmp 1.safetensors 2.safetensors && cmp 1.safetensors 4.safetensors
mt.model @wide {
  %x = mt.input "x" : tensor<?x37xf32>
  %y = mt.target "y" : tensor<?xf32>
  %a = mt.variable "a" init(glorot_uniform) : tensor<37x2304xf32>
  %b = mt.variable "b" init(glorot_uniform) : tensor<2304x2304xf32>
  %c = mt.variable "c" init(glorot_uniform) : tensor<2304x2304xf32>
  %d = mt.variable "d" init(glorot_uniform) : tensor<2304x1xf32>
  %0 = mt.matmul %x, %a : tensor<?x37xf32>, tensor<37x2304xf32>
  %1 = mt.relu %0 : tensor<?x2304xf32>
  %2 = mt.matmul %1, %b : tensor<?x2304xf32>, tensor<2304x2304xf32>
  %3 = mt.relu %2 : tensor<?x2304xf32>
  %4 = mt.matmul %3, %c : tensor<?x2304xf32>, tensor<2304x2304xf32>
  %5 = mt.relu %4 : tensor<?x2304xf32>
  %6 = mt.matmul %5, %d : tensor<?x2304xf32>, tensor<2304x1xf32>
  %7 = mt.reshape %6 : tensor<?x1xf32> to tensor<?xf32>
  %8 = mt.sub %7, %y : tensor<?xf32>, tensor<?xf32>
  %loss = mt.mul %8, %8 : tensor<?xf32>, tensor<?xf32>
  mt.loss "loss", %loss : tensor<?xf32>
  mt.sgd <{learning_rate = 1.0e-2 : f32}>
}
