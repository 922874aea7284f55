// SPDX-License-Identifier: Apache-2.0
// A comma is missing: the place of it, nothing written.
// RUN: rm -f %t.mtp
// RUN: %python %source/test/tools/mtrun/outcome.py 1 mtc compile %s -o %t.mtp | FileCheck %s
// RUN: test ! -e %t.mtp

mt.model @m {
  %x = mt.input "x" : tensor<?x4xf32>
  // CHECK: syntax-error.mlir:[[#@LINE+1]]:{{[0-9]+}}: error: expected ','
  %y = mt.add %x %x : tensor<?x4xf32>, tensor<?x4xf32>
}
