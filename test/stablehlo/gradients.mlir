// Gradients of convolutions and pools that a framework wrote out: the batch as the feature of both operands, a reversed
// kernel with zeros between the images, select_and_scatter, and sums of windows of what zeros were put between.
// RUN: mtc import %s -o - --loss mse --optimizer sgd | FileCheck %s
// CHECK: mt.model @net
// CHECK: %[[W:.*]] = mt.variable "params/w"
// CHECK: %[[X:.*]] = mt.input "x"
// CHECK: %[[Y:.*]] = mt.conv2d %[[X]], %[[W]] strides = [2, 2]
// CHECK: mt.conv2d_kernel_gradient %[[X]], %[[Y]] strides = [2, 2] : tensor<?x9x9x4xf32>, tensor<?x4x4x6xf32> to tensor<3x3x4x6xf32>
// CHECK: mt.conv2d_input_gradient %[[Y]], %[[W]] strides = [2, 2] : tensor<?x4x4x6xf32>, tensor<3x3x4x6xf32> to tensor<?x9x9x4xf32>
// CHECK: mt.conv2d_input_gradient %[[Y]], %[[W]] strides = [2, 2] : tensor<?x4x4x6xf32>, tensor<3x3x4x6xf32> to tensor<?x9x9x4xf32>
// CHECK: mt.pool_gradient max, %{{.*}} at %[[X]] window = [3, 3] strides = [2, 2]
// CHECK: mt.pool_gradient sum, %{{.*}} window = [2, 2] strides = [2, 2] : tensor<?x4x4x4xf32> to tensor<?x8x8x4xf32>
"builtin.module"() <{sym_name = "net"}> ({
  "func.func"() <{function_type = (tensor<3x3x4x6xf32>, tensor<?x9x9x4xf32>) -> tensor<?x4xf32>, sym_name = "main", sym_visibility = "public"}> ({
  ^bb0(%w: tensor<3x3x4x6xf32> loc("params['w']"), %x: tensor<?x9x9x4xf32> loc("x")):
    %zero = "stablehlo.constant"() <{value = dense<0.0> : tensor<f32>}> : () -> tensor<f32>
    %y = "stablehlo.convolution"(%x, %w) <{dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, window_strides = array<i64: 2, 2>, feature_group_count = 1 : i64, batch_group_count = 1 : i64}> : (tensor<?x9x9x4xf32>, tensor<3x3x4x6xf32>) -> tensor<?x4x4x6xf32>
    %k = "stablehlo.convolution"(%x, %y) <{dimension_numbers = #stablehlo.conv<[f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f]>, rhs_dilation = array<i64: 2, 2>, feature_group_count = 1 : i64, batch_group_count = 1 : i64}> : (tensor<?x9x9x4xf32>, tensor<?x4x4x6xf32>) -> tensor<3x3x4x6xf32>
    %turned = "stablehlo.reverse"(%w) <{dimensions = array<i64: 0, 1>}> : (tensor<3x3x4x6xf32>) -> tensor<3x3x4x6xf32>
    %g = "stablehlo.convolution"(%y, %turned) <{dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, o, i]->[b, 0, 1, f]>, padding = dense<2> : tensor<2x2xi64>, lhs_dilation = array<i64: 2, 2>, feature_group_count = 1 : i64, batch_group_count = 1 : i64}> : (tensor<?x4x4x6xf32>, tensor<3x3x4x6xf32>) -> tensor<?x9x9x4xf32>
    %h = "stablehlo.convolution"(%y, %w) <{dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, o, i]->[b, 0, 1, f]>, padding = dense<2> : tensor<2x2xi64>, lhs_dilation = array<i64: 2, 2>, window_reversal = array<i1: true, true>, feature_group_count = 1 : i64, batch_group_count = 1 : i64}> : (tensor<?x4x4x6xf32>, tensor<3x3x4x6xf32>) -> tensor<?x9x9x4xf32>
    %part = "stablehlo.slice"(%g) <{start_indices = array<i64: 0, 0, 0, 0>, limit_indices = array<i64: 0, 4, 4, 4>, strides = array<i64: 1, 1, 1, 1>}> : (tensor<?x9x9x4xf32>) -> tensor<?x4x4x4xf32>
    %m = "stablehlo.select_and_scatter"(%x, %part, %zero) <{window_dimensions = array<i64: 1, 3, 3, 1>, window_strides = array<i64: 1, 2, 2, 1>}> ({
    ^bb0(%a: tensor<f32>, %c: tensor<f32>):
      %first = "stablehlo.compare"(%a, %c) <{comparison_direction = #stablehlo<comparison_direction GE>}> : (tensor<f32>, tensor<f32>) -> tensor<i1>
      "stablehlo.return"(%first) : (tensor<i1>) -> ()
    }, {
    ^bb0(%a: tensor<f32>, %c: tensor<f32>):
      %both = "stablehlo.add"(%a, %c) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%both) : (tensor<f32>) -> ()
    }) : (tensor<?x9x9x4xf32>, tensor<?x4x4x4xf32>, tensor<f32>) -> tensor<?x9x9x4xf32>
    %wide = "stablehlo.pad"(%part, %zero) <{edge_padding_low = array<i64: 0, 1, 1, 0>, edge_padding_high = array<i64: 0, 1, 1, 0>, interior_padding = array<i64: 0, 1, 1, 0>}> : (tensor<?x4x4x4xf32>, tensor<f32>) -> tensor<?x9x9x4xf32>
    %s = "stablehlo.reduce_window"(%wide, %zero) <{window_dimensions = array<i64: 1, 2, 2, 1>}> ({
    ^bb0(%a: tensor<f32>, %c: tensor<f32>):
      %both = "stablehlo.add"(%a, %c) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%both) : (tensor<f32>) -> ()
    }) : (tensor<?x9x9x4xf32>, tensor<f32>) -> tensor<?x8x8x4xf32>
    %gs = "stablehlo.reduce"(%g, %zero) <{dimensions = array<i64: 1, 2>}> ({
    ^bb0(%a: tensor<f32>, %c: tensor<f32>):
      %both = "stablehlo.add"(%a, %c) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%both) : (tensor<f32>) -> ()
    }) : (tensor<?x9x9x4xf32>, tensor<f32>) -> tensor<?x4xf32>
    %hs = "stablehlo.reduce"(%h, %zero) <{dimensions = array<i64: 1, 2>}> ({
    ^bb0(%a: tensor<f32>, %c: tensor<f32>):
      %both = "stablehlo.add"(%a, %c) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%both) : (tensor<f32>) -> ()
    }) : (tensor<?x9x9x4xf32>, tensor<f32>) -> tensor<?x4xf32>
    %ms = "stablehlo.reduce"(%m, %zero) <{dimensions = array<i64: 1, 2>}> ({
    ^bb0(%a: tensor<f32>, %c: tensor<f32>):
      %both = "stablehlo.add"(%a, %c) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%both) : (tensor<f32>) -> ()
    }) : (tensor<?x9x9x4xf32>, tensor<f32>) -> tensor<?x4xf32>
    %ss = "stablehlo.reduce"(%s, %zero) <{dimensions = array<i64: 1, 2>}> ({
    ^bb0(%a: tensor<f32>, %c: tensor<f32>):
      %both = "stablehlo.add"(%a, %c) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%both) : (tensor<f32>) -> ()
    }) : (tensor<?x8x8x4xf32>, tensor<f32>) -> tensor<?x4xf32>
    %1 = "stablehlo.add"(%gs, %hs) : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
    %2 = "stablehlo.add"(%1, %ms) : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
    %3 = "stablehlo.add"(%2, %ss) : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
    "func.return"(%3) : (tensor<?x4xf32>) -> ()
  }) : () -> ()
}) : () -> ()
