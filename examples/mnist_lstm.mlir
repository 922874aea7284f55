// SPDX-License-Identifier: Apache-2.0
// An LSTM that reads an image row by row: 28 steps of 28 pixels. The product of all rows with the kernel stands before
// the loop; the loop multiplies the state alone.
mt.model @mnist_lstm {
  %image = mt.input "image" : tensor<?x784xf32>
  %label = mt.target "label" : tensor<?xi32>
  %w = mt.variable "lstm/kernel" init(glorot_uniform) : tensor<28x256xf32>
  %u = mt.variable "lstm/recurrent_kernel" init(glorot_uniform) : tensor<64x256xf32>
  %b = mt.variable "lstm/bias" init(zeros) : tensor<256xf32>
  %wo = mt.variable "dense/kernel" init(glorot_uniform) : tensor<64x10xf32>
  %bo = mt.variable "dense/bias" init(zeros) : tensor<10xf32>
  %rows = mt.reshape %image : tensor<?x784xf32> to tensor<?x28x28xf32>
  %xw = mt.matmul %rows, %w : tensor<?x28x28xf32>, tensor<28x256xf32>
  %xs = mt.add %xw, %b : tensor<?x28x256xf32>, tensor<256xf32>
  %zero = mt.constant dense<0.0> : tensor<f32>
  %start = mt.broadcast %zero : tensor<f32> to tensor<?x64xf32>
  %h, %c = mt.scan over(%x = %xs : tensor<?x28x256xf32>)
                   from(%before = %start : tensor<?x64xf32>, %cell = %start : tensor<?x64xf32>) {
    %hu = mt.matmul %before, %u : tensor<?x64xf32>, tensor<64x256xf32>
    %z = mt.add %x, %hu : tensor<?x256xf32>, tensor<?x256xf32>
    %zi = mt.slice %z starts = [0] sizes = [64] : tensor<?x256xf32>
    %zf = mt.slice %z starts = [64] sizes = [64] : tensor<?x256xf32>
    %zg = mt.slice %z starts = [128] sizes = [64] : tensor<?x256xf32>
    %zo = mt.slice %z starts = [192] sizes = [64] : tensor<?x256xf32>
    %i = mt.sigmoid %zi : tensor<?x64xf32>
    %f = mt.sigmoid %zf : tensor<?x64xf32>
    %g = mt.tanh %zg : tensor<?x64xf32>
    %o = mt.sigmoid %zo : tensor<?x64xf32>
    %kept = mt.mul %f, %cell : tensor<?x64xf32>, tensor<?x64xf32>
    %new = mt.mul %i, %g : tensor<?x64xf32>, tensor<?x64xf32>
    %next = mt.add %kept, %new : tensor<?x64xf32>, tensor<?x64xf32>
    %shown = mt.tanh %next : tensor<?x64xf32>
    %after = mt.mul %o, %shown : tensor<?x64xf32>, tensor<?x64xf32>
    mt.yield %after, %next : tensor<?x64xf32>, tensor<?x64xf32>
  }
  %product = mt.matmul %h, %wo : tensor<?x64xf32>, tensor<64x10xf32>
  %logits = mt.add %product, %bo : tensor<?x10xf32>, tensor<10xf32>
  %loss = mt.sparse_categorical_crossentropy %logits, %label from_logits : tensor<?x10xf32>, tensor<?xi32>
  mt.loss "loss", %loss : tensor<?xf32>
  %hit = mt.sparse_categorical_accuracy %logits, %label : tensor<?x10xf32>, tensor<?xi32>
  mt.metric "accuracy", %hit : tensor<?xf32>
  mt.output "logits", %logits : tensor<?x10xf32>
  mt.adam <{learning_rate = 1.0e-3 : f32}>
}
