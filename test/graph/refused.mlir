// SPDX-License-Identifier: Apache-2.0
// RUN: mt-opt %s --graph-layout --split-input-file --verify-diagnostics

// Every op that mt cannot do is reported, and none that depends on one.
module attributes {graph.version = 1 : i32} {
  mt.model @every {
    %xt = mt.input "x" : tensor<?x4xf32>
    %it = mt.input "i" : tensor<?xi32>
    %x = graph.logical %xt : tensor<?x4xf32> -> !graph.value<[b, 4], f32>
    %i = graph.logical %it : tensor<?xi32> -> !graph.value<[b], i32>
    %t = graph.transpose %x by [1, 0] : (!graph.value<[b, 4], f32>) -> !graph.value<[4, b], f32>
    // expected-error @+1 {{a reshape to [3, b] that mixes samples: it folds a part of another axis with the batch}}
    %1 = graph.reshape %t : (!graph.value<[4, b], f32>) -> !graph.value<[3, b], f32>
    %2 = graph.elementwise "exp"(%1) : (!graph.value<[3, b], f32>) -> !graph.value<[3, b], f32>
    // expected-error @+1 {{expected as many elements in [4] as in [b, 4]}}
    %3 = graph.reshape %x : (!graph.value<[b, 4], f32>) -> !graph.value<[4], f32>
    // expected-error @+1 {{expected an axis of 2, found 2}}
    %4 = graph.transpose %x by [2, 0] : (!graph.value<[b, 4], f32>) -> !graph.value<[4, b], f32>
    // expected-error @+1 {{expected a result of [4, b], found [b, 4]}}
    %5 = graph.transpose %x by [1, 0] : (!graph.value<[b, 4], f32>) -> !graph.value<[b, 4], f32>
    // expected-error @+1 {{expected axes of the result in rising order}}
    %6 = graph.broadcast %x dims [1, 0] : (!graph.value<[b, 4], f32>) -> !graph.value<[b, 4], f32>
    // expected-error @+1 {{expected the size 5 or 1, found 4}}
    %7 = graph.broadcast %x dims [0, 1] : (!graph.value<[b, 4], f32>) -> !graph.value<[b, 5], f32>
    %8 = graph.broadcast %i dims [1] : (!graph.value<[b], i32>) -> !graph.value<[1, b], i32>
    %9 = graph.broadcast %i dims [0] : (!graph.value<[b], i32>) -> !graph.value<[b, 1], i32>
    // expected-error @+1 {{add of every sample with every other one: two operands have the batch as different axes of [b, b]; give both as many axes}}
    %10 = graph.elementwise "add"(%8, %9) : (!graph.value<[1, b], i32>, !graph.value<[b, 1], i32>) -> !graph.value<[b, b], i32>
    %11 = graph.broadcast %i dims [1] : (!graph.value<[b], i32>) -> !graph.value<[b, b], i32>
    // expected-error @+1 {{a value that has the batch as two axes, [b, b]: each sample with every other one}}
    %12 = graph.tensor %11 : !graph.value<[b, b], i32> -> tensor<?xi32>
    // expected-error @+1 {{expected sizes that broadcast, found b and 4}}
    %13 = graph.elementwise "mul"(%x, %t) : (!graph.value<[b, 4], f32>, !graph.value<[4, b], f32>) -> !graph.value<[b, 4], f32>
    // expected-error @+1 {{expected a function or an op of mt that works element by element, found "matmul"}}
    %14 = graph.elementwise "matmul"(%x, %x) : (!graph.value<[b, 4], f32>, !graph.value<[b, 4], f32>) -> !graph.value<[b, 4], f32>
    // expected-error @+1 {{expected 2 operands of atan2 and no attributes}}
    %24 = graph.elementwise "atan2"(%x) : (!graph.value<[b, 4], f32>) -> !graph.value<[b, 4], f32>
    // expected-error @+1 {{expected floats, found integers or booleans}}
    %25 = graph.elementwise "tan"(%i) : (!graph.value<[b], i32>) -> !graph.value<[b], i32>
    // expected-error @+1 {{expected attributes of mt.exp, found rate}}
    %15 = graph.elementwise "exp"(%x) {rate = 1.0 : f32} : (!graph.value<[b, 4], f32>) -> !graph.value<[b, 4], f32>
    // expected-error @+1 {{attribute 'negative_slope' failed to satisfy constraint: 32-bit or 64-bit float attribute}}
    %16 = graph.elementwise "leaky_relu"(%x) {negative_slope = 1 : i32} : (!graph.value<[b, 4], f32>) -> !graph.value<[b, 4], f32>
    // expected-error @+1 {{'mt.add' op expected 2 operands, but found 1}}
    %22 = graph.elementwise "add"(%x) : (!graph.value<[b, 4], f32>) -> !graph.value<[b, 4], f32>
    %23 = graph.slice %22 starts [0, 1] : (!graph.value<[b, 4], f32>) -> !graph.value<[b, 3], f32>
    // expected-error @+1 {{expected softmax, log_softmax, argmax or product, found "exp"}}
    %17 = graph.along "exp"(%x) dim = 1 : (!graph.value<[b, 4], f32>) -> !graph.value<[b, 4], f32>
    // expected-error @+1 {{an operation along the batch}}
    %18 = graph.along "softmax"(%x) dim = 0 : (!graph.value<[b, 4], f32>) -> !graph.value<[b, 4], f32>
    // expected-error @+1 {{expected a tensor of as many elements as [b, 4] has}}
    %19 = graph.tensor %x : !graph.value<[b, 4], f32> -> tensor<?x5xf32>
    // expected-error @+1 {{expected a tensor of as many elements as [b, 4] has}}
    %20 = graph.tensor %x : !graph.value<[b, 4], f32> -> tensor<4xf32>
    // expected-error @+1 {{expected a tensor of the value's element type}}
    %21 = graph.tensor %x : !graph.value<[b, 4], f32> -> tensor<?x4xi32>
    %l = mt.reduce sum, %xt over [1] : tensor<?x4xf32>
    mt.loss "loss", %l by samples : tensor<?xf32>
    mt.sgd <{learning_rate = 0.1 : f32}>
  }
}

