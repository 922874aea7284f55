// SPDX-License-Identifier: Apache-2.0
// RUN: mt-opt %s --mt-fuse | FileCheck %s
// relu's mask of a max pool's gradient is the mask of the pool's result: it joins the convolution that computes what
// the pool passes on. A mask of other values stays behind the pool.

// CHECK-LABEL: mt.program @train_step
// CHECK: mt.kernel {{.*}} conv (
// CHECK-NEXT: mt.conv2d_input_gradient
// CHECK-NEXT: mt.constant
// CHECK-NEXT: mt.compare gt, %{{.*}} : tensor<?x4x4x16xf32>
// CHECK-NEXT: mt.select
// CHECK-NEXT: mt.yield
// CHECK: mt.kernel {{"[^"]*"}} rows
// CHECK-NEXT: mt.pool_gradient
// CHECK-NEXT: mt.yield
mt.program @train_step {
  %x = mt.input "x" : tensor<?x8x8x16xf32>
  %dy = mt.input "dy" : tensor<?x4x4x16xf32>
  %w = mt.read "conv/kernel" : tensor<3x3x16x16xf32>
  %y = mt.relu %x : tensor<?x8x8x16xf32>
  %p = mt.pool max, %y window = [2, 2] strides = [2, 2] : tensor<?x8x8x16xf32>
  %0 = mt.conv2d_input_gradient %dy, %w padding = [1, 1, 1, 1] : tensor<?x4x4x16xf32>, tensor<3x3x16x16xf32> to tensor<?x4x4x16xf32>
  %1 = mt.pool_gradient max, %0 at %y window = [2, 2] strides = [2, 2] : tensor<?x4x4x16xf32>, tensor<?x8x8x16xf32> to tensor<?x8x8x16xf32>
  %zero = mt.constant dense<0.0> : tensor<f32>
  %2 = mt.compare gt, %y, %zero : tensor<?x8x8x16xf32>, tensor<f32>
  %3 = mt.select %2, %1, %zero : tensor<?x8x8x16xi1>, tensor<?x8x8x16xf32>, tensor<f32>
  mt.output "dx", %3 : tensor<?x8x8x16xf32>
  mt.output "p", %p : tensor<?x4x4x16xf32>
}

// CHECK-LABEL: mt.program @eval_step
// CHECK: mt.pool_gradient
// CHECK: mt.select
mt.program @eval_step {
  %x = mt.input "x" : tensor<?x8x8x16xf32>
  %dy = mt.input "dy" : tensor<?x4x4x16xf32>
  %p = mt.pool max, %x window = [2, 2] strides = [2, 2] : tensor<?x8x8x16xf32>
  %1 = mt.pool_gradient max, %dy at %x window = [2, 2] strides = [2, 2] : tensor<?x4x4x16xf32>, tensor<?x8x8x16xf32> to tensor<?x8x8x16xf32>
  %one = mt.constant dense<1.0> : tensor<f32>
  %2 = mt.compare gt, %x, %one : tensor<?x8x8x16xf32>, tensor<f32>
  %3 = mt.select %2, %1, %one : tensor<?x8x8x16xi1>, tensor<?x8x8x16xf32>, tensor<f32>
  mt.output "dx", %3 : tensor<?x8x8x16xf32>
  mt.output "p", %p : tensor<?x4x4x16xf32>
}
