// SPDX-License-Identifier: Apache-2.0
// An image of more than 2^31 elements: offsets in it lost their upper bits, and a kernel read and wrote elsewhere. It
// is an error, at the kernel.
// RUN: not mt-opt %s --plan-codegen="cpus=x86-64-v3 object=%t.so" 2>&1 | FileCheck %s
// CHECK: offsets.mlir:[[@LINE+2]]:{{.*}}: error: expected at most 2147483647 elements of a sample in a convolution, found 3221225472 in 'tensor<?x3x1073741824x1xf32>'
module attributes {mt.compilation = #mt.compilation<shards = 1, shard_rows = 1>} {
plan.kernel @wide attributes {kind = #mt<kernel_kind conv>, flops_per_row = 0 : i64, flops_fixed = 0 : i64, bytes_per_row = 0 : i64, bytes_fixed = 0 : i64} {
^bb0(%x: tensor<?x3x1073741824x1xf32>, %w: tensor<3x1x1x1xf32>):
  %0 = mt.conv2d %x, %w : tensor<?x3x1073741824x1xf32>, tensor<3x1x1x1xf32>
  mt.yield %0 : tensor<?x1x1073741824x1xf32>
}
}
