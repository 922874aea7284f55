// SPDX-License-Identifier: Apache-2.0
// RUN: mt-opt %s --mt-fuse | FileCheck %s
// A reshape, the negative, or a sum with a constant of a value that is in memory is not stored, but computed by the
// kernels that read it.

shard.grid @shards(shape = 8)

// Of h, 1 - h, the reshape of this, a product and its negative, kernels store h and the product.
// CHECK-LABEL: mt.program @derivative
// CHECK: %[[H:.*]] = mt.kernel {{.*}} matmul {{.*}} -> (tensor<?x20xf32>)
// CHECK: %[[P:.*]] = mt.kernel {{.*}} rows ({{.*}} = %[[H]] : tensor<?x20xf32>, {{.*}}) -> (tensor<?x2x20xf32>)
// CHECK: mt.sub
// CHECK: mt.reshape
// CHECK: %[[Q:.*]] = mt.kernel {{.*}} matmul ({{.*}} = %[[P]] : tensor<?x2x20xf32>
// CHECK: %[[R:.*]] = mt.kernel {{.*}} matmul ({{.*}} = %[[P]] : tensor<?x2x20xf32>, {{.*}} = %[[Q]] : tensor<?x2x20xf32>
// CHECK: mt.neg
// CHECK: mt.kernel {{.*}} rows ({{.*}} = %[[R]] : tensor<?x2x20xf32>, {{.*}} = %[[H]] : tensor<?x20xf32>)
// CHECK: mt.sub
// CHECK: mt.reshape
// CHECK: mt.yield
mt.program @derivative {
  %x = mt.input "x" : tensor<?x20xf32>
  %d = mt.input "d" : tensor<?x2x20xf32>
  %w = mt.read "w" : tensor<20x20xf32>
  %one = mt.constant dense<1.0> : tensor<f32>
  %0 = mt.matmul %x, %w : tensor<?x20xf32>, tensor<20x20xf32>
  %h = mt.tanh %0 : tensor<?x20xf32>
  %1 = mt.sub %one, %h : tensor<f32>, tensor<?x20xf32>
  %2 = mt.reshape %1 : tensor<?x20xf32> to tensor<?x1x20xf32>
  %3 = mt.mul %d, %2 : tensor<?x2x20xf32>, tensor<?x1x20xf32>
  %4 = mt.neg %3 : tensor<?x2x20xf32>
  %5 = mt.matmul %3, %w : tensor<?x2x20xf32>, tensor<20x20xf32>
  %6 = mt.matmul %5, %w : tensor<?x2x20xf32>, tensor<20x20xf32>
  %7 = mt.mul %6, %4 : tensor<?x2x20xf32>, tensor<?x2x20xf32>
  %8 = mt.mul %7, %2 : tensor<?x2x20xf32>, tensor<?x1x20xf32>
  mt.output "h", %h : tensor<?x20xf32>
  mt.output "y", %8 : tensor<?x2x20xf32>
}

// A value that anything but such a kernel reads is stored: what an output is, and what is summed over the batch.
// CHECK-LABEL: mt.program @stored
// CHECK: mt.kernel {{.*}} rows {{.*}} -> (tensor<?x20xf32>, tensor<?x20xf32>)
mt.program @stored {
  %x = mt.input "x" : tensor<?x20xf32>
  %0 = mt.tanh %x : tensor<?x20xf32>
  %1 = mt.neg %0 : tensor<?x20xf32>
  %2 = mt.reduce sum, %1 over [0] : tensor<?x20xf32>
  %3 = shard.all_reduce %2 on @shards grid_axes = [0] {mt.bucket = 0 : i64} : tensor<20xf32> -> tensor<20xf32>
  mt.assign "m", %3 : tensor<20xf32>
  mt.output "y", %0 : tensor<?x20xf32>
}

// A mask of a value that its reader loads anyway, as that of the relu before a max pool in 16 bits.
// CHECK-LABEL: mt.program @mask
// CHECK: mt.kernel {{.*}} rows {{.*}} -> (tensor<?x64x64x8xbf16>, tensor<?x32x32x8xf32>)
// CHECK: mt.relu
// CHECK-NOT: mt.compare
// CHECK: mt.yield
// CHECK: mt.pool_gradient
// CHECK: mt.compare gt
// CHECK-NEXT: mt.select
// CHECK: mt.yield
mt.program @mask {
  %x = mt.input "x" : tensor<?x64x64x8xf32>
  %w = mt.read "w" : tensor<3x3x8x8xf32>
  %zero = mt.constant dense<0.0> : tensor<f32>
  %0 = mt.relu %x : tensor<?x64x64x8xf32>
  %h = mt.cast %0 : tensor<?x64x64x8xf32> to tensor<?x64x64x8xbf16>
  %p = mt.pool max, %h window = [2, 2] strides = [2, 2] : tensor<?x64x64x8xbf16>
  %d = mt.conv2d %p, %w padding = [1, 1, 1, 1] : tensor<?x32x32x8xf32>, tensor<3x3x8x8xf32>
  %1 = mt.pool_gradient max, %d at %h window = [2, 2] strides = [2, 2] : tensor<?x32x32x8xf32>, tensor<?x64x64x8xbf16> to tensor<?x64x64x8xf32>
  %2 = mt.cast %1 : tensor<?x64x64x8xf32> to tensor<?x64x64x8xbf16>
  %3 = mt.cast %2 : tensor<?x64x64x8xbf16> to tensor<?x64x64x8xf32>
  %4 = mt.cast %h : tensor<?x64x64x8xbf16> to tensor<?x64x64x8xf32>
  %5 = mt.compare gt, %4, %zero : tensor<?x64x64x8xf32>, tensor<f32>
  %6 = mt.select %5, %3, %zero : tensor<?x64x64x8xi1>, tensor<?x64x64x8xf32>, tensor<f32>
  mt.output "p", %p : tensor<?x32x32x8xf32>
  mt.output "dx", %6 : tensor<?x64x64x8xf32>
}
