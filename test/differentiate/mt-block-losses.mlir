// SPDX-License-Identifier: Apache-2.0
// RUN: mt-opt %s --mt-block-losses=block-bytes=500 --split-input-file | FileCheck %s
// RUN: mt-opt %s --mt-block-losses --split-input-file | FileCheck %s --check-prefix=SMALL
// SMALL-NOT: mt.blocks
// RUN: mt-opt %s --mt-block-losses="gpus=true blocks=2" --split-input-file | FileCheck %s --check-prefix=GPUS
// GPUS-NOT: mt.blocks
// GPUS:     mt.model @dense
// GPUS:     mt.categorical_crossentropy %{{.*}} from_logits {mt.blocks = array<i64: 0, 256>}
// GPUS:     mt.categorical_crossentropy %{{.*}} {mt.blocks = array<i64: 1, 256>}
// GPUS:     mt.model @whole
// GPUS-NOT: mt.blocks
//
// Losses and accuracies of logits that nothing else reads but an output; a module without a batch has one sample. 300
// logits of 4 bytes are three blocks of 500 bytes or less, a block of more than 64 classes a multiple of 64. For GPUs,
// two blocks of the largest logits, of 256 classes at least.

// CHECK-LABEL: mt.model @sparse
// CHECK:       mt.sparse_categorical_crossentropy %{{.*}} from_logits {mt.blocks = array<i64: 0, 34>}
// CHECK:       mt.sparse_categorical_accuracy %{{.*}} {mt.blocks = array<i64: 0, 34>}
// CHECK:       mt.sparse_top_k_categorical_accuracy %{{.*}} k = 3 {mt.blocks = array<i64: 0, 34>}
mt.model @sparse {
  %x = mt.input "x" : tensor<?x3x4xf32>
  %label = mt.target "label" : tensor<?x3xi32>
  %w = mt.variable "w" init(zeros) : tensor<100x4xf32>
  %b = mt.variable "b" init(zeros) : tensor<100xf32>
  %0 = mt.matmul %x, %w transpose_b : tensor<?x3x4xf32>, tensor<100x4xf32>
  %1 = mt.add %0, %b : tensor<?x3x100xf32>, tensor<100xf32>
  %l = mt.sparse_categorical_crossentropy %1, %label from_logits : tensor<?x3x100xf32>, tensor<?x3xi32>
  mt.loss "loss", %l : tensor<?x3xf32>
  %hit = mt.sparse_categorical_accuracy %1, %label : tensor<?x3x100xf32>, tensor<?x3xi32>
  mt.metric "accuracy", %hit : tensor<?x3xf32>
  %near = mt.sparse_top_k_categorical_accuracy %1, %label k = 3 : tensor<?x3x100xf32>, tensor<?x3xi32>
  mt.metric "top_k", %near : tensor<?x3xf32>
  mt.output "logits", %1 : tensor<?x3x100xf32>
  mt.sgd
}

// -----

// The losses of a whole step, unless it differentiates several. Logits that mt.update reads too are stored.
// CHECK-LABEL: mt.model @step
// CHECK:       mt.sparse_categorical_crossentropy %{{.*}} from_logits : tensor<?x200xf32>
// CHECK:       mt.sparse_categorical_crossentropy %{{.*}} from_logits {mt.blocks = array<i64: 0, 128>}
mt.model @step {
  %x = mt.input "x" : tensor<?x4xf32>
  %label = mt.target "label" : tensor<?xi32>
  %w = mt.variable "w" init(zeros) : tensor<4x200xf32>
  %i = mt.variable "iteration" init(zeros) frozen role(iteration) : tensor<i32>
  %0 = mt.matmul %x, %w : tensor<?x4xf32>, tensor<4x200xf32>
  %l = mt.sparse_categorical_crossentropy %0, %label from_logits : tensor<?x200xf32>, tensor<?xi32>
  mt.loss "loss", %l : tensor<?xf32>
  mt.update {
    %n = mt.batch_size
    %a = mt.argument %w : tensor<4x200xf32>
    %1 = mt.matmul %x, %a : tensor<?x4xf32>, tensor<4x200xf32>
    %2 = mt.sparse_categorical_crossentropy %1, %label from_logits : tensor<?x200xf32>, tensor<?xi32>
    %3 = mt.reduce sum, %2 over [0] : tensor<?xf32>
    %g = mt.derivative %3 by %a : tensor<4x200xf32>
    %hit = mt.sparse_categorical_accuracy %0, %label : tensor<?x200xf32>, tensor<?xi32>
    %4 = mt.reduce sum, %hit over [0] : tensor<?xf32>
    mt.result "loss", %3, %n
    mt.result "hits", %4, %n better higher
    mt.assign "w", %g : tensor<4x200xf32>
  }
}

