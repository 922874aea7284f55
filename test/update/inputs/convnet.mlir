// SPDX-License-Identifier: Apache-2.0
// The step of convnet-backward.mlir with derivatives that MTC makes.
mt.model @convnet {
  %x = mt.input "x" : tensor<?x12x12x3xf32>
  %y = mt.input "y" : tensor<?x3xf32>
  %bias = mt.variable "bias" init(zeros) : tensor<8xf32>
  %dense = mt.variable "dense" init(glorot_uniform) : tensor<48x3xf32>
  %same = mt.variable "same" init(glorot_uniform) : tensor<3x3x3x8xf32>
  %valid = mt.variable "valid" init(glorot_uniform) : tensor<3x3x8x12xf32>
  %i = mt.variable "optimizer/iteration" init(zeros) frozen role(iteration) : tensor<i32>
  mt.update {
    %rate = mt.constant dense<0.1> : tensor<f32>
    %n = mt.batch_size
    %b = mt.argument %bias : tensor<8xf32>
    %d = mt.argument %dense : tensor<48x3xf32>
    %s = mt.argument %same : tensor<3x3x3x8xf32>
    %v = mt.argument %valid : tensor<3x3x8x12xf32>
    %0 = mt.conv2d %x, %s padding = [1, 1, 1, 1] : tensor<?x12x12x3xf32>, tensor<3x3x3x8xf32>
    %1 = mt.add %0, %b : tensor<?x12x12x8xf32>, tensor<8xf32>
    %2 = mt.relu %1 : tensor<?x12x12x8xf32>
    %3 = mt.pool max, %2 window = [2, 2] strides = [2, 2] : tensor<?x12x12x8xf32>
    %4 = mt.conv2d %3, %v strides = [2, 2] : tensor<?x6x6x8xf32>, tensor<3x3x8x12xf32>
    %5 = mt.relu %4 : tensor<?x2x2x12xf32>
    %6 = mt.reshape %5 : tensor<?x2x2x12xf32> to tensor<?x48xf32>
    %7 = mt.matmul %6, %d : tensor<?x48xf32>, tensor<48x3xf32>
    %8 = mt.sub %7, %y : tensor<?x3xf32>, tensor<?x3xf32>
    %9 = mt.square %8 : tensor<?x3xf32>
    %10 = mt.reduce sum, %9 over [1] : tensor<?x3xf32>
    %11 = mt.reduce sum, %10 over [0] : tensor<?xf32>
    %loss = mt.div %11, %n : tensor<f32>, tensor<f32>
    mt.result "loss", %loss, %n loss better lower
    %gb = mt.derivative %loss by %b : tensor<8xf32>
    %gd = mt.derivative %loss by %d : tensor<48x3xf32>
    %gs = mt.derivative %loss by %s : tensor<3x3x3x8xf32>
    %gv = mt.derivative %loss by %v : tensor<3x3x8x12xf32>
    %rb = mt.mul %rate, %gb : tensor<f32>, tensor<8xf32>
    %rd = mt.mul %rate, %gd : tensor<f32>, tensor<48x3xf32>
    %rs = mt.mul %rate, %gs : tensor<f32>, tensor<3x3x3x8xf32>
    %rv = mt.mul %rate, %gv : tensor<f32>, tensor<3x3x8x12xf32>
    %nb = mt.sub %bias, %rb : tensor<8xf32>, tensor<8xf32>
    %nd = mt.sub %dense, %rd : tensor<48x3xf32>, tensor<48x3xf32>
    %ns = mt.sub %same, %rs : tensor<3x3x3x8xf32>, tensor<3x3x3x8xf32>
    %nv = mt.sub %valid, %rv : tensor<3x3x8x12xf32>, tensor<3x3x8x12xf32>
    mt.assign "bias", %nb : tensor<8xf32>
    mt.assign "dense", %nd : tensor<48x3xf32>
    mt.assign "same", %ns : tensor<3x3x3x8xf32>
    mt.assign "valid", %nv : tensor<3x3x8x12xf32>
  }
}
