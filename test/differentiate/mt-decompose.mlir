// SPDX-License-Identifier: Apache-2.0
// RUN: mt-opt %s --mt-decompose | FileCheck %s
//
// No composite is left, and what two of them share is computed once.
mt.program @p {
  %x = mt.input "x" : tensor<?x3xf32>
  %t = mt.target "t" : tensor<?xi32>
  %0 = mt.softmax %x : tensor<?x3xf32>
  %1 = mt.sparse_categorical_crossentropy %x, %t from_logits : tensor<?x3xf32>, tensor<?xi32>
  mt.output "p", %0 : tensor<?x3xf32>
  mt.output "l", %1 : tensor<?xf32>
}
// CHECK-LABEL: mt.program @p
// CHECK-NOT:   mt.softmax
// CHECK-NOT:   mt.sparse_categorical_crossentropy
// CHECK:       mt.reduce max
// CHECK:       %[[E:.*]] = mt.exp
// CHECK:       %[[S:.*]] = mt.reduce sum, %[[E]] over [1]
// CHECK-NOT:   mt.exp
// CHECK-NOT:   mt.reduce max
// CHECK:       mt.select
// CHECK:       mt.output "l"
