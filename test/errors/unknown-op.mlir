// SPDX-License-Identifier: Apache-2.0
// An op that is not there.
// RUN: rm -f %t.mtp
// RUN: %python %source/test/tools/mtrun/outcome.py 1 mtc compile %s -o %t.mtp | FileCheck %s
// RUN: test ! -e %t.mtp

mt.model @m {
  %x = mt.input "x" : tensor<?x4xf32>
  // CHECK: unknown-op.mlir:[[#@LINE+1]]:8: error: {{.*}}'mt.frobnicate'
  %y = mt.frobnicate %x : tensor<?x4xf32>
}
