"builtin.module"() <{sym_name = "IrToHlo.40"}> ({
  "func.func"() <{function_type = (tensor<3xf32>, tensor<3x8xf32>, tensor<8xf32>, tensor<8x6xf32>, tensor<?x6xf32>) -> tensor<?x3xf32>, sym_name = "main"}> ({
  ^bb0(%arg0: tensor<3xf32>, %arg1: tensor<3x8xf32>, %arg2: tensor<8xf32>, %arg3: tensor<8x6xf32>, %arg4: tensor<?x6xf32>):
    %0 = "stablehlo.constant"() <{value = dense<3> : tensor<1xi32>}> : () -> tensor<1xi32>
    %1 = "stablehlo.constant"() <{value = dense<1> : tensor<2xi32>}> : () -> tensor<2xi32>
    %2 = "stablehlo.constant"() <{value = dense<8> : tensor<1xi32>}> : () -> tensor<1xi32>
    %3 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %4 = "stablehlo.transpose"(%arg3) <{permutation = array<i64: 1, 0>}> {result_layout = dense<[0, 1]> : tensor<2xindex>, xla_shape = "f32[6,8]{0,1}"} : (tensor<8x6xf32>) -> tensor<6x8xf32>
    %5 = "stablehlo.dot_general"(%arg4, %4) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<?x6xf32>, tensor<6x8xf32>) -> tensor<?x8xf32>
    %6 = "stablehlo.get_dimension_size"(%5) <{dimension = 0 : i64}> : (tensor<?x8xf32>) -> tensor<i32>
    %7 = "stablehlo.reshape"(%6) : (tensor<i32>) -> tensor<1xi32>
    %8 = "stablehlo.concatenate"(%7, %2) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %9 = "stablehlo.dynamic_broadcast_in_dim"(%arg2, %8) <{broadcast_dimensions = array<i64: 1>}> : (tensor<8xf32>, tensor<2xi32>) -> tensor<?x8xf32>
    %10 = "stablehlo.add"(%5, %9) : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
    %11 = "stablehlo.get_dimension_size"(%10) <{dimension = 0 : i64}> : (tensor<?x8xf32>) -> tensor<i32>
    %12 = "stablehlo.reshape"(%11) : (tensor<i32>) -> tensor<1xi32>
    %13 = "stablehlo.concatenate"(%12, %2) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %14 = "stablehlo.maximum"(%13, %1) : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi32>
    %15 = "stablehlo.dynamic_broadcast_in_dim"(%10, %14) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<?x8xf32>, tensor<2xi32>) -> tensor<?x8xf32>
    %16 = "stablehlo.dynamic_broadcast_in_dim"(%3, %14) <{broadcast_dimensions = array<i64>}> : (tensor<f32>, tensor<2xi32>) -> tensor<?x8xf32>
    %17 = "stablehlo.maximum"(%15, %16) : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
    %18 = "stablehlo.transpose"(%arg1) <{permutation = array<i64: 1, 0>}> {result_layout = dense<[0, 1]> : tensor<2xindex>, xla_shape = "f32[8,3]{0,1}"} : (tensor<3x8xf32>) -> tensor<8x3xf32>
    %19 = "stablehlo.dot_general"(%17, %18) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<?x8xf32>, tensor<8x3xf32>) -> tensor<?x3xf32>
    %20 = "stablehlo.get_dimension_size"(%19) <{dimension = 0 : i64}> : (tensor<?x3xf32>) -> tensor<i32>
    %21 = "stablehlo.reshape"(%20) : (tensor<i32>) -> tensor<1xi32>
    %22 = "stablehlo.concatenate"(%21, %0) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %23 = "stablehlo.dynamic_broadcast_in_dim"(%arg0, %22) <{broadcast_dimensions = array<i64: 1>}> : (tensor<3xf32>, tensor<2xi32>) -> tensor<?x3xf32>
    %24 = "stablehlo.add"(%19, %23) : (tensor<?x3xf32>, tensor<?x3xf32>) -> tensor<?x3xf32>
    "func.return"(%24) : (tensor<?x3xf32>) -> ()
  }) : () -> ()
}) {mhlo.cross_program_prefetches = [], mhlo.input_output_alias = [], mhlo.is_dynamic = false, mhlo.use_auto_spmd_partitioning = false} : () -> ()
