// SPDX-License-Identifier: Apache-2.0
// Sums are the one thing that crosses shards.
// RUN: rm -f %t.mtp
// RUN: %python %source/test/tools/mtrun/outcome.py 1 mtc compile %s -o %t.mtp | FileCheck %s
// RUN: test ! -e %t.mtp

mt.model @m {
  %x = mt.input "x" : tensor<?x4xf32>
  // CHECK: batch-max.mlir:[[#@LINE+1]]:8: error: {{.*}}expected sum over the batch axis, found max
  %y = mt.reduce max, %x over [0] : tensor<?x4xf32>
}
