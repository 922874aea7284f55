// SPDX-License-Identifier: Apache-2.0
// RUN: mt-opt %s --mt-join-sums --split-input-file | FileCheck %s

// Three steps. The parts of %x are one concatenation, whose order the right sides of the products for %w follow. The
// sums for %v follow the first concatenation of what they add.
mt.program @steps {
  %a = mt.input "a" : tensor<?x2xf32>
  %b = mt.input "b" : tensor<?x2xf32>
  %c = mt.input "c" : tensor<?x2xf32>
  %wc = mt.matmul %a, %c transpose_a : tensor<?x2xf32>, tensor<?x2xf32>
  %wb = mt.matmul %b, %b transpose_a : tensor<?x2xf32>, tensor<?x2xf32>
  %wa = mt.matmul %c, %a transpose_a : tensor<?x2xf32>, tensor<?x2xf32>
  %w0 = mt.add %wc, %wb : tensor<2x2xf32>, tensor<2x2xf32>
  %w = mt.add %w0, %wa : tensor<2x2xf32>, tensor<2x2xf32>
  mt.assign "w", %w : tensor<2x2xf32>
  %bc = mt.reduce sum, %c over [0] : tensor<?x2xf32>
  %bb = mt.reduce sum, %b over [0] : tensor<?x2xf32>
  %ba = mt.reduce sum, %a over [0] : tensor<?x2xf32>
  %v0 = mt.add %bc, %bb : tensor<2xf32>, tensor<2xf32>
  %v = mt.add %v0, %ba : tensor<2xf32>, tensor<2xf32>
  mt.assign "v", %v : tensor<2xf32>
  %xa = mt.pad %a low = [0] high = [4] : tensor<?x2xf32>
  %xb = mt.pad %b low = [2] high = [2] : tensor<?x2xf32>
  %xc = mt.pad %c low = [4] high = [0] : tensor<?x2xf32>
  %x0 = mt.add %xc, %xb : tensor<?x6xf32>, tensor<?x6xf32>
  %x = mt.add %x0, %xa : tensor<?x6xf32>, tensor<?x6xf32>
  mt.output "x", %x : tensor<?x6xf32>
}
// CHECK-LABEL: mt.program @steps
// CHECK-DAG:   %[[A:.*]] = mt.input "a"
// CHECK-DAG:   %[[B:.*]] = mt.input "b"
// CHECK-DAG:   %[[C:.*]] = mt.input "c"
// CHECK:       %[[L:.*]] = mt.concat %[[C]], %[[B]], %[[A]] dim = 1
// CHECK:       %[[LS:.*]] = mt.reshape %[[L]] : tensor<?x6xf32> to tensor<?x3x2xf32>
// CHECK:       %[[R:.*]] = mt.concat %[[A]], %[[B]], %[[C]] dim = 1
// CHECK:       %[[RS:.*]] = mt.reshape %[[R]] : tensor<?x6xf32> to tensor<?x3x2xf32>
// CHECK:       %[[EACH:.*]] = mt.matmul %[[LS]], %[[RS]] transpose_a
// CHECK:       %[[W:.*]] = mt.reduce sum, %[[EACH]] over [0] : tensor<?x2x2xf32>
// CHECK:       mt.assign "w", %[[W]]
// CHECK:       %[[S:.*]] = mt.reduce sum, %[[LS]] over [1] : tensor<?x3x2xf32>
// CHECK:       %[[V:.*]] = mt.reduce sum, %[[S]] over [0] : tensor<?x2xf32>
// CHECK:       mt.assign "v", %[[V]]
// CHECK:       mt.output "x", %[[R]]

// -----

// Left alone: parts with a gap, two products, a product that something else reads.
mt.program @others {
  %a = mt.input "a" : tensor<?x2xf32>
  %b = mt.input "b" : tensor<?x2xf32>
  %xa = mt.pad %a low = [0] high = [6] : tensor<?x2xf32>
  %xb = mt.pad %b low = [2] high = [4] : tensor<?x2xf32>
  %xc = mt.pad %a low = [6] high = [0] : tensor<?x2xf32>
  %x0 = mt.add %xc, %xb : tensor<?x8xf32>, tensor<?x8xf32>
  %x = mt.add %x0, %xa : tensor<?x8xf32>, tensor<?x8xf32>
  mt.output "x", %x : tensor<?x8xf32>
  %w0 = mt.matmul %a, %b transpose_a : tensor<?x2xf32>, tensor<?x2xf32>
  %w1 = mt.matmul %b, %b transpose_a : tensor<?x2xf32>, tensor<?x2xf32>
  %w2 = mt.matmul %a, %a transpose_a : tensor<?x2xf32>, tensor<?x2xf32>
  %s = mt.add %w0, %w1 : tensor<2x2xf32>, tensor<2x2xf32>
  %w = mt.add %s, %w2 : tensor<2x2xf32>, tensor<2x2xf32>
  mt.assign "w", %w : tensor<2x2xf32>
  mt.assign "v", %w2 : tensor<2x2xf32>
}
// CHECK-LABEL: mt.program @others
// CHECK-NOT:   mt.concat
// CHECK:       mt.assign "v"