// -----

module attributes {graph.version = 1 : i32} {
  mt.model @axes {
    %xt = mt.input "x" : tensor<?x4xf32>
    %it = mt.input "i" : tensor<?xi32>
    %x = graph.logical %xt : tensor<?x4xf32> -> !graph.value<[b, 4], f32>
    %i = graph.logical %it : tensor<?xi32> -> !graph.value<[b], i32>
    // expected-error @+1 {{a maximum or minimum over the samples of the batch}}
    %1 = graph.reduce max, %x over [0] : (!graph.value<[b, 4], f32>) -> !graph.value<[4], f32>
    // expected-error @+1 {{expected the batch among the axes to reduce within samples}}
    %2 = graph.reduce max, %x over [1] within_samples : (!graph.value<[b, 4], f32>) -> !graph.value<[b], f32>
    // expected-error @+1 {{expected different axes, found 1 twice}}
    %3 = graph.reduce sum, %x over [1, 1] : (!graph.value<[b, 4], f32>) -> !graph.value<[b], f32>
    // expected-error @+1 {{a cumulative sum along the batch}}
    %4 = graph.cumsum %x dim = 0 : (!graph.value<[b, 4], f32>) -> !graph.value<[b, 4], f32>
    // expected-error @+1 {{a normalization over the samples of the batch}}
    %5 = graph.normalize %x over [0] epsilon = 1.0e-5 : (!graph.value<[b, 4], f32>) -> !graph.value<[b, 4], f32>
    // expected-error @+1 {{expected logits of f32 and labels of i32}}
    %6 = graph.cross_entropy %x, %x : (!graph.value<[b, 4], f32>, !graph.value<[b, 4], f32>) -> !graph.value<[b], f32>
    %8 = graph.reshape %i : (!graph.value<[b], i32>) -> !graph.value<[b, 1], i32>
    // expected-error @+1 {{expected 1 numbers, one for each axis, found 2}}
    %7 = graph.cross_entropy %x, %8 : (!graph.value<[b, 4], f32>, !graph.value<[b, 1], i32>) -> !graph.value<[b], f32>
    mt.loss "loss", %xt by samples : tensor<?x4xf32>
    mt.sgd <{learning_rate = 0.1 : f32}>
  }
}

// -----

