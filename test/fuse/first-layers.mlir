// SPDX-License-Identifier: Apache-2.0
// RUN: mt-opt %s --mt-fuse | FileCheck %s
// RUN: mt-opt %s --mt-fuse=images=false | FileCheck %s --check-prefix=STORED
// The image of a convolution of few taps times channels is computed where it is read: by the pool, and again by the
// pool's gradient. Its kernel's gradient is one of each sample there, then a sum over the batch. Where images are
// stored, the sums are the same.

// CHECK-LABEL: mt.program @train_step
// CHECK: mt.kernel "conv/{{.*}}" rows
// CHECK-NEXT: mt.conv2d
// CHECK-NEXT: mt.add
// CHECK-NEXT: mt.relu
// CHECK-NEXT: mt.pool max
// CHECK-NEXT: mt.yield %{{.*}} : tensor<?x12x12x16xf32>
// CHECK: mt.kernel "conv/{{.*}}" rows
// CHECK-NEXT: mt.conv2d
// CHECK: mt.pool_gradient
// CHECK: mt.conv2d_kernel_gradient {{.*}} to tensor<?x3x3x3x16xf32>
// CHECK: mt.yield {{.*}}tensor<?x3x3x3x16xf32>
// CHECK: mt.kernel {{.*}} reduce
// CHECK: mt.reduce sum, %{{.*}} over [0] : tensor<?x3x3x3x16xf32>

// STORED-LABEL: mt.program @train_step
// STORED: mt.kernel "conv/conv2d+add+relu" conv
// STORED: mt.conv2d_kernel_gradient {{.*}} to tensor<?x3x3x3x16xf32>
// STORED: mt.reduce sum, %{{.*}} over [0] : tensor<?x3x3x3x16xf32>
shard.grid @shards(shape = 8)
mt.program @train_step {
  %x = mt.input "x" : tensor<?x24x24x3xf32>
  %w = mt.read "conv/kernel" : tensor<3x3x3x16xf32>
  %b = mt.read "conv/bias" : tensor<16xf32>
  %v = mt.read "next/kernel" : tensor<3x3x16x16xf32>
  %0 = mt.conv2d %x, %w padding = [1, 1, 1, 1] : tensor<?x24x24x3xf32>, tensor<3x3x3x16xf32>
  %1 = mt.add %0, %b : tensor<?x24x24x16xf32>, tensor<16xf32>
  %2 = mt.relu %1 : tensor<?x24x24x16xf32>
  %p = mt.pool max, %2 window = [2, 2] strides = [2, 2] : tensor<?x24x24x16xf32>
  %dp = mt.conv2d_input_gradient %p, %v padding = [1, 1, 1, 1] : tensor<?x12x12x16xf32>, tensor<3x3x16x16xf32> to tensor<?x12x12x16xf32>
  %3 = mt.pool_gradient max, %dp at %2 window = [2, 2] strides = [2, 2] : tensor<?x12x12x16xf32>, tensor<?x24x24x16xf32> to tensor<?x24x24x16xf32>
  %4 = mt.conv2d_kernel_gradient %x, %3 padding = [1, 1, 1, 1] : tensor<?x24x24x3xf32>, tensor<?x24x24x16xf32> to tensor<3x3x3x16xf32>
  %5 = shard.all_reduce %4 on @shards grid_axes = [0] {mt.bucket = 0 : i64} : tensor<3x3x3x16xf32> -> tensor<3x3x3x16xf32>
  mt.assign "conv/kernel", %5 : tensor<3x3x3x16xf32>
}
