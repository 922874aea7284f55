// SPDX-License-Identifier: Apache-2.0
// RUN: mt-opt %s | mt-opt | FileCheck %s

// CHECK-LABEL: func @self
func.func @self(%q: tensor<?x9x12xf32>, %dy: tensor<?x9x12xf32>) {
  // CHECK: %[[Y:.*]] = mt.attention %arg0, %arg0, %arg0 heads = 3 causal : tensor<?x9x12xf32>, tensor<?x9x12xf32>, tensor<?x9x12xf32>
  %y = mt.attention %q, %q, %q heads = 3 causal : tensor<?x9x12xf32>, tensor<?x9x12xf32>, tensor<?x9x12xf32>
  // CHECK: %[[L:.*]] = mt.attention_log_sums %arg0, %arg0 heads = 3 causal : tensor<?x9x12xf32>, tensor<?x9x12xf32>
  %l = mt.attention_log_sums %q, %q heads = 3 causal : tensor<?x9x12xf32>, tensor<?x9x12xf32>
  // CHECK: mt.attention_gradient query, %arg1, %arg0, %arg0, %arg0, %[[Y]], %[[L]] heads = 3 causal : tensor<?x9x12xf32>, tensor<?x9x12xf32>, tensor<?x9x12xf32>, tensor<?x9x12xf32>, tensor<?x9x12xf32>, tensor<?x3x9xf32>
  %dq = mt.attention_gradient query, %dy, %q, %q, %q, %y, %l heads = 3 causal : tensor<?x9x12xf32>, tensor<?x9x12xf32>,
    tensor<?x9x12xf32>, tensor<?x9x12xf32>, tensor<?x9x12xf32>, tensor<?x3x9xf32>
  return
}

// Grouped heads, values of another width, a window, a mask, dropout, an axis before the positions.
// CHECK-LABEL: func @all
func.func @all(%q: tensor<?x2x9x12xf32>, %k: tensor<?x2x7x6xf32>, %v: tensor<?x2x7x10xf32>, %m: tensor<?x1x1x1x7xi1>,
               %i: tensor<i32>) {
  // CHECK: mt.attention %arg0, %arg1, %arg2 mask %arg3 heads = 4 key_heads = 2 window = 3 scale = 5.000000e-01 dropout "s" rate = 2.500000e-01 step(%arg4) : tensor<?x2x9x12xf32>, tensor<?x2x7x6xf32>, tensor<?x2x7x10xf32>, tensor<?x1x1x1x7xi1>
  %0 = mt.attention %q, %k, %v mask %m heads = 4 key_heads = 2 window = 3 scale = 0.5 dropout "s" rate = 0.25 step(%i) :
    tensor<?x2x9x12xf32>, tensor<?x2x7x6xf32>, tensor<?x2x7x10xf32>, tensor<?x1x1x1x7xi1>
  // CHECK: mt.relu %{{.*}} : tensor<?x2x9x20xf32>
  %1 = mt.relu %0 : tensor<?x2x9x20xf32>
  return
}
