// SPDX-License-Identifier: Apache-2.0
// A penalty on the norm of the gradient with respect to each sample: a derivative of a derivative.
mt.model @penalty {
  %x = mt.input "x" : tensor<?x4xf32>
  %t = mt.target "t" : tensor<?x1xf32>
  %w1 = mt.variable "w1" init(zeros) : tensor<4x8xf32>
  %b1 = mt.variable "b1" init(zeros) : tensor<8xf32>
  %w2 = mt.variable "w2" init(zeros) : tensor<8x1xf32>
  %i = mt.variable "iteration" init(zeros) frozen role(iteration) : tensor<i32>
  %h0 = mt.matmul %x, %w1 : tensor<?x4xf32>, tensor<4x8xf32>
  %h1 = mt.add %h0, %b1 : tensor<?x8xf32>, tensor<8xf32>
  %h2 = mt.tanh %h1 : tensor<?x8xf32>
  %h3 = mt.matmul %h2, %w2 : tensor<?x8xf32>, tensor<8x1xf32>
  mt.output "p", %h3 : tensor<?x1xf32>
  mt.update {
    %a1 = mt.argument %w1 : tensor<4x8xf32>
    %a2 = mt.argument %b1 : tensor<8xf32>
    %a3 = mt.argument %w2 : tensor<8x1xf32>
    %ax = mt.argument %x : tensor<?x4xf32>
    %n = mt.batch_size
    %rate = mt.constant dense<0.1> : tensor<f32>
    %half = mt.constant dense<0.5> : tensor<f32>
    %one = mt.constant dense<1.0> : tensor<f32>
    %0 = mt.matmul %ax, %a1 : tensor<?x4xf32>, tensor<4x8xf32>
    %1 = mt.add %0, %a2 : tensor<?x8xf32>, tensor<8xf32>
    %2 = mt.tanh %1 : tensor<?x8xf32>
    %p = mt.matmul %2, %a3 : tensor<?x8xf32>, tensor<8x1xf32>
    %each_all = mt.reduce sum, %p over [1] : tensor<?x1xf32>
    %all = mt.reduce sum, %each_all over [0] : tensor<?xf32>
    %g = mt.derivative %all by %ax : tensor<?x4xf32>
    %3 = mt.square %g : tensor<?x4xf32>
    %4 = mt.reduce sum, %3 over [1] : tensor<?x4xf32>
    %5 = mt.sqrt %4 : tensor<?xf32>
    %6 = mt.sub %5, %one : tensor<?xf32>, tensor<f32>
    %7 = mt.square %6 : tensor<?xf32>
    %8 = mt.reduce sum, %7 over [0] : tensor<?xf32>
    %9 = mt.div %8, %n : tensor<f32>, tensor<f32>
    %10 = mt.sub %p, %t : tensor<?x1xf32>, tensor<?x1xf32>
    %11 = mt.square %10 : tensor<?x1xf32>
    %each_12 = mt.reduce sum, %11 over [1] : tensor<?x1xf32>
    %12 = mt.reduce sum, %each_12 over [0] : tensor<?xf32>
    %13 = mt.div %12, %n : tensor<f32>, tensor<f32>
    %14 = mt.mul %9, %half : tensor<f32>, tensor<f32>
    %loss = mt.add %13, %14 : tensor<f32>, tensor<f32>
    mt.result "penalty", %9, %n
    mt.result "loss", %loss, %n
    %g1 = mt.derivative %loss by %a1 : tensor<4x8xf32>
    %g2 = mt.derivative %loss by %a2 : tensor<8xf32>
    %g3 = mt.derivative %loss by %a3 : tensor<8x1xf32>
    %s1 = mt.mul %g1, %rate : tensor<4x8xf32>, tensor<f32>
    %s2 = mt.mul %g2, %rate : tensor<8xf32>, tensor<f32>
    %s3 = mt.mul %g3, %rate : tensor<8x1xf32>, tensor<f32>
    %n1 = mt.sub %w1, %s1 : tensor<4x8xf32>, tensor<4x8xf32>
    %n2 = mt.sub %b1, %s2 : tensor<8xf32>, tensor<8xf32>
    %n3 = mt.sub %w2, %s3 : tensor<8x1xf32>, tensor<8x1xf32>
    mt.assign "w1", %n1 : tensor<4x8xf32>
    mt.assign "b1", %n2 : tensor<8xf32>
    mt.assign "w2", %n3 : tensor<8x1xf32>
  }
}
