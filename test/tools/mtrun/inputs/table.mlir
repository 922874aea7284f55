// SPDX-License-Identifier: Apache-2.0
mt.model @table {
  %x = mt.input "columns" : tensor<?x2xf32>
  %y = mt.target "kind" : tensor<?xi32>
  %w = mt.variable "dense/kernel" init(glorot_uniform) : tensor<2x2xf32>
  %b = mt.variable "dense/bias" init(zeros) : tensor<2xf32>
  %z = mt.matmul %x, %w : tensor<?x2xf32>, tensor<2x2xf32>
  %logits = mt.add %z, %b : tensor<?x2xf32>, tensor<2xf32>
  %l = mt.sparse_categorical_crossentropy %logits, %y from_logits : tensor<?x2xf32>, tensor<?xi32>
  %hit = mt.sparse_categorical_accuracy %logits, %y : tensor<?x2xf32>, tensor<?xi32>
  mt.loss "loss", %l : tensor<?xf32>
  mt.metric "accuracy", %hit : tensor<?xf32>
  mt.output "logits", %logits : tensor<?x2xf32>
  mt.adam <{learning_rate = 1.0e-1 : f32}>
}
