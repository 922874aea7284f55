"builtin.module"() <{sym_name = "IrToHlo.49"}> ({
  "func.func"() <{function_type = (tensor<6xf32>, tensor<6x4xf32>, tensor<4xf32>, tensor<4x6xf32>, tensor<?x6xf32>) -> tensor<?x6xf32>, sym_name = "main"}> ({
  ^bb0(%arg0: tensor<6xf32>, %arg1: tensor<6x4xf32>, %arg2: tensor<4xf32>, %arg3: tensor<4x6xf32>, %arg4: tensor<?x6xf32>):
    %0 = "stablehlo.constant"() <{value = dense<6> : tensor<1xi32>}> : () -> tensor<1xi32>
    %1 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %2 = "stablehlo.constant"() <{value = dense<0.707106769> : tensor<f32>}> : () -> tensor<f32>
    %3 = "stablehlo.constant"() <{value = dense<4> : tensor<1xi32>}> : () -> tensor<1xi32>
    %4 = "stablehlo.constant"() <{value = dense<5.000000e-01> : tensor<f32>}> : () -> tensor<f32>
    %5 = "stablehlo.transpose"(%arg3) <{permutation = array<i64: 1, 0>}> {result_layout = dense<[0, 1]> : tensor<2xindex>, xla_shape = "f32[6,4]{0,1}"} : (tensor<4x6xf32>) -> tensor<6x4xf32>
    %6 = "stablehlo.dot_general"(%arg4, %5) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<?x6xf32>, tensor<6x4xf32>) -> tensor<?x4xf32>
    %7 = "stablehlo.get_dimension_size"(%6) <{dimension = 0 : i64}> : (tensor<?x4xf32>) -> tensor<i32>
    %8 = "stablehlo.reshape"(%7) : (tensor<i32>) -> tensor<1xi32>
    %9 = "stablehlo.concatenate"(%8, %3) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %10 = "stablehlo.dynamic_broadcast_in_dim"(%arg2, %9) <{broadcast_dimensions = array<i64: 1>}> : (tensor<4xf32>, tensor<2xi32>) -> tensor<?x4xf32>
    %11 = "stablehlo.add"(%6, %10) : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
    %12 = "stablehlo.get_dimension_size"(%11) <{dimension = 0 : i64}> : (tensor<?x4xf32>) -> tensor<i32>
    %13 = "stablehlo.reshape"(%12) : (tensor<i32>) -> tensor<1xi32>
    %14 = "stablehlo.concatenate"(%13, %3) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %15 = "stablehlo.dynamic_broadcast_in_dim"(%4, %14) <{broadcast_dimensions = array<i64>}> : (tensor<f32>, tensor<2xi32>) -> tensor<?x4xf32>
    %16 = "stablehlo.multiply"(%11, %15) : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
    %17 = "stablehlo.dynamic_broadcast_in_dim"(%2, %14) <{broadcast_dimensions = array<i64>}> : (tensor<f32>, tensor<2xi32>) -> tensor<?x4xf32>
    %18 = "stablehlo.multiply"(%11, %17) : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
    %19 = "stablehlo.custom_call"(%18) <{call_target_name = "mhlo.erf"}> {mhlo.attributes = {}, mhlo.version = 1 : i64} : (tensor<?x4xf32>) -> tensor<?x4xf32>
    %20 = "stablehlo.get_dimension_size"(%19) <{dimension = 0 : i64}> : (tensor<?x4xf32>) -> tensor<i32>
    %21 = "stablehlo.reshape"(%20) : (tensor<i32>) -> tensor<1xi32>
    %22 = "stablehlo.concatenate"(%21, %3) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %23 = "stablehlo.dynamic_broadcast_in_dim"(%1, %22) <{broadcast_dimensions = array<i64>}> : (tensor<f32>, tensor<2xi32>) -> tensor<?x4xf32>
    %24 = "stablehlo.add"(%19, %23) : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
    %25 = "stablehlo.multiply"(%16, %24) : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
    %26 = "stablehlo.transpose"(%arg1) <{permutation = array<i64: 1, 0>}> {result_layout = dense<[0, 1]> : tensor<2xindex>, xla_shape = "f32[4,6]{0,1}"} : (tensor<6x4xf32>) -> tensor<4x6xf32>
    %27 = "stablehlo.dot_general"(%25, %26) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<?x4xf32>, tensor<4x6xf32>) -> tensor<?x6xf32>
    %28 = "stablehlo.get_dimension_size"(%27) <{dimension = 0 : i64}> : (tensor<?x6xf32>) -> tensor<i32>
    %29 = "stablehlo.reshape"(%28) : (tensor<i32>) -> tensor<1xi32>
    %30 = "stablehlo.concatenate"(%29, %0) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %31 = "stablehlo.dynamic_broadcast_in_dim"(%arg0, %30) <{broadcast_dimensions = array<i64: 1>}> : (tensor<6xf32>, tensor<2xi32>) -> tensor<?x6xf32>
    %32 = "stablehlo.add"(%27, %31) : (tensor<?x6xf32>, tensor<?x6xf32>) -> tensor<?x6xf32>
    %33 = "stablehlo.logistic"(%32) : (tensor<?x6xf32>) -> tensor<?x6xf32>
    "func.return"(%33) : (tensor<?x6xf32>) -> ()
  }) : () -> ()
}) {mhlo.cross_program_prefetches = [], mhlo.input_output_alias = [], mhlo.is_dynamic = false, mhlo.use_auto_spmd_partitioning = false} : () -> ()
