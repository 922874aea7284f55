// SPDX-License-Identifier: Apache-2.0
// A product of shapes that do not fit.
// RUN: rm -f %t.mtp
// RUN: %python %source/test/tools/mtrun/outcome.py 1 mtc compile %s -o %t.mtp | FileCheck %s
// RUN: test ! -e %t.mtp

mt.model @m {
  %x = mt.input "x" : tensor<?x4xf32>
  %w = mt.variable "w" init(zeros) : tensor<3x4xf32>
  // CHECK: shape-mismatch.mlir:[[#@LINE+1]]:8: error: {{.*}}expected equal contracted sizes, found 4 in 'tensor<?x4xf32>' and 3 in 'tensor<3x4xf32>'
  %y = mt.matmul %x, %w : tensor<?x4xf32>, tensor<3x4xf32>
}
