// SPDX-License-Identifier: Apache-2.0
// What one sample computes does not depend on others but by sums.
// RUN: rm -f %t.mtp
// RUN: %python %source/test/tools/mtrun/outcome.py 1 mtc compile %s -o %t.mtp | FileCheck %s
// RUN: test ! -e %t.mtp

mt.model @m {
  %x = mt.input "x" : tensor<?xf32>
  // CHECK: batch-softmax.mlir:[[#@LINE+1]]:8: error: 'mt.softmax' op expected a last axis other than the batch axis, found 'tensor<?xf32>'
  %y = mt.softmax %x : tensor<?xf32>
}
