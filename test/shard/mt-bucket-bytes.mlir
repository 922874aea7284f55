// SPDX-License-Identifier: Apache-2.0
// The gradients of a large model are not one all-reduce behind the whole backward pass: buckets end at a limit, in the
// order of the program.
// RUN: mt-opt %s --mt-bucket=bucket-bytes=32 | FileCheck %s
// RUN: mt-opt %s --mt-bucket | FileCheck %s --check-prefix=ONE

// CHECK: all_reduce {{.*}}mt.bucket = 1
// CHECK: all_reduce {{.*}}mt.bucket = 0
// CHECK: all_reduce {{.*}}mt.bucket = 1
// CHECK: all_reduce {{.*}}mt.bucket = 2
// CHECK: all_reduce {{.*}}mt.bucket = 3
// ONE: all_reduce {{.*}}mt.bucket = 1
// ONE: all_reduce {{.*}}mt.bucket = 0
// ONE-COUNT-3: all_reduce {{.*}}mt.bucket = 1
module {
  shard.grid @shards(shape = 8)
  mt.program @p {
    %x = mt.input "x" : tensor<?x4xf32>
    %z = mt.input "z" : tensor<?x16xf32>
    // Two gradients of 16 bytes; one that others wait for lies between them.
    %s0 = mt.reduce sum, %x over [0] : tensor<?x4xf32>
    %r0 = shard.all_reduce %s0 on @shards grid_axes = [0] : tensor<4xf32> -> tensor<4xf32>
    %s1 = mt.reduce sum, %x over [0] : tensor<?x4xf32>
    %r1 = shard.all_reduce %s1 on @shards grid_axes = [0] : tensor<4xf32> -> tensor<4xf32>
    %c = mt.sub %x, %r1 : tensor<?x4xf32>, tensor<4xf32>
    %s2 = mt.reduce sum, %c over [0] : tensor<?x4xf32>
    %r2 = shard.all_reduce %s2 on @shards grid_axes = [0] : tensor<4xf32> -> tensor<4xf32>
    // 64 bytes: more than a bucket.
    %s3 = mt.reduce sum, %z over [0] : tensor<?x16xf32>
    %r3 = shard.all_reduce %s3 on @shards grid_axes = [0] : tensor<16xf32> -> tensor<16xf32>
    %s4 = mt.reduce sum, %x over [0] : tensor<?x4xf32>
    %r4 = shard.all_reduce %s4 on @shards grid_axes = [0] : tensor<4xf32> -> tensor<4xf32>
    mt.assign "a", %r0 : tensor<4xf32>
    mt.assign "b", %r2 : tensor<4xf32>
    mt.assign "c", %r3 : tensor<16xf32>
    mt.assign "d", %r4 : tensor<4xf32>
  }
}
