// SPDX-License-Identifier: Apache-2.0
// RUN: mt-opt %s --mt-fuse | FileCheck %s
// Values of a sample that no cache holds: ops that are independent along the tokens of a sample are one kernel all the
// same, which works by line. A sum over the tokens is not, and stays outside.

// CHECK-LABEL: mt.program @eval_step
// CHECK: mt.kernel "{{.*}}" rows (%{{.*}} = %{{.*}} : tensor<?x64x20000xf32>{{.*}}) -> (tensor<?x64xf32>, tensor<?x64x20000xf32>)
// CHECK: mt.reduce max
// CHECK: mt.exp
// CHECK: mt.reduce sum, %{{.*}} over [2]
// CHECK: mt.div
// CHECK: mt.yield
// CHECK: mt.kernel "{{.*}}" rows (%{{.*}} = %{{.*}} : tensor<?x64xf32>) -> (tensor<?xf32>)
// CHECK: mt.reduce sum, %{{.*}} over [1]
shard.grid @shards(shape = 8)
mt.program @eval_step {
  %x = mt.input "x" : tensor<?x64x20000xf32>
  %0 = mt.reduce max, %x over [2] : tensor<?x64x20000xf32>
  %1 = mt.reshape %0 : tensor<?x64xf32> to tensor<?x64x1xf32>
  %2 = mt.sub %x, %1 : tensor<?x64x20000xf32>, tensor<?x64x1xf32>
  %3 = mt.exp %2 : tensor<?x64x20000xf32>
  %4 = mt.reduce sum, %3 over [2] : tensor<?x64x20000xf32>
  %5 = mt.reshape %4 : tensor<?x64xf32> to tensor<?x64x1xf32>
  %6 = mt.div %3, %5 : tensor<?x64x20000xf32>, tensor<?x64x1xf32>
  %7 = mt.reduce sum, %4 over [1] : tensor<?x64xf32>
  mt.output "softmax", %6 : tensor<?x64x20000xf32>
  mt.output "sums", %7 : tensor<?xf32>
}
