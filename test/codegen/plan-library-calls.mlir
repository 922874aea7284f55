// SPDX-License-Identifier: Apache-2.0
// Kernels of one product or convolution, with at most a bias and a ReLU, are marked; all others are not.
// RUN: mt-opt %s --plan-library-calls -o %t.mlir && FileCheck %s --input-file=%t.mlir
// RUN: mt-opt %t.mlir | diff - %t.mlir
// RUN: mt-opt %s | FileCheck %s --check-prefix=BEFORE
// BEFORE-NOT: library_call
module attributes {mt.compilation = #mt.compilation<batch = 32, shards = 8, shard_rows = 4, precision = tf32>} {
  // CHECK: plan.kernel @dense attributes
  // CHECK-SAME: library_call = #plan.library_call<product, math = tf32, epilogue = bias_relu, left = 1, right = 2, result = 3, bias = 0, product = <lines = 1, depth = 784, columns = 256>>
  plan.kernel @dense attributes {kind = #mt<kernel_kind matmul>, flops_per_row = 0 : i64, flops_fixed = 0 : i64, bytes_per_row = 0 : i64, bytes_fixed = 0 : i64} {
  ^bb0(%b: tensor<256xf32>, %x: tensor<?x784xf32>, %w: tensor<784x256xf32>):
    %0 = mt.matmul %x, %w : tensor<?x784xf32>, tensor<784x256xf32>
    %1 = mt.add %0, %b : tensor<?x256xf32>, tensor<256xf32>
    %2 = mt.relu %1 : tensor<?x256xf32>
    mt.yield %2 : tensor<?x256xf32>
  }
  // CHECK: plan.kernel @input_gradient attributes
  // CHECK-SAME: library_call = #plan.library_call<product, math = tf32, epilogue = none, left = 0, right = 1, result = 2, product = <lines = 1, depth = 256, columns = 784, transposed = true>>
  plan.kernel @input_gradient attributes {kind = #mt<kernel_kind matmul>, flops_per_row = 0 : i64, flops_fixed = 0 : i64, bytes_per_row = 0 : i64, bytes_fixed = 0 : i64} {
  ^bb0(%g: tensor<?x256xf32>, %w: tensor<784x256xf32>):
    %0 = mt.matmul %g, %w transpose_b : tensor<?x256xf32>, tensor<784x256xf32>
    mt.yield %0 : tensor<?x784xf32>
  }
  // CHECK: plan.kernel @weight_gradient attributes
  // CHECK-SAME: library_call = #plan.library_call<product_tree, math = tf32, epilogue = none, left = 0, right = 1, result = 2, product = <lines = 1, depth = 784, columns = 256>>
  plan.kernel @weight_gradient attributes {kind = #mt<kernel_kind matmul_wgrad>, flops_per_row = 0 : i64, flops_fixed = 0 : i64, bytes_per_row = 0 : i64, bytes_fixed = 0 : i64} {
  ^bb0(%x: tensor<?x784xf32>, %g: tensor<?x256xf32>):
    %0 = mt.matmul %x, %g transpose_a : tensor<?x784xf32>, tensor<?x256xf32>
    mt.yield %0 : tensor<784x256xf32>
  }
  // CHECK: plan.kernel @conv attributes
  // CHECK-SAME: library_call = #plan.library_call<convolution, math = tf32, epilogue = relu, left = 0, right = 1, result = 2, convolution = <down = <inputs = 9, outputs = 4, taps = 3, stride = 2, dilation = 1, low = 1, high = 0>, across = <inputs = 8, outputs = 8, taps = 2, stride = 1, dilation = 1, low = 0, high = 1>, channels = 4, filters = 6, groups = 2>>
  plan.kernel @conv attributes {kind = #mt<kernel_kind conv>, flops_per_row = 0 : i64, flops_fixed = 0 : i64, bytes_per_row = 0 : i64, bytes_fixed = 0 : i64} {
  ^bb0(%x: tensor<?x9x8x4xf32>, %w: tensor<3x2x2x6xf32>):
    %0 = mt.conv2d %x, %w strides = [2, 1] padding = [1, 0, 0, 1] groups = 2 : tensor<?x9x8x4xf32>, tensor<3x2x2x6xf32>
    %1 = mt.relu %0 : tensor<?x4x8x6xf32>
    mt.yield %1 : tensor<?x4x8x6xf32>
  }
  // CHECK: plan.kernel @conv_wgrad attributes
  // CHECK-SAME: library_call = #plan.library_call<convolution_tree, math = tf32, epilogue = none, left = 0, right = 1, result = 2, convolution = <down = <inputs = 9,
  plan.kernel @conv_wgrad attributes {kind = #mt<kernel_kind conv_wgrad>, flops_per_row = 0 : i64, flops_fixed = 0 : i64, bytes_per_row = 0 : i64, bytes_fixed = 0 : i64} {
  ^bb0(%x: tensor<?x9x8x4xf32>, %g: tensor<?x4x8x6xf32>):
    %0 = mt.conv2d_kernel_gradient %x, %g strides = [2, 1] padding = [1, 0, 0, 1] groups = 2 : tensor<?x9x8x4xf32>, tensor<?x4x8x6xf32> to tensor<3x2x2x6xf32>
    mt.yield %0 : tensor<3x2x2x6xf32>
  }
  // More than a bias and a ReLU behind the product.
  // CHECK: plan.kernel @tanh attributes
  // CHECK-NOT: library_call
  plan.kernel @tanh attributes {kind = #mt<kernel_kind matmul>, flops_per_row = 0 : i64, flops_fixed = 0 : i64, bytes_per_row = 0 : i64, bytes_fixed = 0 : i64} {
  ^bb0(%x: tensor<?x784xf32>, %w: tensor<784x256xf32>):
    %0 = mt.matmul %x, %w : tensor<?x784xf32>, tensor<784x256xf32>
    %1 = mt.tanh %0 : tensor<?x256xf32>
    mt.yield %1 : tensor<?x256xf32>
  }
  // Operands of 16 bits.
  plan.kernel @half attributes {kind = #mt<kernel_kind matmul>, flops_per_row = 0 : i64, flops_fixed = 0 : i64, bytes_per_row = 0 : i64, bytes_fixed = 0 : i64} {
  ^bb0(%x: tensor<?x784xbf16>, %w: tensor<784x256xbf16>):
    %0 = mt.matmul %x, %w : tensor<?x784xbf16>, tensor<784x256xbf16>
    mt.yield %0 : tensor<?x256xf32>
  }
}
