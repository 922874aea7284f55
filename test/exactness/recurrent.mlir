// SPDX-License-Identifier: Apache-2.0
// Loops in both directions over the same inputs, with dropout, a gate and a matrix that all steps read: the same bits
// for any number of devices, threads and micro-batches, on both instruction sets. The last batch has 3 samples of 20.
// RUN: mtc compile %s -o %t.mtp --batch 20 --shards 8
// RUN: %python %S/same_bits.py %t.mtp --data mnist:%examples/mnist,split=test,range=0:63 --epochs 1 --configurations cpu:1 cpu:2 cpu:3 cpu:8 cpu:1x3 "cpu:1 --cpu x86-64-v3" "cpu:3 --private-variables" "cpu:1 --micro-batches 2" "cpu:2 --micro-batches 4" "cpu:3 --micro-batches 4 --private-variables"
// RUN: mtc compile %examples/mnist_lstm.mlir -o %t.lstm.mtp --batch 20 --shards 8
// RUN: %python %S/same_bits.py %t.lstm.mtp --data mnist:%examples/mnist,split=test,range=0:63 --epochs 1 --configurations cpu:1 cpu:2 cpu:3 cpu:8 "cpu:8 --private-variables" "cpu:1x2 --micro-batches 2" "cpu:1 --micro-batches 4"
mt.model @recurrent {
  %image = mt.input "image" : tensor<?x784xf32>
  %label = mt.target "label" : tensor<?xi32>
  %w = mt.variable "gru/kernel" init(glorot_uniform) : tensor<28x33xf32>
  %u = mt.variable "gru/recurrent_kernel" init(glorot_uniform) : tensor<33x33xf32>
  %b = mt.variable "gru/bias" init(constant = 0.1) : tensor<33xf32>
  %wo = mt.variable "dense/kernel" init(glorot_uniform) : tensor<33x10xf32>
  %rows = mt.reshape %image : tensor<?x784xf32> to tensor<?x28x28xf32>
  %xs = mt.matmul %rows, %w : tensor<?x28x28xf32>, tensor<28x33xf32>
  %zero = mt.constant dense<0.0> : tensor<f32>
  %start = mt.broadcast %zero : tensor<f32> to tensor<?x33xf32>
  %h, %ys = mt.scan over(%x = %xs : tensor<?x28x33xf32>) from(%before = %start : tensor<?x33xf32>) {
    %0 = mt.matmul %before, %u : tensor<?x33xf32>, tensor<33x33xf32>
    %1 = mt.add %0, %b : tensor<?x33xf32>, tensor<33xf32>
    %2 = mt.sigmoid %1 : tensor<?x33xf32>
    %3 = mt.mul %2, %x : tensor<?x33xf32>, tensor<?x33xf32>
    %4 = mt.dropout %3 "gru" rate = 0.25 : tensor<?x33xf32>
    %5 = mt.add %4, %before : tensor<?x33xf32>, tensor<?x33xf32>
    %6 = mt.tanh %5 : tensor<?x33xf32>
    mt.yield %6, %6 : tensor<?x33xf32>, tensor<?x33xf32>
  }
  %g, %zs = mt.scan over(%x = %xs : tensor<?x28x33xf32>, %y = %ys : tensor<?x28x33xf32>)
                    from(%before = %h : tensor<?x33xf32>) reverse {
    %0 = mt.add %x, %y : tensor<?x33xf32>, tensor<?x33xf32>
    %1 = mt.matmul %before, %u : tensor<?x33xf32>, tensor<33x33xf32>
    %2 = mt.add %0, %1 : tensor<?x33xf32>, tensor<?x33xf32>
    %3 = mt.tanh %2 : tensor<?x33xf32>
    mt.yield %3, %3 : tensor<?x33xf32>, tensor<?x33xf32>
  }
  %sums = mt.cumsum %zs dim = 1 : tensor<?x28x33xf32>
  %mean = mt.reduce sum, %sums over [1] : tensor<?x28x33xf32>
  %both = mt.add %mean, %g : tensor<?x33xf32>, tensor<?x33xf32>
  %logits = mt.matmul %both, %wo : tensor<?x33xf32>, tensor<33x10xf32>
  %loss = mt.sparse_categorical_crossentropy %logits, %label from_logits : tensor<?x10xf32>, tensor<?xi32>
  mt.loss "loss", %loss : tensor<?xf32>
  mt.output "logits", %logits : tensor<?x10xf32>
  mt.adam
}
