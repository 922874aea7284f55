// SPDX-License-Identifier: Apache-2.0
// Four numbers to three classes.
mt.model @linear {
  %x = mt.input "features" : tensor<?x4xf32>
  %label = mt.target "label" : tensor<?xi32>
  %w = mt.variable "dense/kernel" init(glorot_uniform) : tensor<4x3xf32>
  %logits = mt.matmul %x, %w : tensor<?x4xf32>, tensor<4x3xf32>
  %l = mt.sparse_categorical_crossentropy %logits, %label from_logits : tensor<?x3xf32>, tensor<?xi32>
  %hit = mt.sparse_categorical_accuracy %logits, %label : tensor<?x3xf32>, tensor<?xi32>
  mt.loss "loss", %l : tensor<?xf32>
  mt.metric "accuracy", %hit : tensor<?xf32>
  mt.output "logits", %logits : tensor<?x3xf32>
  mt.sgd <{learning_rate = 1.0e-2 : f32}>
}
