// SPDX-License-Identifier: Apache-2.0
mt.model @weighted {
  %x = mt.input "x" : tensor<?x4xf32>
  %y = mt.target "y" : tensor<?xi32>
  %weight = mt.sample_weight "weight" : tensor<?xf32>
  %w1 = mt.variable "hidden/kernel" init(glorot_uniform) : tensor<4x32xf32>
  %w2 = mt.variable "out/kernel" init(glorot_uniform) : tensor<32x3xf32>
  %0 = mt.matmul %x, %w1 : tensor<?x4xf32>, tensor<4x32xf32>
  %1 = mt.relu %0 : tensor<?x32xf32>
  %2 = mt.dropout %1 "drop" rate = 0.25 : tensor<?x32xf32>
  %logits = mt.matmul %2, %w2 : tensor<?x32xf32>, tensor<32x3xf32>
  %loss = mt.sparse_categorical_crossentropy %logits, %y from_logits : tensor<?x3xf32>, tensor<?xi32>
  mt.loss "loss", %loss weights(%weight : tensor<?xf32>) : tensor<?xf32>
  mt.output "logits", %logits : tensor<?x3xf32>
  mt.adam
}
