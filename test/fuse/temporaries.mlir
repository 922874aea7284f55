// SPDX-License-Identifier: Apache-2.0
// RUN: mt-opt %s --mt-fuse | FileCheck %s
// RUN: mt-opt %s --mt-fuse=temporary-bytes=4096 | FileCheck %s --check-prefix=LIMITED
// A rows kernel does not grow where its temporaries, which moves of data read and write, would exceed the limit.

// CHECK-COUNT-1: mt.kernel
// CHECK-NOT: mt.kernel
// LIMITED-COUNT-2: mt.kernel
// LIMITED-NOT: mt.kernel
shard.grid @shards(shape = 8)
mt.program @eval_step {
  %x = mt.input "x" : tensor<?x16x32xf32>
  %0 = mt.slice %x starts = [0, 0] sizes = [8, 32] : tensor<?x16x32xf32>
  %1 = mt.exp %0 : tensor<?x8x32xf32>
  %2 = mt.slice %x starts = [8, 0] sizes = [8, 32] : tensor<?x16x32xf32>
  %3 = mt.concat %2, %1 dim = 1 : tensor<?x8x32xf32>, tensor<?x8x32xf32>
  %4 = mt.slice %3 starts = [0, 0] sizes = [8, 32] : tensor<?x16x32xf32>
  %5 = mt.exp %4 : tensor<?x8x32xf32>
  %6 = mt.slice %3 starts = [8, 0] sizes = [8, 32] : tensor<?x16x32xf32>
  %7 = mt.concat %6, %5 dim = 1 : tensor<?x8x32xf32>, tensor<?x8x32xf32>
  mt.output "y", %7 : tensor<?x16x32xf32>
}
