// SPDX-License-Identifier: Apache-2.0
// A residual network of one block: convolutions, batch normalization and a shortcut.
mt.model @residual {
  %pixels = mt.input "image" : tensor<?x784xf32>
  %label = mt.target "label" : tensor<?xi32>
  %x = mt.reshape %pixels : tensor<?x784xf32> to tensor<?x28x28x1xf32>

  %w1 = mt.variable "a/kernel" init(glorot_uniform) : tensor<3x3x1x8xf32>
  %g1 = mt.variable "a/norm/gamma" init(ones) : tensor<8xf32>
  %b1 = mt.variable "a/norm/beta" init(zeros) : tensor<8xf32>
  %m1 = mt.variable "a/norm/moving_mean" init(zeros) frozen : tensor<8xf32>
  %v1 = mt.variable "a/norm/moving_variance" init(ones) frozen : tensor<8xf32>
  %z1 = mt.conv2d %x, %w1 strides = [2, 2] : tensor<?x28x28x1xf32>, tensor<3x3x1x8xf32>
  %n1 = mt.batch_normalization %z1, %g1, %b1, %m1, %v1 momentum = 0.9
       : tensor<?x13x13x8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
  %r1 = mt.relu %n1 : tensor<?x13x13x8xf32>

  %w2 = mt.variable "b/kernel" init(glorot_uniform) : tensor<3x3x8x8xf32>
  %g2 = mt.variable "b/norm/gamma" init(ones) : tensor<8xf32>
  %b2 = mt.variable "b/norm/beta" init(zeros) : tensor<8xf32>
  %m2 = mt.variable "b/norm/moving_mean" init(zeros) frozen : tensor<8xf32>
  %v2 = mt.variable "b/norm/moving_variance" init(ones) frozen : tensor<8xf32>
  %z2 = mt.conv2d %r1, %w2 padding = [1, 1, 1, 1] : tensor<?x13x13x8xf32>, tensor<3x3x8x8xf32>
  %n2 = mt.batch_normalization %z2, %g2, %b2, %m2, %v2 momentum = 0.9
       : tensor<?x13x13x8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
  %s2 = mt.add %n2, %r1 : tensor<?x13x13x8xf32>, tensor<?x13x13x8xf32>
  %r2 = mt.relu %s2 : tensor<?x13x13x8xf32>

  %flat = mt.reshape %r2 : tensor<?x13x13x8xf32> to tensor<?x1352xf32>
  %w3 = mt.variable "dense/kernel" init(glorot_uniform) : tensor<1352x10xf32>
  %b3 = mt.variable "dense/bias" init(zeros) : tensor<10xf32>
  %z3 = mt.matmul %flat, %w3 : tensor<?x1352xf32>, tensor<1352x10xf32>
  %logits = mt.add %z3, %b3 : tensor<?x10xf32>, tensor<10xf32>

  %l = mt.sparse_categorical_crossentropy %logits, %label from_logits : tensor<?x10xf32>, tensor<?xi32>
  %hit = mt.sparse_categorical_accuracy %logits, %label : tensor<?x10xf32>, tensor<?xi32>
  mt.loss "loss", %l : tensor<?xf32>
  mt.metric "accuracy", %hit : tensor<?xf32>
  mt.output "logits", %logits : tensor<?x10xf32>
  mt.adam <{learning_rate = 1.0e-3 : f32}>
}
