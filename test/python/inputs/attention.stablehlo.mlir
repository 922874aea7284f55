"builtin.module"() <{sym_name = "IrToHlo.623"}> ({
  "func.func"() <{function_type = (tensor<?x5x8xf32>, tensor<3xf32>, tensor<3x8xf32>, tensor<8xf32>, tensor<8x8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8x8xf32>, tensor<8xf32>, tensor<8x8xf32>) -> tensor<?x5x3xf32>, sym_name = "main"}> ({
  ^bb0(%arg0: tensor<?x5x8xf32>, %arg1: tensor<3xf32>, %arg2: tensor<3x8xf32>, %arg3: tensor<8xf32>, %arg4: tensor<8x8xf32>, %arg5: tensor<8xf32>, %arg6: tensor<8xf32>, %arg7: tensor<8xf32>, %arg8: tensor<8x8xf32>, %arg9: tensor<8xf32>, %arg10: tensor<8x8xf32>):
    %0 = "stablehlo.constant"() <{value = dense<3> : tensor<1xi32>}> : () -> tensor<1xi32>
    %1 = "stablehlo.constant"() <{value = dense<5> : tensor<2xi32>}> : () -> tensor<2xi32>
    %2 = "stablehlo.constant"() <{value = dense<[1, 1, 8]> : tensor<3xi32>}> : () -> tensor<3xi32>
    %3 = "stablehlo.constant"() <{value = dense<1> : tensor<3xi32>}> : () -> tensor<3xi32>
    %4 = "stablehlo.constant"() <{value = dense<1> : tensor<1xi32>}> : () -> tensor<1xi32>
    %5 = "stablehlo.constant"() <{value = dense<1.250000e-01> : tensor<f32>}> : () -> tensor<f32>
    %6 = "stablehlo.constant"() <{value = dense<1> : tensor<2xi32>}> : () -> tensor<2xi32>
    %7 = "stablehlo.constant"() <{value = dense<[5, 3]> : tensor<2xi32>}> : () -> tensor<2xi32>
    %8 = "stablehlo.constant"() <{value = dense<0xFF800000> : tensor<f32>}> : () -> tensor<f32>
    %9 = "stablehlo.constant"() <{value = dense<2.82842708> : tensor<f32>}> : () -> tensor<f32>
    %10 = "stablehlo.constant"() <{value = dense<[8, 5]> : tensor<2xi32>}> : () -> tensor<2xi32>
    %11 = "stablehlo.constant"() <{value = dense<[5, 8]> : tensor<2xi32>}> : () -> tensor<2xi32>
    %12 = "stablehlo.constant"() <{value = dense<8> : tensor<1xi32>}> : () -> tensor<1xi32>
    %13 = "stablehlo.constant"() <{value = dense<5> : tensor<1xi32>}> : () -> tensor<1xi32>
    %14 = "stablehlo.constant"() <{value = dense<9.99999974E-6> : tensor<f32>}> : () -> tensor<f32>
    %15 = "stablehlo.constant"() <{value = dense<-1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %16 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %17 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %18 = "stablehlo.get_dimension_size"(%arg0) <{dimension = 0 : i64}> : (tensor<?x5x8xf32>) -> tensor<i32>
    %19 = "stablehlo.reshape"(%18) : (tensor<i32>) -> tensor<1xi32>
    %20 = "stablehlo.concatenate"(%19, %13, %12) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %21 = "stablehlo.reduce"(%arg0, %17) <{dimensions = array<i64: 2>}> ({
    ^bb0(%arg17: tensor<f32>, %arg18: tensor<f32>):
      %239 = "stablehlo.add"(%arg17, %arg18) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%239) : (tensor<f32>) -> ()
    }) : (tensor<?x5x8xf32>, tensor<f32>) -> tensor<?x5xf32>
    %22 = "stablehlo.get_dimension_size"(%21) <{dimension = 0 : i64}> : (tensor<?x5xf32>) -> tensor<i32>
    %23 = "stablehlo.reshape"(%22) : (tensor<i32>) -> tensor<1xi32>
    %24 = "stablehlo.concatenate"(%23, %13) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %25 = "stablehlo.maximum"(%24, %6) : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi32>
    %26 = "stablehlo.dynamic_broadcast_in_dim"(%21, %25) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<?x5xf32>, tensor<2xi32>) -> tensor<?x5xf32>
    %27 = "stablehlo.dynamic_broadcast_in_dim"(%5, %25) <{broadcast_dimensions = array<i64>}> : (tensor<f32>, tensor<2xi32>) -> tensor<?x5xf32>
    %28 = "stablehlo.multiply"(%26, %27) : (tensor<?x5xf32>, tensor<?x5xf32>) -> tensor<?x5xf32>
    %29 = "stablehlo.concatenate"(%19, %13, %4) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %30 = "stablehlo.dynamic_reshape"(%28, %29) : (tensor<?x5xf32>, tensor<3xi32>) -> tensor<?x5x1xf32>
    %31 = "stablehlo.get_dimension_size"(%30) <{dimension = 0 : i64}> : (tensor<?x5x1xf32>) -> tensor<i32>
    %32 = "stablehlo.reshape"(%31) : (tensor<i32>) -> tensor<1xi32>
    %33 = "stablehlo.concatenate"(%32, %13, %4) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %34 = "stablehlo.maximum"(%20, %33) : (tensor<3xi32>, tensor<3xi32>) -> tensor<3xi32>
    %35 = "stablehlo.maximum"(%33, %3) : (tensor<3xi32>, tensor<3xi32>) -> tensor<3xi32>
    %36 = "stablehlo.dynamic_broadcast_in_dim"(%30, %35) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<?x5x1xf32>, tensor<3xi32>) -> tensor<?x5x1xf32>
    %37 = "stablehlo.dynamic_broadcast_in_dim"(%15, %35) <{broadcast_dimensions = array<i64>}> : (tensor<f32>, tensor<3xi32>) -> tensor<?x5x1xf32>
    %38 = "stablehlo.multiply"(%36, %37) : (tensor<?x5x1xf32>, tensor<?x5x1xf32>) -> tensor<?x5x1xf32>
    %39 = "stablehlo.get_dimension_size"(%38) <{dimension = 0 : i64}> : (tensor<?x5x1xf32>) -> tensor<i32>
    %40 = "stablehlo.reshape"(%39) : (tensor<i32>) -> tensor<1xi32>
    %41 = "stablehlo.concatenate"(%40, %13, %4) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %42 = "stablehlo.maximum"(%20, %41) : (tensor<3xi32>, tensor<3xi32>) -> tensor<3xi32>
    %43 = "stablehlo.dynamic_broadcast_in_dim"(%arg0, %42) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<?x5x8xf32>, tensor<3xi32>) -> tensor<?x5x8xf32>
    %44 = "stablehlo.get_dimension_size"(%43) <{dimension = 0 : i64}> : (tensor<?x5x8xf32>) -> tensor<i32>
    %45 = "stablehlo.reshape"(%44) : (tensor<i32>) -> tensor<1xi32>
    %46 = "stablehlo.concatenate"(%45, %13, %12) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %47 = "stablehlo.maximum"(%46, %3) : (tensor<3xi32>, tensor<3xi32>) -> tensor<3xi32>
    %48 = "stablehlo.dynamic_broadcast_in_dim"(%arg0, %47) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<?x5x8xf32>, tensor<3xi32>) -> tensor<?x5x8xf32>
    %49 = "stablehlo.get_dimension_size"(%48) <{dimension = 0 : i64}> : (tensor<?x5x8xf32>) -> tensor<i32>
    %50 = "stablehlo.reshape"(%49) : (tensor<i32>) -> tensor<1xi32>
    %51 = "stablehlo.concatenate"(%50, %13, %12) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %52 = "stablehlo.dynamic_broadcast_in_dim"(%38, %42) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<?x5x1xf32>, tensor<3xi32>) -> tensor<?x5x8xf32>
    %53 = "stablehlo.get_dimension_size"(%52) <{dimension = 0 : i64}> : (tensor<?x5x8xf32>) -> tensor<i32>
    %54 = "stablehlo.reshape"(%53) : (tensor<i32>) -> tensor<1xi32>
    %55 = "stablehlo.concatenate"(%54, %13, %12) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %56 = "stablehlo.maximum"(%51, %55) : (tensor<3xi32>, tensor<3xi32>) -> tensor<3xi32>
    %57 = "stablehlo.dynamic_broadcast_in_dim"(%arg0, %56) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<?x5x8xf32>, tensor<3xi32>) -> tensor<?x5x8xf32>
    %58 = "stablehlo.dynamic_broadcast_in_dim"(%38, %56) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<?x5x1xf32>, tensor<3xi32>) -> tensor<?x5x8xf32>
    %59 = "stablehlo.dynamic_broadcast_in_dim"(%16, %47) <{broadcast_dimensions = array<i64>}> : (tensor<f32>, tensor<3xi32>) -> tensor<?x5x8xf32>
    %60 = "stablehlo.multiply"(%58, %59) : (tensor<?x5x8xf32>, tensor<?x5x8xf32>) -> tensor<?x5x8xf32>
    %61 = "stablehlo.add"(%57, %60) : (tensor<?x5x8xf32>, tensor<?x5x8xf32>) -> tensor<?x5x8xf32>
    %62 = "stablehlo.get_dimension_size"(%61) <{dimension = 0 : i64}> : (tensor<?x5x8xf32>) -> tensor<i32>
    %63 = "stablehlo.reshape"(%62) : (tensor<i32>) -> tensor<1xi32>
    %64 = "stablehlo.concatenate"(%63, %13, %12) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %65 = "stablehlo.dynamic_broadcast_in_dim"(%30, %34) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<?x5x1xf32>, tensor<3xi32>) -> tensor<?x5x8xf32>
    %66 = "stablehlo.subtract"(%arg0, %65) : (tensor<?x5x8xf32>, tensor<?x5x8xf32>) -> tensor<?x5x8xf32>
    %67 = "stablehlo.multiply"(%66, %66) : (tensor<?x5x8xf32>, tensor<?x5x8xf32>) -> tensor<?x5x8xf32>
    %68 = "stablehlo.reduce"(%67, %17) <{dimensions = array<i64: 2>}> ({
    ^bb0(%arg15: tensor<f32>, %arg16: tensor<f32>):
      %238 = "stablehlo.add"(%arg15, %arg16) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%238) : (tensor<f32>) -> ()
    }) : (tensor<?x5x8xf32>, tensor<f32>) -> tensor<?x5xf32>
    %69 = "stablehlo.get_dimension_size"(%68) <{dimension = 0 : i64}> : (tensor<?x5xf32>) -> tensor<i32>
    %70 = "stablehlo.reshape"(%69) : (tensor<i32>) -> tensor<1xi32>
    %71 = "stablehlo.concatenate"(%70, %13) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %72 = "stablehlo.maximum"(%71, %6) : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi32>
    %73 = "stablehlo.dynamic_broadcast_in_dim"(%68, %72) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<?x5xf32>, tensor<2xi32>) -> tensor<?x5xf32>
    %74 = "stablehlo.dynamic_broadcast_in_dim"(%5, %72) <{broadcast_dimensions = array<i64>}> : (tensor<f32>, tensor<2xi32>) -> tensor<?x5xf32>
    %75 = "stablehlo.multiply"(%73, %74) : (tensor<?x5xf32>, tensor<?x5xf32>) -> tensor<?x5xf32>
    %76 = "stablehlo.get_dimension_size"(%67) <{dimension = 0 : i64}> : (tensor<?x5x8xf32>) -> tensor<i32>
    %77 = "stablehlo.reshape"(%76) : (tensor<i32>) -> tensor<1xi32>
    %78 = "stablehlo.concatenate"(%77, %13, %4) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %79 = "stablehlo.dynamic_reshape"(%75, %78) : (tensor<?x5xf32>, tensor<3xi32>) -> tensor<?x5x1xf32>
    %80 = "stablehlo.get_dimension_size"(%79) <{dimension = 0 : i64}> : (tensor<?x5x1xf32>) -> tensor<i32>
    %81 = "stablehlo.reshape"(%80) : (tensor<i32>) -> tensor<1xi32>
    %82 = "stablehlo.concatenate"(%81, %13, %4) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %83 = "stablehlo.maximum"(%82, %3) : (tensor<3xi32>, tensor<3xi32>) -> tensor<3xi32>
    %84 = "stablehlo.dynamic_broadcast_in_dim"(%79, %83) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<?x5x1xf32>, tensor<3xi32>) -> tensor<?x5x1xf32>
    %85 = "stablehlo.get_dimension_size"(%84) <{dimension = 0 : i64}> : (tensor<?x5x1xf32>) -> tensor<i32>
    %86 = "stablehlo.reshape"(%85) : (tensor<i32>) -> tensor<1xi32>
    %87 = "stablehlo.concatenate"(%86, %13, %4) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %88 = "stablehlo.maximum"(%87, %3) : (tensor<3xi32>, tensor<3xi32>) -> tensor<3xi32>
    %89 = "stablehlo.dynamic_broadcast_in_dim"(%79, %88) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<?x5x1xf32>, tensor<3xi32>) -> tensor<?x5x1xf32>
    %90 = "stablehlo.get_dimension_size"(%89) <{dimension = 0 : i64}> : (tensor<?x5x1xf32>) -> tensor<i32>
    %91 = "stablehlo.reshape"(%90) : (tensor<i32>) -> tensor<1xi32>
    %92 = "stablehlo.concatenate"(%91, %13, %4) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %93 = "stablehlo.dynamic_broadcast_in_dim"(%14, %83) <{broadcast_dimensions = array<i64>}> : (tensor<f32>, tensor<3xi32>) -> tensor<?x5x1xf32>
    %94 = "stablehlo.get_dimension_size"(%93) <{dimension = 0 : i64}> : (tensor<?x5x1xf32>) -> tensor<i32>
    %95 = "stablehlo.reshape"(%94) : (tensor<i32>) -> tensor<1xi32>
    %96 = "stablehlo.concatenate"(%95, %13, %4) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %97 = "stablehlo.maximum"(%92, %96) : (tensor<3xi32>, tensor<3xi32>) -> tensor<3xi32>
    %98 = "stablehlo.dynamic_broadcast_in_dim"(%79, %97) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<?x5x1xf32>, tensor<3xi32>) -> tensor<?x5x1xf32>
    %99 = "stablehlo.dynamic_broadcast_in_dim"(%14, %97) <{broadcast_dimensions = array<i64>}> : (tensor<f32>, tensor<3xi32>) -> tensor<?x5x1xf32>
    %100 = "stablehlo.dynamic_broadcast_in_dim"(%16, %88) <{broadcast_dimensions = array<i64>}> : (tensor<f32>, tensor<3xi32>) -> tensor<?x5x1xf32>
    %101 = "stablehlo.multiply"(%99, %100) : (tensor<?x5x1xf32>, tensor<?x5x1xf32>) -> tensor<?x5x1xf32>
    %102 = "stablehlo.add"(%98, %101) : (tensor<?x5x1xf32>, tensor<?x5x1xf32>) -> tensor<?x5x1xf32>
    %103 = "stablehlo.rsqrt"(%102) : (tensor<?x5x1xf32>) -> tensor<?x5x1xf32>
    %104 = "stablehlo.get_dimension_size"(%103) <{dimension = 0 : i64}> : (tensor<?x5x1xf32>) -> tensor<i32>
    %105 = "stablehlo.reshape"(%104) : (tensor<i32>) -> tensor<1xi32>
    %106 = "stablehlo.concatenate"(%105, %13, %4) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %107 = "stablehlo.maximum"(%64, %106) : (tensor<3xi32>, tensor<3xi32>) -> tensor<3xi32>
    %108 = "stablehlo.dynamic_broadcast_in_dim"(%61, %107) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<?x5x8xf32>, tensor<3xi32>) -> tensor<?x5x8xf32>
    %109 = "stablehlo.dynamic_broadcast_in_dim"(%103, %107) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<?x5x1xf32>, tensor<3xi32>) -> tensor<?x5x8xf32>
    %110 = "stablehlo.multiply"(%108, %109) : (tensor<?x5x8xf32>, tensor<?x5x8xf32>) -> tensor<?x5x8xf32>
    %111 = "stablehlo.get_dimension_size"(%110) <{dimension = 0 : i64}> : (tensor<?x5x8xf32>) -> tensor<i32>
    %112 = "stablehlo.reshape"(%111) : (tensor<i32>) -> tensor<1xi32>
    %113 = "stablehlo.concatenate"(%112, %13, %12) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %114 = "stablehlo.maximum"(%113, %2) : (tensor<3xi32>, tensor<3xi32>) -> tensor<3xi32>
    %115 = "stablehlo.dynamic_broadcast_in_dim"(%110, %114) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<?x5x8xf32>, tensor<3xi32>) -> tensor<?x5x8xf32>
    %116 = "stablehlo.dynamic_broadcast_in_dim"(%arg6, %114) <{broadcast_dimensions = array<i64: 2>}> : (tensor<8xf32>, tensor<3xi32>) -> tensor<?x5x8xf32>
    %117 = "stablehlo.multiply"(%115, %116) : (tensor<?x5x8xf32>, tensor<?x5x8xf32>) -> tensor<?x5x8xf32>
    %118 = "stablehlo.get_dimension_size"(%117) <{dimension = 0 : i64}> : (tensor<?x5x8xf32>) -> tensor<i32>
    %119 = "stablehlo.reshape"(%118) : (tensor<i32>) -> tensor<1xi32>
    %120 = "stablehlo.concatenate"(%119, %13, %12) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %121 = "stablehlo.maximum"(%120, %2) : (tensor<3xi32>, tensor<3xi32>) -> tensor<3xi32>
    %122 = "stablehlo.dynamic_broadcast_in_dim"(%117, %121) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<?x5x8xf32>, tensor<3xi32>) -> tensor<?x5x8xf32>
    %123 = "stablehlo.get_dimension_size"(%122) <{dimension = 0 : i64}> : (tensor<?x5x8xf32>) -> tensor<i32>
    %124 = "stablehlo.reshape"(%123) : (tensor<i32>) -> tensor<1xi32>
    %125 = "stablehlo.concatenate"(%124, %13, %12) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %126 = "stablehlo.maximum"(%125, %3) : (tensor<3xi32>, tensor<3xi32>) -> tensor<3xi32>
    %127 = "stablehlo.dynamic_broadcast_in_dim"(%117, %126) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<?x5x8xf32>, tensor<3xi32>) -> tensor<?x5x8xf32>
    %128 = "stablehlo.get_dimension_size"(%127) <{dimension = 0 : i64}> : (tensor<?x5x8xf32>) -> tensor<i32>
    %129 = "stablehlo.reshape"(%128) : (tensor<i32>) -> tensor<1xi32>
    %130 = "stablehlo.concatenate"(%129, %13, %12) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %131 = "stablehlo.dynamic_broadcast_in_dim"(%arg5, %121) <{broadcast_dimensions = array<i64: 2>}> : (tensor<8xf32>, tensor<3xi32>) -> tensor<?x5x8xf32>
    %132 = "stablehlo.get_dimension_size"(%131) <{dimension = 0 : i64}> : (tensor<?x5x8xf32>) -> tensor<i32>
    %133 = "stablehlo.reshape"(%132) : (tensor<i32>) -> tensor<1xi32>
    %134 = "stablehlo.concatenate"(%133, %13, %12) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %135 = "stablehlo.maximum"(%130, %134) : (tensor<3xi32>, tensor<3xi32>) -> tensor<3xi32>
    %136 = "stablehlo.dynamic_broadcast_in_dim"(%117, %135) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<?x5x8xf32>, tensor<3xi32>) -> tensor<?x5x8xf32>
    %137 = "stablehlo.dynamic_broadcast_in_dim"(%arg5, %135) <{broadcast_dimensions = array<i64: 2>}> : (tensor<8xf32>, tensor<3xi32>) -> tensor<?x5x8xf32>
    %138 = "stablehlo.dynamic_broadcast_in_dim"(%16, %126) <{broadcast_dimensions = array<i64>}> : (tensor<f32>, tensor<3xi32>) -> tensor<?x5x8xf32>
    %139 = "stablehlo.multiply"(%137, %138) : (tensor<?x5x8xf32>, tensor<?x5x8xf32>) -> tensor<?x5x8xf32>
    %140 = "stablehlo.add"(%136, %139) : (tensor<?x5x8xf32>, tensor<?x5x8xf32>) -> tensor<?x5x8xf32>
    %141 = "stablehlo.multiply"(%19, %13) : (tensor<1xi32>, tensor<1xi32>) -> tensor<1xi32>
    %142 = "stablehlo.concatenate"(%141, %12) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %143 = "stablehlo.dynamic_reshape"(%140, %142) : (tensor<?x5x8xf32>, tensor<2xi32>) -> tensor<?x8xf32>
    %144 = "stablehlo.transpose"(%arg10) <{permutation = array<i64: 1, 0>}> {result_layout = dense<[0, 1]> : tensor<2xindex>, xla_shape = "f32[8,8]{0,1}"} : (tensor<8x8xf32>) -> tensor<8x8xf32>
    %145 = "stablehlo.dot_general"(%143, %144) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<?x8xf32>, tensor<8x8xf32>) -> tensor<?x8xf32>
    %146 = "stablehlo.get_dimension_size"(%145) <{dimension = 0 : i64}> : (tensor<?x8xf32>) -> tensor<i32>
    %147 = "stablehlo.reshape"(%146) : (tensor<i32>) -> tensor<1xi32>
    %148 = "stablehlo.concatenate"(%147, %12) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %149 = "stablehlo.dynamic_broadcast_in_dim"(%arg9, %148) <{broadcast_dimensions = array<i64: 1>}> : (tensor<8xf32>, tensor<2xi32>) -> tensor<?x8xf32>
    %150 = "stablehlo.add"(%145, %149) : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
    %151 = "stablehlo.concatenate"(%19, %11) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<2xi32>) -> tensor<3xi32>
    %152 = "stablehlo.dynamic_reshape"(%150, %151) : (tensor<?x8xf32>, tensor<3xi32>) -> tensor<?x5x8xf32>
    %153 = "stablehlo.dynamic_broadcast_in_dim"(%152, %20) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<?x5x8xf32>, tensor<3xi32>) -> tensor<?x5x8xf32>
    %154 = "stablehlo.dynamic_reshape"(%153, %151) : (tensor<?x5x8xf32>, tensor<3xi32>) -> tensor<?x5x8xf32>
    %155 = "stablehlo.transpose"(%arg8) <{permutation = array<i64: 1, 0>}> {result_layout = dense<[0, 1]> : tensor<2xindex>, xla_shape = "f32[8,8]{0,1}"} : (tensor<8x8xf32>) -> tensor<8x8xf32>
    %156 = "stablehlo.dot_general"(%143, %155) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<?x8xf32>, tensor<8x8xf32>) -> tensor<?x8xf32>
    %157 = "stablehlo.get_dimension_size"(%156) <{dimension = 0 : i64}> : (tensor<?x8xf32>) -> tensor<i32>
    %158 = "stablehlo.reshape"(%157) : (tensor<i32>) -> tensor<1xi32>
    %159 = "stablehlo.concatenate"(%158, %12) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %160 = "stablehlo.dynamic_broadcast_in_dim"(%arg7, %159) <{broadcast_dimensions = array<i64: 1>}> : (tensor<8xf32>, tensor<2xi32>) -> tensor<?x8xf32>
    %161 = "stablehlo.add"(%156, %160) : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
    %162 = "stablehlo.dynamic_reshape"(%161, %151) : (tensor<?x8xf32>, tensor<3xi32>) -> tensor<?x5x8xf32>
    %163 = "stablehlo.transpose"(%162) <{permutation = array<i64: 0, 2, 1>}> {result_layout = dense<[1, 2, 0]> : tensor<3xindex>, xla_shape = "f32[?,8,5]{1,2,0}"} : (tensor<?x5x8xf32>) -> tensor<?x8x5xf32>
    %164 = "stablehlo.concatenate"(%19, %12, %13) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %165 = "stablehlo.dynamic_broadcast_in_dim"(%163, %164) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<?x8x5xf32>, tensor<3xi32>) -> tensor<?x8x5xf32>
    %166 = "stablehlo.concatenate"(%19, %10) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<2xi32>) -> tensor<3xi32>
    %167 = "stablehlo.dynamic_reshape"(%165, %166) : (tensor<?x8x5xf32>, tensor<3xi32>) -> tensor<?x8x5xf32>
    %168 = "stablehlo.dot_general"(%154, %167) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [1]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<?x5x8xf32>, tensor<?x8x5xf32>) -> tensor<?x5x5xf32>
    %169 = "stablehlo.concatenate"(%19, %1) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<2xi32>) -> tensor<3xi32>
    %170 = "stablehlo.dynamic_reshape"(%168, %169) : (tensor<?x5x5xf32>, tensor<3xi32>) -> tensor<?x5x5xf32>
    %171 = "stablehlo.get_dimension_size"(%170) <{dimension = 0 : i64}> : (tensor<?x5x5xf32>) -> tensor<i32>
    %172 = "stablehlo.reshape"(%171) : (tensor<i32>) -> tensor<1xi32>
    %173 = "stablehlo.concatenate"(%172, %13, %13) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %174 = "stablehlo.maximum"(%173, %3) : (tensor<3xi32>, tensor<3xi32>) -> tensor<3xi32>
    %175 = "stablehlo.dynamic_broadcast_in_dim"(%170, %174) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<?x5x5xf32>, tensor<3xi32>) -> tensor<?x5x5xf32>
    %176 = "stablehlo.dynamic_broadcast_in_dim"(%9, %174) <{broadcast_dimensions = array<i64>}> : (tensor<f32>, tensor<3xi32>) -> tensor<?x5x5xf32>
    %177 = "stablehlo.divide"(%175, %176) : (tensor<?x5x5xf32>, tensor<?x5x5xf32>) -> tensor<?x5x5xf32>
    %178 = "stablehlo.reduce"(%177, %8) <{dimensions = array<i64: 2>}> ({
    ^bb0(%arg13: tensor<f32>, %arg14: tensor<f32>):
      %237 = "stablehlo.maximum"(%arg13, %arg14) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%237) : (tensor<f32>) -> ()
    }) : (tensor<?x5x5xf32>, tensor<f32>) -> tensor<?x5xf32>
    %179 = "stablehlo.get_dimension_size"(%177) <{dimension = 0 : i64}> : (tensor<?x5x5xf32>) -> tensor<i32>
    %180 = "stablehlo.reshape"(%179) : (tensor<i32>) -> tensor<1xi32>
    %181 = "stablehlo.concatenate"(%180, %13, %13) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %182 = "stablehlo.dynamic_broadcast_in_dim"(%178, %181) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<?x5xf32>, tensor<3xi32>) -> tensor<?x5x5xf32>
    %183 = "stablehlo.subtract"(%177, %182) : (tensor<?x5x5xf32>, tensor<?x5x5xf32>) -> tensor<?x5x5xf32>
    %184 = "stablehlo.exponential"(%183) : (tensor<?x5x5xf32>) -> tensor<?x5x5xf32>
    %185 = "stablehlo.reduce"(%184, %17) <{dimensions = array<i64: 2>}> ({
    ^bb0(%arg11: tensor<f32>, %arg12: tensor<f32>):
      %236 = "stablehlo.add"(%arg11, %arg12) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%236) : (tensor<f32>) -> ()
    }) : (tensor<?x5x5xf32>, tensor<f32>) -> tensor<?x5xf32>
    %186 = "stablehlo.dynamic_broadcast_in_dim"(%185, %181) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<?x5xf32>, tensor<3xi32>) -> tensor<?x5x5xf32>
    %187 = "stablehlo.divide"(%184, %186) : (tensor<?x5x5xf32>, tensor<?x5x5xf32>) -> tensor<?x5x5xf32>
    %188 = "stablehlo.concatenate"(%19, %13, %13) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %189 = "stablehlo.dynamic_broadcast_in_dim"(%187, %188) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<?x5x5xf32>, tensor<3xi32>) -> tensor<?x5x5xf32>
    %190 = "stablehlo.dynamic_reshape"(%189, %169) : (tensor<?x5x5xf32>, tensor<3xi32>) -> tensor<?x5x5xf32>
    %191 = "stablehlo.transpose"(%arg4) <{permutation = array<i64: 1, 0>}> {result_layout = dense<[0, 1]> : tensor<2xindex>, xla_shape = "f32[8,8]{0,1}"} : (tensor<8x8xf32>) -> tensor<8x8xf32>
    %192 = "stablehlo.dot_general"(%143, %191) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<?x8xf32>, tensor<8x8xf32>) -> tensor<?x8xf32>
    %193 = "stablehlo.get_dimension_size"(%192) <{dimension = 0 : i64}> : (tensor<?x8xf32>) -> tensor<i32>
    %194 = "stablehlo.reshape"(%193) : (tensor<i32>) -> tensor<1xi32>
    %195 = "stablehlo.concatenate"(%194, %12) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %196 = "stablehlo.dynamic_broadcast_in_dim"(%arg3, %195) <{broadcast_dimensions = array<i64: 1>}> : (tensor<8xf32>, tensor<2xi32>) -> tensor<?x8xf32>
    %197 = "stablehlo.add"(%192, %196) : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
    %198 = "stablehlo.dynamic_reshape"(%197, %151) : (tensor<?x8xf32>, tensor<3xi32>) -> tensor<?x5x8xf32>
    %199 = "stablehlo.dynamic_broadcast_in_dim"(%198, %20) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<?x5x8xf32>, tensor<3xi32>) -> tensor<?x5x8xf32>
    %200 = "stablehlo.dynamic_reshape"(%199, %151) : (tensor<?x5x8xf32>, tensor<3xi32>) -> tensor<?x5x8xf32>
    %201 = "stablehlo.dot_general"(%190, %200) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [1]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<?x5x5xf32>, tensor<?x5x8xf32>) -> tensor<?x5x8xf32>
    %202 = "stablehlo.dynamic_reshape"(%201, %151) : (tensor<?x5x8xf32>, tensor<3xi32>) -> tensor<?x5x8xf32>
    %203 = "stablehlo.get_dimension_size"(%202) <{dimension = 0 : i64}> : (tensor<?x5x8xf32>) -> tensor<i32>
    %204 = "stablehlo.reshape"(%203) : (tensor<i32>) -> tensor<1xi32>
    %205 = "stablehlo.concatenate"(%204, %13, %12) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %206 = "stablehlo.maximum"(%20, %205) : (tensor<3xi32>, tensor<3xi32>) -> tensor<3xi32>
    %207 = "stablehlo.dynamic_broadcast_in_dim"(%arg0, %206) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<?x5x8xf32>, tensor<3xi32>) -> tensor<?x5x8xf32>
    %208 = "stablehlo.get_dimension_size"(%207) <{dimension = 0 : i64}> : (tensor<?x5x8xf32>) -> tensor<i32>
    %209 = "stablehlo.reshape"(%208) : (tensor<i32>) -> tensor<1xi32>
    %210 = "stablehlo.concatenate"(%209, %13, %12) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %211 = "stablehlo.maximum"(%210, %3) : (tensor<3xi32>, tensor<3xi32>) -> tensor<3xi32>
    %212 = "stablehlo.dynamic_broadcast_in_dim"(%arg0, %211) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<?x5x8xf32>, tensor<3xi32>) -> tensor<?x5x8xf32>
    %213 = "stablehlo.get_dimension_size"(%212) <{dimension = 0 : i64}> : (tensor<?x5x8xf32>) -> tensor<i32>
    %214 = "stablehlo.reshape"(%213) : (tensor<i32>) -> tensor<1xi32>
    %215 = "stablehlo.concatenate"(%214, %13, %12) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %216 = "stablehlo.dynamic_broadcast_in_dim"(%202, %206) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<?x5x8xf32>, tensor<3xi32>) -> tensor<?x5x8xf32>
    %217 = "stablehlo.get_dimension_size"(%216) <{dimension = 0 : i64}> : (tensor<?x5x8xf32>) -> tensor<i32>
    %218 = "stablehlo.reshape"(%217) : (tensor<i32>) -> tensor<1xi32>
    %219 = "stablehlo.concatenate"(%218, %13, %12) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %220 = "stablehlo.maximum"(%215, %219) : (tensor<3xi32>, tensor<3xi32>) -> tensor<3xi32>
    %221 = "stablehlo.dynamic_broadcast_in_dim"(%arg0, %220) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<?x5x8xf32>, tensor<3xi32>) -> tensor<?x5x8xf32>
    %222 = "stablehlo.dynamic_broadcast_in_dim"(%202, %220) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<?x5x8xf32>, tensor<3xi32>) -> tensor<?x5x8xf32>
    %223 = "stablehlo.dynamic_broadcast_in_dim"(%16, %211) <{broadcast_dimensions = array<i64>}> : (tensor<f32>, tensor<3xi32>) -> tensor<?x5x8xf32>
    %224 = "stablehlo.multiply"(%222, %223) : (tensor<?x5x8xf32>, tensor<?x5x8xf32>) -> tensor<?x5x8xf32>
    %225 = "stablehlo.add"(%221, %224) : (tensor<?x5x8xf32>, tensor<?x5x8xf32>) -> tensor<?x5x8xf32>
    %226 = "stablehlo.dynamic_reshape"(%225, %142) : (tensor<?x5x8xf32>, tensor<2xi32>) -> tensor<?x8xf32>
    %227 = "stablehlo.transpose"(%arg2) <{permutation = array<i64: 1, 0>}> {result_layout = dense<[0, 1]> : tensor<2xindex>, xla_shape = "f32[8,3]{0,1}"} : (tensor<3x8xf32>) -> tensor<8x3xf32>
    %228 = "stablehlo.dot_general"(%226, %227) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<?x8xf32>, tensor<8x3xf32>) -> tensor<?x3xf32>
    %229 = "stablehlo.get_dimension_size"(%228) <{dimension = 0 : i64}> : (tensor<?x3xf32>) -> tensor<i32>
    %230 = "stablehlo.reshape"(%229) : (tensor<i32>) -> tensor<1xi32>
    %231 = "stablehlo.concatenate"(%230, %0) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %232 = "stablehlo.dynamic_broadcast_in_dim"(%arg1, %231) <{broadcast_dimensions = array<i64: 1>}> : (tensor<3xf32>, tensor<2xi32>) -> tensor<?x3xf32>
    %233 = "stablehlo.add"(%228, %232) : (tensor<?x3xf32>, tensor<?x3xf32>) -> tensor<?x3xf32>
    %234 = "stablehlo.concatenate"(%19, %7) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<2xi32>) -> tensor<3xi32>
    %235 = "stablehlo.dynamic_reshape"(%233, %234) : (tensor<?x3xf32>, tensor<3xi32>) -> tensor<?x5x3xf32>
    "func.return"(%235) : (tensor<?x5x3xf32>) -> ()
  }) : () -> ()
}) {mhlo.cross_program_prefetches = [], mhlo.input_output_alias = [], mhlo.is_dynamic = false, mhlo.use_auto_spmd_partitioning = false} : () -> ()
