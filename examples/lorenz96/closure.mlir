// SPDX-License-Identifier: Apache-2.0
//
// A closure of the model of Lorenz (1996): the effect of the fast variables on a slow one, from it and its neighbours.
// A batch is the ring of the 36 slow variables.
mt.model @closure {
  %x = mt.input "x" : tensor<?x3xf32>
  %y = mt.target "y" : tensor<?x1xf32>
  %w1 = mt.variable "hidden/kernel" init(glorot_uniform) : tensor<3x16xf32>
  %b1 = mt.variable "hidden/bias" init(zeros) : tensor<16xf32>
  %w2 = mt.variable "out/kernel" init(glorot_uniform) : tensor<16x1xf32>
  %b2 = mt.variable "out/bias" init(zeros) : tensor<1xf32>
  %0 = mt.matmul %x, %w1 : tensor<?x3xf32>, tensor<3x16xf32>
  %1 = mt.add %0, %b1 : tensor<?x16xf32>, tensor<16xf32>
  %2 = mt.tanh %1 : tensor<?x16xf32>
  %3 = mt.matmul %2, %w2 : tensor<?x16xf32>, tensor<16x1xf32>
  %p = mt.add %3, %b2 : tensor<?x1xf32>, tensor<1xf32>
  %l = mt.mean_squared_error %p, %y : tensor<?x1xf32>, tensor<?x1xf32>
  mt.loss "loss", %l : tensor<?xf32>
  mt.output "closure", %p : tensor<?x1xf32>
  mt.adam <{learning_rate = 5.0e-3 : f32}>
}
