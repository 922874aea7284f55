// A forward function: arguments whose first axis is of any size are inputs, the others variables. Calls are followed,
// and shapes that are computed from the batch are known.
// RUN: mtc import %s -o - --loss mse --optimizer sgd | FileCheck %s
// CHECK: mt.model @net
// CHECK: mt.variable "params/w" init(glorot_uniform) : tensor<4x3xf32>
// CHECK: mt.variable "params/b" init(zeros) : tensor<3xf32>
// CHECK: mt.input "x" : tensor<?x4xf32>
// CHECK: mt.matmul {{.*}} : tensor<?x4xf32>, tensor<4x3xf32>
// CHECK: mt.add {{.*}} : tensor<?x3xf32>, tensor<3xf32>
// CHECK: mt.maximum
// CHECK-NOT: mt.broadcast
// CHECK: mt.reduce max
// CHECK: mt.output "output"
"builtin.module"() <{sym_name = "net"}> ({
  "func.func"() <{function_type = (tensor<4x3xf32>, tensor<3xf32>, tensor<?x4xf32>) -> tensor<?x3xf32>, sym_name = "main", sym_visibility = "public"}> ({
  ^bb0(%w: tensor<4x3xf32> loc("params['w']"), %b: tensor<3xf32> loc("params['b']"), %x: tensor<?x4xf32> loc("x")):
    %size = "stablehlo.get_dimension_size"(%x) <{dimension = 0 : i64}> : (tensor<?x4xf32>) -> tensor<i32>
    %one = "stablehlo.constant"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
    %holds = "stablehlo.compare"(%size, %one) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction GE>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
    "stablehlo.custom_call"(%holds, %size) <{call_target_name = "shape_assertion", has_side_effect = true}> : (tensor<i1>, tensor<i32>) -> ()
    %p = "stablehlo.dot_general"(%x, %w) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> : (tensor<?x4xf32>, tensor<4x3xf32>) -> tensor<?x3xf32>
    %three = "stablehlo.constant"() <{value = dense<3> : tensor<1xi32>}> : () -> tensor<1xi32>
    %line = "stablehlo.reshape"(%size) : (tensor<i32>) -> tensor<1xi32>
    %shape = "stablehlo.concatenate"(%line, %three) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %wide = "stablehlo.dynamic_broadcast_in_dim"(%b, %shape) <{broadcast_dimensions = array<i64: 1>}> : (tensor<3xf32>, tensor<2xi32>) -> tensor<?x3xf32>
    %s = "stablehlo.add"(%p, %wide) : (tensor<?x3xf32>, tensor<?x3xf32>) -> tensor<?x3xf32>
    %r = "func.call"(%size, %s) <{callee = @relu}> : (tensor<i32>, tensor<?x3xf32>) -> tensor<?x3xf32>
    %low = "stablehlo.constant"() <{value = dense<0xFF800000> : tensor<f32>}> : () -> tensor<f32>
    %m = "stablehlo.reduce"(%r, %low) <{dimensions = array<i64: 1>}> ({
    ^bb0(%a: tensor<f32>, %c: tensor<f32>):
      %most = "stablehlo.maximum"(%a, %c) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%most) : (tensor<f32>) -> ()
    }) : (tensor<?x3xf32>, tensor<f32>) -> tensor<?xf32>
    %column = "stablehlo.dynamic_broadcast_in_dim"(%m, %shape) <{broadcast_dimensions = array<i64: 0>}> : (tensor<?xf32>, tensor<2xi32>) -> tensor<?x3xf32>
    %y = "stablehlo.subtract"(%r, %column) : (tensor<?x3xf32>, tensor<?x3xf32>) -> tensor<?x3xf32>
    "func.return"(%y) : (tensor<?x3xf32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<i32>, tensor<?x3xf32>) -> tensor<?x3xf32>, sym_name = "relu", sym_visibility = "private"}> ({
  ^bb0(%size: tensor<i32>, %x: tensor<?x3xf32>):
    %zero = "stablehlo.constant"() <{value = dense<0.0> : tensor<f32>}> : () -> tensor<f32>
    %three = "stablehlo.constant"() <{value = dense<3> : tensor<1xi32>}> : () -> tensor<1xi32>
    %line = "stablehlo.reshape"(%size) : (tensor<i32>) -> tensor<1xi32>
    %shape = "stablehlo.concatenate"(%line, %three) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %wide = "stablehlo.dynamic_broadcast_in_dim"(%zero, %shape) <{broadcast_dimensions = array<i64>}> : (tensor<f32>, tensor<2xi32>) -> tensor<?x3xf32>
    %y = "stablehlo.maximum"(%x, %wide) : (tensor<?x3xf32>, tensor<?x3xf32>) -> tensor<?x3xf32>
    "func.return"(%y) : (tensor<?x3xf32>) -> ()
  }) : () -> ()
}) : () -> ()
