// SPDX-License-Identifier: Apache-2.0
// Convolutions, pools, moves and lookups are printed so that they parse again; default attributes are not printed.
// RUN: mt-opt %s | mt-opt | FileCheck %s

// CHECK-LABEL: @convolutions
func.func @convolutions(%x: tensor<?x9x8x4xf32>, %w: tensor<3x2x2x6xf32>) {
  // CHECK: mt.conv2d %{{.*}}, %{{.*}} strides = [2, 1] padding = [1, 0, 0, 1] groups = 2 : tensor<?x9x8x4xf32>, tensor<3x2x2x6xf32>
  %0 = mt.conv2d %x, %w strides = [2, 1] padding = [1, 0, 0, 1] dilation = [1, 1] groups = 2 : tensor<?x9x8x4xf32>, tensor<3x2x2x6xf32>
  // CHECK: mt.conv2d_input_gradient {{.*}} groups = 2 : tensor<?x4x8x6xf32>, tensor<3x2x2x6xf32> to tensor<?x9x8x4xf32>
  %1 = mt.conv2d_input_gradient %0, %w strides = [2, 1] padding = [1, 0, 0, 1] groups = 2 : tensor<?x4x8x6xf32>, tensor<3x2x2x6xf32> to tensor<?x9x8x4xf32>
  // CHECK: mt.conv2d_kernel_gradient {{.*}} groups = 2 : tensor<?x9x8x4xf32>, tensor<?x4x8x6xf32> to tensor<3x2x2x6xf32>
  %2 = mt.conv2d_kernel_gradient %x, %0 strides = [2, 1] padding = [1, 0, 0, 1] groups = 2 : tensor<?x9x8x4xf32>, tensor<?x4x8x6xf32> to tensor<3x2x2x6xf32>
  return
}

// CHECK-LABEL: @dilated
func.func @dilated(%x: tensor<?x9x8x4xf32>, %w: tensor<3x2x4x6xf32>) -> tensor<?x5x6x6xf32> {
  // CHECK: mt.conv2d %{{.*}}, %{{.*}} dilation = [2, 2] : tensor<?x9x8x4xf32>, tensor<3x2x4x6xf32>
  %0 = mt.conv2d %x, %w dilation = [2, 2] : tensor<?x9x8x4xf32>, tensor<3x2x4x6xf32>
  return %0 : tensor<?x5x6x6xf32>
}

// CHECK-LABEL: @pools
func.func @pools(%x: tensor<?x9x8x4xf32>) {
  // CHECK: mt.pool max, %{{.*}} window = [2, 2] strides = [2, 2] : tensor<?x9x8x4xf32>
  %0 = mt.pool max, %x window = [2, 2] strides = [2, 2] : tensor<?x9x8x4xf32>
  // CHECK: mt.pool_gradient max, %{{.*}} at %{{.*}} window = [2, 2] strides = [2, 2] : tensor<?x4x4x4xf32>, tensor<?x9x8x4xf32> to tensor<?x9x8x4xf32>
  %1 = mt.pool_gradient max, %0 at %x window = [2, 2] strides = [2, 2] : tensor<?x4x4x4xf32>, tensor<?x9x8x4xf32> to tensor<?x9x8x4xf32>
  // CHECK: mt.pool_gradient sum, %{{.*}} window = [2, 2] strides = [2, 2] : tensor<?x4x4x4xf32> to tensor<?x9x8x4xf32>
  %2 = mt.pool_gradient sum, %0 window = [2, 2] strides = [2, 2] : tensor<?x4x4x4xf32> to tensor<?x9x8x4xf32>
  // CHECK: mt.pool sum, %{{.*}} window = [3, 3] padding = [1, 1, 1, 1] : tensor<?x9x8x4xf32>
  %3 = mt.pool sum, %x window = [3, 3] padding = [1, 1, 1, 1] : tensor<?x9x8x4xf32>
  return
}

