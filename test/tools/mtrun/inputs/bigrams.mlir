// SPDX-License-Identifier: Apache-2.0
// Of each of 16 characters: which one comes next.
mt.model @bigrams {
  %ids = mt.input "ids" : tensor<?x4xi32>
  %next = mt.target "next" : tensor<?x4xi32>
  %table = mt.variable "table" init(glorot_uniform) : tensor<16x16xf32>
  %logits = mt.gather %table, %ids : tensor<16x16xf32>, tensor<?x4xi32>
  %l = mt.sparse_categorical_crossentropy %logits, %next from_logits : tensor<?x4x16xf32>, tensor<?x4xi32>
  mt.loss "loss", %l : tensor<?x4xf32>
  mt.output "logits", %logits : tensor<?x4x16xf32>
  mt.sgd <{learning_rate = 1.0e-2 : f32}>
}
