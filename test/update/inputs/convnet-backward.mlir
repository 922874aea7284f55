// SPDX-License-Identifier: Apache-2.0
// A training step of a convnet whose backward pass JAX wrote, as it is traced: convolutions of the samples, with zeros
// between the images and with a reversed kernel.
module attributes {graph.version = 1 : i32} {
  mt.model @convnet {
    %0 = mt.input "x" : tensor<?x12x12x3xf32>
    %1 = mt.input "y" : tensor<?x3xf32>
    %2 = mt.variable "bias" init(zeros) : tensor<8xf32>
    %3 = mt.variable "dense" init(glorot_uniform) : tensor<48x3xf32>
    %4 = mt.variable "same" init(glorot_uniform) : tensor<3x3x3x8xf32>
    %5 = mt.variable "valid" init(glorot_uniform) : tensor<3x3x8x12xf32>
    %6 = mt.variable "optimizer/iteration" init(zeros) frozen role(iteration) : tensor<i32>
    mt.update {
      %7 = mt.constant dense<0x3DCCCCCD> : tensor<f32>
      %8 = graph.logical %7 : tensor<f32> -> !graph.value<[], f32>
      %9 = graph.logical %0 : tensor<?x12x12x3xf32> -> !graph.value<[b, 12, 12, 3], f32>
      %10 = graph.transpose %9 by [0, 3, 1, 2] : (!graph.value<[b, 12, 12, 3], f32>) -> !graph.value<[b, 3, 12, 12], f32>
      %11 = graph.logical %4 : tensor<3x3x3x8xf32> -> !graph.value<[3, 3, 3, 8], f32>
      %12 = graph.transpose %11 by [3, 2, 0, 1] : (!graph.value<[3, 3, 3, 8], f32>) -> !graph.value<[8, 3, 3, 3], f32>
      %13 = graph.convolution %10, %12 padding [1, 1, 1, 1] : (!graph.value<[b, 3, 12, 12], f32>, !graph.value<[8, 3, 3, 3], f32>) -> !graph.value<[b, 8, 12, 12], f32>
      %14 = graph.transpose %13 by [0, 2, 3, 1] : (!graph.value<[b, 8, 12, 12], f32>) -> !graph.value<[b, 12, 12, 8], f32>
      %15 = graph.logical %2 : tensor<8xf32> -> !graph.value<[8], f32>
      %16 = graph.broadcast %15 dims [3] : (!graph.value<[8], f32>) -> !graph.value<[1, 1, 1, 8], f32>
      %17 = graph.elementwise "add"(%14, %16) : (!graph.value<[b, 12, 12, 8], f32>, !graph.value<[1, 1, 1, 8], f32>) -> !graph.value<[b, 12, 12, 8], f32>
      %18 = mt.constant dense<0x00000000> : tensor<f32>
      %19 = graph.logical %18 : tensor<f32> -> !graph.value<[], f32>
      %20 = graph.elementwise "compare"(%17, %19) {kind = #mt<compare_kind gt>} : (!graph.value<[b, 12, 12, 8], f32>, !graph.value<[], f32>) -> !graph.value<[b, 12, 12, 8], i1>
      %21 = graph.elementwise "maximum"(%17, %19) : (!graph.value<[b, 12, 12, 8], f32>, !graph.value<[], f32>) -> !graph.value<[b, 12, 12, 8], f32>
      %22 = graph.transpose %21 by [0, 3, 1, 2] : (!graph.value<[b, 12, 12, 8], f32>) -> !graph.value<[b, 8, 12, 12], f32>
      %23 = graph.pool max, %22 window [2, 2] strides [2, 2] : (!graph.value<[b, 8, 12, 12], f32>) -> !graph.value<[b, 8, 6, 6], f32>
      %24 = graph.logical %5 : tensor<3x3x8x12xf32> -> !graph.value<[3, 3, 8, 12], f32>
      %25 = graph.transpose %24 by [3, 2, 0, 1] : (!graph.value<[3, 3, 8, 12], f32>) -> !graph.value<[12, 8, 3, 3], f32>
      %26 = graph.convolution %23, %25 strides [2, 2] : (!graph.value<[b, 8, 6, 6], f32>, !graph.value<[12, 8, 3, 3], f32>) -> !graph.value<[b, 12, 2, 2], f32>
      %27 = graph.transpose %26 by [0, 2, 3, 1] : (!graph.value<[b, 12, 2, 2], f32>) -> !graph.value<[b, 2, 2, 12], f32>
      %28 = graph.elementwise "compare"(%27, %19) {kind = #mt<compare_kind gt>} : (!graph.value<[b, 2, 2, 12], f32>, !graph.value<[], f32>) -> !graph.value<[b, 2, 2, 12], i1>
      %29 = mt.constant dense<0x3F800000> : tensor<f32>
      %30 = graph.logical %29 : tensor<f32> -> !graph.value<[], f32>
      %31 = mt.batch_size
      %32 = graph.logical %31 : tensor<f32> -> !graph.value<[], f32>
      %33 = graph.elementwise "div"(%30, %32) : (!graph.value<[], f32>, !graph.value<[], f32>) -> !graph.value<[], f32>
      %34 = graph.broadcast %33 dims [] : (!graph.value<[], f32>) -> !graph.value<[b, 3], f32>
      %35 = mt.constant dense<0x40000000> : tensor<f32>
      %36 = graph.logical %35 : tensor<f32> -> !graph.value<[], f32>
      %37 = graph.elementwise "maximum"(%27, %19) : (!graph.value<[b, 2, 2, 12], f32>, !graph.value<[], f32>) -> !graph.value<[b, 2, 2, 12], f32>
      %38 = graph.reshape %37 : (!graph.value<[b, 2, 2, 12], f32>) -> !graph.value<[b, 48], f32>
      %39 = graph.logical %3 : tensor<48x3xf32> -> !graph.value<[48, 3], f32>
      %40 = graph.dot_general %38, %39 contract [1] x [0] : (!graph.value<[b, 48], f32>, !graph.value<[48, 3], f32>) -> !graph.value<[b, 3], f32>
      %41 = graph.logical %1 : tensor<?x3xf32> -> !graph.value<[b, 3], f32>
      %42 = graph.elementwise "sub"(%40, %41) : (!graph.value<[b, 3], f32>, !graph.value<[b, 3], f32>) -> !graph.value<[b, 3], f32>
      %43 = graph.elementwise "mul"(%36, %42) : (!graph.value<[], f32>, !graph.value<[b, 3], f32>) -> !graph.value<[b, 3], f32>
      %44 = graph.elementwise "mul"(%34, %43) : (!graph.value<[b, 3], f32>, !graph.value<[b, 3], f32>) -> !graph.value<[b, 3], f32>
      %45 = graph.dot_general %44, %39 contract [1] x [1] : (!graph.value<[b, 3], f32>, !graph.value<[48, 3], f32>) -> !graph.value<[b, 48], f32>
      %46 = graph.reshape %45 : (!graph.value<[b, 48], f32>) -> !graph.value<[b, 2, 2, 12], f32>
      %47 = graph.elementwise "select"(%28, %46, %19) : (!graph.value<[b, 2, 2, 12], i1>, !graph.value<[b, 2, 2, 12], f32>, !graph.value<[], f32>) -> !graph.value<[b, 2, 2, 12], f32>
      %48 = graph.transpose %47 by [0, 3, 1, 2] : (!graph.value<[b, 2, 2, 12], f32>) -> !graph.value<[b, 12, 2, 2], f32>
      %49 = graph.reverse %24 over [0, 1] : (!graph.value<[3, 3, 8, 12], f32>) -> !graph.value<[3, 3, 8, 12], f32>
      %50 = graph.transpose %49 by [2, 3, 0, 1] : (!graph.value<[3, 3, 8, 12], f32>) -> !graph.value<[8, 12, 3, 3], f32>
      %51 = graph.convolution %48, %50 padding [2, 3, 2, 3] spread [2, 2] : (!graph.value<[b, 12, 2, 2], f32>, !graph.value<[8, 12, 3, 3], f32>) -> !graph.value<[b, 8, 6, 6], f32>
      %52 = graph.pool_gradient %51 at %22 window [2, 2] strides [2, 2] : (!graph.value<[b, 8, 6, 6], f32>, !graph.value<[b, 8, 12, 12], f32>) -> !graph.value<[b, 8, 12, 12], f32>
      %53 = graph.transpose %52 by [0, 2, 3, 1] : (!graph.value<[b, 8, 12, 12], f32>) -> !graph.value<[b, 12, 12, 8], f32>
      %54 = graph.elementwise "select"(%20, %53, %19) : (!graph.value<[b, 12, 12, 8], i1>, !graph.value<[b, 12, 12, 8], f32>, !graph.value<[], f32>) -> !graph.value<[b, 12, 12, 8], f32>
      %55 = graph.reduce sum, %54 over [1, 2] : (!graph.value<[b, 12, 12, 8], f32>) -> !graph.value<[b, 8], f32>
      %56 = graph.reduce sum, %55 over [0] : (!graph.value<[b, 8], f32>) -> !graph.value<[8], f32>
      %57 = graph.reshape %56 : (!graph.value<[8], f32>) -> !graph.value<[1, 1, 1, 8], f32>
      %58 = graph.reduce sum, %57 over [0, 1, 2] : (!graph.value<[1, 1, 1, 8], f32>) -> !graph.value<[8], f32>
      %59 = graph.elementwise "mul"(%8, %58) : (!graph.value<[], f32>, !graph.value<[8], f32>) -> !graph.value<[8], f32>
      %60 = graph.elementwise "sub"(%15, %59) : (!graph.value<[8], f32>, !graph.value<[8], f32>) -> !graph.value<[8], f32>
      %61 = graph.tensor %60 : !graph.value<[8], f32> -> tensor<8xf32>
      mt.assign "bias", %61 : tensor<8xf32>
      %62 = graph.dot_general %44, %38 contract [0] x [0] : (!graph.value<[b, 3], f32>, !graph.value<[b, 48], f32>) -> !graph.value<[3, 48], f32>
      %63 = graph.transpose %62 by [1, 0] : (!graph.value<[3, 48], f32>) -> !graph.value<[48, 3], f32>
      %64 = graph.elementwise "mul"(%8, %63) : (!graph.value<[], f32>, !graph.value<[48, 3], f32>) -> !graph.value<[48, 3], f32>
      %65 = graph.elementwise "sub"(%39, %64) : (!graph.value<[48, 3], f32>, !graph.value<[48, 3], f32>) -> !graph.value<[48, 3], f32>
      %66 = graph.tensor %65 : !graph.value<[48, 3], f32> -> tensor<48x3xf32>
      mt.assign "dense", %66 : tensor<48x3xf32>
      %67 = graph.transpose %9 by [3, 0, 1, 2] : (!graph.value<[b, 12, 12, 3], f32>) -> !graph.value<[3, b, 12, 12], f32>
      %68 = graph.transpose %54 by [3, 0, 1, 2] : (!graph.value<[b, 12, 12, 8], f32>) -> !graph.value<[8, b, 12, 12], f32>
      %69 = graph.convolution %67, %68 padding [1, 1, 1, 1] : (!graph.value<[3, b, 12, 12], f32>, !graph.value<[8, b, 12, 12], f32>) -> !graph.value<[3, 8, 3, 3], f32>
      %70 = graph.transpose %69 by [2, 3, 0, 1] : (!graph.value<[3, 8, 3, 3], f32>) -> !graph.value<[3, 3, 3, 8], f32>
      %71 = graph.elementwise "mul"(%8, %70) : (!graph.value<[], f32>, !graph.value<[3, 3, 3, 8], f32>) -> !graph.value<[3, 3, 3, 8], f32>
      %72 = graph.elementwise "sub"(%11, %71) : (!graph.value<[3, 3, 3, 8], f32>, !graph.value<[3, 3, 3, 8], f32>) -> !graph.value<[3, 3, 3, 8], f32>
      %73 = graph.tensor %72 : !graph.value<[3, 3, 3, 8], f32> -> tensor<3x3x3x8xf32>
      mt.assign "same", %73 : tensor<3x3x3x8xf32>
      %74 = graph.transpose %23 by [1, 0, 2, 3] : (!graph.value<[b, 8, 6, 6], f32>) -> !graph.value<[8, b, 6, 6], f32>
      %75 = graph.transpose %47 by [3, 0, 1, 2] : (!graph.value<[b, 2, 2, 12], f32>) -> !graph.value<[12, b, 2, 2], f32>
      %76 = graph.convolution %74, %75 padding [0, -1, 0, -1] dilation [2, 2] : (!graph.value<[8, b, 6, 6], f32>, !graph.value<[12, b, 2, 2], f32>) -> !graph.value<[8, 12, 3, 3], f32>
      %77 = graph.transpose %76 by [2, 3, 0, 1] : (!graph.value<[8, 12, 3, 3], f32>) -> !graph.value<[3, 3, 8, 12], f32>
      %78 = graph.elementwise "mul"(%8, %77) : (!graph.value<[], f32>, !graph.value<[3, 3, 8, 12], f32>) -> !graph.value<[3, 3, 8, 12], f32>
      %79 = graph.elementwise "sub"(%24, %78) : (!graph.value<[3, 3, 8, 12], f32>, !graph.value<[3, 3, 8, 12], f32>) -> !graph.value<[3, 3, 8, 12], f32>
      %80 = graph.tensor %79 : !graph.value<[3, 3, 8, 12], f32> -> tensor<3x3x8x12xf32>
      mt.assign "valid", %80 : tensor<3x3x8x12xf32>
      %81 = graph.elementwise "square"(%42) : (!graph.value<[b, 3], f32>) -> !graph.value<[b, 3], f32>
      %82 = graph.reduce sum, %81 over [1] : (!graph.value<[b, 3], f32>) -> !graph.value<[b], f32>
      %83 = graph.reduce sum, %82 over [0] : (!graph.value<[b], f32>) -> !graph.value<[], f32>
      %84 = graph.elementwise "div"(%83, %32) : (!graph.value<[], f32>, !graph.value<[], f32>) -> !graph.value<[], f32>
      %85 = graph.tensor %84 : !graph.value<[], f32> -> tensor<f32>
      mt.result "loss", %85, %31 loss better lower
    }
  }
}
