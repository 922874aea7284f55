// SPDX-License-Identifier: Apache-2.0
// RUN: mt-opt %s --mt-recognize-normalization --split-input-file | FileCheck %s

// As JAX writes it; then with the scale multiplied into the inverse deviation first, as Flax does; then over two axes,
// with a square root and a mean as a product.

// CHECK-LABEL: mt.model @product
// CHECK-NEXT:  %[[X:.*]] = mt.input "x"
// CHECK-NEXT:  %[[SCALE:.*]] = mt.variable "scale"
// CHECK-NEXT:  %[[N:.*]] = mt.normalize %[[X]] over [2] : tensor<?x4x8xf32>
// CHECK-NEXT:  %[[Y:.*]] = mt.mul %[[N]], %[[SCALE]]
// CHECK-NEXT:  mt.output "y", %[[Y]]
mt.model @product {
  %x = mt.input "x" : tensor<?x4x8xf32>
  %scale = mt.variable "scale" init(ones) : tensor<8xf32>
  %n = mt.constant dense<8.0> : tensor<f32>
  %epsilon = mt.constant dense<1.0e-3> : tensor<f32>
  %0 = mt.reduce sum, %x over [2] : tensor<?x4x8xf32>
  %1 = mt.div %0, %n : tensor<?x4xf32>, tensor<f32>
  %2 = mt.reshape %1 : tensor<?x4xf32> to tensor<?x4x1xf32>
  %3 = mt.sub %x, %2 : tensor<?x4x8xf32>, tensor<?x4x1xf32>
  %4 = mt.mul %3, %3 : tensor<?x4x8xf32>, tensor<?x4x8xf32>
  %5 = mt.reduce sum, %4 over [2] : tensor<?x4x8xf32>
  %6 = mt.div %5, %n : tensor<?x4xf32>, tensor<f32>
  %again = mt.reshape %1 : tensor<?x4xf32> to tensor<?x4x1xf32>
  %7 = mt.sub %x, %again : tensor<?x4x8xf32>, tensor<?x4x1xf32>
  %8 = mt.add %6, %epsilon : tensor<?x4xf32>, tensor<f32>
  %9 = mt.rsqrt %8 : tensor<?x4xf32>
  %10 = mt.reshape %9 : tensor<?x4xf32> to tensor<?x4x1xf32>
  %11 = mt.mul %7, %10 : tensor<?x4x8xf32>, tensor<?x4x1xf32>
  %12 = mt.mul %11, %scale : tensor<?x4x8xf32>, tensor<8xf32>
  mt.output "y", %12 : tensor<?x4x8xf32>
  %l = mt.reduce sum, %x over [1, 2] : tensor<?x4x8xf32>
  mt.loss "loss", %l : tensor<?xf32>
  mt.sgd
}

// -----

// CHECK-LABEL: mt.model @scaled
// CHECK:       %[[N:.*]] = mt.normalize %{{.*}} over [1] epsilon = {{1.0*e-0?5|9.99999974E-6}}
// CHECK-NEXT:  mt.mul %[[N]], %{{.*}} : tensor<?x8xf32>, tensor<8xf32>
// CHECK-NOT:   rsqrt
mt.model @scaled {
  %x = mt.input "x" : tensor<?x8xf32>
  %scale = mt.variable "scale" init(ones) : tensor<8xf32>
  %n = mt.constant dense<8.0> : tensor<f32>
  %epsilon = mt.constant dense<1.0e-5> : tensor<f32>
  %0 = mt.reduce sum, %x over [1] : tensor<?x8xf32>
  %1 = mt.div %0, %n : tensor<?xf32>, tensor<f32>
  %2 = mt.reshape %1 : tensor<?xf32> to tensor<?x1xf32>
  %3 = mt.sub %x, %2 : tensor<?x8xf32>, tensor<?x1xf32>
  %4 = mt.square %3 : tensor<?x8xf32>
  %5 = mt.reduce sum, %4 over [1] : tensor<?x8xf32>
  %6 = mt.div %5, %n : tensor<?xf32>, tensor<f32>
  %7 = mt.add %6, %epsilon : tensor<?xf32>, tensor<f32>
  %8 = mt.rsqrt %7 : tensor<?xf32>
  %9 = mt.reshape %8 : tensor<?xf32> to tensor<?x1xf32>
  %10 = mt.mul %9, %scale : tensor<?x1xf32>, tensor<8xf32>
  %11 = mt.mul %3, %10 : tensor<?x8xf32>, tensor<?x8xf32>
  mt.output "y", %11 : tensor<?x8xf32>
  %l = mt.reduce sum, %x over [1] : tensor<?x8xf32>
  mt.loss "loss", %l : tensor<?xf32>
  mt.sgd
}

