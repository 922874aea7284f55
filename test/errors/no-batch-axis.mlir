// SPDX-License-Identifier: Apache-2.0
// An input of a fixed number of samples.
// RUN: rm -f %t.mtp
// RUN: %python %source/test/tools/mtrun/outcome.py 1 mtc compile %s -o %t.mtp | FileCheck %s
// RUN: test ! -e %t.mtp

mt.model @m {
  // CHECK: no-batch-axis.mlir:[[#@LINE+1]]:8: error: 'mt.input' op expected a batch axis `?` first, found 'tensor<32x4xf32>'
  %x = mt.input "x" : tensor<32x4xf32>
}
