// SPDX-License-Identifier: Apache-2.0
// Rows of 33 numbers of 16 bits: the last vector of a row has one of them, behind which the next row begins. Another
// thread may have written that.
// RUN: mtc compile %s -o %t.mtp --batch 64 --precision bf16
// RUN: %python %S/same_bits.py %t.mtp --data mnist:%examples/mnist,split=test,range=0:320 --epochs 1 --configurations cpu:1 cpu:1x2 cpu:1x3 "cpu:1x2 --cpu x86-64-v3" | FileCheck %s
// CHECK: 4 runs, one result
mt.model @columns {
  %x = mt.input "x" : tensor<?x784xf32>
  %label = mt.target "label" : tensor<?xi32>
  %w = mt.variable "w" init(glorot_uniform) : tensor<784x33xf32>
  %0 = mt.matmul %x, %w : tensor<?x784xf32>, tensor<784x33xf32>
  %1 = mt.reverse %0 over [1] : tensor<?x33xf32>
  %2 = mt.add %1, %0 : tensor<?x33xf32>, tensor<?x33xf32>
  %v = mt.variable "v" init(glorot_uniform) : tensor<33x10xf32>
  %3 = mt.matmul %2, %v : tensor<?x33xf32>, tensor<33x10xf32>
  %loss = mt.sparse_categorical_crossentropy %3, %label from_logits : tensor<?x10xf32>, tensor<?xi32>
  mt.loss "loss", %loss : tensor<?xf32>
  mt.sgd
}
