// SPDX-License-Identifier: Apache-2.0
// RUN: mt-opt %s --mt-recognize-attention --split-input-file | FileCheck %s

// As PyTorch's exporter writes it: the root of the scale on both sides, and a causal mask that is added.

// CHECK-LABEL: mt.model @exported
// CHECK:       %[[Q:.*]] = mt.input "q"
// CHECK:       %[[K:.*]] = mt.input "k"
// CHECK:       %[[V:.*]] = mt.input "v"
// CHECK:       %[[Y:.*]] = mt.attention %[[Q]], %[[K]], %[[V]] heads = 2 causal scale = 2.500000e-01 : tensor<?x3x8xf32>
// CHECK-NEXT:  mt.output "y", %[[Y]]
mt.model @exported {
  %q = mt.input "q" : tensor<?x3x8xf32>
  %k = mt.input "k" : tensor<?x3x8xf32>
  %v = mt.input "v" : tensor<?x3x8xf32>
  %half = mt.constant dense<0.5> : tensor<f32>
  %0 = mt.reshape %q : tensor<?x3x8xf32> to tensor<?x3x2x4xf32>
  %1 = mt.mul %0, %half : tensor<?x3x2x4xf32>, tensor<f32>
  %2 = mt.transpose %1 by [0, 2, 1, 3] : tensor<?x3x2x4xf32>
  %3 = mt.reshape %k : tensor<?x3x8xf32> to tensor<?x3x2x4xf32>
  %4 = mt.mul %3, %half : tensor<?x3x2x4xf32>, tensor<f32>
  %5 = mt.transpose %4 by [0, 2, 1, 3] : tensor<?x3x2x4xf32>
  %6 = mt.matmul %2, %5 transpose_b : tensor<?x2x3x4xf32>, tensor<?x2x3x4xf32>
  %mask = mt.constant dense<[[0.0, 0xFF800000, 0xFF800000], [0.0, 0.0, 0xFF800000], [0.0, 0.0, 0.0]]> : tensor<3x3xf32>
  %7 = mt.add %6, %mask : tensor<?x2x3x3xf32>, tensor<3x3xf32>
  %8 = mt.softmax %7 : tensor<?x2x3x3xf32>
  %9 = mt.reshape %v : tensor<?x3x8xf32> to tensor<?x3x2x4xf32>
  %10 = mt.transpose %9 by [0, 2, 1, 3] : tensor<?x3x2x4xf32>
  %11 = mt.matmul %8, %10 : tensor<?x2x3x3xf32>, tensor<?x2x3x4xf32>
  %12 = mt.transpose %11 by [0, 2, 1, 3] : tensor<?x2x3x4xf32>
  %13 = mt.reshape %12 : tensor<?x3x2x4xf32> to tensor<?x3x8xf32>
  mt.output "y", %13 : tensor<?x3x8xf32>
  %l = mt.reduce sum, %q over [1, 2] : tensor<?x3x8xf32>
  mt.loss "loss", %l : tensor<?xf32>
  mt.sgd
}

// -----
// As JAX lowers it: values times shares, so that the result has its places last; a mask that hides the second key from
// all but the second query; a dropout of the shares.

// CHECK-LABEL: mt.model @lowered
// CHECK:       %[[MASK:.*]] = mt.constant dense<{{\[\[\[\[}}true, false, true], [true, true, true], [true, false, true]]]]>
// CHECK:       %[[Y:.*]] = mt.attention %{{.*}}, %{{.*}}, %{{.*}} mask %[[MASK]] heads = 2 scale = 5.000000e-01 dropout "s" rate = 2.500000e-01
// CHECK-NEXT:  mt.output "y", %[[Y]]
mt.model @lowered {
  %q = mt.input "q" : tensor<?x3x8xf32>
  %two = mt.constant dense<2.0> : tensor<f32>
  %0 = mt.reshape %q : tensor<?x3x8xf32> to tensor<?x3x2x4xf32>
  %1 = mt.transpose %0 by [0, 2, 1, 3] : tensor<?x3x2x4xf32>
  %2 = mt.matmul %1, %1 transpose_b : tensor<?x2x3x4xf32>, tensor<?x2x3x4xf32>
  %3 = mt.div %2, %two : tensor<?x2x3x3xf32>, tensor<f32>
  %seen = mt.constant dense<[[true, false, true], [true, true, true], [true, false, true]]> : tensor<3x3xi1>
  %low = mt.constant dense<-1.0e+30> : tensor<f32>
  %4 = mt.select %seen, %3, %low : tensor<3x3xi1>, tensor<?x2x3x3xf32>, tensor<f32>
  %5 = mt.softmax %4 : tensor<?x2x3x3xf32>
  %6 = mt.dropout %5 "s" rate = 0.25 : tensor<?x2x3x3xf32>
  %7 = mt.transpose %0 by [0, 2, 3, 1] : tensor<?x3x2x4xf32>
  %8 = mt.matmul %7, %6 transpose_b : tensor<?x2x4x3xf32>, tensor<?x2x3x3xf32>
  %9 = mt.reshape %8 : tensor<?x2x4x3xf32> to tensor<?x8x3xf32>
  %10 = mt.transpose %9 by [0, 2, 1] : tensor<?x8x3xf32>
  mt.output "y", %10 : tensor<?x3x8xf32>
  %l = mt.reduce sum, %q over [1, 2] : tensor<?x3x8xf32>
  mt.loss "loss", %l : tensor<?xf32>
  mt.sgd
}

