// SPDX-License-Identifier: Apache-2.0
// An op of a dialect that is not there.
// RUN: rm -f %t.mtp
// RUN: %python %source/test/tools/mtrun/outcome.py 1 mtc compile %s -o %t.mtp | FileCheck %s
// RUN: test ! -e %t.mtp

mt.model @m {
  %x = mt.input "x" : tensor<?x4xf32>
  // CHECK: foreign-op.mlir:[[#@LINE+1]]:{{[0-9]+}}: error: expected an op of the mt dialect, found
  %y = "other.frob"(%x) : (tensor<?x4xf32>) -> tensor<?x4xf32>
}
