// SPDX-License-Identifier: Apache-2.0
// The example parses, verifies, and is printed so that it parses again.
// RUN: mt-opt %examples/mnist_mlp.mlir | mt-opt | FileCheck %s
// CHECK: mt.model @mnist_mlp {
// CHECK: %[[IMAGE:.*]] = mt.input "image" : tensor<?x784xf32>
// CHECK: mt.variable "dense/kernel" init({{ *}}glorot_uniform) : tensor<784x256xf32>
// CHECK: mt.matmul %[[IMAGE]], %{{.*}} : tensor<?x784xf32>, tensor<784x256xf32>
// CHECK: mt.sparse_categorical_crossentropy %{{.*}}, %{{.*}} from_logits : tensor<?x10xf32>, tensor<?xi32>
// CHECK: mt.adam
