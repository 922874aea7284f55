// SPDX-License-Identifier: Apache-2.0
// An element type that models do not have.
// RUN: rm -f %t.mtp
// RUN: %python %source/test/tools/mtrun/outcome.py 1 mtc compile %s -o %t.mtp | FileCheck %s
// RUN: test ! -e %t.mtp

mt.model @m {
  // CHECK: wrong-type.mlir:[[#@LINE+1]]:8: error: {{.*}}must be ranked tensor of 32-bit float
  %x = mt.input "x" : tensor<?x4xi64>
}
