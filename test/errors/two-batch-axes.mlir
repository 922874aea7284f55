// SPDX-License-Identifier: Apache-2.0
// The batch axis is the one axis of unknown size.
// RUN: rm -f %t.mtp
// RUN: %python %source/test/tools/mtrun/outcome.py 1 mtc compile %s -o %t.mtp | FileCheck %s
// RUN: test ! -e %t.mtp

mt.model @m {
  // CHECK: two-batch-axes.mlir:[[#@LINE+1]]:8: error: 'mt.input' op expected `?` as first axis only, found 'tensor<?x?xf32>'
  %x = mt.input "x" : tensor<?x?xf32>
}
