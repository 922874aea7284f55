// SPDX-License-Identifier: Apache-2.0
// RUN: mt-opt %s --mt-fuse | FileCheck %s
// Differences to a batch's mean are computed by each kernel that reads them: the image is in memory, the difference
// never is.

shard.grid @shards(shape = 8)

// CHECK-LABEL: mt.program @train_step
// CHECK: %[[Y:.*]] = mt.kernel "conv
// CHECK: mt.kernel {{"[^"]*"}} rows (%[[A:.*]] = %[[Y]] : tensor<?x8x8x16xf32>) -> (tensor<?x16xf32>)
// CHECK: mt.kernel {{"[^"]*"}} rows ({{.*}} = %[[Y]] : tensor<?x8x8x16xf32>, {{.*}}) -> (tensor<?x16xf32>)
// CHECK-NEXT: mt.sub
// CHECK-NEXT: mt.square
// CHECK-NEXT: mt.reduce
// CHECK-NEXT: mt.yield
// CHECK: mt.kernel {{"[^"]*"}} rows ({{.*}} = %[[Y]] : tensor<?x8x8x16xf32>, {{.*}}) -> (tensor<?x8x8x16xf32>)
// CHECK-NEXT: mt.sub
// CHECK-NEXT: mt.mul
// CHECK-NEXT: mt.relu
// CHECK-NEXT: mt.yield
mt.program @train_step {
  %x = mt.input "x" : tensor<?x8x8x3xf32>
  %w = mt.read "conv/kernel" : tensor<3x3x3x16xf32>
  %y = mt.conv2d %x, %w padding = [1, 1, 1, 1] : tensor<?x8x8x3xf32>, tensor<3x3x3x16xf32>
  %0 = mt.reduce sum, %y over [1, 2] : tensor<?x8x8x16xf32>
  %1 = mt.reduce sum, %0 over [0] : tensor<?x16xf32>
  %2 = shard.all_reduce %1 on @shards grid_axes = [0] {mt.bucket = 0 : i64} : tensor<16xf32> -> tensor<16xf32>
  %3 = mt.sub %y, %2 : tensor<?x8x8x16xf32>, tensor<16xf32>
  %4 = mt.square %3 : tensor<?x8x8x16xf32>
  %5 = mt.reduce sum, %4 over [1, 2] : tensor<?x8x8x16xf32>
  %6 = mt.reduce sum, %5 over [0] : tensor<?x16xf32>
  %7 = shard.all_reduce %6 on @shards grid_axes = [0] {mt.bucket = 1 : i64} : tensor<16xf32> -> tensor<16xf32>
  %8 = mt.mul %3, %7 : tensor<?x8x8x16xf32>, tensor<16xf32>
  %9 = mt.relu %8 : tensor<?x8x8x16xf32>
  mt.output "y", %9 : tensor<?x8x8x16xf32>
}

// The backward pass of the formula: what an op makes of a stored value alone is computed with its reader, which waits
// for a sum over the batch, and not with that sum.
// CHECK-LABEL: mt.program @backward
// CHECK: %[[G:.*]] = mt.kernel "conv
// CHECK: mt.kernel {{"[^"]*"}} rows ({{.*}} = %[[G]] : tensor<?x8x8x16xf32>) -> (tensor<?x16xf32>)
// CHECK: mt.kernel {{"[^"]*"}} rows ({{.*}}) -> (tensor<?x8x8x16xf32>)
// CHECK-DAG: mt.mul {{.*}} : tensor<?x8x8x16xf32>, tensor<16xf32>
// CHECK-DAG: mt.mul {{.*}} : tensor<f32>, tensor<?x8x8x16xf32>
// CHECK: mt.add
// CHECK-NEXT: mt.yield
mt.program @backward {
  %x = mt.input "x" : tensor<?x8x8x3xf32>
  %z = mt.input "z" : tensor<?x8x8x16xf32>
  %w = mt.read "conv/kernel" : tensor<3x3x3x16xf32>
  %k = mt.read "k" : tensor<16xf32>
  %two = mt.constant dense<2.0> : tensor<f32>
  %g = mt.conv2d %x, %w padding = [1, 1, 1, 1] : tensor<?x8x8x3xf32>, tensor<3x3x3x16xf32>
  %0 = mt.reduce sum, %g over [1, 2] : tensor<?x8x8x16xf32>
  %1 = mt.reduce sum, %0 over [0] : tensor<?x16xf32>
  %2 = shard.all_reduce %1 on @shards grid_axes = [0] {mt.bucket = 0 : i64} : tensor<16xf32> -> tensor<16xf32>
  %3 = mt.mul %g, %k : tensor<?x8x8x16xf32>, tensor<16xf32>
  %4 = mt.mul %two, %z : tensor<f32>, tensor<?x8x8x16xf32>
  %5 = mt.mul %2, %4 : tensor<16xf32>, tensor<?x8x8x16xf32>
  %6 = mt.add %3, %5 : tensor<?x8x8x16xf32>, tensor<?x8x8x16xf32>
  mt.output "y", %6 : tensor<?x8x8x16xf32>
}
