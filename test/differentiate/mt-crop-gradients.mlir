// SPDX-License-Identifier: Apache-2.0
// RUN: mt-opt %s --mt-crop-gradients | FileCheck %s

// Rows and columns of products over the batch, of samples of several rows and of one.
// CHECK-LABEL: mt.program @parts
// CHECK:       %[[LEFT:.*]] = mt.slice %0 starts = [0, 0] sizes = [3, 5] : tensor<?x3x8xf32>
// CHECK:       %[[EACH:.*]] = mt.matmul %[[LEFT]], %1 transpose_a : tensor<?x3x5xf32>, tensor<?x3x4xf32>
// CHECK:       %[[ROWS:.*]] = mt.reduce sum, %[[EACH]] over [0] : tensor<?x5x4xf32>
// CHECK:       %[[RIGHT:.*]] = mt.slice %2 starts = [0] sizes = [6] : tensor<?x8xf32>
// CHECK:       %[[COLUMNS:.*]] = mt.matmul %3, %[[RIGHT]] transpose_a : tensor<?x4xf32>, tensor<?x6xf32>
// CHECK:       mt.assign "rows", %[[ROWS]]
// CHECK:       mt.assign "columns", %[[COLUMNS]]
mt.declare "rows" trainable tensor<5x4xf32>
mt.declare "columns" trainable tensor<4x6xf32>
mt.program @parts {
  %0 = mt.input "a" : tensor<?x3x8xf32>
  %1 = mt.input "b" : tensor<?x3x4xf32>
  %2 = mt.input "c" : tensor<?x8xf32>
  %3 = mt.input "d" : tensor<?x4xf32>
  %4 = mt.matmul %0, %1 transpose_a : tensor<?x3x8xf32>, tensor<?x3x4xf32>
  %5 = mt.reduce sum, %4 over [0] : tensor<?x8x4xf32>
  %6 = mt.slice %5 starts = [0, 0] sizes = [5, 4] : tensor<8x4xf32>
  %7 = mt.matmul %3, %2 transpose_a : tensor<?x4xf32>, tensor<?x8xf32>
  %8 = mt.slice %7 starts = [0, 0] sizes = [4, 6] : tensor<4x8xf32>
  mt.assign "rows", %6 : tensor<5x4xf32>
  mt.assign "columns", %8 : tensor<4x6xf32>
}

// Not the first elements; a product that is read as a whole too.
// CHECK-LABEL: mt.program @whole
// CHECK:       mt.matmul %0, %1 transpose_a
// CHECK:       mt.matmul %1, %0 transpose_a
mt.declare "last" trainable tensor<5x4xf32>
mt.declare "all" trainable tensor<4x8xf32>
mt.declare "some" trainable tensor<4x6xf32>
mt.program @whole {
  %0 = mt.input "c" : tensor<?x8xf32>
  %1 = mt.input "d" : tensor<?x4xf32>
  %2 = mt.matmul %0, %1 transpose_a : tensor<?x8xf32>, tensor<?x4xf32>
  %3 = mt.slice %2 starts = [3, 0] sizes = [5, 4] : tensor<8x4xf32>
  %4 = mt.matmul %1, %0 transpose_a : tensor<?x4xf32>, tensor<?x8xf32>
  %5 = mt.slice %4 starts = [0, 0] sizes = [4, 6] : tensor<4x8xf32>
  mt.assign "last", %3 : tensor<5x4xf32>
  mt.assign "all", %4 : tensor<4x8xf32>
  mt.assign "some", %5 : tensor<4x6xf32>
}
