// SPDX-License-Identifier: Apache-2.0
// Attention between convolutions, with a penalty on each of its kernels, which are transposed before they are
// multiplied: the shared block's bytes are used again.
module {
  mt.model @r9040 {
    %a = mt.input "a" : tensor<?x3x4xf32>
    %depthwise_conv1d_18 = mt.reshape %a : tensor<?x3x4xf32> to tensor<?x1x3x4xf32>
    %depthwise_conv1d_18_0 = mt.variable "depthwise_conv1d_18/kernel" init(glorot_uniform) : tensor<2x4x2xf32>
    %depthwise_conv1d_18_1 = mt.reshape %depthwise_conv1d_18_0 : tensor<2x4x2xf32> to tensor<1x2x1x8xf32>
    %depthwise_conv1d_18_2 = mt.conv2d %depthwise_conv1d_18, %depthwise_conv1d_18_1 padding = [0, 0, 1, 1] dilation = [1, 2] groups = 4 : tensor<?x1x3x4xf32>, tensor<1x2x1x8xf32>
    %depthwise_conv1d_18_3 = mt.reshape %depthwise_conv1d_18_2 : tensor<?x1x3x8xf32> to tensor<?x3x8xf32>
    %depthwise_conv1d_18_4 = mt.softsign %depthwise_conv1d_18_3 : tensor<?x3x8xf32>
    %dense_187 = mt.variable "dense_187/kernel" init(glorot_uniform) : tensor<8x4xf32>
    %dense_187_5 = mt.matmul %depthwise_conv1d_18_4, %dense_187 : tensor<?x3x8xf32>, tensor<8x4xf32>
    %dense_187_6 = mt.variable "dense_187/bias" init(zeros) : tensor<4xf32>
    %dense_187_7 = mt.add %dense_187_5, %dense_187_6 : tensor<?x3x4xf32>, tensor<4xf32>
    %att = mt.variable "attention/query/kernel" init(glorot_uniform) : tensor<8x1x3xf32>
    mt.regularizer %att l1 = 0.00999999977 : tensor<8x1x3xf32>
    %att_8 = mt.variable "attention/query/bias" init(zeros) : tensor<1x3xf32>
    %att_9_moved = mt.transpose %att by [1, 0, 2] : tensor<8x1x3xf32>
    %att_9 = mt.reshape %att_9_moved : tensor<1x8x3xf32> to tensor<8x3xf32>
    %att_10 = mt.matmul %depthwise_conv1d_18_4, %att_9 : tensor<?x3x8xf32>, tensor<8x3xf32>
    %att_11 = mt.reshape %att_8 : tensor<1x3xf32> to tensor<3xf32>
    %att_12 = mt.add %att_10, %att_11 : tensor<?x3x3xf32>, tensor<3xf32>
    %att_13 = mt.variable "attention/key/kernel" init(glorot_uniform) : tensor<4x1x3xf32>
    mt.regularizer %att_13 l1 = 0.00999999977 : tensor<4x1x3xf32>
    %att_14 = mt.variable "attention/key/bias" init(zeros) : tensor<1x3xf32>
    %att_15_moved = mt.transpose %att_13 by [1, 0, 2] : tensor<4x1x3xf32>
    %att_15 = mt.reshape %att_15_moved : tensor<1x4x3xf32> to tensor<4x3xf32>
    %att_16 = mt.matmul %dense_187_7, %att_15 : tensor<?x3x4xf32>, tensor<4x3xf32>
    %att_17 = mt.reshape %att_14 : tensor<1x3xf32> to tensor<3xf32>
    %att_18 = mt.add %att_16, %att_17 : tensor<?x3x3xf32>, tensor<3xf32>
    %att_19 = mt.variable "attention/gate/kernel" init(glorot_uniform) : tensor<8x1x3xf32>
    mt.regularizer %att_19 l1 = 0.00999999977 : tensor<8x1x3xf32>
    %att_20 = mt.variable "attention/gate/bias" init(zeros) : tensor<1x3xf32>
    %att_21_moved = mt.transpose %att_19 by [1, 0, 2] : tensor<8x1x3xf32>
    %att_21 = mt.reshape %att_21_moved : tensor<1x8x3xf32> to tensor<8x3xf32>
    %att_22 = mt.matmul %depthwise_conv1d_18_4, %att_21 : tensor<?x3x8xf32>, tensor<8x3xf32>
    %att_23 = mt.reshape %att_20 : tensor<1x3xf32> to tensor<3xf32>
    %att_24 = mt.add %att_22, %att_23 : tensor<?x3x3xf32>, tensor<3xf32>
    %att_25 = mt.variable "attention/value/kernel" init(glorot_uniform) : tensor<4x1x3xf32>
    mt.regularizer %att_25 l1 = 0.00999999977 : tensor<4x1x3xf32>
    %att_26 = mt.variable "attention/value/bias" init(zeros) : tensor<1x3xf32>
    %att_27_moved = mt.transpose %att_25 by [1, 0, 2] : tensor<4x1x3xf32>
    %att_27 = mt.reshape %att_27_moved : tensor<1x4x3xf32> to tensor<4x3xf32>
    %att_28 = mt.matmul %dense_187_7, %att_27 : tensor<?x3x4xf32>, tensor<4x3xf32>
    %att_29 = mt.reshape %att_26 : tensor<1x3xf32> to tensor<3xf32>
    %att_30 = mt.add %att_28, %att_29 : tensor<?x3x3xf32>, tensor<3xf32>
    %att_31 = mt.attention %att_12, %att_18, %att_30 : tensor<?x3x3xf32>, tensor<?x3x3xf32>, tensor<?x3x3xf32>
    %att_32 = mt.sigmoid %att_24 : tensor<?x3x3xf32>
    %att_33 = mt.mul %att_31, %att_32 : tensor<?x3x3xf32>, tensor<?x3x3xf32>
    %att_34 = mt.variable "attention/attention_output/kernel" init(glorot_uniform) : tensor<1x3x8xf32>
    mt.regularizer %att_34 l1 = 0.00999999977 : tensor<1x3x8xf32>
    %att_35 = mt.variable "attention/attention_output/bias" init(zeros) : tensor<8xf32>
    %att_36_moved = mt.transpose %att_34 by [1, 0, 2] : tensor<1x3x8xf32>
    %att_36 = mt.reshape %att_36_moved : tensor<3x1x8xf32> to tensor<3x8xf32>
    %att_37 = mt.matmul %att_33, %att_36 : tensor<?x3x3xf32>, tensor<3x8xf32>
    %att_38 = mt.add %att_37, %att_35 : tensor<?x3x8xf32>, tensor<8xf32>
    %global_average_pooling1d_9 = mt.reduce sum, %att_38 over [1] : tensor<?x3x8xf32>
    %global_average_pooling1d_9_39 = mt.constant dense<3.000000e+00> : tensor<f32>
    %global_average_pooling1d_9_40 = mt.div %global_average_pooling1d_9, %global_average_pooling1d_9_39 : tensor<?x8xf32>, tensor<f32>
    %normalization_10 = mt.constant dense<3.000000e-01> : tensor<f32>
    %normalization_10_41 = mt.constant dense<2.000000e+00> : tensor<f32>
    %normalization_10_42 = mt.sqrt %normalization_10_41 : tensor<f32>
    %normalization_10_43 = mt.constant dense<1.000000e-07> : tensor<f32>
    %normalization_10_44 = mt.maximum %normalization_10_42, %normalization_10_43 : tensor<f32>, tensor<f32>
    %normalization_10_45 = mt.mul %global_average_pooling1d_9_40, %normalization_10_44 : tensor<?x8xf32>, tensor<f32>
    %normalization_10_46 = mt.add %normalization_10, %normalization_10_45 : tensor<f32>, tensor<?x8xf32>
    %unit_normalization_61 = mt.square %normalization_10_46 : tensor<?x8xf32>
    %unit_normalization_61_47 = mt.reduce sum, %unit_normalization_61 over [1] : tensor<?x8xf32>
    %unit_normalization_61_48 = mt.reshape %unit_normalization_61_47 : tensor<?xf32> to tensor<?x1xf32>
    %unit_normalization_61_49 = mt.constant dense<9.99999996E-13> : tensor<f32>
    %unit_normalization_61_50 = mt.maximum %unit_normalization_61_48, %unit_normalization_61_49 : tensor<?x1xf32>, tensor<f32>
    %unit_normalization_61_51 = mt.sqrt %unit_normalization_61_50 : tensor<?x1xf32>
    %unit_normalization_61_52 = mt.div %normalization_10_46, %unit_normalization_61_51 : tensor<?x8xf32>, tensor<?x1xf32>
    %unit_normalization_62 = mt.square %normalization_10_46 : tensor<?x8xf32>
    %unit_normalization_62_53 = mt.reduce sum, %unit_normalization_62 over [1] : tensor<?x8xf32>
    %unit_normalization_62_54 = mt.reshape %unit_normalization_62_53 : tensor<?xf32> to tensor<?x1xf32>
    %unit_normalization_62_55 = mt.constant dense<9.99999996E-13> : tensor<f32>
    %unit_normalization_62_56 = mt.maximum %unit_normalization_62_54, %unit_normalization_62_55 : tensor<?x1xf32>, tensor<f32>
    %unit_normalization_62_57 = mt.sqrt %unit_normalization_62_56 : tensor<?x1xf32>
    %unit_normalization_62_58 = mt.div %normalization_10_46, %unit_normalization_62_57 : tensor<?x8xf32>, tensor<?x1xf32>
    %out0 = mt.variable "out0/kernel" init(glorot_uniform) : tensor<8x3xf32>
    %out0_59 = mt.matmul %unit_normalization_61_52, %out0 : tensor<?x8xf32>, tensor<8x3xf32>
    %out0_60 = mt.variable "out0/bias" init(zeros) : tensor<3xf32>
    %out0_61 = mt.add %out0_59, %out0_60 : tensor<?x3xf32>, tensor<3xf32>
    %out0_62 = mt.softmax %out0_61 : tensor<?x3xf32>
    %out1 = mt.variable "out1/kernel" init(glorot_uniform) : tensor<8x3xf32>
    %out1_63 = mt.matmul %unit_normalization_62_58, %out1 : tensor<?x8xf32>, tensor<8x3xf32>
    %out1_64 = mt.variable "out1/bias" init(zeros) : tensor<3xf32>
    %out1_65 = mt.add %out1_63, %out1_64 : tensor<?x3xf32>, tensor<3xf32>
    %out1_66 = mt.softmax %out1_65 : tensor<?x3xf32>
    %out0_67 = mt.target "out0_target" : tensor<?x3xf32>
    %out0_68 = mt.mean_squared_error %out0_62, %out0_67 : tensor<?x3xf32>, tensor<?x3xf32>
    mt.loss "out0_loss", %out0_68 : tensor<?xf32>
    %out1_69 = mt.target "out1_target" : tensor<?x3xf32>
    %out1_70 = mt.mean_squared_error %out1_66, %out1_69 : tensor<?x3xf32>, tensor<?x3xf32>
    mt.loss "out1_loss", %out1_70 : tensor<?xf32>
    mt.output "out0", %out0_62 : tensor<?x3xf32>
    mt.output "out1", %out1_66 : tensor<?x3xf32>
    mt.adam
  }
}