module attributes {graph.version = 1 : i32} {
  mt.model @parts {
    %xt = mt.input "x" : tensor<?x4xf32>
    %it = mt.input "i" : tensor<?xi32>
    %x = graph.logical %xt : tensor<?x4xf32> -> !graph.value<[b, 4], f32>
    %i = graph.logical %it : tensor<?xi32> -> !graph.value<[b], i32>
    // expected-error @+1 {{expected a part of the 4 elements along axis 1}}
    %1 = graph.slice %x starts [0, 2] : (!graph.value<[b, 4], f32>) -> !graph.value<[b, 3], f32>
    // expected-error @+1 {{a part of the samples of a batch}}
    %2 = graph.slice %x starts [0, 0] : (!graph.value<[b, 4], f32>) -> !graph.value<[2, 4], f32>
    // expected-error @+1 {{expected numbers below 2^31, found 4294967296}}
    %3 = graph.slice %x starts [0, 4294967296] : (!graph.value<[b, 4], f32>) -> !graph.value<[b, 1], f32>
    // expected-error @+1 {{a part of the samples of a batch, or samples beside those of the batch}}
    %4 = graph.pad %x low [1, 0] high [0, 0] : (!graph.value<[b, 4], f32>) -> !graph.value<[b, 4], f32>
    // expected-error @+1 {{expected a finite number to pad with}}
    %5 = graph.pad %x value = 0x7F800000 low [0, 1] high [0, 0] : (!graph.value<[b, 4], f32>) -> !graph.value<[b, 5], f32>
    // expected-error @+1 {{a value without elements}}
    %6 = graph.pad %x low [0, -2] high [0, -2] : (!graph.value<[b, 4], f32>) -> !graph.value<[b, 1], f32>
    %10 = graph.transpose %x by [1, 0] : (!graph.value<[b, 4], f32>) -> !graph.value<[4, b], f32>
    // expected-error @+1 {{samples beside those of the batch: a concatenation along the batch axis}}
    %7 = graph.concat %x, %10 dim = 0 : (!graph.value<[b, 4], f32>, !graph.value<[4, b], f32>) -> !graph.value<[2*b, 4], f32>
    // expected-error @+1 {{a part of the samples of a batch, or samples beside those of the batch}}
    %8 = graph.reverse %x over [0] : (!graph.value<[b, 4], f32>) -> !graph.value<[b, 4], f32>
    // expected-error @+1 {{expected ids of i32}}
    %9 = graph.take %x, %x dim = 1 : (!graph.value<[b, 4], f32>, !graph.value<[b, 4], f32>) -> !graph.value<[b, 4], f32>
    // expected-error @+1 {{a lookup in values that differ between samples, by places that do too}}
    %11 = graph.take %10, %i dim = 0 : (!graph.value<[4, b], f32>, !graph.value<[b], i32>) -> !graph.value<[b, b], f32>
    // expected-error @+1 {{an update by ids that are not of the samples: ids [b], updates [4, b]}}
    %12 = graph.scatter_rows %i, %10 : (!graph.value<[b], i32>, !graph.value<[4, b], f32>) -> !graph.value<[4, b], f32>
    // expected-error @+1 {{expected a number of classes as the last axis of the result}}
    %13 = graph.one_hot %i : (!graph.value<[b], i32>) -> !graph.value<[b, b], f32>
    mt.loss "loss", %xt by samples : tensor<?x4xf32>
    mt.sgd <{learning_rate = 0.1 : f32}>
  }
}

// -----

