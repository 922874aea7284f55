// SPDX-License-Identifier: Apache-2.0
// Ops of graph in mt.update: they read gradients, variables and values of the model's body.
// RUN: mt-opt %s --graph-layout | FileCheck %s
// RUN: mtc compile %s --batch 32 -o %t.plan
module attributes {graph.version = 1 : i32} {
  mt.model @updated {
    %x = mt.input "x" : tensor<?x6xf32>
    %w = mt.variable "w" init(ones) : tensor<4x6xf32>
    %m = mt.variable "optimizer/rows" init(zeros) slot : tensor<6x1xf32>
    %s = mt.variable "optimizer/seen" init(zeros) slot : tensor<f32>
    %i = mt.variable "iteration" init(zeros) frozen role(iteration) : tensor<i32>
    %0 = graph.logical %x : tensor<?x6xf32> -> !graph.value<[b, 6], f32>
    %1 = graph.logical %w : tensor<4x6xf32> -> !graph.value<[4, 6], f32>
    %2 = graph.dot_general %0, %1 contract [1] x [1] : (!graph.value<[b, 6], f32>, !graph.value<[4, 6], f32>) -> !graph.value<[b, 4], f32>
    %3 = graph.reduce sum, %2 over [0, 1] : (!graph.value<[b, 4], f32>) -> !graph.value<[], f32>
    %l = graph.tensor %2 : !graph.value<[b, 4], f32> -> tensor<?x4xf32>
    mt.loss "loss", %l : tensor<?x4xf32>
    mt.update {
      %g = mt.gradient "w" : tensor<4x6xf32>
      %4 = graph.logical %g : tensor<4x6xf32> -> !graph.value<[4, 6], f32>
      %5 = graph.transpose %4 by [1, 0] : (!graph.value<[4, 6], f32>) -> !graph.value<[6, 4], f32>
      %6 = graph.transpose %1 by [1, 0] : (!graph.value<[4, 6], f32>) -> !graph.value<[6, 4], f32>
      %7 = graph.elementwise "sub"(%6, %5) : (!graph.value<[6, 4], f32>, !graph.value<[6, 4], f32>) -> !graph.value<[6, 4], f32>
      %8 = graph.transpose %7 by [1, 0] : (!graph.value<[6, 4], f32>) -> !graph.value<[4, 6], f32>
      %9 = graph.tensor %8 : !graph.value<[4, 6], f32> -> tensor<4x6xf32>
      mt.assign "w", %9 : tensor<4x6xf32>
      %10 = graph.logical %m : tensor<6x1xf32> -> !graph.value<[6, 1], f32>
      %11 = graph.elementwise "square"(%5) : (!graph.value<[6, 4], f32>) -> !graph.value<[6, 4], f32>
      %12 = graph.reduce sum, %11 over [1] : (!graph.value<[6, 4], f32>) -> !graph.value<[6], f32>
      %13 = graph.reshape %12 : (!graph.value<[6], f32>) -> !graph.value<[6, 1], f32>
      %14 = graph.elementwise "add"(%10, %13) : (!graph.value<[6, 1], f32>, !graph.value<[6, 1], f32>) -> !graph.value<[6, 1], f32>
      %15 = graph.tensor %14 : !graph.value<[6, 1], f32> -> tensor<6x1xf32>
      mt.assign "optimizer/rows", %15 : tensor<6x1xf32>
      %16 = graph.tensor %3 : !graph.value<[], f32> -> tensor<f32>
      mt.assign "optimizer/seen", %16 : tensor<f32>
    }
  }
}
// The transposes make no ops.
// CHECK-LABEL: mt.model @updated
// CHECK:       %[[W:.*]] = mt.variable "w"
// CHECK:       %[[P:.*]] = mt.matmul %{{.*}}, %[[W]] transpose_b : tensor<?x6xf32>, tensor<4x6xf32>
// CHECK:       %[[SUM:.*]] = mt.reduce sum, %{{.*}} over [0]
// CHECK:       mt.update {
// CHECK-NEXT:    %[[G:.*]] = mt.gradient "w" : tensor<4x6xf32>
// CHECK-NOT:     graph.
// CHECK-NOT:     mt.transpose
// CHECK:         %[[NEW:.*]] = mt.sub %[[W]], %[[G]] : tensor<4x6xf32>, tensor<4x6xf32>
// CHECK:         mt.assign "w", %[[NEW]] : tensor<4x6xf32>
// CHECK:         %[[ROWS:.*]] = mt.reduce sum, %{{.*}} over [0] : tensor<4x6xf32>
// CHECK:         mt.assign "optimizer/rows", %{{.*}} : tensor<6x1xf32>
// CHECK:         mt.assign "optimizer/seen", %[[SUM]] : tensor<f32>