// -----

// CHECK-LABEL: mt.model @twice
// CHECK-NOT:   mt.blocks
mt.model @twice {
  %x = mt.input "x" : tensor<?x4xf32>
  %label = mt.target "label" : tensor<?xi32>
  %w = mt.variable "w" init(zeros) : tensor<4x200xf32>
  %i = mt.variable "iteration" init(zeros) frozen role(iteration) : tensor<i32>
  mt.update {
    %n = mt.batch_size
    %a = mt.argument %w : tensor<4x200xf32>
    %0 = mt.matmul %x, %a : tensor<?x4xf32>, tensor<4x200xf32>
    %1 = mt.sparse_categorical_crossentropy %0, %label from_logits : tensor<?x200xf32>, tensor<?xi32>
    %2 = mt.reduce sum, %1 over [0] : tensor<?xf32>
    %g = mt.derivative %2 by %a : tensor<4x200xf32>
    %3 = mt.square %g : tensor<4x200xf32>
    %4 = mt.reduce sum, %3 over [0, 1] : tensor<4x200xf32>
    %h = mt.derivative %4 by %a : tensor<4x200xf32>
    mt.result "loss", %4, %n
    mt.assign "w", %h : tensor<4x200xf32>
  }
}

// -----

// Two losses have turns of their own. Of a sample: 400 classes, four blocks of 100, which become 128.
// CHECK-LABEL: mt.model @dense
// CHECK:       mt.categorical_crossentropy %{{.*}} from_logits {mt.blocks = array<i64: 0, 128>}
// CHECK:       mt.top_k_categorical_accuracy %{{.*}} {mt.blocks = array<i64: 0, 128>}
// CHECK:       mt.categorical_crossentropy %{{.*}} from_logits label_smoothing = 1.000000e-01 {mt.blocks = array<i64: 1, 128>}
mt.model @dense {
  %x = mt.input "x" : tensor<?x4xf32>
  %given = mt.target "given" : tensor<?x400xf32>
  %label = mt.target "label" : tensor<?xi32>
  %w = mt.variable "w" init(zeros) : tensor<4x400xf32>
  %v = mt.variable "v" init(zeros) : tensor<4x400xf32>
  %0 = mt.matmul %x, %w : tensor<?x4xf32>, tensor<4x400xf32>
  %l = mt.categorical_crossentropy %0, %given from_logits : tensor<?x400xf32>, tensor<?x400xf32>
  mt.loss "first", %l : tensor<?xf32>
  %near = mt.top_k_categorical_accuracy %0, %given : tensor<?x400xf32>, tensor<?x400xf32>
  mt.metric "top_k", %near : tensor<?xf32>
  %1 = mt.matmul %x, %v : tensor<?x4xf32>, tensor<4x400xf32>
  %hot = mt.one_hot %label : tensor<?xi32> to tensor<?x400xf32>
  %m = mt.categorical_crossentropy %1, %hot from_logits label_smoothing = 0.1 : tensor<?x400xf32>, tensor<?x400xf32>
  mt.loss "second", %m : tensor<?xf32>
  mt.sgd
}

// -----

// What else reads the logits needs them as a whole; so do probabilities, and targets that gradients go through.
// CHECK-LABEL: mt.model @whole
// CHECK-NOT:   mt.blocks
mt.model @whole {
  %x = mt.input "x" : tensor<?x4xf32>
  %given = mt.target "given" : tensor<?x400xf32>
  %label = mt.target "label" : tensor<?xi32>
  %w = mt.variable "w" init(zeros) : tensor<4x400xf32>
  %v = mt.variable "v" init(zeros) : tensor<4x400xf32>
  %0 = mt.matmul %x, %w : tensor<?x4xf32>, tensor<4x400xf32>
  %l = mt.sparse_categorical_crossentropy %0, %label from_logits : tensor<?x400xf32>, tensor<?xi32>
  mt.loss "read", %l : tensor<?xf32>
  %hit = mt.categorical_accuracy %0, %given : tensor<?x400xf32>, tensor<?x400xf32>
  mt.metric "accuracy", %hit : tensor<?xf32>
  %1 = mt.matmul %x, %v : tensor<?x4xf32>, tensor<4x400xf32>
  %p = mt.softmax %1 : tensor<?x400xf32>
  %m = mt.sparse_categorical_crossentropy %p, %label : tensor<?x400xf32>, tensor<?xi32>
  mt.loss "probabilities", %m : tensor<?xf32>
  %2 = mt.matmul %x, %v : tensor<?x4xf32>, tensor<4x400xf32>
  %n = mt.categorical_crossentropy %2, %p from_logits : tensor<?x400xf32>, tensor<?x400xf32>
  mt.loss "learned", %n : tensor<?xf32>
  mt.sgd
}
