// SPDX-License-Identifier: Apache-2.0
// Ops of graph in the body of mt.scan. What no step changes comes in front of the loop.
// RUN: mt-opt %s --graph-layout --split-input-file | FileCheck %s
// RUN: mt-opt %s --graph-layout --mt-unroll --split-input-file | FileCheck %s --check-prefix=UNROLLED
module attributes {graph.version = 1 : i32} {
  mt.model @looped {
    %x = mt.input "x" : tensor<?x5x6xf32>
    %u = mt.variable "u" init(ones) : tensor<2x3x6xf32>
    %0 = graph.logical %u : tensor<2x3x6xf32> -> !graph.value<[2, 3, 6], f32>
    %h0 = mt.slice %x starts = [0, 0] sizes = [1, 6] : tensor<?x5x6xf32>
    %h1 = mt.reshape %h0 : tensor<?x1x6xf32> to tensor<?x6xf32>
    %h, %ys = mt.scan over(%part = %x : tensor<?x5x6xf32>) from(%before = %h1 : tensor<?x6xf32>) reverse {
      %1 = graph.logical %part : tensor<?x6xf32> -> !graph.value<[b, 6], f32>
      %2 = graph.logical %before : tensor<?x6xf32> -> !graph.value<[b, 6], f32>
      %3 = graph.transpose %0 by [2, 1, 0] : (!graph.value<[2, 3, 6], f32>) -> !graph.value<[6, 3, 2], f32>
      %4 = graph.reshape %3 : (!graph.value<[6, 3, 2], f32>) -> !graph.value<[6, 6], f32>
      %5 = graph.dot_general %2, %4 contract [1] x [1] : (!graph.value<[b, 6], f32>, !graph.value<[6, 6], f32>) -> !graph.value<[b, 6], f32>
      %6 = graph.elementwise "add"(%5, %1) : (!graph.value<[b, 6], f32>, !graph.value<[b, 6], f32>) -> !graph.value<[b, 6], f32>
      %7 = graph.elementwise "dropout"(%6) {stream = "s", rate = 0.5 : f32} : (!graph.value<[b, 6], f32>) -> !graph.value<[b, 6], f32>
      %8 = graph.tensor %7 : !graph.value<[b, 6], f32> -> tensor<?x6xf32>
      mt.yield %8, %8 : tensor<?x6xf32>, tensor<?x6xf32>
    }
    %l = mt.reduce sum, %ys over [1, 2] : tensor<?x5x6xf32>
    mt.loss "loss", %l : tensor<?xf32>
    mt.sgd <{learning_rate = 0.1 : f32}>
  }
}
// CHECK-LABEL: mt.model @looped
// CHECK:         %[[U:.*]] = mt.reshape %{{.*}} : tensor<6x3x2xf32> to tensor<6x6xf32>
// CHECK-NEXT:    %[[H:.*]]:2 = mt.scan over(%[[X:.*]] = %{{.*}} : tensor<?x5x6xf32>) from(%[[BEFORE:.*]] = %{{.*}} : tensor<?x6xf32>) reverse {
// CHECK-NEXT:      %[[P:.*]] = mt.matmul %[[BEFORE]], %[[U]] transpose_b
// CHECK-NEXT:      %[[S:.*]] = mt.add %[[P]], %[[X]]
// CHECK-NEXT:      %[[D:.*]] = mt.dropout %[[S]] "s"
// CHECK-NEXT:      mt.yield %[[D]], %[[D]]
// CHECK:         mt.reduce sum, %[[H]]#1 over [1, 2]
// UNROLLED-LABEL: mt.model @looped
// UNROLLED-COUNT-5: mt.matmul
// UNROLLED-NOT:     mt.matmul

// -----

// A loop in a loop, and a loop in an update.
module attributes {graph.version = 1 : i32} {
  mt.model @nested {
    %x = mt.input "x" : tensor<?x4x3x6xf32>
    %w = mt.variable "w" init(ones) : tensor<6xf32>
    %i = mt.variable "iteration" init(zeros) frozen role(iteration) : tensor<i32>
    %0 = graph.logical %w : tensor<6xf32> -> !graph.value<[6], f32>
    %ys = mt.scan over(%row = %x : tensor<?x4x3x6xf32>) {
      %zs = mt.scan over(%part = %row : tensor<?x3x6xf32>) {
        %1 = graph.logical %part : tensor<?x6xf32> -> !graph.value<[b, 6], f32>
        %2 = graph.elementwise "exp"(%0) : (!graph.value<[6], f32>) -> !graph.value<[6], f32>
        %3 = graph.elementwise "mul"(%1, %2) : (!graph.value<[b, 6], f32>, !graph.value<[6], f32>) -> !graph.value<[b, 6], f32>
        %4 = graph.tensor %3 : !graph.value<[b, 6], f32> -> tensor<?x6xf32>
        mt.yield %4 : tensor<?x6xf32>
      }
      mt.yield %zs : tensor<?x3x6xf32>
    }
    %l = mt.reduce sum, %ys over [1, 2, 3] : tensor<?x4x3x6xf32>
    mt.loss "loss", %l : tensor<?xf32>
    mt.update {
      %g = mt.gradient "w" : tensor<6xf32>
      %after = mt.scan from(%before = %w : tensor<6xf32>) steps = 3 {
        %5 = graph.logical %before : tensor<6xf32> -> !graph.value<[6], f32>
        %6 = graph.logical %g : tensor<6xf32> -> !graph.value<[6], f32>
        %7 = graph.elementwise "sub"(%5, %6) : (!graph.value<[6], f32>, !graph.value<[6], f32>) -> !graph.value<[6], f32>
        %8 = graph.tensor %7 : !graph.value<[6], f32> -> tensor<6xf32>
        mt.yield %8 : tensor<6xf32>
      }
      mt.assign "w", %after : tensor<6xf32>
    }
  }
}
// CHECK-LABEL: mt.model @nested
// CHECK:         %[[E:.*]] = mt.exp
// CHECK-NEXT:    mt.scan
// CHECK-NEXT:      mt.scan
// CHECK-NEXT:        mt.mul %{{.*}}, %[[E]]
// CHECK:         mt.update {
// CHECK:           mt.scan from(%[[W:.*]] = %{{.*}} : tensor<6xf32>) steps = 3 {
// CHECK-NEXT:        mt.sub %[[W]]
// UNROLLED-LABEL: mt.model @nested
// UNROLLED-NOT:     mt.scan
