// SPDX-License-Identifier: Apache-2.0
//
// The all-reduces of a bucket finish together: what reads one of them is in no kernel that the other waits for.
// RUN: mt-opt %s --mt-fuse --mt-schedule | FileCheck %s
shard.grid @shards(shape = 2)
mt.program @train_step {
  %x = mt.input "x" : tensor<?x3xf32>
  %y = mt.exp %x : tensor<?x3xf32>
  %a = mt.reduce sum, %x over [0] : tensor<?x3xf32>
  %sa = shard.all_reduce %a on @shards grid_axes = [0] {mt.bucket = 0 : i64} : tensor<3xf32> -> tensor<3xf32>
  %z = mt.sub %x, %sa : tensor<?x3xf32>, tensor<3xf32>
  %b = mt.reduce sum, %y over [0] : tensor<?x3xf32>
  %sb = shard.all_reduce %b on @shards grid_axes = [0] {mt.bucket = 0 : i64} : tensor<3xf32> -> tensor<3xf32>
  %w = mt.mul %z, %sb : tensor<?x3xf32>, tensor<3xf32>
  mt.output "z", %z : tensor<?x3xf32>
  mt.output "w", %w : tensor<?x3xf32>
}
// CHECK: mt.kernel {{.*}} rows
// CHECK: mt.exp
// CHECK-NOT: mt.sub
// CHECK: mt.kernel {{.*}} reduce
// CHECK: shard.all_reduce
// CHECK-NEXT: shard.all_reduce
// CHECK: mt.sub
