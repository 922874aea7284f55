// SPDX-License-Identifier: Apache-2.0
// mlp.mlir as a whole step.
mt.model @mlp {
  %x = mt.input "x" : tensor<?x4xf32>
  %t = mt.target "t" : tensor<?x3xf32>
  %w1 = mt.variable "w1" init(zeros) : tensor<4x8xf32>
  %b1 = mt.variable "b1" init(zeros) : tensor<8xf32>
  %w2 = mt.variable "w2" init(zeros) : tensor<8x3xf32>
  %i = mt.variable "sgd/iteration" init(zeros) frozen role(iteration) : tensor<i32>
  %r = mt.variable "sgd/learning_rate" init(constant = 0.1) frozen role(learning_rate) : tensor<f32>
  %0 = mt.matmul %x, %w1 : tensor<?x4xf32>, tensor<4x8xf32>
  %1 = mt.add %0, %b1 : tensor<?x8xf32>, tensor<8xf32>
  %2 = mt.relu %1 : tensor<?x8xf32>
  %p = mt.matmul %2, %w2 : tensor<?x8xf32>, tensor<8x3xf32>
  %l = mt.mean_squared_error %p, %t : tensor<?x3xf32>, tensor<?x3xf32>
  mt.loss "loss", %l : tensor<?xf32>
  mt.output "p", %p : tensor<?x3xf32>
  mt.update {
    %a1 = mt.argument %w1 : tensor<4x8xf32>
    %a2 = mt.argument %b1 : tensor<8xf32>
    %a3 = mt.argument %w2 : tensor<8x3xf32>
    %n = mt.batch_size
    %3 = mt.matmul %x, %a1 : tensor<?x4xf32>, tensor<4x8xf32>
    %4 = mt.add %3, %a2 : tensor<?x8xf32>, tensor<8xf32>
    %5 = mt.relu %4 : tensor<?x8xf32>
    %6 = mt.matmul %5, %a3 : tensor<?x8xf32>, tensor<8x3xf32>
    %7 = mt.mean_squared_error %6, %t : tensor<?x3xf32>, tensor<?x3xf32>
    %8 = mt.reduce sum, %7 over [0] : tensor<?xf32>
    %loss = mt.div %8, %n : tensor<f32>, tensor<f32>
    mt.result "loss", %loss, %n
    %g1 = mt.derivative %loss by %a1 : tensor<4x8xf32>
    %g2 = mt.derivative %loss by %a2 : tensor<8xf32>
    %g3 = mt.derivative %loss by %a3 : tensor<8x3xf32>
    %s1 = mt.mul %g1, %r : tensor<4x8xf32>, tensor<f32>
    %s2 = mt.mul %g2, %r : tensor<8xf32>, tensor<f32>
    %s3 = mt.mul %g3, %r : tensor<8x3xf32>, tensor<f32>
    %n1 = mt.sub %w1, %s1 : tensor<4x8xf32>, tensor<4x8xf32>
    %n2 = mt.sub %b1, %s2 : tensor<8xf32>, tensor<8xf32>
    %n3 = mt.sub %w2, %s3 : tensor<8x3xf32>, tensor<8x3xf32>
    mt.assign "w1", %n1 : tensor<4x8xf32>
    mt.assign "b1", %n2 : tensor<8xf32>
    mt.assign "w2", %n3 : tensor<8x3xf32>
  }
}
