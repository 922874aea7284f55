// SPDX-License-Identifier: Apache-2.0
// A number that an op is written with is printed so that it parses again: with the type f64, and without that of f32.
// RUN: mt-opt %s | mt-opt | FileCheck %s

// CHECK-LABEL: @doubles
func.func @doubles(%x: tensor<?x6xf64>, %s: tensor<6xf64>, %i: tensor<?x2x2x4xf64>, %g: !graph.value<[b, 6], f64>) {
  // CHECK: mt.leaky_relu %{{.*}} negative_slope = 0.14285714285714285 : f64 : tensor<?x6xf64>
  %0 = mt.leaky_relu %x negative_slope = 0.14285714285714285 : f64 : tensor<?x6xf64>
  // CHECK: mt.normalize %{{.*}} over [1] epsilon = 1.23456789012345E-5 : f64 : tensor<?x6xf64>
  %1 = mt.normalize %x over [1] epsilon = 1.23456789012345e-5 : f64 : tensor<?x6xf64>
  // CHECK: mt.batch_normalization {{.*}} momentum = 0.14285714285714285 : f64 epsilon = {{.*}} : f64 : tensor<?x6xf64>
  %2 = mt.batch_normalization %x, %s, %s, %s, %s momentum = 0.14285714285714285 : f64 epsilon = 1.23456789012345e-5 : f64 : tensor<?x6xf64>, tensor<6xf64>, tensor<6xf64>, tensor<6xf64>, tensor<6xf64>
  // CHECK: mt.dropout {{.*}} rate = 0.14285714285714285 : f64 : tensor<?x6xf64>
  %3 = mt.dropout %x "drop" rate = 0.14285714285714285 : f64 : tensor<?x6xf64>
  // CHECK: mt.gaussian_noise {{.*}} stddev = 0.14285714285714285 : f64 : tensor<?x6xf64>
  %4 = mt.gaussian_noise %x "noise" stddev = 0.14285714285714285 : f64 : tensor<?x6xf64>
  // CHECK: mt.huber {{.*}} delta = 0.14285714285714285 : f64 : tensor<?x6xf64>, tensor<?x6xf64>
  %5 = mt.huber %x, %x delta = 0.14285714285714285 : f64 : tensor<?x6xf64>, tensor<?x6xf64>
  // CHECK: mt.binary_crossentropy {{.*}} label_smoothing = 0.14285714285714285 : f64 : tensor<?x6xf64>, tensor<?x6xf64>
  %6 = mt.binary_crossentropy %x, %x label_smoothing = 0.14285714285714285 : f64 : tensor<?x6xf64>, tensor<?x6xf64>
  // CHECK: mt.attention {{.*}} scale = 0.14285714285714285 : f64 dropout "a" rate = 1.000000e-01 : f64 : tensor<?x4x4xf64>
  %r = mt.reshape %i : tensor<?x2x2x4xf64> to tensor<?x4x4xf64>
  %7 = mt.attention %r, %r, %r scale = 0.14285714285714285 : f64 dropout "a" rate = 0.1 : f64 : tensor<?x4x4xf64>, tensor<?x4x4xf64>, tensor<?x4x4xf64>
  // CHECK: mt.pad {{.*}} value = 0.14285714285714285 : f64 : tensor<?x6xf64>
  %8 = mt.pad %x low = [1] high = [0] value = 0.14285714285714285 : f64 : tensor<?x6xf64>
  // CHECK: graph.normalize {{.*}} epsilon = 1.23456789012345E-5 : f64 : (
  %9 = graph.normalize %g over [1] epsilon = 1.23456789012345e-5 : f64 : (!graph.value<[b, 6], f64>) -> !graph.value<[b, 6], f64>
  // CHECK: graph.pad {{.*}} value = 0.14285714285714285 : f64 low
  %10 = graph.pad %g value = 0.14285714285714285 : f64 low [0, 1] high [0, 0] : (!graph.value<[b, 6], f64>) -> !graph.value<[b, 7], f64>
  return
}

// CHECK-LABEL: @singles
func.func @singles(%x: tensor<?x6xf32>) {
  // CHECK: mt.leaky_relu %{{.*}} negative_slope = 1.000000e-01 : tensor<?x6xf32>
  %0 = mt.leaky_relu %x negative_slope = 0.1 : tensor<?x6xf32>
  // CHECK: mt.elu %{{.*}} alpha = 5.000000e-01 : tensor<?x6xf32>
  %1 = mt.elu %x alpha = 0.5 : f32 : tensor<?x6xf32>
  // CHECK: mt.leaky_relu %{{.*}} negative_slope = 0x7F800000 : tensor<?x6xf32>
  %2 = mt.leaky_relu %x negative_slope = 0x7F800000 : tensor<?x6xf32>
  return
}

// CHECK-LABEL: @model
// CHECK: mt.variable "w" init(constant = 0.14285714285714285 : f64) : tensor<6xf64>
// CHECK: mt.regularizer %{{.*}} l1 = 0.14285714285714285 : f64 l2 = 0.2857142857142857 : f64 : tensor<6xf64>
// CHECK: mt.loss "loss", %{{.*}} scale = 0.14285714285714285 : f64 : tensor<?x6xf64>
mt.model @model {
  %x = mt.input "x" : tensor<?x6xf64>
  %w = mt.variable "w" init(constant = 0.14285714285714285 : f64) : tensor<6xf64>
  mt.regularizer %w l1 = 0.14285714285714285 : f64 l2 = 0.2857142857142857 : f64 : tensor<6xf64>
  %y = mt.mul %x, %w : tensor<?x6xf64>, tensor<6xf64>
  mt.loss "loss", %y by elements scale = 0.14285714285714285 : f64 : tensor<?x6xf64>
  mt.sgd <{learning_rate = 0.1 : f64}>
}
