// SPDX-License-Identifier: Apache-2.0
// Five kinds of stripes in pictures of 32 x 32 pixels: two convolutions with max pools, one dense layer.
// docs/guides/pictures.md trains it.
mt.model @stripes_cnn {
  %image = mt.input "image" : tensor<?x32x32x3xf32>
  %label = mt.target "label" : tensor<?xi32>

  %w1 = mt.variable "conv2d/kernel" init(glorot_uniform) : tensor<3x3x3x8xf32>
  %z1 = mt.conv2d %image, %w1 : tensor<?x32x32x3xf32>, tensor<3x3x3x8xf32>
  %r1 = mt.relu %z1 : tensor<?x30x30x8xf32>
  %h1 = mt.pool max, %r1 window = [2, 2] strides = [2, 2] : tensor<?x30x30x8xf32>

  %w2 = mt.variable "conv2d_1/kernel" init(glorot_uniform) : tensor<3x3x8x16xf32>
  %z2 = mt.conv2d %h1, %w2 : tensor<?x15x15x8xf32>, tensor<3x3x8x16xf32>
  %r2 = mt.relu %z2 : tensor<?x13x13x16xf32>
  %h2 = mt.pool max, %r2 window = [2, 2] strides = [2, 2] : tensor<?x13x13x16xf32>
  %flat = mt.reshape %h2 : tensor<?x6x6x16xf32> to tensor<?x576xf32>

  %w3 = mt.variable "dense/kernel" init(glorot_uniform) : tensor<576x5xf32>
  %b3 = mt.variable "dense/bias" init(zeros) : tensor<5xf32>
  %z3 = mt.matmul %flat, %w3 : tensor<?x576xf32>, tensor<576x5xf32>
  %logits = mt.add %z3, %b3 : tensor<?x5xf32>, tensor<5xf32>

  %l = mt.sparse_categorical_crossentropy %logits, %label from_logits : tensor<?x5xf32>, tensor<?xi32>
  %hit = mt.sparse_categorical_accuracy %logits, %label : tensor<?x5xf32>, tensor<?xi32>
  mt.loss "loss", %l : tensor<?xf32>
  mt.metric "accuracy", %hit : tensor<?xf32>
  mt.output "logits", %logits : tensor<?x5xf32>
  mt.adam <{learning_rate = 3.0e-3 : f32}>
}
