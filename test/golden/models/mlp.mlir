// SPDX-License-Identifier: Apache-2.0
mt.model @mlp {
  %image = mt.input "image" : tensor<?x784xf32>
  %label = mt.target "label" : tensor<?xi32>
  %w1 = mt.variable "dense/kernel" init(glorot_uniform) : tensor<784x256xf32>
  %b1 = mt.variable "dense/bias" init(zeros) : tensor<256xf32>
  %w2 = mt.variable "dense_1/kernel" init(glorot_uniform) : tensor<256x256xf32>
  %b2 = mt.variable "dense_1/bias" init(zeros) : tensor<256xf32>
  %w3 = mt.variable "dense_2/kernel" init(glorot_uniform) : tensor<256x10xf32>
  %b3 = mt.variable "dense_2/bias" init(zeros) : tensor<10xf32>
  %0 = mt.matmul %image, %w1 : tensor<?x784xf32>, tensor<784x256xf32>
  %1 = mt.add %0, %b1 : tensor<?x256xf32>, tensor<256xf32>
  %2 = mt.relu %1 : tensor<?x256xf32>
  %3 = mt.matmul %2, %w2 : tensor<?x256xf32>, tensor<256x256xf32>
  %4 = mt.add %3, %b2 : tensor<?x256xf32>, tensor<256xf32>
  %5 = mt.relu %4 : tensor<?x256xf32>
  %6 = mt.matmul %5, %w3 : tensor<?x256xf32>, tensor<256x10xf32>
  %output = mt.add %6, %b3 : tensor<?x10xf32>, tensor<10xf32>
  %loss = mt.sparse_categorical_crossentropy %output, %label from_logits : tensor<?x10xf32>, tensor<?xi32>
  mt.loss "loss", %loss : tensor<?xf32>
  %hit = mt.sparse_categorical_accuracy %output, %label : tensor<?x10xf32>, tensor<?xi32>
  mt.metric "accuracy", %hit : tensor<?xf32>
  mt.output "output", %output : tensor<?x10xf32>
  mt.adam
}
