// SPDX-License-Identifier: Apache-2.0
// Sizes that cannot be multiplied.
// RUN: rm -f %t.mtp
// RUN: %python %source/test/tools/mtrun/outcome.py 1 mtc compile %s -o %t.mtp | FileCheck %s
// RUN: test ! -e %t.mtp

mt.model @m {
  // CHECK: too-large.mlir:[[#@LINE+1]]:8: error: {{.*}}expected {{.*}}, found 'tensor<9999999999x9999999999x99999999xf32>'
  %w = mt.variable "w" init(zeros) : tensor<9999999999x9999999999x99999999xf32>
}