// CHECK-LABEL: @moves
func.func @moves(%x: tensor<?x9x8x4xf32>, %v: tensor<3xi32>) {
  // CHECK: %[[P:.*]] = mt.pad %{{.*}} low = [0, 1, 2] high = [1, 0, 0] value = 1.500000e+00 : tensor<?x9x8x4xf32>
  %0 = mt.pad %x low = [0, 1, 2] high = [1, 0, 0] value = 1.5 : tensor<?x9x8x4xf32>
  // CHECK: mt.slice %[[P]] starts = [0, 1, 2] sizes = [9, 8, 4] : tensor<?x10x9x6xf32>
  %1 = mt.slice %0 starts = [0, 1, 2] sizes = [9, 8, 4] : tensor<?x10x9x6xf32>
  // CHECK: mt.slice %[[P]] starts = [1, 0, 5] sizes = [5, 3, 1] strides = [2, 4, 1] : tensor<?x10x9x6xf32>
  %2 = mt.slice %0 starts = [1, 0, 5] sizes = [5, 3, 1] strides = [2, 4, 1] : tensor<?x10x9x6xf32>
  // CHECK: mt.pad %{{.*}} low = [1, 0, 5] high = [0, 0, 0] interior = [1, 3, 0] : tensor<?x5x3x1xf32>
  %3 = mt.pad %2 low = [1, 0, 5] high = [0, 0, 0] interior = [1, 3, 0] : tensor<?x5x3x1xf32>
  // CHECK: mt.add %{{.*}}, %[[P]] : tensor<?x10x9x6xf32>, tensor<?x10x9x6xf32>
  %4 = mt.add %3, %0 : tensor<?x10x9x6xf32>, tensor<?x10x9x6xf32>
  // CHECK: mt.concat %{{.*}}, %{{.*}} dim = 2 : tensor<?x9x8x4xf32>, tensor<?x9x8x4xf32>
  %5 = mt.concat %1, %x dim = 2 : tensor<?x9x8x4xf32>, tensor<?x9x8x4xf32>
  // CHECK: mt.concat %{{.*}}, %{{.*}}, %{{.*}} dim = 0 : tensor<3xi32>, tensor<3xi32>, tensor<3xi32>
  %6 = mt.concat %v, %v, %v dim = 0 : tensor<3xi32>, tensor<3xi32>, tensor<3xi32>
  // CHECK: mt.reverse %{{.*}} over [1, 2] : tensor<?x9x16x4xf32>
  %7 = mt.reverse %5 over [1, 2] : tensor<?x9x16x4xf32>
  return
}

// CHECK-LABEL: @lookup
func.func @lookup(%t: tensor<10x4xf32>, %ids: tensor<?x3xi32>) {
  // CHECK: mt.gather %{{.*}}, %{{.*}} : tensor<10x4xf32>, tensor<?x3xi32>
  %0 = mt.gather %t, %ids : tensor<10x4xf32>, tensor<?x3xi32>
  // CHECK: mt.scatter_add %{{.*}}, %{{.*}} : tensor<?x3xi32>, tensor<?x3x4xf32> to tensor<10x4xf32>
  %1 = mt.scatter_add %ids, %0 : tensor<?x3xi32>, tensor<?x3x4xf32> to tensor<10x4xf32>
  return
}

// CHECK-LABEL: @take
func.func @take(%x: tensor<?x10x4xf32>, %ids: tensor<?x3xi32>, %all: tensor<7xi32>) {
  // CHECK: mt.take %{{.*}}, %{{.*}} dim = 1 : tensor<?x10x4xf32>, tensor<?x3xi32>
  %0 = mt.take %x, %ids dim = 1 : tensor<?x10x4xf32>, tensor<?x3xi32>
  // CHECK: mt.take %{{.*}}, %{{.*}} dim = 2 : tensor<?x3x4xf32>, tensor<7xi32>
  %1 = mt.take %0, %all dim = 2 : tensor<?x3x4xf32>, tensor<7xi32>
  // CHECK: mt.index_add %{{.*}}, %{{.*}} dim = 2 : tensor<7xi32>, tensor<?x3x7xf32> to tensor<?x3x4xf32>
  %2 = mt.index_add %all, %1 dim = 2 : tensor<7xi32>, tensor<?x3x7xf32> to tensor<?x3x4xf32>
  // CHECK: mt.while_training %{{.*}} else %{{.*}} : tensor<?x3x4xf32>
  %3 = mt.while_training %2 else %0 : tensor<?x3x4xf32>
  return
}
