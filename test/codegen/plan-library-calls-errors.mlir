// SPDX-License-Identifier: Apache-2.0
// A library call that does not fit its kernel's body is an error at the kernel.
// RUN: mt-opt %s --split-input-file --verify-diagnostics
// expected-error @below {{expected a library call with only the sizes of a product, found other sizes}}
plan.kernel @k attributes {kind = #mt<kernel_kind matmul>, flops_per_row = 0 : i64, flops_fixed = 0 : i64, bytes_per_row = 0 : i64, bytes_fixed = 0 : i64, library_call = #plan.library_call<product, math = f32, epilogue = none, left = 0, right = 1, result = 3>} {
^bb0(%x: tensor<?x4xf32>, %w: tensor<4x6xf32>, %b: tensor<6xf32>):
  %0 = mt.matmul %x, %w : tensor<?x4xf32>, tensor<4x6xf32>
  mt.yield %0 : tensor<?x6xf32>
}
// -----
// expected-error @below {{expected a library call with only the sizes of a convolution, found other sizes}}
plan.kernel @k attributes {kind = #mt<kernel_kind matmul>, flops_per_row = 0 : i64, flops_fixed = 0 : i64, bytes_per_row = 0 : i64, bytes_fixed = 0 : i64, library_call = #plan.library_call<convolution, math = f32, epilogue = none, left = 0, right = 1, result = 3, product = <lines = 1, depth = 4, columns = 6>, convolution = <down = <inputs = 1, outputs = 1, taps = 1, stride = 1, dilation = 1, low = 0, high = 0>, across = <inputs = 1, outputs = 1, taps = 1, stride = 1, dilation = 1, low = 0, high = 0>, channels = 4, filters = 6, groups = 1>>} {
^bb0(%x: tensor<?x4xf32>, %w: tensor<4x6xf32>, %b: tensor<6xf32>):
  %0 = mt.matmul %x, %w : tensor<?x4xf32>, tensor<4x6xf32>
  mt.yield %0 : tensor<?x6xf32>
}
// -----
// expected-error @below {{expected a library call of at least 1 group, found 0}}
plan.kernel @k attributes {kind = #mt<kernel_kind matmul>, flops_per_row = 0 : i64, flops_fixed = 0 : i64, bytes_per_row = 0 : i64, bytes_fixed = 0 : i64, library_call = #plan.library_call<convolution, math = f32, epilogue = none, left = 0, right = 1, result = 3, convolution = <down = <inputs = 1, outputs = 1, taps = 1, stride = 1, dilation = 1, low = 0, high = 0>, across = <inputs = 1, outputs = 1, taps = 1, stride = 1, dilation = 1, low = 0, high = 0>, channels = 4, filters = 6, groups = 0>>} {
^bb0(%x: tensor<?x4xf32>, %w: tensor<4x6xf32>, %b: tensor<6xf32>):
  %0 = mt.matmul %x, %w : tensor<?x4xf32>, tensor<4x6xf32>
  mt.yield %0 : tensor<?x6xf32>
}
// -----
// expected-error @below {{expected a library call with a bias where its epilogue has one, found epilogue bias and bias -1}}
plan.kernel @k attributes {kind = #mt<kernel_kind matmul>, flops_per_row = 0 : i64, flops_fixed = 0 : i64, bytes_per_row = 0 : i64, bytes_fixed = 0 : i64, library_call = #plan.library_call<product, math = f32, epilogue = bias, left = 0, right = 1, result = 3, product = <lines = 1, depth = 4, columns = 6>>} {
^bb0(%x: tensor<?x4xf32>, %w: tensor<4x6xf32>, %b: tensor<6xf32>):
  %0 = mt.matmul %x, %w : tensor<?x4xf32>, tensor<4x6xf32>
  mt.yield %0 : tensor<?x6xf32>
}
// -----
// expected-error @below {{expected no epilogue of a sum over the batch, found relu}}
plan.kernel @k attributes {kind = #mt<kernel_kind matmul>, flops_per_row = 0 : i64, flops_fixed = 0 : i64, bytes_per_row = 0 : i64, bytes_fixed = 0 : i64, library_call = #plan.library_call<product_tree, math = f32, epilogue = relu, left = 0, right = 1, result = 3, product = <lines = 1, depth = 4, columns = 6>>} {
^bb0(%x: tensor<?x4xf32>, %w: tensor<4x6xf32>, %b: tensor<6xf32>):
  %0 = mt.matmul %x, %w : tensor<?x4xf32>, tensor<4x6xf32>
  mt.yield %0 : tensor<?x6xf32>
}
// -----
// expected-error @below {{expected the number of a buffer below 4 as left of a library call, found 7}}
plan.kernel @k attributes {kind = #mt<kernel_kind matmul>, flops_per_row = 0 : i64, flops_fixed = 0 : i64, bytes_per_row = 0 : i64, bytes_fixed = 0 : i64, library_call = #plan.library_call<product, math = f32, epilogue = none, left = 7, right = 1, result = 3, product = <lines = 1, depth = 4, columns = 6>>} {
^bb0(%x: tensor<?x4xf32>, %w: tensor<4x6xf32>, %b: tensor<6xf32>):
  %0 = mt.matmul %x, %w : tensor<?x4xf32>, tensor<4x6xf32>
  mt.yield %0 : tensor<?x6xf32>
}
// -----
// expected-error @below {{expected 5 elements of f32 per row as left of a library call, found 'tensor<?x4xf32>'}}
plan.kernel @k attributes {kind = #mt<kernel_kind matmul>, flops_per_row = 0 : i64, flops_fixed = 0 : i64, bytes_per_row = 0 : i64, bytes_fixed = 0 : i64, library_call = #plan.library_call<product, math = f32, epilogue = none, left = 0, right = 1, result = 3, product = <lines = 1, depth = 5, columns = 6>>} {
^bb0(%x: tensor<?x4xf32>, %w: tensor<4x6xf32>, %b: tensor<6xf32>):
  %0 = mt.matmul %x, %w : tensor<?x4xf32>, tensor<4x6xf32>
  mt.yield %0 : tensor<?x6xf32>
}
// -----
// expected-error @below {{expected 24 elements of f32 as right of a library call, found 'tensor<6xf32>'}}
plan.kernel @k attributes {kind = #mt<kernel_kind matmul>, flops_per_row = 0 : i64, flops_fixed = 0 : i64, bytes_per_row = 0 : i64, bytes_fixed = 0 : i64, library_call = #plan.library_call<product, math = f32, epilogue = none, left = 0, right = 2, result = 3, product = <lines = 1, depth = 4, columns = 6>>} {
^bb0(%x: tensor<?x4xf32>, %w: tensor<4x6xf32>, %b: tensor<6xf32>):
  %0 = mt.matmul %x, %w : tensor<?x4xf32>, tensor<4x6xf32>
  mt.yield %0 : tensor<?x6xf32>
}
// -----
// expected-error @below {{expected 6 elements of f32 per row as result of a library call, found 'tensor<4x6xf32>'}}
plan.kernel @k attributes {kind = #mt<kernel_kind matmul>, flops_per_row = 0 : i64, flops_fixed = 0 : i64, bytes_per_row = 0 : i64, bytes_fixed = 0 : i64, library_call = #plan.library_call<product, math = f32, epilogue = none, left = 0, right = 1, result = 1, product = <lines = 1, depth = 4, columns = 6>>} {
^bb0(%x: tensor<?x4xf32>, %w: tensor<4x6xf32>, %b: tensor<6xf32>):
  %0 = mt.matmul %x, %w : tensor<?x4xf32>, tensor<4x6xf32>
  mt.yield %0 : tensor<?x6xf32>
}
// -----
// expected-error @below {{expected 6 elements of f32 as bias of a library call, found 'tensor<4x6xf32>'}}
plan.kernel @k attributes {kind = #mt<kernel_kind matmul>, flops_per_row = 0 : i64, flops_fixed = 0 : i64, bytes_per_row = 0 : i64, bytes_fixed = 0 : i64, library_call = #plan.library_call<product, math = f32, epilogue = bias, left = 0, right = 1, result = 3, bias = 1, product = <lines = 1, depth = 4, columns = 6>>} {
^bb0(%x: tensor<?x4xf32>, %w: tensor<4x6xf32>, %b: tensor<6xf32>):
  %0 = mt.matmul %x, %w : tensor<?x4xf32>, tensor<4x6xf32>
  mt.yield %0 : tensor<?x6xf32>
}
// -----
// expected-error @below {{expected 18446744073709551615 elements of f32 per row as left of a library call, found 'tensor<?x4xf32>'}}
plan.kernel @k attributes {kind = #mt<kernel_kind matmul>, flops_per_row = 0 : i64, flops_fixed = 0 : i64, bytes_per_row = 0 : i64, bytes_fixed = 0 : i64, library_call = #plan.library_call<product, math = f32, epilogue = none, left = 0, right = 1, result = 3, product = <lines = 9223372036854775807, depth = 4, columns = 6>>} {
^bb0(%x: tensor<?x4xf32>, %w: tensor<4x6xf32>, %b: tensor<6xf32>):
  %0 = mt.matmul %x, %w : tensor<?x4xf32>, tensor<4x6xf32>
  mt.yield %0 : tensor<?x6xf32>
}
