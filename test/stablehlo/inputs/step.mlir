// SPDX-License-Identifier: Apache-2.0
// A step as TensorFlow writes it: all shapes are numbers, the batch is 8 as is the number of features, and results
// replace arguments. A constant serves values with the batch and without. A result is an array.
module @step {
  func.func private @squared(%a: tensor<8x3xf32>) -> tensor<8x3xf32> {
    %0 = stablehlo.multiply %a, %a : tensor<8x3xf32>
    return %0 : tensor<8x3xf32>
  }
  func.func @main(%x: tensor<8x8xf32>, %t: tensor<8xui8>, %w: tensor<8x3xf32>, %n: tensor<i64>, %r: tensor<f32>) -> (tensor<f32>, tensor<8x3xf32>, tensor<i64>, tensor<3xf32>) {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %zeros = stablehlo.constant dense<0.0> : tensor<8x3xf32>
    %iota = stablehlo.iota dim = 1 : tensor<8x3xi32>
    %ids = stablehlo.convert %t : (tensor<8xui8>) -> tensor<8xi32>
    %wide = stablehlo.broadcast_in_dim %ids, dims = [0] : (tensor<8xi32>) -> tensor<8x3xi32>
    %equal = stablehlo.compare EQ, %wide, %iota, SIGNED : (tensor<8x3xi32>, tensor<8x3xi32>) -> tensor<8x3xi1>
    %hot = stablehlo.convert %equal : (tensor<8x3xi1>) -> tensor<8x3xf32>
    %y = stablehlo.dot %x, %w, precision = [DEFAULT, DEFAULT] : (tensor<8x8xf32>, tensor<8x3xf32>) -> tensor<8x3xf32>
    %h = stablehlo.maximum %y, %zeros : tensor<8x3xf32>
    %d = stablehlo.subtract %h, %hot : tensor<8x3xf32>
    %q = func.call @squared(%d) : (tensor<8x3xf32>) -> tensor<8x3xf32>
    %sum = stablehlo.reduce(%q init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<8x3xf32>, tensor<f32>) -> tensor<f32>
    %eight = stablehlo.constant dense<8.0> : tensor<f32>
    %loss = stablehlo.divide %sum, %eight : tensor<f32>
    %counts = stablehlo.reduce(%hot init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<8x3xf32>, tensor<f32>) -> tensor<3xf32>
    %positive = stablehlo.compare GT, %h, %zeros, FLOAT : (tensor<8x3xf32>, tensor<8x3xf32>) -> tensor<8x3xi1>
    %e = stablehlo.select %positive, %d, %zeros : tensor<8x3xi1>, tensor<8x3xf32>
    %g = stablehlo.dot_general %x, %e, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<8x8xf32>, tensor<8x3xf32>) -> tensor<8x3xf32>
    %rate = stablehlo.broadcast_in_dim %r, dims = [] : (tensor<f32>) -> tensor<8x3xf32>
    %step = stablehlo.multiply %g, %rate : tensor<8x3xf32>
    %clipped = stablehlo.add %step, %zeros : tensor<8x3xf32>
    %new = stablehlo.subtract %w, %clipped : tensor<8x3xf32>
    %one = stablehlo.constant dense<1> : tensor<i64>
    %next = stablehlo.add %n, %one : tensor<i64>
    return %loss, %new, %next, %counts : tensor<f32>, tensor<8x3xf32>, tensor<i64>, tensor<3xf32>
  }
}
