// SPDX-License-Identifier: Apache-2.0
mt.model @mnist_mlp {
  %image = mt.input "image" : tensor<?x784xf32>
  %label = mt.target "label" : tensor<?xi32>

  %w1 = mt.variable "dense/kernel" init(glorot_uniform) : tensor<784x256xf32>
  %b1 = mt.variable "dense/bias" init(zeros) : tensor<256xf32>
  %z1 = mt.matmul %image, %w1 : tensor<?x784xf32>, tensor<784x256xf32>
  %a1 = mt.add %z1, %b1 : tensor<?x256xf32>, tensor<256xf32>
  %h1 = mt.relu %a1 : tensor<?x256xf32>

  %w2 = mt.variable "dense_1/kernel" init(glorot_uniform) : tensor<256x256xf32>
  %b2 = mt.variable "dense_1/bias" init(zeros) : tensor<256xf32>
  %z2 = mt.matmul %h1, %w2 : tensor<?x256xf32>, tensor<256x256xf32>
  %a2 = mt.add %z2, %b2 : tensor<?x256xf32>, tensor<256xf32>
  %h2 = mt.relu %a2 : tensor<?x256xf32>

  %w3 = mt.variable "dense_2/kernel" init(glorot_uniform) : tensor<256x10xf32>
  %b3 = mt.variable "dense_2/bias" init(zeros) : tensor<10xf32>
  %z3 = mt.matmul %h2, %w3 : tensor<?x256xf32>, tensor<256x10xf32>
  %logits = mt.add %z3, %b3 : tensor<?x10xf32>, tensor<10xf32>

  %l = mt.sparse_categorical_crossentropy %logits, %label from_logits : tensor<?x10xf32>, tensor<?xi32>
  %hit = mt.sparse_categorical_accuracy %logits, %label : tensor<?x10xf32>, tensor<?xi32>
  mt.loss "loss", %l : tensor<?xf32>
  mt.metric "accuracy", %hit : tensor<?xf32>
  mt.output "logits", %logits : tensor<?x10xf32>
  mt.adam <{learning_rate = 1.0e-3 : f32}>
}
