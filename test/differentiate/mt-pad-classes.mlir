// SPDX-License-Identifier: Apache-2.0
// RUN: mt-opt %s --mt-pad-classes --split-input-file | FileCheck %s
//
// Losses and accuracies of labels read logits of 264 classes in place of 257: of a table padded with zeros, and of a
// bias padded with -infinity, or of a bias of zeros. Outputs keep the model's classes, and labels their limit.

// CHECK-LABEL: mt.model @tied
// CHECK:       mt.target "next" limit = 257
// CHECK:       %[[TABLE:.*]] = mt.variable "table"
// CHECK:       %[[LOGITS:.*]] = mt.matmul %{{.*}}, %[[TABLE]] transpose_b
// CHECK:       %[[ROWS:.*]] = mt.pad %[[TABLE]] low = [0, 0] high = [7, 0] : tensor<257x8xf32>
// CHECK:       %[[WIDE:.*]] = mt.matmul %{{.*}}, %[[ROWS]] transpose_b : tensor<?x3x8xf32>, tensor<264x8xf32>
// CHECK:       %[[ZEROS:.*]] = mt.constant dense<0.000000e+00> : tensor<257xf32>
// CHECK:       %[[BIAS:.*]] = mt.pad %[[ZEROS]] low = [0] high = [7] value = 0xFF800000
// CHECK:       %[[ALL:.*]] = mt.add %[[WIDE]], %[[BIAS]] : tensor<?x3x264xf32>, tensor<264xf32>
// CHECK:       mt.sparse_categorical_crossentropy %[[ALL]],
// CHECK:       mt.sparse_categorical_accuracy %[[ALL]],
// CHECK:       mt.output "logits", %[[LOGITS]]
module attributes {mt.compilation = #mt.compilation<name = "tied", precision = bf16>} {
mt.model @tied {
  %text = mt.input "text" : tensor<?x3xi32>
  %next = mt.target "next" : tensor<?x3xi32>
  %table = mt.variable "table" init(zeros) : tensor<257x8xf32>
  %0 = mt.gather %table, %text : tensor<257x8xf32>, tensor<?x3xi32>
  %1 = mt.matmul %0, %table transpose_b : tensor<?x3x8xf32>, tensor<257x8xf32>
  %l = mt.sparse_categorical_crossentropy %1, %next from_logits : tensor<?x3x257xf32>, tensor<?x3xi32>
  mt.loss "loss", %l : tensor<?x3xf32>
  %hit = mt.sparse_categorical_accuracy %1, %next : tensor<?x3x257xf32>, tensor<?x3xi32>
  mt.metric "accuracy", %hit : tensor<?x3xf32>
  mt.output "logits", %1 : tensor<?x3x257xf32>
  mt.sgd
}
}

// -----

// CHECK-LABEL: mt.model @dense
// CHECK:       %[[COLUMNS:.*]] = mt.pad %{{.*}} low = [0, 0] high = [0, 4] : tensor<4x300xf32>
// CHECK:       %[[WIDE:.*]] = mt.matmul %{{.*}}, %[[COLUMNS]] : tensor<?x4xf32>, tensor<4x304xf32>
// CHECK:       %[[BIAS:.*]] = mt.pad %{{.*}} low = [0] high = [4] value = 0xFF800000 : tensor<300xf32>
// CHECK:       %[[ALL:.*]] = mt.add %[[WIDE]], %[[BIAS]]
// CHECK:       mt.sparse_categorical_crossentropy %[[ALL]],
module attributes {mt.compilation = #mt.compilation<name = "dense", precision = f16>} {
mt.model @dense {
  %x = mt.input "x" : tensor<?x4xf32>
  %label = mt.target "label" : tensor<?xi32>
  %w = mt.variable "w" init(zeros) : tensor<4x300xf32>
  %b = mt.variable "b" init(zeros) : tensor<300xf32>
  %0 = mt.matmul %x, %w : tensor<?x4xf32>, tensor<4x300xf32>
  %1 = mt.add %b, %0 : tensor<300xf32>, tensor<?x300xf32>
  %l = mt.sparse_categorical_crossentropy %1, %label from_logits : tensor<?x300xf32>, tensor<?xi32>
  mt.loss "loss", %l : tensor<?xf32>
  mt.sgd
}
}

