// SPDX-License-Identifier: Apache-2.0
mt.model @narrow {
  %x = mt.input "x" : tensor<?x4xf32>
  %y = mt.target "y" : tensor<?xi32>
  %w1 = mt.variable "a/kernel" init(glorot_uniform) : tensor<4x20xf32>
  %b1 = mt.variable "a/bias" init(zeros) : tensor<20xf32>
  %w2 = mt.variable "b/kernel" init(glorot_uniform) : tensor<20x20xf32>
  %w3 = mt.variable "c/kernel" init(glorot_uniform) : tensor<20x20xf32>
  %w4 = mt.variable "out/kernel" init(glorot_uniform) : tensor<20x3xf32>
  %0 = mt.matmul %x, %w1 : tensor<?x4xf32>, tensor<4x20xf32>
  %1 = mt.add %0, %b1 : tensor<?x20xf32>, tensor<20xf32>
  %2 = mt.tanh %1 : tensor<?x20xf32>
  %3 = mt.dropout %2 "drop" rate = 0.25 : tensor<?x20xf32>
  %4 = mt.matmul %3, %w2 : tensor<?x20xf32>, tensor<20x20xf32>
  %5 = mt.tanh %4 : tensor<?x20xf32>
  %6 = mt.matmul %5, %w3 : tensor<?x20xf32>, tensor<20x20xf32>
  %7 = mt.tanh %6 : tensor<?x20xf32>
  %logits = mt.matmul %7, %w4 : tensor<?x20xf32>, tensor<20x3xf32>
  %loss = mt.sparse_categorical_crossentropy %logits, %y from_logits : tensor<?x3xf32>, tensor<?xi32>
  mt.loss "loss", %loss : tensor<?xf32>
  %hits = mt.sparse_categorical_accuracy %logits, %y : tensor<?x3xf32>, tensor<?xi32>
  mt.metric "accuracy", %hits : tensor<?xf32>
  mt.output "logits", %logits : tensor<?x3xf32>
  mt.adam
}
