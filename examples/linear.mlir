// SPDX-License-Identifier: Apache-2.0
//
// Linear regression: the model that docs/architecture.md follows through the compiler.
mt.model @linear {
  %x = mt.input "x" : tensor<?x4xf32>
  %y = mt.target "y" : tensor<?x2xf32>
  %w = mt.variable "dense/kernel" init(glorot_uniform) : tensor<4x2xf32>
  %b = mt.variable "dense/bias" init(zeros) : tensor<2xf32>
  %0 = mt.matmul %x, %w : tensor<?x4xf32>, tensor<4x2xf32>
  %1 = mt.add %0, %b : tensor<?x2xf32>, tensor<2xf32>
  %2 = mt.sub %1, %y : tensor<?x2xf32>, tensor<?x2xf32>
  %3 = mt.square %2 : tensor<?x2xf32>
  %loss = mt.reduce sum, %3 over [1] : tensor<?x2xf32>
  mt.loss "loss", %loss : tensor<?xf32>
  mt.sgd <{learning_rate = 0.1 : f32}>
}