// -----
// One head, without an axis for it.

// CHECK-LABEL: mt.model @single
// CHECK:       mt.attention %{{.*}}, %{{.*}}, %{{.*}} scale = 1.000000e+00 : tensor<?x3x8xf32>, tensor<?x5x8xf32>, tensor<?x5x6xf32>
mt.model @single {
  %q = mt.input "q" : tensor<?x3x8xf32>
  %k = mt.input "k" : tensor<?x5x8xf32>
  %v = mt.input "v" : tensor<?x5x6xf32>
  %0 = mt.matmul %q, %k transpose_b : tensor<?x3x8xf32>, tensor<?x5x8xf32>
  %1 = mt.softmax %0 : tensor<?x3x5xf32>
  %2 = mt.matmul %1, %v : tensor<?x3x5xf32>, tensor<?x5x6xf32>
  mt.output "y", %2 : tensor<?x3x6xf32>
  %l = mt.reduce sum, %q over [1, 2] : tensor<?x3x8xf32>
  mt.loss "loss", %l : tensor<?xf32>
  mt.sgd
}

// -----
// A bias of positions; a query that sees no key, whose shares are equal in a formula; shares that are an output too; a
// score that is low, but not hidden; a score that a scale after the mask makes so; shares that all samples have.

// CHECK-LABEL: mt.model @others
// CHECK-NOT:   mt.attention
mt.model @others {
  %q = mt.input "q" : tensor<?x2x4xf32>
  %0 = mt.matmul %q, %q transpose_b : tensor<?x2x4xf32>, tensor<?x2x4xf32>
  %bias = mt.constant dense<[[0.0, -1.0], [-1.0, 0.0]]> : tensor<2x2xf32>
  %1 = mt.add %0, %bias : tensor<?x2x2xf32>, tensor<2x2xf32>
  %2 = mt.softmax %1 : tensor<?x2x2xf32>
  %3 = mt.matmul %2, %q : tensor<?x2x2xf32>, tensor<?x2x4xf32>
  mt.output "bias", %3 : tensor<?x2x4xf32>

  %seen = mt.constant dense<[[true, false], [false, false]]> : tensor<2x2xi1>
  %low = mt.constant dense<-1.0e+30> : tensor<f32>
  %4 = mt.select %seen, %0, %low : tensor<2x2xi1>, tensor<?x2x2xf32>, tensor<f32>
  %5 = mt.softmax %4 : tensor<?x2x2xf32>
  %6 = mt.matmul %5, %q : tensor<?x2x2xf32>, tensor<?x2x4xf32>
  mt.output "empty", %6 : tensor<?x2x4xf32>

  %7 = mt.softmax %0 : tensor<?x2x2xf32>
  %8 = mt.matmul %7, %q : tensor<?x2x2xf32>, tensor<?x2x4xf32>
  mt.output "result", %8 : tensor<?x2x4xf32>
  mt.output "shares", %7 : tensor<?x2x2xf32>

  %causal = mt.constant dense<[[true, false], [true, true]]> : tensor<2x2xi1>
  %minus = mt.constant dense<-100.0> : tensor<f32>
  %9 = mt.select %causal, %0, %minus : tensor<2x2xi1>, tensor<?x2x2xf32>, tensor<f32>
  %10 = mt.softmax %9 : tensor<?x2x2xf32>
  %11 = mt.matmul %10, %q : tensor<?x2x2xf32>, tensor<?x2x4xf32>
  mt.output "low", %11 : tensor<?x2x4xf32>

  %lower = mt.constant dense<-1.0e+5> : tensor<f32>
  %share = mt.constant dense<0.01> : tensor<f32>
  %12 = mt.select %causal, %0, %lower : tensor<2x2xi1>, tensor<?x2x2xf32>, tensor<f32>
  %13 = mt.mul %12, %share : tensor<?x2x2xf32>, tensor<f32>
  %14 = mt.softmax %13 : tensor<?x2x2xf32>
  %15 = mt.matmul %14, %q : tensor<?x2x2xf32>, tensor<?x2x4xf32>
  mt.output "scaled", %15 : tensor<?x2x4xf32>

  %table = mt.variable "table" init(ones) : tensor<3x4xf32>
  %16 = mt.softmax %table : tensor<3x4xf32>
  %17 = mt.matmul %q, %16 transpose_b : tensor<?x2x4xf32>, tensor<3x4xf32>
  mt.output "table", %17 : tensor<?x2x3xf32>
  %l = mt.reduce sum, %q over [1, 2] : tensor<?x2x4xf32>
  mt.loss "loss", %l : tensor<?xf32>
  mt.sgd
}
