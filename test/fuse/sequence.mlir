// SPDX-License-Identifier: Apache-2.0
// RUN: mt-opt %s --mt-fuse | FileCheck %s
// A matrix times several rows of each sample is one product of all rows, with its epilogue; so are the gradient to the
// rows and that to the matrix, whose products of single samples are never stored. Products of two matrices of a sample
// stay with its rows.

// CHECK-LABEL: mt.program @train_step
// CHECK: mt.kernel "dense/matmul+add+relu" matmul (%{{.*}} : tensor<?x64x32xf32>, %{{.*}} : tensor<32x48xf32>
// CHECK-NEXT: mt.matmul
// CHECK-NEXT: mt.add {{.*}}tensor<48xf32>
// CHECK-NEXT: mt.relu
// CHECK-NEXT: mt.yield
// CHECK: mt.kernel {{.*}} rows
// CHECK: mt.matmul {{.*}} transpose_b : tensor<?x64x48xf32>, tensor<?x64x48xf32>
// CHECK: mt.kernel "kernel_gradient" matmul_wgrad (%{{.*}} : tensor<?x64x32xf32>, %{{.*}} : tensor<?x64x48xf32>) -> (tensor<32x48xf32>)
// CHECK-NEXT: mt.matmul {{.*}} transpose_a
// CHECK-NEXT: mt.reduce sum, {{.*}} over [0]
// CHECK-NEXT: mt.yield
// CHECK: mt.kernel "dense/input_gradient" matmul
// CHECK-NEXT: mt.matmul {{.*}} transpose_b
// CHECK: mt.kernel "kernel_gradient" matmul_wgrad
// CHECK-NEXT: mt.matmul {{.*}} transpose_a : tensor<?x3x5x8xf32>, tensor<?x3x5x4xf32>
// CHECK-NEXT: mt.reduce sum, {{.*}} over [1]
// CHECK-NEXT: mt.reduce sum, {{.*}} over [0]
// A sum that something else needs for each sample is none.
// CHECK: mt.kernel {{.*}} rows
// CHECK: mt.matmul {{.*}} transpose_a : tensor<?x6x2xf32>
// CHECK: mt.kernel {{"[^"]*"}} reduce
shard.grid @shards(shape = 8)
mt.program @train_step {
  %x = mt.input "x" : tensor<?x64x32xf32>
  %w = mt.read "dense/kernel" : tensor<32x48xf32>
  %b = mt.read "dense/bias" : tensor<48xf32>
  %0 = mt.matmul %x, %w : tensor<?x64x32xf32>, tensor<32x48xf32>
  %1 = mt.add %0, %b : tensor<?x64x48xf32>, tensor<48xf32>
  %2 = mt.relu %1 : tensor<?x64x48xf32>
  %3 = mt.matmul %2, %2 transpose_b : tensor<?x64x48xf32>, tensor<?x64x48xf32>
  %dy = mt.matmul %3, %2 : tensor<?x64x64xf32>, tensor<?x64x48xf32>
  %each = mt.matmul %x, %dy transpose_a : tensor<?x64x32xf32>, tensor<?x64x48xf32>
  %dw = mt.reduce sum, %each over [0] : tensor<?x32x48xf32>
  %dx = mt.matmul %dy, %w transpose_b : tensor<?x64x48xf32>, tensor<32x48xf32>
  %i = mt.input "i" : tensor<?x3x5x8xf32>
  %j = mt.input "j" : tensor<?x3x5x4xf32>
  %ij = mt.matmul %i, %j transpose_a : tensor<?x3x5x8xf32>, tensor<?x3x5x4xf32>
  %sample = mt.reduce sum, %ij over [1] : tensor<?x3x8x4xf32>
  %sum = mt.reduce sum, %sample over [0] : tensor<?x8x4xf32>
  %k = mt.input "k" : tensor<?x6x2xf32>
  %kk = mt.matmul %k, %k transpose_a : tensor<?x6x2xf32>, tensor<?x6x2xf32>
  %total = mt.reduce sum, %kk over [0] : tensor<?x2x2xf32>
  %r0 = shard.all_reduce %dw on @shards grid_axes = [0] {mt.bucket = 0 : i64} : tensor<32x48xf32> -> tensor<32x48xf32>
  %r1 = shard.all_reduce %sum on @shards grid_axes = [0] {mt.bucket = 0 : i64} : tensor<8x4xf32> -> tensor<8x4xf32>
  %r2 = shard.all_reduce %total on @shards grid_axes = [0] {mt.bucket = 0 : i64} : tensor<2x2xf32> -> tensor<2x2xf32>
  mt.assign "dense/kernel", %r0 : tensor<32x48xf32>
  mt.assign "a", %r1 : tensor<8x4xf32>
  mt.assign "b", %r2 : tensor<2x2xf32>
  mt.output "dx", %dx : tensor<?x64x32xf32>
  mt.output "kk", %kk : tensor<?x2x2xf32>
}
