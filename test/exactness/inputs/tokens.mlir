// SPDX-License-Identifier: Apache-2.0
// The loss of the tokens that are not 0, divided by their number in the whole batch.
mt.model @tokens {
  %x = mt.input "text" limit = 256 : tensor<?x64xi32>
  %y = mt.target "next" limit = 256 : tensor<?x64xi32>
  %e = mt.variable "embedding" init(glorot_uniform) : tensor<256x16xf32>
  %k = mt.variable "kernel" init(glorot_uniform) : tensor<16x256xf32>
  %0 = mt.gather %e, %x : tensor<256x16xf32>, tensor<?x64xi32>
  %1 = mt.matmul %0, %k : tensor<?x64x16xf32>, tensor<16x256xf32>
  %zero = mt.constant dense<0> : tensor<i32>
  %2 = mt.compare ne, %y, %zero : tensor<?x64xi32>, tensor<i32>
  %3 = mt.cast %2 : tensor<?x64xi1> to tensor<?x64xf32>
  %4 = mt.sparse_categorical_crossentropy %1, %y from_logits : tensor<?x64x256xf32>, tensor<?x64xi32>
  %5 = mt.mul %4, %3 : tensor<?x64xf32>, tensor<?x64xf32>
  %6 = mt.reduce sum, %5 over [1] : tensor<?x64xf32>
  %7 = mt.reduce sum, %3 over [1] : tensor<?x64xf32>
  %8 = mt.reduce sum, %7 over [0] : tensor<?xf32>
  %9 = mt.batch_size
  %10 = mt.div %9, %8 : tensor<f32>, tensor<f32>
  %11 = mt.mul %6, %10 : tensor<?xf32>, tensor<f32>
  mt.loss "loss", %11 : tensor<?xf32>
  mt.adam <{epsilon_after_correction}>
}
