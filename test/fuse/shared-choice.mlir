// SPDX-License-Identifier: Apache-2.0
// RUN: mt-opt %s --mt-fuse=images=false | FileCheck %s
// RUN: mt-opt %s --mt-fuse="images=false temporary-bytes=4096" | FileCheck %s --check-prefix=BOTH

// A choice by a mask of values that all pixels share, as in the gradient of a global average pool behind a ReLU: each
// reader chooses again, also the epilogue of a convolution. Code for CPUs reads the result from memory.

// CHECK-LABEL: mt.program @p
// CHECK: %[[ROWS:.*]]:2 = mt.kernel {{.*}} rows {{.*}} -> (tensor<?x4x4x8xi1>, tensor<?x8xf32>)
// CHECK: mt.select
// CHECK-NEXT: mt.reduce sum
// CHECK: mt.kernel {{.*}} conv ({{.*}} = %[[ROWS]]#0 : tensor<?x4x4x8xi1>, {{.*}}tensor<?x1x1x8xf32>) -> (tensor<?x4x4x8xf32>)
// CHECK: mt.conv2d
// CHECK: mt.select
// CHECK-NEXT: mt.add

// BOTH-LABEL: mt.program @p
// BOTH: mt.select
// BOTH: mt.kernel {{.*}} conv ({{.*}}tensor<?x4x4x8xf32>{{.*}}) -> (tensor<?x4x4x8xf32>)
// BOTH-NOT: mt.select
module attributes {mt.compilation = #mt.compilation<shards = 1>} {
  mt.program @p {
    %x = mt.input "x" : tensor<?x4x4x8xf32>
    %g = mt.input "g" : tensor<?x1x1x8xf32>
    %w = mt.read "w" : tensor<1x1x8x8xf32>
    %zero = mt.constant dense<0.0> : tensor<f32>
    %a = mt.input "a" : tensor<?x4x4x8xf32>
    %m = mt.compare gt, %a, %zero : tensor<?x4x4x8xf32>, tensor<f32>
    %d = mt.select %m, %g, %zero : tensor<?x4x4x8xi1>, tensor<?x1x1x8xf32>, tensor<f32>
    %s = mt.reduce sum, %d over [1, 2] : tensor<?x4x4x8xf32>
    %c = mt.conv2d %x, %w : tensor<?x4x4x8xf32>, tensor<1x1x8x8xf32>
    %y = mt.add %c, %d : tensor<?x4x4x8xf32>, tensor<?x4x4x8xf32>
    mt.output "s", %s : tensor<?x8xf32>
    mt.output "y", %y : tensor<?x4x4x8xf32>
  }
}
