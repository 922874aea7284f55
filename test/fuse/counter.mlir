// SPDX-License-Identifier: Apache-2.0
// RUN: mt-opt %s --mt-fuse=images=false | FileCheck %s
// RUN: mt-opt %s --mt-fuse | FileCheck %s --check-prefix=CPU
// The count of steps, which a kernel of scalars computes and a variable takes: for GPUs the kernel of the loss copies
// it, without a launch of its own.

// CHECK-LABEL: mt.program @train_step
// CHECK: %[[LOSS:[a-z_0-9]+]] = shard.all_reduce
// CHECK: %[[SCALARS:[0-9]+]]:3 = mt.kernel "{{.*}}" single (%arg0 = %{{.*}} : tensor<i32>)
// CHECK: mt.yield %{{.*}}, %{{.*}}, %{{.*}} : tensor<f32>, tensor<i32>, tensor<f32>
// CHECK: %[[REPORTED:[0-9]+]]:2 = mt.kernel "div" single (%arg0 = %[[LOSS]] : tensor<f32>, %arg1 = %[[SCALARS]]#1 : tensor<i32>)
// CHECK: mt.yield %{{.*}}, %arg1 : tensor<f32>, tensor<i32>
// CHECK: mt.result "loss", %[[REPORTED]]#0,
// CHECK-NOT: mt.kernel "copy"
// CHECK: mt.assign "count", %[[REPORTED]]#1 : tensor<i32>

// CPU: mt.kernel "copy" elementwise (%{{.*}} = %{{.*}} : tensor<i32>)
shard.grid @shards(shape = 8)
mt.program @train_step {
  %x = mt.input "x" : tensor<?xf32>
  %w = mt.read "w" : tensor<4xf32>
  %count = mt.read "count" : tensor<i32>
  %n = mt.batch_size
  %sum = mt.reduce sum, %x over [0] : tensor<?xf32>
  %all = shard.all_reduce %sum on @shards grid_axes = [0] {mt.bucket = 0 : i64} : tensor<f32> -> tensor<f32>
  %loss = mt.div %all, %n : tensor<f32>, tensor<f32>
  mt.result "loss", %loss, %n loss
  %one = mt.constant dense<1> : tensor<i32>
  %next = mt.add %count, %one : tensor<i32>, tensor<i32>
  %t = mt.cast %next : tensor<i32> to tensor<f32>
  %beta = mt.constant dense<0.9> : tensor<f32>
  %rate = mt.pow %beta, %t : tensor<f32>, tensor<f32>
  %0 = mt.mul %w, %rate : tensor<4xf32>, tensor<f32>
  mt.assign "w", %0 : tensor<4xf32>
  mt.assign "count", %next : tensor<i32>
}
