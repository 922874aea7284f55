"builtin.module"() <{sym_name = "IrToHlo.160"}> ({
  "func.func"() <{function_type = (tensor<3xf32>, tensor<3x6xf32>, tensor<6xf32>, tensor<6x4x3x3xf32>, tensor<4xf32>, tensor<4x2x3x3xf32>, tensor<?x2x9x9xf32>) -> tensor<?x3xf32>, sym_name = "main"}> ({
  ^bb0(%arg0: tensor<3xf32>, %arg1: tensor<3x6xf32>, %arg2: tensor<6xf32>, %arg3: tensor<6x4x3x3xf32>, %arg4: tensor<4xf32>, %arg5: tensor<4x2x3x3xf32>, %arg6: tensor<?x2x9x9xf32>):
    %0 = "stablehlo.constant"() <{value = dense<3> : tensor<1xi32>}> : () -> tensor<1xi32>
    %1 = "stablehlo.constant"() <{value = dense<6.250000e-02> : tensor<f32>}> : () -> tensor<f32>
    %2 = "stablehlo.constant"() <{value = dense<1> : tensor<2xi32>}> : () -> tensor<2xi32>
    %3 = "stablehlo.constant"() <{value = dense<6> : tensor<1xi32>}> : () -> tensor<1xi32>
    %4 = "stablehlo.constant"() <{value = dense<1> : tensor<4xi32>}> : () -> tensor<4xi32>
    %5 = "stablehlo.constant"() <{value = dense<9> : tensor<1xi32>}> : () -> tensor<1xi32>
    %6 = "stablehlo.constant"() <{value = dense<4> : tensor<1xi32>}> : () -> tensor<1xi32>
    %7 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %8 = "stablehlo.convolution"(%arg6, %arg5) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]>, feature_group_count = 1 : i64, lhs_dilation = array<i64: 1, 1>, padding = dense<1> : tensor<2x2xi64>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>], rhs_dilation = array<i64: 1, 1>, window_reversal = array<i1: false, false>, window_strides = array<i64: 1, 1>}> : (tensor<?x2x9x9xf32>, tensor<4x2x3x3xf32>) -> tensor<?x4x9x9xf32>
    %9 = "stablehlo.get_dimension_size"(%8) <{dimension = 0 : i64}> : (tensor<?x4x9x9xf32>) -> tensor<i32>
    %10 = "stablehlo.reshape"(%9) : (tensor<i32>) -> tensor<1xi32>
    %11 = "stablehlo.concatenate"(%10, %6, %5, %5) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xi32>
    %12 = "stablehlo.concatenate"(%10, %5, %5, %6) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xi32>
    %13 = "stablehlo.dynamic_broadcast_in_dim"(%arg4, %12) <{broadcast_dimensions = array<i64: 3>}> : (tensor<4xf32>, tensor<4xi32>) -> tensor<?x9x9x4xf32>
    %14 = "stablehlo.transpose"(%13) <{permutation = array<i64: 0, 3, 1, 2>}> {result_layout = dense<[1, 3, 2, 0]> : tensor<4xindex>, xla_shape = "f32[?,4,9,9]{1,3,2,0}"} : (tensor<?x9x9x4xf32>) -> tensor<?x4x9x9xf32>
    %15 = "stablehlo.get_dimension_size"(%14) <{dimension = 0 : i64}> : (tensor<?x4x9x9xf32>) -> tensor<i32>
    %16 = "stablehlo.reshape"(%15) : (tensor<i32>) -> tensor<1xi32>
    %17 = "stablehlo.concatenate"(%16, %6, %5, %5) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xi32>
    %18 = "stablehlo.maximum"(%11, %17) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
    %19 = "stablehlo.dynamic_broadcast_in_dim"(%8, %18) <{broadcast_dimensions = array<i64: 0, 1, 2, 3>}> : (tensor<?x4x9x9xf32>, tensor<4xi32>) -> tensor<?x4x9x9xf32>
    %20 = "stablehlo.dynamic_broadcast_in_dim"(%14, %18) <{broadcast_dimensions = array<i64: 0, 1, 2, 3>}> : (tensor<?x4x9x9xf32>, tensor<4xi32>) -> tensor<?x4x9x9xf32>
    %21 = "stablehlo.add"(%19, %20) : (tensor<?x4x9x9xf32>, tensor<?x4x9x9xf32>) -> tensor<?x4x9x9xf32>
    %22 = "stablehlo.get_dimension_size"(%21) <{dimension = 0 : i64}> : (tensor<?x4x9x9xf32>) -> tensor<i32>
    %23 = "stablehlo.reshape"(%22) : (tensor<i32>) -> tensor<1xi32>
    %24 = "stablehlo.concatenate"(%23, %6, %5, %5) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xi32>
    %25 = "stablehlo.maximum"(%24, %4) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
    %26 = "stablehlo.dynamic_broadcast_in_dim"(%21, %25) <{broadcast_dimensions = array<i64: 0, 1, 2, 3>}> : (tensor<?x4x9x9xf32>, tensor<4xi32>) -> tensor<?x4x9x9xf32>
    %27 = "stablehlo.dynamic_broadcast_in_dim"(%7, %25) <{broadcast_dimensions = array<i64>}> : (tensor<f32>, tensor<4xi32>) -> tensor<?x4x9x9xf32>
    %28 = "stablehlo.maximum"(%26, %27) : (tensor<?x4x9x9xf32>, tensor<?x4x9x9xf32>) -> tensor<?x4x9x9xf32>
    %29 = "stablehlo.convolution"(%28, %arg3) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]>, feature_group_count = 1 : i64, lhs_dilation = array<i64: 1, 1>, padding = dense<0> : tensor<2x2xi64>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>], rhs_dilation = array<i64: 1, 1>, window_reversal = array<i1: false, false>, window_strides = array<i64: 2, 2>}> : (tensor<?x4x9x9xf32>, tensor<6x4x3x3xf32>) -> tensor<?x6x4x4xf32>
    %30 = "stablehlo.get_dimension_size"(%29) <{dimension = 0 : i64}> : (tensor<?x6x4x4xf32>) -> tensor<i32>
    %31 = "stablehlo.reshape"(%30) : (tensor<i32>) -> tensor<1xi32>
    %32 = "stablehlo.concatenate"(%31, %3, %6, %6) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xi32>
    %33 = "stablehlo.concatenate"(%31, %6, %6, %3) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xi32>
    %34 = "stablehlo.dynamic_broadcast_in_dim"(%arg2, %33) <{broadcast_dimensions = array<i64: 3>}> : (tensor<6xf32>, tensor<4xi32>) -> tensor<?x4x4x6xf32>
    %35 = "stablehlo.transpose"(%34) <{permutation = array<i64: 0, 3, 1, 2>}> {result_layout = dense<[1, 3, 2, 0]> : tensor<4xindex>, xla_shape = "f32[?,6,4,4]{1,3,2,0}"} : (tensor<?x4x4x6xf32>) -> tensor<?x6x4x4xf32>
    %36 = "stablehlo.get_dimension_size"(%35) <{dimension = 0 : i64}> : (tensor<?x6x4x4xf32>) -> tensor<i32>
    %37 = "stablehlo.reshape"(%36) : (tensor<i32>) -> tensor<1xi32>
    %38 = "stablehlo.concatenate"(%37, %3, %6, %6) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xi32>
    %39 = "stablehlo.maximum"(%32, %38) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
    %40 = "stablehlo.dynamic_broadcast_in_dim"(%29, %39) <{broadcast_dimensions = array<i64: 0, 1, 2, 3>}> : (tensor<?x6x4x4xf32>, tensor<4xi32>) -> tensor<?x6x4x4xf32>
    %41 = "stablehlo.dynamic_broadcast_in_dim"(%35, %39) <{broadcast_dimensions = array<i64: 0, 1, 2, 3>}> : (tensor<?x6x4x4xf32>, tensor<4xi32>) -> tensor<?x6x4x4xf32>
    %42 = "stablehlo.add"(%40, %41) : (tensor<?x6x4x4xf32>, tensor<?x6x4x4xf32>) -> tensor<?x6x4x4xf32>
    %43 = "stablehlo.get_dimension_size"(%42) <{dimension = 0 : i64}> : (tensor<?x6x4x4xf32>) -> tensor<i32>
    %44 = "stablehlo.reshape"(%43) : (tensor<i32>) -> tensor<1xi32>
    %45 = "stablehlo.concatenate"(%44, %3, %6, %6) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xi32>
    %46 = "stablehlo.maximum"(%45, %4) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
    %47 = "stablehlo.dynamic_broadcast_in_dim"(%42, %46) <{broadcast_dimensions = array<i64: 0, 1, 2, 3>}> : (tensor<?x6x4x4xf32>, tensor<4xi32>) -> tensor<?x6x4x4xf32>
    %48 = "stablehlo.dynamic_broadcast_in_dim"(%7, %46) <{broadcast_dimensions = array<i64>}> : (tensor<f32>, tensor<4xi32>) -> tensor<?x6x4x4xf32>
    %49 = "stablehlo.maximum"(%47, %48) : (tensor<?x6x4x4xf32>, tensor<?x6x4x4xf32>) -> tensor<?x6x4x4xf32>
    %50 = "stablehlo.reduce"(%49, %7) <{dimensions = array<i64: 2, 3>}> ({
    ^bb0(%arg7: tensor<f32>, %arg8: tensor<f32>):
      %65 = "stablehlo.add"(%arg7, %arg8) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%65) : (tensor<f32>) -> ()
    }) : (tensor<?x6x4x4xf32>, tensor<f32>) -> tensor<?x6xf32>
    %51 = "stablehlo.get_dimension_size"(%50) <{dimension = 0 : i64}> : (tensor<?x6xf32>) -> tensor<i32>
    %52 = "stablehlo.reshape"(%51) : (tensor<i32>) -> tensor<1xi32>
    %53 = "stablehlo.concatenate"(%52, %3) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %54 = "stablehlo.maximum"(%53, %2) : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi32>
    %55 = "stablehlo.dynamic_broadcast_in_dim"(%50, %54) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<?x6xf32>, tensor<2xi32>) -> tensor<?x6xf32>
    %56 = "stablehlo.dynamic_broadcast_in_dim"(%1, %54) <{broadcast_dimensions = array<i64>}> : (tensor<f32>, tensor<2xi32>) -> tensor<?x6xf32>
    %57 = "stablehlo.multiply"(%55, %56) : (tensor<?x6xf32>, tensor<?x6xf32>) -> tensor<?x6xf32>
    %58 = "stablehlo.transpose"(%arg1) <{permutation = array<i64: 1, 0>}> {result_layout = dense<[0, 1]> : tensor<2xindex>, xla_shape = "f32[6,3]{0,1}"} : (tensor<3x6xf32>) -> tensor<6x3xf32>
    %59 = "stablehlo.dot_general"(%57, %58) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<?x6xf32>, tensor<6x3xf32>) -> tensor<?x3xf32>
    %60 = "stablehlo.get_dimension_size"(%59) <{dimension = 0 : i64}> : (tensor<?x3xf32>) -> tensor<i32>
    %61 = "stablehlo.reshape"(%60) : (tensor<i32>) -> tensor<1xi32>
    %62 = "stablehlo.concatenate"(%61, %0) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %63 = "stablehlo.dynamic_broadcast_in_dim"(%arg0, %62) <{broadcast_dimensions = array<i64: 1>}> : (tensor<3xf32>, tensor<2xi32>) -> tensor<?x3xf32>
    %64 = "stablehlo.add"(%59, %63) : (tensor<?x3xf32>, tensor<?x3xf32>) -> tensor<?x3xf32>
    "func.return"(%64) : (tensor<?x3xf32>) -> ()
  }) : () -> ()
}) {mhlo.cross_program_prefetches = [], mhlo.input_output_alias = [], mhlo.is_dynamic = false, mhlo.use_auto_spmd_partitioning = false} : () -> ()
