// SPDX-License-Identifier: Apache-2.0
// Two updates that alternate: the generator's loss reads the discriminator after its update.
mt.model @gan {
  %x = mt.input "x" : tensor<?x4xf32>
  %z = mt.input "z" : tensor<?x3xf32>
  %wg = mt.variable "generator/w" init(zeros) : tensor<3x4xf32>
  %w1 = mt.variable "discriminator/w1" init(zeros) : tensor<4x8xf32>
  %w2 = mt.variable "discriminator/w2" init(zeros) : tensor<8x1xf32>
  %m = mt.variable "generator/m" init(zeros) slot : tensor<3x4xf32>
  %i = mt.variable "iteration" init(zeros) frozen role(iteration) : tensor<i32>
  %made = mt.matmul %z, %wg : tensor<?x3xf32>, tensor<3x4xf32>
  mt.output "made", %made : tensor<?x4xf32>
  mt.update {
    %n = mt.batch_size
    %rate = mt.constant dense<0.2> : tensor<f32>
    %beta = mt.constant dense<0.5> : tensor<f32>
    %a1 = mt.argument %w1 : tensor<4x8xf32>
    %a2 = mt.argument %w2 : tensor<8x1xf32>
    %r0 = mt.matmul %x, %a1 : tensor<?x4xf32>, tensor<4x8xf32>
    %r1 = mt.tanh %r0 : tensor<?x8xf32>
    %real = mt.matmul %r1, %a2 : tensor<?x8xf32>, tensor<8x1xf32>
    %f0 = mt.matmul %made, %a1 : tensor<?x4xf32>, tensor<4x8xf32>
    %f1 = mt.tanh %f0 : tensor<?x8xf32>
    %fake = mt.matmul %f1, %a2 : tensor<?x8xf32>, tensor<8x1xf32>
    %r2 = mt.neg %real : tensor<?x1xf32>
    %r3 = mt.softplus %r2 : tensor<?x1xf32>
    %f3 = mt.softplus %fake : tensor<?x1xf32>
    %d0 = mt.add %r3, %f3 : tensor<?x1xf32>, tensor<?x1xf32>
    %each_d1 = mt.reduce sum, %d0 over [1] : tensor<?x1xf32>
    %d1 = mt.reduce sum, %each_d1 over [0] : tensor<?xf32>
    %dl = mt.div %d1, %n : tensor<f32>, tensor<f32>
    mt.result "discriminator", %dl, %n
    %g1 = mt.derivative %dl by %a1 : tensor<4x8xf32>
    %g2 = mt.derivative %dl by %a2 : tensor<8x1xf32>
    %s1 = mt.mul %g1, %rate : tensor<4x8xf32>, tensor<f32>
    %s2 = mt.mul %g2, %rate : tensor<8x1xf32>, tensor<f32>
    %n1 = mt.sub %w1, %s1 : tensor<4x8xf32>, tensor<4x8xf32>
    %n2 = mt.sub %w2, %s2 : tensor<8x1xf32>, tensor<8x1xf32>
    mt.assign "discriminator/w1", %n1 : tensor<4x8xf32>
    mt.assign "discriminator/w2", %n2 : tensor<8x1xf32>
    %ag = mt.argument %wg : tensor<3x4xf32>
    %again = mt.matmul %z, %ag : tensor<?x3xf32>, tensor<3x4xf32>
    %c0 = mt.matmul %again, %n1 : tensor<?x4xf32>, tensor<4x8xf32>
    %c1 = mt.tanh %c0 : tensor<?x8xf32>
    %c2 = mt.matmul %c1, %n2 : tensor<?x8xf32>, tensor<8x1xf32>
    %c3 = mt.neg %c2 : tensor<?x1xf32>
    %c4 = mt.softplus %c3 : tensor<?x1xf32>
    %each_c5 = mt.reduce sum, %c4 over [1] : tensor<?x1xf32>
    %c5 = mt.reduce sum, %each_c5 over [0] : tensor<?xf32>
    %gl = mt.div %c5, %n : tensor<f32>, tensor<f32>
    mt.result "generator", %gl, %n
    %gg = mt.derivative %gl by %ag : tensor<3x4xf32>
    %m0 = mt.mul %m, %beta : tensor<3x4xf32>, tensor<f32>
    %m1 = mt.add %m0, %gg : tensor<3x4xf32>, tensor<3x4xf32>
    %sg = mt.mul %m1, %rate : tensor<3x4xf32>, tensor<f32>
    %ng = mt.sub %wg, %sg : tensor<3x4xf32>, tensor<3x4xf32>
    mt.assign "generator/m", %m1 : tensor<3x4xf32>
    mt.assign "generator/w", %ng : tensor<3x4xf32>
  }
}