module attributes {graph.version = 1 : i32} {
  mt.model @products {
    %xt = mt.input "x" : tensor<?x4x9xf32>
    %kt = mt.variable "k" init(zeros) : tensor<2x4x3xf32>
    %x = graph.logical %xt : tensor<?x4x9xf32> -> !graph.value<[b, 4, 9], f32>
    %k = graph.logical %kt : tensor<2x4x3xf32> -> !graph.value<[2, 4, 3], f32>
    // expected-error @+1 {{a product of every sample with every other}}
    %1 = graph.dot_general %x, %x contract [1, 2] x [1, 2] : (!graph.value<[b, 4, 9], f32>, !graph.value<[b, 4, 9], f32>) -> !graph.value<[b, b], f32>
    // expected-error @+1 {{expected 1 numbers, one for each axis, found 2}}
    %2 = graph.dot_general %x, %x contract [1] x [1, 2] : (!graph.value<[b, 4, 9], f32>, !graph.value<[b, 4, 9], f32>) -> !graph.value<[b, b], f32>
    // expected-error @+1 {{expected equal sizes, found 4 and 9}}
    %3 = graph.dot_general %x, %x contract [1] x [2] common [0] x [0] : (!graph.value<[b, 4, 9], f32>, !graph.value<[b, 4, 9], f32>) -> !graph.value<[b, 9, 4], f32>
    // expected-error @+1 {{expected windows, strides, dilations and a spread of 1 or more}}
    %4 = graph.convolution %x, %k strides [0] : (!graph.value<[b, 4, 9], f32>, !graph.value<[2, 4, 3], f32>) -> !graph.value<[b, 2, 7], f32>
    // expected-error @+1 {{a convolution of 4 channels in 2 groups by a kernel [2, 4, 3]}}
    %5 = graph.convolution %x, %k groups = 2 : (!graph.value<[b, 4, 9], f32>, !graph.value<[2, 4, 3], f32>) -> !graph.value<[b, 2, 7], f32>
    // expected-error @+1 {{a convolution by a kernel that differs between samples, [b, 4, 9]}}
    %6 = graph.convolution %x, %x : (!graph.value<[b, 4, 9], f32>, !graph.value<[b, 4, 9], f32>) -> !graph.value<[b, 2, 7], f32>
    %turned = graph.transpose %x by [1, 2, 0] : (!graph.value<[b, 4, 9], f32>) -> !graph.value<[4, 9, b], f32>
    // expected-error @+1 {{windows over the samples of the batch}}
    %7 = graph.pool sum, %turned window [2] : (!graph.value<[4, 9, b], f32>) -> !graph.value<[4, 9, b], f32>
    // expected-error @+1 {{windows of 10 on an axis of 9}}
    %8 = graph.pool sum, %x window [10] : (!graph.value<[b, 4, 9], f32>) -> !graph.value<[b, 4, 1], f32>
    // expected-error @+1 {{expected 1 numbers, one for each axis, found 2}}
    %9 = graph.pool sum, %x window [2] strides [2, 2] : (!graph.value<[b, 4, 9], f32>) -> !graph.value<[b, 4, 4], f32>
    mt.loss "loss", %xt by samples : tensor<?x4x9xf32>
    mt.sgd <{learning_rate = 0.1 : f32}>
  }
}

// -----

// What the verifier finds in an op of mt that was made is reported at the op of graph.
module attributes {graph.version = 1 : i32} {
  mt.model @verified {
    %xt = mt.input "x" : tensor<?x4xi32>
    %x = graph.logical %xt : tensor<?x4xi32> -> !graph.value<[b, 4], i32>
    // expected-error @+1 {{operand #0 must be ranked tensor of 32-bit float or 64-bit float values}}
    %1 = graph.elementwise "exp"(%x) : (!graph.value<[b, 4], i32>) -> !graph.value<[b, 4], i32>
    %2 = graph.elementwise "cast"(%1) : (!graph.value<[b, 4], i32>) -> !graph.value<[b, 4], f32>
    %3 = graph.tensor %2 : !graph.value<[b, 4], f32> -> tensor<?x4xf32>
    mt.loss "loss", %3 by samples : tensor<?x4xf32>
    mt.sgd <{learning_rate = 0.1 : f32}>
  }
}

// -----

// expected-error @+1 {{expected text of graph version 1, found none; it is written and read by one version of MTC}}
module {
  mt.model @unversioned {
    %x = mt.input "x" : tensor<?xf32>
    %1 = graph.logical %x : tensor<?xf32> -> !graph.value<[b], f32>
    mt.loss "loss", %x : tensor<?xf32>
    mt.sgd <{learning_rate = 0.1 : f32}>
  }
}

// -----

// expected-error @+1 {{expected text of graph version 1, found 2 : i32; it is written and read by one version of MTC}}
module attributes {graph.version = 2 : i32} {
}

// -----

module attributes {graph.version = 1 : i32} {
  mt.model @of_a_step {
    %x = mt.input "x" : tensor<?x3x4xf32>
    %s = mt.scan over(%step = %x : tensor<?x3x4xf32>) from() {
      %1 = graph.logical %step : tensor<?x4xf32> -> !graph.value<[b, 4], f32>
      // expected-error @+1 {{expected the size 5 or 1, found 4}}
      %2 = graph.broadcast %1 dims [0, 1] : (!graph.value<[b, 4], f32>) -> !graph.value<[b, 5], f32>
      mt.yield %step : tensor<?x4xf32>
    }
    mt.loss "loss", %x : tensor<?x3x4xf32>
    mt.sgd <{learning_rate = 0.1 : f32}>
  }
}

