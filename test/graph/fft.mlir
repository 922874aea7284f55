// SPDX-License-Identifier: Apache-2.0
// RUN: mt-opt %s --graph-layout | FileCheck %s --implicit-check-not=graph.

// A short length is one product, of real numbers with the cosines and the sines. The inverse has the other half of the
// spectrum too, of which the last product keeps the real part.
module attributes {graph.version = 1 : i32} {
  mt.model @short {
    %x = mt.input "x" : tensor<?x8xf32>
    %1 = graph.logical %x : tensor<?x8xf32> -> !graph.value<[b, 8], f32>
    // CHECK-LABEL: mt.model @short
    // CHECK: %[[M:.*]] = mt.constant {{.*}} : tensor<8x16xf32>
    // CHECK: mt.matmul %{{.*}}, %[[M]] : tensor<?x8xf32>, tensor<8x16xf32>
    // CHECK: mt.slice
    %2 = graph.fft real %1 lengths [8] : (!graph.value<[b, 8], f32>) -> !graph.value<[b, 5, 2], f32>
    // CHECK: mt.slice
    // CHECK: mt.reverse
    // CHECK: mt.concat
    // CHECK: mt.matmul %{{.*}} : tensor<?x16xf32>, tensor<16x8xf32>
    %3 = graph.fft inverse real %2 lengths [8] : (!graph.value<[b, 5, 2], f32>) -> !graph.value<[b, 8], f32>
    %4 = graph.tensor %3 : !graph.value<[b, 8], f32> -> tensor<?x8xf32>
    mt.output "y", %4 : tensor<?x8xf32>
    mt.loss "loss", %4 : tensor<?x8xf32>
    mt.sgd <{learning_rate = 0.1 : f32}>
  }
}
