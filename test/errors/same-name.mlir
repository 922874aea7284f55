// SPDX-License-Identifier: Apache-2.0
// Two variables of one name.
// RUN: rm -f %t.mtp
// RUN: %python %source/test/tools/mtrun/outcome.py 1 mtc compile %s -o %t.mtp | FileCheck %s
// RUN: test ! -e %t.mtp

mt.model @m {
  // CHECK: same-name.mlir:[[#@LINE+3]]:8: error: 'mt.variable' op expected variables of different names, found a second "w"
  // CHECK: same-name.mlir:[[#@LINE+1]]:8: note: the first is here
  %w = mt.variable "w" init(zeros) : tensor<3x4xf32>
  %v = mt.variable "w" init(zeros) : tensor<3x4xf32>
}
