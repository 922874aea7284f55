"builtin.module"() <{sym_name = "IrToHlo.58"}> ({
  "func.func"() <{function_type = (tensor<3xf32>, tensor<3x8xf32>, tensor<?x7xi32>, tensor<11x8xf32>) -> tensor<?x3xf32>, sym_name = "main"}> ({
  ^bb0(%arg0: tensor<3xf32>, %arg1: tensor<3x8xf32>, %arg2: tensor<?x7xi32>, %arg3: tensor<11x8xf32>):
    %0 = "stablehlo.constant"() <{value = dense<3> : tensor<1xi32>}> : () -> tensor<1xi32>
    %1 = "stablehlo.constant"() <{value = dense<0.142857149> : tensor<f32>}> : () -> tensor<f32>
    %2 = "stablehlo.constant"() <{value = dense<1> : tensor<2xi32>}> : () -> tensor<2xi32>
    %3 = "stablehlo.constant"() <{value = dense<8> : tensor<1xi32>}> : () -> tensor<1xi32>
    %4 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %5 = "stablehlo.constant"() <{value = dense<[7, 8]> : tensor<2xi32>}> : () -> tensor<2xi32>
    %6 = "stablehlo.constant"() <{value = dense<7> : tensor<1xi32>}> : () -> tensor<1xi32>
    %7 = "stablehlo.get_dimension_size"(%arg2) <{dimension = 0 : i64}> : (tensor<?x7xi32>) -> tensor<i32>
    %8 = "stablehlo.reshape"(%7) : (tensor<i32>) -> tensor<1xi32>
    %9 = "stablehlo.multiply"(%8, %6) : (tensor<1xi32>, tensor<1xi32>) -> tensor<1xi32>
    %10 = "stablehlo.dynamic_reshape"(%arg2, %9) : (tensor<?x7xi32>, tensor<1xi32>) -> tensor<?xi32>
    %11 = "stablehlo.gather"(%arg3, %10) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 8>}> : (tensor<11x8xf32>, tensor<?xi32>) -> tensor<?x8xf32>
    %12 = "stablehlo.concatenate"(%8, %5) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<2xi32>) -> tensor<3xi32>
    %13 = "stablehlo.dynamic_reshape"(%11, %12) : (tensor<?x8xf32>, tensor<3xi32>) -> tensor<?x7x8xf32>
    %14 = "stablehlo.tanh"(%13) : (tensor<?x7x8xf32>) -> tensor<?x7x8xf32>
    %15 = "stablehlo.reduce"(%14, %4) <{dimensions = array<i64: 1>}> ({
    ^bb0(%arg4: tensor<f32>, %arg5: tensor<f32>):
      %30 = "stablehlo.add"(%arg4, %arg5) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%30) : (tensor<f32>) -> ()
    }) : (tensor<?x7x8xf32>, tensor<f32>) -> tensor<?x8xf32>
    %16 = "stablehlo.get_dimension_size"(%15) <{dimension = 0 : i64}> : (tensor<?x8xf32>) -> tensor<i32>
    %17 = "stablehlo.reshape"(%16) : (tensor<i32>) -> tensor<1xi32>
    %18 = "stablehlo.concatenate"(%17, %3) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %19 = "stablehlo.maximum"(%18, %2) : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi32>
    %20 = "stablehlo.dynamic_broadcast_in_dim"(%15, %19) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<?x8xf32>, tensor<2xi32>) -> tensor<?x8xf32>
    %21 = "stablehlo.dynamic_broadcast_in_dim"(%1, %19) <{broadcast_dimensions = array<i64>}> : (tensor<f32>, tensor<2xi32>) -> tensor<?x8xf32>
    %22 = "stablehlo.multiply"(%20, %21) : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
    %23 = "stablehlo.transpose"(%arg1) <{permutation = array<i64: 1, 0>}> {result_layout = dense<[0, 1]> : tensor<2xindex>, xla_shape = "f32[8,3]{0,1}"} : (tensor<3x8xf32>) -> tensor<8x3xf32>
    %24 = "stablehlo.dot_general"(%22, %23) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<?x8xf32>, tensor<8x3xf32>) -> tensor<?x3xf32>
    %25 = "stablehlo.get_dimension_size"(%24) <{dimension = 0 : i64}> : (tensor<?x3xf32>) -> tensor<i32>
    %26 = "stablehlo.reshape"(%25) : (tensor<i32>) -> tensor<1xi32>
    %27 = "stablehlo.concatenate"(%26, %0) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %28 = "stablehlo.dynamic_broadcast_in_dim"(%arg0, %27) <{broadcast_dimensions = array<i64: 1>}> : (tensor<3xf32>, tensor<2xi32>) -> tensor<?x3xf32>
    %29 = "stablehlo.add"(%24, %28) : (tensor<?x3xf32>, tensor<?x3xf32>) -> tensor<?x3xf32>
    "func.return"(%29) : (tensor<?x3xf32>) -> ()
  }) : () -> ()
}) {mhlo.cross_program_prefetches = [], mhlo.input_output_alias = [], mhlo.is_dynamic = false, mhlo.use_auto_spmd_partitioning = false} : () -> ()
