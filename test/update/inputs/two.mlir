// SPDX-License-Identifier: Apache-2.0
// Momentum of two variables, clipped by the norm of both gradients; and the average of one.
mt.model @two {
  %x = mt.input "x" : tensor<?x4xf32>
  %t = mt.target "t" : tensor<?x4xf32>
  %a = mt.variable "body/a" init(ones) : tensor<4xf32>
  %b = mt.variable "head/b" init(zeros) : tensor<4xf32>
  %i = mt.variable "sgd/iteration" init(zeros) frozen role(iteration) : tensor<i32>
  %r = mt.variable "sgd/learning_rate" init(constant = 0.5) frozen role(learning_rate) : tensor<f32>
  %ma = mt.variable "sgd/m/a" init(zeros) slot : tensor<4xf32>
  %mb = mt.variable "sgd/m/b" init(zeros) slot : tensor<4xf32>
  %av = mt.variable "sgd/average" init(zeros) slot role(average) of "body/a" : tensor<4xf32>
  %k = mt.variable "nesterov" init(constant = 0.25) frozen : tensor<f32>
  %c = mt.variable "sgd/count" init(zeros) slot : tensor<i32>
  %0 = mt.mul %x, %a : tensor<?x4xf32>, tensor<4xf32>
  %p = mt.add %0, %b : tensor<?x4xf32>, tensor<4xf32>
  %l = mt.mean_squared_error %p, %t : tensor<?x4xf32>, tensor<?x4xf32>
  mt.loss "loss", %l : tensor<?xf32>
  mt.output "p", %p : tensor<?x4xf32>
  mt.update {
    %ga = mt.gradient "body/a" : tensor<4xf32>
    %gb = mt.gradient "head/b" : tensor<4xf32>
    %sa = mt.square %ga : tensor<4xf32>
    %sb = mt.square %gb : tensor<4xf32>
    %na = mt.reduce sum, %sa over [0] : tensor<4xf32>
    %nb = mt.reduce sum, %sb over [0] : tensor<4xf32>
    %nn = mt.add %na, %nb : tensor<f32>, tensor<f32>
    %n = mt.sqrt %nn : tensor<f32>
    %one = mt.constant dense<1.0> : tensor<f32>
    %d = mt.maximum %n, %one : tensor<f32>, tensor<f32>
    %m0 = mt.mul %ma, %k : tensor<4xf32>, tensor<f32>
    %m1 = mt.add %m0, %ga : tensor<4xf32>, tensor<4xf32>
    %m2 = mt.add %mb, %gb : tensor<4xf32>, tensor<4xf32>
    %f = mt.div %r, %d : tensor<f32>, tensor<f32>
    %u1 = mt.mul %m1, %f : tensor<4xf32>, tensor<f32>
    %u2 = mt.mul %m2, %f : tensor<4xf32>, tensor<f32>
    %w1 = mt.sub %a, %u1 : tensor<4xf32>, tensor<4xf32>
    %w2 = mt.sub %b, %u2 : tensor<4xf32>, tensor<4xf32>
    %e = mt.add %av, %a : tensor<4xf32>, tensor<4xf32>
    %o = mt.constant dense<1> : tensor<i32>
    %n2 = mt.add %c, %o : tensor<i32>, tensor<i32>
    mt.assign "body/a", %w1 : tensor<4xf32>
    mt.assign "head/b", %w2 : tensor<4xf32>
    mt.assign "sgd/m/a", %m1 : tensor<4xf32>
    mt.assign "sgd/m/b", %m2 : tensor<4xf32>
    mt.assign "sgd/average", %e : tensor<4xf32>
    mt.assign "sgd/count", %n2 : tensor<i32>
  }
}
