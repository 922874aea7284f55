// SPDX-License-Identifier: Apache-2.0
// An MLP with a loss and an optimizer; mlp-step.mlir is the same as a whole step.
mt.model @mlp {
  %x = mt.input "x" : tensor<?x4xf32>
  %t = mt.target "t" : tensor<?x3xf32>
  %w1 = mt.variable "w1" init(zeros) : tensor<4x8xf32>
  %b1 = mt.variable "b1" init(zeros) : tensor<8xf32>
  %w2 = mt.variable "w2" init(zeros) : tensor<8x3xf32>
  %0 = mt.matmul %x, %w1 : tensor<?x4xf32>, tensor<4x8xf32>
  %1 = mt.add %0, %b1 : tensor<?x8xf32>, tensor<8xf32>
  %2 = mt.relu %1 : tensor<?x8xf32>
  %p = mt.matmul %2, %w2 : tensor<?x8xf32>, tensor<8x3xf32>
  %l = mt.mean_squared_error %p, %t : tensor<?x3xf32>, tensor<?x3xf32>
  mt.loss "loss", %l : tensor<?xf32>
  mt.output "p", %p : tensor<?x3xf32>
  mt.sgd <{learning_rate = 0.1 : f32}>
}