// -----

// CHECK-LABEL: mt.model @quotient
// CHECK:       mt.normalize %{{.*}} over [1, 2] epsilon =
// CHECK-NOT:   sqrt
mt.model @quotient {
  %x = mt.input "x" : tensor<?x2x8xf32>
  %share = mt.constant dense<0.0625> : tensor<f32>
  %epsilon = mt.constant dense<1.0e-6> : tensor<f32>
  %0 = mt.reduce sum, %x over [1, 2] : tensor<?x2x8xf32>
  %1 = mt.mul %0, %share : tensor<?xf32>, tensor<f32>
  %2 = mt.reshape %1 : tensor<?xf32> to tensor<?x1x1xf32>
  %3 = mt.sub %x, %2 : tensor<?x2x8xf32>, tensor<?x1x1xf32>
  %4 = mt.square %3 : tensor<?x2x8xf32>
  %5 = mt.reduce sum, %4 over [1, 2] : tensor<?x2x8xf32>
  %6 = mt.mul %share, %5 : tensor<f32>, tensor<?xf32>
  %7 = mt.reshape %6 : tensor<?xf32> to tensor<?x1x1xf32>
  %8 = mt.add %epsilon, %7 : tensor<f32>, tensor<?x1x1xf32>
  %9 = mt.sqrt %8 : tensor<?x1x1xf32>
  %10 = mt.div %3, %9 : tensor<?x2x8xf32>, tensor<?x1x1xf32>
  mt.output "y", %10 : tensor<?x2x8xf32>
  %l = mt.reduce sum, %x over [1, 2] : tensor<?x2x8xf32>
  mt.loss "loss", %l : tensor<?xf32>
  mt.sgd
}

// -----
// A sum in place of the mean of the squares (n - 1 elements, say), and a mean over another axis.

// CHECK-LABEL: mt.model @others
// CHECK-NOT:   mt.normalize
mt.model @others {
  %x = mt.input "x" : tensor<?x8x8xf32>
  %n = mt.constant dense<8.0> : tensor<f32>
  %less = mt.constant dense<7.0> : tensor<f32>
  %epsilon = mt.constant dense<1.0e-5> : tensor<f32>
  %0 = mt.reduce sum, %x over [2] : tensor<?x8x8xf32>
  %1 = mt.div %0, %n : tensor<?x8xf32>, tensor<f32>
  %2 = mt.reshape %1 : tensor<?x8xf32> to tensor<?x8x1xf32>
  %3 = mt.sub %x, %2 : tensor<?x8x8xf32>, tensor<?x8x1xf32>
  %4 = mt.square %3 : tensor<?x8x8xf32>
  %5 = mt.reduce sum, %4 over [2] : tensor<?x8x8xf32>
  %6 = mt.div %5, %less : tensor<?x8xf32>, tensor<f32>
  %7 = mt.add %6, %epsilon : tensor<?x8xf32>, tensor<f32>
  %8 = mt.rsqrt %7 : tensor<?x8xf32>
  %9 = mt.reshape %8 : tensor<?x8xf32> to tensor<?x8x1xf32>
  %10 = mt.mul %3, %9 : tensor<?x8x8xf32>, tensor<?x8x1xf32>
  mt.output "unbiased", %10 : tensor<?x8x8xf32>
  %11 = mt.reduce sum, %4 over [1] : tensor<?x8x8xf32>
  %12 = mt.div %11, %n : tensor<?x8xf32>, tensor<f32>
  %13 = mt.add %12, %epsilon : tensor<?x8xf32>, tensor<f32>
  %14 = mt.rsqrt %13 : tensor<?x8xf32>
  %15 = mt.reshape %14 : tensor<?x8xf32> to tensor<?x8x1xf32>
  %16 = mt.mul %3, %15 : tensor<?x8x8xf32>, tensor<?x8x1xf32>
  mt.output "columns", %16 : tensor<?x8x8xf32>
  %l = mt.reduce sum, %x over [1, 2] : tensor<?x8x8xf32>
  mt.loss "loss", %l : tensor<?xf32>
  mt.sgd
}
