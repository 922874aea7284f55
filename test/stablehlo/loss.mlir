// A loss function: its result is a mean over the samples, times a number.
// RUN: mtc import %s -o - --optimizer sgd | FileCheck %s
// CHECK: mt.input "arg1"
// CHECK: mt.square
// CHECK: mt.reduce sum, {{.*}} over [1] : tensor<?x3xf32>
// CHECK: dense<0.333333343>
// CHECK: mt.loss "loss", {{.*}} by samples : tensor<?xf32>
// CHECK: mt.sgd
// RUN: not mtc import %s -o - --optimizer sgd --loss mse 2>&1 | FileCheck %s --check-prefix=BOTH
// BOTH: loss: error: expected no --loss, --metrics and --sample-weights for a function that computes its loss, found one
// RUN: not mtc import %s -o - 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: loss: error: expected an optimizer, found none: give one, as --optimizer adam
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4x3xf32>, tensor<?x4xf32>) -> tensor<f32>, sym_name = "main", sym_visibility = "public"}> ({
  ^bb0(%w: tensor<4x3xf32>, %x: tensor<?x4xf32>):
    %p = "stablehlo.dot_general"(%x, %w) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> : (tensor<?x4xf32>, tensor<4x3xf32>) -> tensor<?x3xf32>
    %two = "stablehlo.constant"() <{value = dense<2.0> : tensor<f32>}> : () -> tensor<f32>
    %s = "stablehlo.power"(%p, %two) : (tensor<?x3xf32>, tensor<f32>) -> tensor<?x3xf32>
    %zero = "stablehlo.constant"() <{value = dense<0.0> : tensor<f32>}> : () -> tensor<f32>
    %sum = "stablehlo.reduce"(%s, %zero) <{dimensions = array<i64: 0, 1>}> ({
    ^bb0(%a: tensor<f32>, %c: tensor<f32>):
      %both = "stablehlo.add"(%a, %c) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%both) : (tensor<f32>) -> ()
    }) : (tensor<?x3xf32>, tensor<f32>) -> tensor<f32>
    %size = "stablehlo.get_dimension_size"(%x) <{dimension = 0 : i64}> : (tensor<?x4xf32>) -> tensor<i32>
    %three = "stablehlo.constant"() <{value = dense<3> : tensor<i32>}> : () -> tensor<i32>
    %count = "stablehlo.multiply"(%size, %three) : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %divisor = "stablehlo.convert"(%count) : (tensor<i32>) -> tensor<f32>
    %mean = "stablehlo.divide"(%sum, %divisor) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    "func.return"(%mean) : (tensor<f32>) -> ()
  }) : () -> ()
}) : () -> ()
