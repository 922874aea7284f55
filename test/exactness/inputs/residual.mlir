// SPDX-License-Identifier: Apache-2.0
// A small residual network of the shapes that ResNets have: three input channels, an odd number of filters, strides, a
// shortcut by 1 x 1 taps, normalisation. 768 of the 784 pixels are 16 x 16 x 3.
mt.model @residual {
  %given = mt.input "image" : tensor<?x784xf32>
  %label = mt.target "label" : tensor<?xi32>
  %k1 = mt.variable "first/kernel" init(glorot_uniform) : tensor<3x3x3x16xf32>
  %k2 = mt.variable "second/kernel" init(glorot_uniform) : tensor<3x3x16x16xf32>
  %k3 = mt.variable "third/kernel" init(glorot_uniform) : tensor<3x3x16x33xf32>
  %k4 = mt.variable "shortcut/kernel" init(glorot_uniform) : tensor<1x1x16x33xf32>
  %g = mt.variable "norm/gamma" init(ones) : tensor<16xf32>
  %b = mt.variable "norm/beta" init(zeros) : tensor<16xf32>
  %m = mt.variable "norm/moving_mean" init(zeros) frozen : tensor<16xf32>
  %v = mt.variable "norm/moving_variance" init(ones) frozen : tensor<16xf32>
  %w = mt.variable "out/kernel" init(glorot_uniform) : tensor<33x10xf32>
  %part = mt.slice %given starts = [0] sizes = [768] : tensor<?x784xf32>
  %image = mt.reshape %part : tensor<?x768xf32> to tensor<?x16x16x3xf32>
  %c1 = mt.conv2d %image, %k1 padding = [1, 1, 1, 1] : tensor<?x16x16x3xf32>, tensor<3x3x3x16xf32>
  %n1 = mt.batch_normalization %c1, %g, %b, %m, %v momentum = 0.9
       : tensor<?x16x16x16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>
  %r1 = mt.relu %n1 : tensor<?x16x16x16xf32>
  %c2 = mt.conv2d %r1, %k2 padding = [1, 1, 1, 1] : tensor<?x16x16x16xf32>, tensor<3x3x16x16xf32>
  %s2 = mt.add %c2, %r1 : tensor<?x16x16x16xf32>, tensor<?x16x16x16xf32>
  %r2 = mt.relu %s2 : tensor<?x16x16x16xf32>
  %c3 = mt.conv2d %r2, %k3 strides = [2, 2] padding = [0, 1, 0, 1] : tensor<?x16x16x16xf32>, tensor<3x3x16x33xf32>
  %c4 = mt.conv2d %r2, %k4 strides = [2, 2] : tensor<?x16x16x16xf32>, tensor<1x1x16x33xf32>
  %s3 = mt.add %c3, %c4 : tensor<?x8x8x33xf32>, tensor<?x8x8x33xf32>
  %r3 = mt.relu %s3 : tensor<?x8x8x33xf32>
  %sum = mt.reduce sum, %r3 over [1, 2] : tensor<?x8x8x33xf32>
  %part64 = mt.constant dense<0.015625> : tensor<f32>
  %mean = mt.mul %sum, %part64 : tensor<?x33xf32>, tensor<f32>
  %logits = mt.matmul %mean, %w : tensor<?x33xf32>, tensor<33x10xf32>
  %loss = mt.sparse_categorical_crossentropy %logits, %label from_logits : tensor<?x10xf32>, tensor<?xi32>
  mt.loss "loss", %loss : tensor<?xf32>
  mt.output "logits", %logits : tensor<?x10xf32>
  mt.sgd <{learning_rate = 0.1 : f32}>
}
