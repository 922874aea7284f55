// SPDX-License-Identifier: Apache-2.0
//
// In 16-bit plans each difference to a batch's mean was stored in f32, once for every reader: ResNet-20 took 27 % more
// memory in bf16 than in f32. What is stored is the image, of 16 bits: each reader extends it and subtracts for itself.
// RUN: mt-opt %s --mt-fuse | FileCheck %s
// RUN: mt-opt %s --mt-fuse | FileCheck %s --check-prefix=WIDE
// WIDE-NOT: mt.yield {{.*}}tensor<?x8x8x16xf32>

shard.grid @shards(shape = 8)

// CHECK-LABEL: mt.program @train_step
// CHECK: %[[Y:.*]] = mt.kernel "conv{{.*}} -> (tensor<?x8x8x16xbf16>)
// CHECK: mt.kernel {{"[^"]*"}} rows ({{.*}} = %[[Y]] : tensor<?x8x8x16xbf16>, {{.*}}) -> (tensor<?x16xf32>)
// CHECK-NEXT: mt.cast
// CHECK-NEXT: mt.sub
// CHECK-NEXT: mt.square
// CHECK-NEXT: mt.reduce
// CHECK-NEXT: mt.yield
// CHECK: mt.kernel {{"[^"]*"}} rows ({{.*}} = %[[Y]] : tensor<?x8x8x16xbf16>, {{.*}}) -> (tensor<?x8x8x16xbf16>)
// CHECK-NEXT: mt.cast
// CHECK-NEXT: mt.sub
// CHECK-NEXT: mt.mul
// CHECK-NEXT: mt.relu
// CHECK-NEXT: mt.cast
// CHECK-NEXT: mt.yield
mt.program @train_step {
  %x = mt.input "x" : tensor<?x8x8x3xf32>
  %w = mt.read "conv/kernel" : tensor<3x3x3x16xf32>
  %c = mt.conv2d %x, %w padding = [1, 1, 1, 1] : tensor<?x8x8x3xf32>, tensor<3x3x3x16xf32>
  %n = mt.cast %c : tensor<?x8x8x16xf32> to tensor<?x8x8x16xbf16>
  %y = mt.cast %n : tensor<?x8x8x16xbf16> to tensor<?x8x8x16xf32>
  %0 = mt.reduce sum, %n over [1, 2] : tensor<?x8x8x16xbf16>
  %1 = mt.reduce sum, %0 over [0] : tensor<?x16xf32>
  %2 = shard.all_reduce %1 on @shards grid_axes = [0] {mt.bucket = 0 : i64} : tensor<16xf32> -> tensor<16xf32>
  %3 = mt.sub %y, %2 : tensor<?x8x8x16xf32>, tensor<16xf32>
  %4 = mt.square %3 : tensor<?x8x8x16xf32>
  %5 = mt.reduce sum, %4 over [1, 2] : tensor<?x8x8x16xf32>
  %6 = mt.reduce sum, %5 over [0] : tensor<?x16xf32>
  %7 = shard.all_reduce %6 on @shards grid_axes = [0] {mt.bucket = 1 : i64} : tensor<16xf32> -> tensor<16xf32>
  %8 = mt.mul %3, %7 : tensor<?x8x8x16xf32>, tensor<16xf32>
  %9 = mt.relu %8 : tensor<?x8x8x16xf32>
  %10 = mt.cast %9 : tensor<?x8x8x16xf32> to tensor<?x8x8x16xbf16>
  %11 = mt.read "dense/kernel" : tensor<1x1x16x4xbf16>
  %12 = mt.conv2d %10, %11 : tensor<?x8x8x16xbf16>, tensor<1x1x16x4xbf16>
  mt.output "y", %12 : tensor<?x8x8x4xf32>
}
