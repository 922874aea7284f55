// SPDX-License-Identifier: Apache-2.0
mt.model @mnist_cnn {
  %pixels = mt.input "image" : tensor<?x784xf32>
  %label = mt.target "label" : tensor<?xi32>
  %image = mt.reshape %pixels : tensor<?x784xf32> to tensor<?x28x28x1xf32>

  %w1 = mt.variable "conv2d/kernel" init(glorot_uniform) : tensor<3x3x1x32xf32>
  %b1 = mt.variable "conv2d/bias" init(zeros) : tensor<32xf32>
  %z1 = mt.conv2d %image, %w1 : tensor<?x28x28x1xf32>, tensor<3x3x1x32xf32>
  %a1 = mt.add %z1, %b1 : tensor<?x26x26x32xf32>, tensor<32xf32>
  %r1 = mt.relu %a1 : tensor<?x26x26x32xf32>
  %h1 = mt.pool max, %r1 window = [2, 2] strides = [2, 2] : tensor<?x26x26x32xf32>

  %w2 = mt.variable "conv2d_1/kernel" init(glorot_uniform) : tensor<3x3x32x64xf32>
  %b2 = mt.variable "conv2d_1/bias" init(zeros) : tensor<64xf32>
  %z2 = mt.conv2d %h1, %w2 : tensor<?x13x13x32xf32>, tensor<3x3x32x64xf32>
  %a2 = mt.add %z2, %b2 : tensor<?x11x11x64xf32>, tensor<64xf32>
  %r2 = mt.relu %a2 : tensor<?x11x11x64xf32>
  %h2 = mt.pool max, %r2 window = [2, 2] strides = [2, 2] : tensor<?x11x11x64xf32>
  %flat = mt.reshape %h2 : tensor<?x5x5x64xf32> to tensor<?x1600xf32>

  %w3 = mt.variable "dense/kernel" init(glorot_uniform) : tensor<1600x128xf32>
  %b3 = mt.variable "dense/bias" init(zeros) : tensor<128xf32>
  %z3 = mt.matmul %flat, %w3 : tensor<?x1600xf32>, tensor<1600x128xf32>
  %a3 = mt.add %z3, %b3 : tensor<?x128xf32>, tensor<128xf32>
  %h3 = mt.relu %a3 : tensor<?x128xf32>

  %w4 = mt.variable "dense_1/kernel" init(glorot_uniform) : tensor<128x10xf32>
  %b4 = mt.variable "dense_1/bias" init(zeros) : tensor<10xf32>
  %z4 = mt.matmul %h3, %w4 : tensor<?x128xf32>, tensor<128x10xf32>
  %logits = mt.add %z4, %b4 : tensor<?x10xf32>, tensor<10xf32>

  %l = mt.sparse_categorical_crossentropy %logits, %label from_logits : tensor<?x10xf32>, tensor<?xi32>
  %hit = mt.sparse_categorical_accuracy %logits, %label : tensor<?x10xf32>, tensor<?xi32>
  mt.loss "loss", %l : tensor<?xf32>
  mt.metric "accuracy", %hit : tensor<?xf32>
  mt.output "logits", %logits : tensor<?x10xf32>
  mt.adam <{learning_rate = 1.0e-3 : f32}>
}