// -----

module attributes {graph.version = 1 : i32} {
  mt.model @rounded {
    %x = mt.input "x" : tensor<?xi32>
    %1 = graph.logical %x : tensor<?xi32> -> !graph.value<[b], i32>
    // expected-error @+1 {{expected numbers of f32 that are rounded to bf16 or f16}}
    %2 = graph.round %1 to bf16 : (!graph.value<[b], i32>) -> !graph.value<[b], i32>
    %3 = graph.tensor %2 : !graph.value<[b], i32> -> tensor<?xi32>
    %4 = mt.cast %3 : tensor<?xi32> to tensor<?xf32>
    mt.loss "loss", %4 : tensor<?xf32>
    mt.sgd <{learning_rate = 0.1 : f32}>
  }
}

// -----

module attributes {graph.version = 1 : i32} {
  mt.model @prime {
    %x = mt.input "x" : tensor<?x521xf32>
    %1 = graph.logical %x : tensor<?x521xf32> -> !graph.value<[b, 521], f32>
    // expected-error @+1 {{a Fourier transform of length 521, which has no factor from 2 to 32: pad to another length; without such a factor at most 512 are supported}}
    %2 = graph.fft real %1 lengths [521] : (!graph.value<[b, 521], f32>) -> !graph.value<[b, 261, 2], f32>
    %3 = graph.tensor %2 : !graph.value<[b, 261, 2], f32> -> tensor<?x261x2xf32>
    mt.loss "loss", %3 : tensor<?x261x2xf32>
    mt.sgd <{learning_rate = 0.1 : f32}>
  }
}

// -----

module attributes {graph.version = 1 : i32} {
  mt.model @other_length {
    %x = mt.input "x" : tensor<?x5x2xf32>
    %1 = graph.logical %x : tensor<?x5x2xf32> -> !graph.value<[b, 5, 2], f32>
    // expected-error @+1 {{expected 4 elements for a length of 7, found 5}}
    %2 = graph.fft inverse real %1 lengths [7] : (!graph.value<[b, 5, 2], f32>) -> !graph.value<[b, 7], f32>
    %3 = graph.tensor %2 : !graph.value<[b, 7], f32> -> tensor<?x7xf32>
    mt.loss "loss", %3 : tensor<?x7xf32>
    mt.sgd <{learning_rate = 0.1 : f32}>
  }
}

// -----

module attributes {graph.version = 1 : i32} {
  mt.model @large {
    %x = mt.input "x" : tensor<?x65x65xf32>
    %1 = graph.logical %x : tensor<?x65x65xf32> -> !graph.value<[b, 65, 65], f32>
    // expected-error @+1 {{a matrix of 65 rows; at most 64 are supported}}
    %2 = graph.cholesky %1 : (!graph.value<[b, 65, 65], f32>) -> !graph.value<[b, 65, 65], f32>
    %3 = graph.tensor %2 : !graph.value<[b, 65, 65], f32> -> tensor<?x65x65xf32>
    mt.loss "loss", %3 : tensor<?x65x65xf32>
    mt.sgd <{learning_rate = 0.1 : f32}>
  }
}

// -----

module attributes {graph.version = 1 : i32} {
  mt.model @wide {
    %x = mt.input "x" : tensor<?x2x3xf32>
    %1 = graph.logical %x : tensor<?x2x3xf32> -> !graph.value<[b, 2, 3], f32>
    // expected-error @+1 {{expected square matrices as the last two axes, found [b, 2, 3]}}
    %2 = graph.solve_triangular %1, %1 : (!graph.value<[b, 2, 3], f32>, !graph.value<[b, 2, 3], f32>) -> !graph.value<[b, 2, 3], f32>
    %3 = graph.tensor %2 : !graph.value<[b, 2, 3], f32> -> tensor<?x2x3xf32>
    mt.loss "loss", %3 : tensor<?x2x3xf32>
    mt.sgd <{learning_rate = 0.1 : f32}>
  }
}
