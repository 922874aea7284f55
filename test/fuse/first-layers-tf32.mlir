// SPDX-License-Identifier: Apache-2.0
// RUN: mt-opt %s --mt-fuse=images=false | FileCheck %s
// RUN: mt-opt %s --mt-fuse="images=false temporary-bytes=4096" | FileCheck %s --check-prefix=CPUS
// In TF32 the gradient of a small kernel is one product over the batch, unless the plan has code for CPUs.

// CHECK: mt.conv2d_kernel_gradient {{.*}} to tensor<3x3x3x16xf32>
// CPUS: mt.conv2d_kernel_gradient {{.*}} to tensor<?x3x3x3x16xf32>
module attributes {mt.compilation = #mt.compilation<precision = tf32>} {
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
}
