// Batch normalization as XLA has it, with its gradient: the formulas of mt.batch_normalization, with sums over the
// batch. The sums of windows of numbers in the file are numbers.
// RUN: mtc import %s -o - --loss mse --optimizer sgd | FileCheck %s
// CHECK: mt.model @net
// CHECK: %[[S:.*]] = mt.variable "params/s"
// CHECK: %[[O:.*]] = mt.variable "params/o"
// CHECK: %[[X:.*]] = mt.input "x"
// CHECK: %[[MEAN:.*]] = mt.div %{{.*}}, %{{.*}} : tensor<4xf32>, tensor<f32>
// CHECK: %[[D:.*]] = mt.sub %[[X]], %[[MEAN]] : tensor<?x3x3x4xf32>, tensor<4xf32>
// CHECK: mt.square %[[D]]
// CHECK: %[[FACTOR:.*]] = mt.mul %[[S]], %{{.*}} : tensor<4xf32>, tensor<4xf32>
// CHECK: %[[SCALED:.*]] = mt.mul %[[D]], %[[FACTOR]] : tensor<?x3x3x4xf32>, tensor<4xf32>
// CHECK: %[[Y:.*]] = mt.add %[[SCALED]], %[[O]] : tensor<?x3x3x4xf32>, tensor<4xf32>
// CHECK: mt.reduce sum, %[[Y]] over [1, 2]
// CHECK: %[[P:.*]] = mt.mul %[[Y]], %{{.*}} : tensor<?x3x3x4xf32>, tensor<?x3x3x4xf32>
// CHECK: mt.reduce sum, %[[P]] over [1, 2]
// CHECK: %[[G:.*]] = mt.sub %{{.*}}, %{{.*}} : tensor<?x3x3x4xf32>, tensor<?x3x3x4xf32>
// CHECK: mt.mul %[[G]], %{{.*}} : tensor<?x3x3x4xf32>, tensor<4xf32>
// CHECK: %[[SUMS:.*]] = mt.pool sum,
// CHECK: mt.constant {{.*}}4.000000e+00{{.*}}2.000000e+00{{.*}}2.000000e+00{{.*}}1.000000e+00{{.*}} : tensor<2x2xf32>
// CHECK: mt.div %[[SUMS]], %{{.*}} : tensor<?x2x2x4xf32>, tensor<2x2x1xf32>
"builtin.module"() <{sym_name = "net"}> ({
  "func.func"() <{function_type = (tensor<4xf32>, tensor<4xf32>, tensor<?x3x3x4xf32>) -> (tensor<?x2x2x4xf32>), sym_name = "main", sym_visibility = "public"}> ({
  ^bb0(%s: tensor<4xf32> loc("params['s']"), %o: tensor<4xf32> loc("params['o']"), %x: tensor<?x3x3x4xf32> loc("x")):
    %y, %mean, %variance = "stablehlo.batch_norm_training"(%x, %s, %o) <{epsilon = 1.000000e-03 : f32, feature_index = 3 : i64}> : (tensor<?x3x3x4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<?x3x3x4xf32>, tensor<4xf32>, tensor<4xf32>)
    %dx, %ds, %do = "stablehlo.batch_norm_grad"(%x, %s, %mean, %variance, %y) <{epsilon = 1.000000e-03 : f32, feature_index = 3 : i64}> : (tensor<?x3x3x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<?x3x3x4xf32>) -> (tensor<?x3x3x4xf32>, tensor<4xf32>, tensor<4xf32>)
    %z = "stablehlo.batch_norm_inference"(%dx, %ds, %do, %mean, %variance) <{epsilon = 1.000000e-03 : f32, feature_index = 3 : i64}> : (tensor<?x3x3x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<?x3x3x4xf32>
    %zero = "stablehlo.constant"() <{value = dense<0.0> : tensor<f32>}> : () -> tensor<f32>
    %ones = "stablehlo.constant"() <{value = dense<1.0> : tensor<3x3xf32>}> : () -> tensor<3x3xf32>
    %rim = "stablehlo.pad"(%ones, %zero) <{edge_padding_low = array<i64: 0, 0>, edge_padding_high = array<i64: 1, 0>, interior_padding = array<i64: 0, 0>}> : (tensor<3x3xf32>, tensor<f32>) -> tensor<4x3xf32>
    %many = "stablehlo.reduce_window"(%rim, %zero) <{window_dimensions = array<i64: 2, 2>, window_strides = array<i64: 2, 2>, padding = dense<[[0, 0], [0, 1]]> : tensor<2x2xi64>}> ({
    ^bb0(%a: tensor<f32>, %c: tensor<f32>):
      %both = "stablehlo.add"(%a, %c) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%both) : (tensor<f32>) -> ()
    }) : (tensor<4x3xf32>, tensor<f32>) -> tensor<2x2xf32>
    %sums = "stablehlo.reduce_window"(%z, %zero) <{window_dimensions = array<i64: 1, 2, 2, 1>, window_strides = array<i64: 1, 2, 2, 1>, padding = dense<[[0, 0], [0, 1], [0, 1], [0, 0]]> : tensor<4x2xi64>}> ({
    ^bb0(%a: tensor<f32>, %c: tensor<f32>):
      %both = "stablehlo.add"(%a, %c) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%both) : (tensor<f32>) -> ()
    }) : (tensor<?x3x3x4xf32>, tensor<f32>) -> tensor<?x2x2x4xf32>
    %size = "stablehlo.get_dimension_size"(%x) <{dimension = 0 : i64}> : (tensor<?x3x3x4xf32>) -> tensor<i32>
    %line = "stablehlo.reshape"(%size) : (tensor<i32>) -> tensor<1xi32>
    %rest = "stablehlo.constant"() <{value = dense<[2, 2, 4]> : tensor<3xi32>}> : () -> tensor<3xi32>
    %shape = "stablehlo.concatenate"(%line, %rest) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<3xi32>) -> tensor<4xi32>
    %wide = "stablehlo.dynamic_broadcast_in_dim"(%many, %shape) <{broadcast_dimensions = array<i64: 1, 2>}> : (tensor<2x2xf32>, tensor<4xi32>) -> tensor<?x2x2x4xf32>
    %average = "stablehlo.divide"(%sums, %wide) : (tensor<?x2x2x4xf32>, tensor<?x2x2x4xf32>) -> tensor<?x2x2x4xf32>
    "func.return"(%average) : (tensor<?x2x2x4xf32>) -> ()
  }) : () -> ()
}) : () -> ()
