// SPDX-License-Identifier: Apache-2.0
//
// An update that reads the sum of a slot.
mt.model @whole_slot {
  %x = mt.input "x" : tensor<?x4xf32>
  %y = mt.target "y" : tensor<?x2xf32>
  %w = mt.variable "w" init(glorot_uniform) : tensor<4x2xf32>
  %m = mt.variable "optimizer/m/w" init(zeros) slot : tensor<4x2xf32>
  %r = mt.variable "optimizer/learning_rate" init(constant = 0.1) frozen role(learning_rate) : tensor<f32>
  %i = mt.variable "optimizer/iteration" init(zeros) frozen role(iteration) : tensor<i32>
  %0 = mt.matmul %x, %w : tensor<?x4xf32>, tensor<4x2xf32>
  %1 = mt.sub %0, %y : tensor<?x2xf32>, tensor<?x2xf32>
  %2 = mt.square %1 : tensor<?x2xf32>
  %l = mt.reduce sum, %2 over [1] : tensor<?x2xf32>
  mt.loss "loss", %l : tensor<?xf32>
  mt.update {
    %g = mt.gradient "w" : tensor<4x2xf32>
    %a = mt.reduce sum, %m over [0, 1] : tensor<4x2xf32>
    %b = mt.add %g, %a : tensor<4x2xf32>, tensor<f32>
    %c = mt.mul %b, %r : tensor<4x2xf32>, tensor<f32>
    %d = mt.sub %w, %c : tensor<4x2xf32>, tensor<4x2xf32>
    mt.assign "optimizer/m/w", %b : tensor<4x2xf32>
    mt.assign "w", %d : tensor<4x2xf32>
  }
}
