// SPDX-License-Identifier: Apache-2.0
// A loss that is not finite ends the run at its step, and the message says where it shows.
// RUN: mtc compile %s -o %t.mtp --batch 64
// RUN: rm -rf %t.d && mkdir %t.d
// RUN: %python %S/../tools/mtrun/outcome.py 1 mtrun train %t.mtp --data mnist:%examples/mnist,split=test,range=0:128,scale=1e38 --checkpoint %t.d/c | FileCheck %s --check-prefix=DATA
// DATA: mtrun: error: epoch 1, step 1: "loss" is not a number; "image" of the data is not finite either, at row 0 of the batch
// RUN: %python %S/../tools/mtrun/outcome.py 1 mtrun train %t.mtp --data mnist:%examples/mnist,split=test,range=0:640,scale=1e18 --checkpoint %t.d/d | FileCheck %s --check-prefix=STEP
// STEP: mtrun: error: epoch 1, step {{[0-9]+}}: "loss" is {{.*}}; the data is finite, {{.*}}dense/kernel
// RUN: not ls %t.d/c && not ls %t.d/d
// RUN: mtrun train %t.mtp --data mnist:%examples/mnist,split=test,range=0:640,scale=1e38 --allow-nan --save %t.d/w.safetensors | grep "loss: nan"
mt.model @linear {
  %image = mt.input "image" : tensor<?x784xf32>
  %label = mt.target "label" : tensor<?xi32>
  %w = mt.variable "dense/kernel" init(glorot_uniform) : tensor<784x10xf32>
  %logits = mt.matmul %image, %w : tensor<?x784xf32>, tensor<784x10xf32>
  %loss = mt.sparse_categorical_crossentropy %logits, %label from_logits : tensor<?x10xf32>, tensor<?xi32>
  mt.loss "loss", %loss : tensor<?xf32>
  mt.output "logits", %logits : tensor<?x10xf32>
  mt.sgd <{learning_rate = 1.0e+20 : f32}>
}
