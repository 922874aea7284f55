// SPDX-License-Identifier: Apache-2.0
// RUN: mt-opt %s --mt-unroll=limit=20 --verify-diagnostics
mt.model @long {
  %xs = mt.input "x" : tensor<?x7x2xf32>
  // expected-error@+1 {{expected at most 20 ops in all steps of a loop, found 21 in 7 steps}}
  %ys = mt.scan over(%x = %xs : tensor<?x7x2xf32>) {
    %0 = mt.relu %x : tensor<?x2xf32>
    %1 = mt.tanh %0 : tensor<?x2xf32>
    %2 = mt.relu %1 : tensor<?x2xf32>
    mt.yield %2 : tensor<?x2xf32>
  }
  %l = mt.reduce sum, %ys over [1, 2] : tensor<?x7x2xf32>
  mt.loss "loss", %l : tensor<?xf32>
  mt.sgd
}
