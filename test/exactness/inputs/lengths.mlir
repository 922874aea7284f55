// SPDX-License-Identifier: Apache-2.0
// A tag for each token of a sequence: embeddings with positions, attention among the tokens that are not 0, dropout. A
// loss and an accuracy of these tokens, divided by their number in the whole batch.
mt.model @tags {
  %ids = mt.input "ids" limit = 100 : tensor<?x{length}xi32>
  %tags = mt.target "tags" limit = 5 : tensor<?x{length}xi32>
  %table = mt.variable "embedding" init(glorot_uniform) : tensor<100x24xf32>
  %all = mt.variable "positions" init(glorot_uniform) : tensor<32x24xf32>
  %wq = mt.variable "query/kernel" init(glorot_uniform) : tensor<24x24xf32>
  %wo = mt.variable "out/kernel" init(glorot_uniform) : tensor<24x5xf32>
  %zero = mt.constant dense<0> : tensor<i32>
  %real = mt.compare ne, %ids, %zero : tensor<?x{length}xi32>, tensor<i32>
  %mask = mt.reshape %real : tensor<?x{length}xi1> to tensor<?x1x1x{length}xi1>
  %tokens = mt.gather %table, %ids : tensor<100x24xf32>, tensor<?x{length}xi32>
  %place = mt.iota dim = 0 : tensor<{length}xi32>
  %places = mt.gather %all, %place : tensor<32x24xf32>, tensor<{length}xi32>
  %x = mt.add %tokens, %places : tensor<?x{length}x24xf32>, tensor<{length}x24xf32>
  %q = mt.matmul %x, %wq : tensor<?x{length}x24xf32>, tensor<24x24xf32>
  %a = mt.attention %q, %x, %x mask %mask heads = 3 dropout "drop" rate = 0.1 : tensor<?x{length}x24xf32>, tensor<?x{length}x24xf32>, tensor<?x{length}x24xf32>, tensor<?x1x1x{length}xi1>
  %y = mt.add %x, %a : tensor<?x{length}x24xf32>, tensor<?x{length}x24xf32>
  %logits = mt.matmul %y, %wo : tensor<?x{length}x24xf32>, tensor<24x5xf32>
  %each = mt.sparse_categorical_crossentropy %logits, %tags from_logits : tensor<?x{length}x5xf32>, tensor<?x{length}xi32>
  %hit = mt.sparse_categorical_accuracy %logits, %tags : tensor<?x{length}x5xf32>, tensor<?x{length}xi32>
  %counts = mt.cast %real : tensor<?x{length}xi1> to tensor<?x{length}xf32>
  mt.loss "loss", %each weights(%counts : tensor<?x{length}xf32>) by weights : tensor<?x{length}xf32>
  mt.metric "accuracy", %hit weights(%counts : tensor<?x{length}xf32>) : tensor<?x{length}xf32>
  mt.output "logits", %logits : tensor<?x{length}x5xf32>
  mt.adam
}
