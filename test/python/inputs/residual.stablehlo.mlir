"builtin.module"() <{sym_name = "IrToHlo.150"}> ({
  "func.func"() <{function_type = (tensor<2xf32>, tensor<2x6xf32>, tensor<6xf32>, tensor<6x6xf32>, tensor<6xf32>, tensor<6x6xf32>, tensor<?x6xf32>) -> tensor<?x2xf32>, sym_name = "main"}> ({
  ^bb0(%arg0: tensor<2xf32>, %arg1: tensor<2x6xf32>, %arg2: tensor<6xf32>, %arg3: tensor<6x6xf32>, %arg4: tensor<6xf32>, %arg5: tensor<6x6xf32>, %arg6: tensor<?x6xf32>):
    %0 = "stablehlo.constant"() <{value = dense<2> : tensor<1xi32>}> : () -> tensor<1xi32>
    %1 = "stablehlo.constant"() <{value = dense<1> : tensor<2xi32>}> : () -> tensor<2xi32>
    %2 = "stablehlo.constant"() <{value = dense<6> : tensor<1xi32>}> : () -> tensor<1xi32>
    %3 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %4 = "stablehlo.get_dimension_size"(%arg6) <{dimension = 0 : i64}> : (tensor<?x6xf32>) -> tensor<i32>
    %5 = "stablehlo.reshape"(%4) : (tensor<i32>) -> tensor<1xi32>
    %6 = "stablehlo.concatenate"(%5, %2) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %7 = "stablehlo.transpose"(%arg5) <{permutation = array<i64: 1, 0>}> {result_layout = dense<[0, 1]> : tensor<2xindex>, xla_shape = "f32[6,6]{0,1}"} : (tensor<6x6xf32>) -> tensor<6x6xf32>
    %8 = "stablehlo.dot_general"(%arg6, %7) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<?x6xf32>, tensor<6x6xf32>) -> tensor<?x6xf32>
    %9 = "stablehlo.get_dimension_size"(%8) <{dimension = 0 : i64}> : (tensor<?x6xf32>) -> tensor<i32>
    %10 = "stablehlo.reshape"(%9) : (tensor<i32>) -> tensor<1xi32>
    %11 = "stablehlo.concatenate"(%10, %2) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %12 = "stablehlo.dynamic_broadcast_in_dim"(%arg4, %11) <{broadcast_dimensions = array<i64: 1>}> : (tensor<6xf32>, tensor<2xi32>) -> tensor<?x6xf32>
    %13 = "stablehlo.add"(%8, %12) : (tensor<?x6xf32>, tensor<?x6xf32>) -> tensor<?x6xf32>
    %14 = "stablehlo.get_dimension_size"(%13) <{dimension = 0 : i64}> : (tensor<?x6xf32>) -> tensor<i32>
    %15 = "stablehlo.reshape"(%14) : (tensor<i32>) -> tensor<1xi32>
    %16 = "stablehlo.concatenate"(%15, %2) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %17 = "stablehlo.logistic"(%13) : (tensor<?x6xf32>) -> tensor<?x6xf32>
    %18 = "stablehlo.get_dimension_size"(%17) <{dimension = 0 : i64}> : (tensor<?x6xf32>) -> tensor<i32>
    %19 = "stablehlo.reshape"(%18) : (tensor<i32>) -> tensor<1xi32>
    %20 = "stablehlo.concatenate"(%19, %2) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %21 = "stablehlo.maximum"(%16, %20) : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi32>
    %22 = "stablehlo.dynamic_broadcast_in_dim"(%13, %21) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<?x6xf32>, tensor<2xi32>) -> tensor<?x6xf32>
    %23 = "stablehlo.dynamic_broadcast_in_dim"(%17, %21) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<?x6xf32>, tensor<2xi32>) -> tensor<?x6xf32>
    %24 = "stablehlo.multiply"(%22, %23) : (tensor<?x6xf32>, tensor<?x6xf32>) -> tensor<?x6xf32>
    %25 = "stablehlo.get_dimension_size"(%24) <{dimension = 0 : i64}> : (tensor<?x6xf32>) -> tensor<i32>
    %26 = "stablehlo.reshape"(%25) : (tensor<i32>) -> tensor<1xi32>
    %27 = "stablehlo.concatenate"(%26, %2) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %28 = "stablehlo.maximum"(%6, %27) : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi32>
    %29 = "stablehlo.dynamic_broadcast_in_dim"(%arg6, %28) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<?x6xf32>, tensor<2xi32>) -> tensor<?x6xf32>
    %30 = "stablehlo.get_dimension_size"(%29) <{dimension = 0 : i64}> : (tensor<?x6xf32>) -> tensor<i32>
    %31 = "stablehlo.reshape"(%30) : (tensor<i32>) -> tensor<1xi32>
    %32 = "stablehlo.concatenate"(%31, %2) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %33 = "stablehlo.maximum"(%32, %1) : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi32>
    %34 = "stablehlo.dynamic_broadcast_in_dim"(%arg6, %33) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<?x6xf32>, tensor<2xi32>) -> tensor<?x6xf32>
    %35 = "stablehlo.get_dimension_size"(%34) <{dimension = 0 : i64}> : (tensor<?x6xf32>) -> tensor<i32>
    %36 = "stablehlo.reshape"(%35) : (tensor<i32>) -> tensor<1xi32>
    %37 = "stablehlo.concatenate"(%36, %2) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %38 = "stablehlo.dynamic_broadcast_in_dim"(%24, %28) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<?x6xf32>, tensor<2xi32>) -> tensor<?x6xf32>
    %39 = "stablehlo.get_dimension_size"(%38) <{dimension = 0 : i64}> : (tensor<?x6xf32>) -> tensor<i32>
    %40 = "stablehlo.reshape"(%39) : (tensor<i32>) -> tensor<1xi32>
    %41 = "stablehlo.concatenate"(%40, %2) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %42 = "stablehlo.maximum"(%37, %41) : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi32>
    %43 = "stablehlo.dynamic_broadcast_in_dim"(%arg6, %42) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<?x6xf32>, tensor<2xi32>) -> tensor<?x6xf32>
    %44 = "stablehlo.dynamic_broadcast_in_dim"(%24, %42) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<?x6xf32>, tensor<2xi32>) -> tensor<?x6xf32>
    %45 = "stablehlo.dynamic_broadcast_in_dim"(%3, %33) <{broadcast_dimensions = array<i64>}> : (tensor<f32>, tensor<2xi32>) -> tensor<?x6xf32>
    %46 = "stablehlo.multiply"(%44, %45) : (tensor<?x6xf32>, tensor<?x6xf32>) -> tensor<?x6xf32>
    %47 = "stablehlo.add"(%43, %46) : (tensor<?x6xf32>, tensor<?x6xf32>) -> tensor<?x6xf32>
    %48 = "stablehlo.get_dimension_size"(%47) <{dimension = 0 : i64}> : (tensor<?x6xf32>) -> tensor<i32>
    %49 = "stablehlo.reshape"(%48) : (tensor<i32>) -> tensor<1xi32>
    %50 = "stablehlo.concatenate"(%49, %2) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %51 = "stablehlo.transpose"(%arg3) <{permutation = array<i64: 1, 0>}> {result_layout = dense<[0, 1]> : tensor<2xindex>, xla_shape = "f32[6,6]{0,1}"} : (tensor<6x6xf32>) -> tensor<6x6xf32>
    %52 = "stablehlo.dot_general"(%47, %51) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<?x6xf32>, tensor<6x6xf32>) -> tensor<?x6xf32>
    %53 = "stablehlo.get_dimension_size"(%52) <{dimension = 0 : i64}> : (tensor<?x6xf32>) -> tensor<i32>
    %54 = "stablehlo.reshape"(%53) : (tensor<i32>) -> tensor<1xi32>
    %55 = "stablehlo.concatenate"(%54, %2) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %56 = "stablehlo.dynamic_broadcast_in_dim"(%arg2, %55) <{broadcast_dimensions = array<i64: 1>}> : (tensor<6xf32>, tensor<2xi32>) -> tensor<?x6xf32>
    %57 = "stablehlo.add"(%52, %56) : (tensor<?x6xf32>, tensor<?x6xf32>) -> tensor<?x6xf32>
    %58 = "stablehlo.get_dimension_size"(%57) <{dimension = 0 : i64}> : (tensor<?x6xf32>) -> tensor<i32>
    %59 = "stablehlo.reshape"(%58) : (tensor<i32>) -> tensor<1xi32>
    %60 = "stablehlo.concatenate"(%59, %2) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %61 = "stablehlo.logistic"(%57) : (tensor<?x6xf32>) -> tensor<?x6xf32>
    %62 = "stablehlo.get_dimension_size"(%61) <{dimension = 0 : i64}> : (tensor<?x6xf32>) -> tensor<i32>
    %63 = "stablehlo.reshape"(%62) : (tensor<i32>) -> tensor<1xi32>
    %64 = "stablehlo.concatenate"(%63, %2) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %65 = "stablehlo.maximum"(%60, %64) : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi32>
    %66 = "stablehlo.dynamic_broadcast_in_dim"(%57, %65) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<?x6xf32>, tensor<2xi32>) -> tensor<?x6xf32>
    %67 = "stablehlo.dynamic_broadcast_in_dim"(%61, %65) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<?x6xf32>, tensor<2xi32>) -> tensor<?x6xf32>
    %68 = "stablehlo.multiply"(%66, %67) : (tensor<?x6xf32>, tensor<?x6xf32>) -> tensor<?x6xf32>
    %69 = "stablehlo.get_dimension_size"(%68) <{dimension = 0 : i64}> : (tensor<?x6xf32>) -> tensor<i32>
    %70 = "stablehlo.reshape"(%69) : (tensor<i32>) -> tensor<1xi32>
    %71 = "stablehlo.concatenate"(%70, %2) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %72 = "stablehlo.maximum"(%50, %71) : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi32>
    %73 = "stablehlo.dynamic_broadcast_in_dim"(%47, %72) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<?x6xf32>, tensor<2xi32>) -> tensor<?x6xf32>
    %74 = "stablehlo.get_dimension_size"(%73) <{dimension = 0 : i64}> : (tensor<?x6xf32>) -> tensor<i32>
    %75 = "stablehlo.reshape"(%74) : (tensor<i32>) -> tensor<1xi32>
    %76 = "stablehlo.concatenate"(%75, %2) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %77 = "stablehlo.maximum"(%76, %1) : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi32>
    %78 = "stablehlo.dynamic_broadcast_in_dim"(%47, %77) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<?x6xf32>, tensor<2xi32>) -> tensor<?x6xf32>
    %79 = "stablehlo.get_dimension_size"(%78) <{dimension = 0 : i64}> : (tensor<?x6xf32>) -> tensor<i32>
    %80 = "stablehlo.reshape"(%79) : (tensor<i32>) -> tensor<1xi32>
    %81 = "stablehlo.concatenate"(%80, %2) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %82 = "stablehlo.dynamic_broadcast_in_dim"(%68, %72) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<?x6xf32>, tensor<2xi32>) -> tensor<?x6xf32>
    %83 = "stablehlo.get_dimension_size"(%82) <{dimension = 0 : i64}> : (tensor<?x6xf32>) -> tensor<i32>
    %84 = "stablehlo.reshape"(%83) : (tensor<i32>) -> tensor<1xi32>
    %85 = "stablehlo.concatenate"(%84, %2) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %86 = "stablehlo.maximum"(%81, %85) : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi32>
    %87 = "stablehlo.dynamic_broadcast_in_dim"(%47, %86) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<?x6xf32>, tensor<2xi32>) -> tensor<?x6xf32>
    %88 = "stablehlo.dynamic_broadcast_in_dim"(%68, %86) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<?x6xf32>, tensor<2xi32>) -> tensor<?x6xf32>
    %89 = "stablehlo.dynamic_broadcast_in_dim"(%3, %77) <{broadcast_dimensions = array<i64>}> : (tensor<f32>, tensor<2xi32>) -> tensor<?x6xf32>
    %90 = "stablehlo.multiply"(%88, %89) : (tensor<?x6xf32>, tensor<?x6xf32>) -> tensor<?x6xf32>
    %91 = "stablehlo.add"(%87, %90) : (tensor<?x6xf32>, tensor<?x6xf32>) -> tensor<?x6xf32>
    %92 = "stablehlo.transpose"(%arg1) <{permutation = array<i64: 1, 0>}> {result_layout = dense<[0, 1]> : tensor<2xindex>, xla_shape = "f32[6,2]{0,1}"} : (tensor<2x6xf32>) -> tensor<6x2xf32>
    %93 = "stablehlo.dot_general"(%91, %92) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<?x6xf32>, tensor<6x2xf32>) -> tensor<?x2xf32>
    %94 = "stablehlo.get_dimension_size"(%93) <{dimension = 0 : i64}> : (tensor<?x2xf32>) -> tensor<i32>
    %95 = "stablehlo.reshape"(%94) : (tensor<i32>) -> tensor<1xi32>
    %96 = "stablehlo.concatenate"(%95, %0) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %97 = "stablehlo.dynamic_broadcast_in_dim"(%arg0, %96) <{broadcast_dimensions = array<i64: 1>}> : (tensor<2xf32>, tensor<2xi32>) -> tensor<?x2xf32>
    %98 = "stablehlo.add"(%93, %97) : (tensor<?x2xf32>, tensor<?x2xf32>) -> tensor<?x2xf32>
    "func.return"(%98) : (tensor<?x2xf32>) -> ()
  }) : () -> ()
}) {mhlo.cross_program_prefetches = [], mhlo.input_output_alias = [], mhlo.is_dynamic = false, mhlo.use_auto_spmd_partitioning = false} : () -> ()