// -----

// As they are: a multiple of 8; few classes; targets of the caller; logits that something else reads; a product that
// stays in f32.
// CHECK-LABEL: mt.model @whole
// CHECK-NOT:   mt.pad
module attributes {mt.compilation = #mt.compilation<name = "whole", precision = bf16>} {
mt.model @whole {
  %x = mt.input "x" : tensor<?x4xf32>
  %label = mt.target "label" : tensor<?xi32>
  %given = mt.target "given" : tensor<?x300xf32>
  %u = mt.variable "u" init(zeros) : tensor<4x304xf32>
  %v = mt.variable "v" init(zeros) : tensor<4x30xf32>
  %w = mt.variable "w" init(zeros) : tensor<4x300xf32>
  %0 = mt.matmul %x, %u : tensor<?x4xf32>, tensor<4x304xf32>
  %a = mt.sparse_categorical_crossentropy %0, %label from_logits : tensor<?x304xf32>, tensor<?xi32>
  mt.loss "multiple", %a : tensor<?xf32>
  %1 = mt.matmul %x, %v : tensor<?x4xf32>, tensor<4x30xf32>
  %b = mt.sparse_categorical_crossentropy %1, %label from_logits : tensor<?x30xf32>, tensor<?xi32>
  mt.loss "few", %b : tensor<?xf32>
  %2 = mt.matmul %x, %w : tensor<?x4xf32>, tensor<4x300xf32>
  %c = mt.categorical_crossentropy %2, %given from_logits : tensor<?x300xf32>, tensor<?x300xf32>
  mt.loss "given", %c : tensor<?xf32>
  %3 = mt.matmul %x, %w : tensor<?x4xf32>, tensor<4x300xf32>
  %d = mt.sparse_categorical_crossentropy %3, %label from_logits : tensor<?x300xf32>, tensor<?xi32>
  mt.loss "read", %d : tensor<?xf32>
  %square = mt.square %3 : tensor<?x300xf32>
  %sum = mt.reduce sum, %square over [1] : tensor<?x300xf32>
  mt.loss "small", %sum : tensor<?xf32>
  %4 = mt.matmul %x, %w {mt.precision = "f32"} : tensor<?x4xf32>, tensor<4x300xf32>
  %e = mt.sparse_categorical_crossentropy %4, %label from_logits : tensor<?x300xf32>, tensor<?xi32>
  mt.loss "kept", %e : tensor<?xf32>
  mt.sgd
}
}

// -----

// In f32.
// CHECK-LABEL: mt.model @single
// CHECK-NOT:   mt.pad
mt.model @single {
  %x = mt.input "x" : tensor<?x4xf32>
  %label = mt.target "label" : tensor<?xi32>
  %w = mt.variable "w" init(zeros) : tensor<4x300xf32>
  %0 = mt.matmul %x, %w : tensor<?x4xf32>, tensor<4x300xf32>
  %l = mt.sparse_categorical_crossentropy %0, %label from_logits : tensor<?x300xf32>, tensor<?xi32>
  mt.loss "loss", %l : tensor<?xf32>
  mt.sgd
}

// -----

// Many classes: up to a multiple of 64.
// CHECK-LABEL: mt.model @many
// CHECK:       mt.pad %{{.*}} low = [0, 0] high = [0, 24]
// CHECK:       tensor<?x4xf32>, tensor<4x1088xf32>
module attributes {mt.compilation = #mt.compilation<name = "many", precision = bf16>} {
mt.model @many {
  %x = mt.input "x" : tensor<?x4xf32>
  %label = mt.target "label" : tensor<?xi32>
  %w = mt.variable "w" init(zeros) : tensor<4x1064xf32>
  %0 = mt.matmul %x, %w : tensor<?x4xf32>, tensor<4x1064xf32>
  %l = mt.sparse_categorical_crossentropy %0, %label from_logits : tensor<?x1064xf32>, tensor<?xi32>
  mt.loss "loss", %l : tensor<?xf32>
  mt.sgd
}
}
