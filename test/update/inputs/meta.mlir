// SPDX-License-Identifier: Apache-2.0
// MAML: the loss after a step of gradient descent on other data is differentiated by the weights before that step.
mt.model @meta {
  %x = mt.input "x" : tensor<?x4xf32>
  %t = mt.target "t" : tensor<?x3xf32>
  %y = mt.input "y" : tensor<?x4xf32>
  %u = mt.target "u" : tensor<?x3xf32>
  %w = mt.variable "w" init(zeros) : tensor<4x3xf32>
  %i = mt.variable "iteration" init(zeros) frozen role(iteration) : tensor<i32>
  mt.update {
    %n = mt.batch_size
    %rate = mt.constant dense<0.1> : tensor<f32>
    %a = mt.argument %w : tensor<4x3xf32>
    %b = mt.argument %a : tensor<4x3xf32>
    %0 = mt.matmul %x, %b : tensor<?x4xf32>, tensor<4x3xf32>
    %1 = mt.tanh %0 : tensor<?x3xf32>
    %2 = mt.sub %1, %t : tensor<?x3xf32>, tensor<?x3xf32>
    %3 = mt.square %2 : tensor<?x3xf32>
    %each_4 = mt.reduce sum, %3 over [1] : tensor<?x3xf32>
    %4 = mt.reduce sum, %each_4 over [0] : tensor<?xf32>
    %inner = mt.div %4, %n : tensor<f32>, tensor<f32>
    %g = mt.derivative %inner by %b : tensor<4x3xf32>
    %s = mt.mul %g, %rate : tensor<4x3xf32>, tensor<f32>
    %adapted = mt.sub %a, %s : tensor<4x3xf32>, tensor<4x3xf32>
    %5 = mt.matmul %y, %adapted : tensor<?x4xf32>, tensor<4x3xf32>
    %6 = mt.tanh %5 : tensor<?x3xf32>
    %7 = mt.sub %6, %u : tensor<?x3xf32>, tensor<?x3xf32>
    %8 = mt.square %7 : tensor<?x3xf32>
    %each_9 = mt.reduce sum, %8 over [1] : tensor<?x3xf32>
    %9 = mt.reduce sum, %each_9 over [0] : tensor<?xf32>
    %outer = mt.div %9, %n : tensor<f32>, tensor<f32>
    mt.result "outer", %outer, %n
    mt.result "inner", %inner, %n
    %h = mt.derivative %outer by %a : tensor<4x3xf32>
    %r = mt.mul %h, %rate : tensor<4x3xf32>, tensor<f32>
    %new = mt.sub %w, %r : tensor<4x3xf32>, tensor<4x3xf32>
    mt.assign "w", %new : tensor<4x3xf32>
  }
}
