// SPDX-License-Identifier: Apache-2.0
// RUN: mt-opt %s --split-input-file --verify-diagnostics

func.func @shapes(%a: tensor<?x3xf32>, %b: tensor<4xf32>) {
  // expected-error@+1 {{expected equal sizes or 1 on axis 1 of the result, found 3 and 4}}
  %0 = mt.add %a, %b : tensor<?x3xf32>, tensor<4xf32>
  return
}

// -----

func.func @batch_axis_aligned(%a: tensor<?xf32>, %b: tensor<1x1xf32>) {
  // expected-error@+1 {{expected the batch axis first, found ranks 1 and 2 that align it with axis 1}}
  %0 = mt.add %a, %b : tensor<?xf32>, tensor<1x1xf32>
  return
}

// -----

func.func @elements(%a: tensor<3xf32>, %b: tensor<3xi32>) {
  // expected-error@+1 {{expected equal element types, found 'f32' and 'i32'}}
  %0 = mt.mul %a, %b : tensor<3xf32>, tensor<3xi32>
  return
}

// -----

func.func @contracted(%a: tensor<?x784xf32>, %b: tensor<783x256xf32>) {
  // expected-error@+1 {{expected equal contracted sizes, found 784 in 'tensor<?x784xf32>' and 783 in 'tensor<783x256xf32>'}}
  %0 = mt.matmul %a, %b : tensor<?x784xf32>, tensor<783x256xf32>
  return
}

// -----

func.func @vector(%a: tensor<4xf32>, %b: tensor<4x2xf32>) {
  // expected-error@+1 {{expected operands of rank 2 or more, found 'tensor<4xf32>' and 'tensor<4x2xf32>'}}
  %0 = mt.matmul %a, %b : tensor<4xf32>, tensor<4x2xf32>
  return
}

// -----

func.func @columns_of_the_batch(%a: tensor<5x4xf32>, %b: tensor<?x4xf32>) {
  // expected-error@+1 {{expected the batch axis first in the result, found it on axis 1}}
  %0 = mt.matmul %a, %b transpose_b : tensor<5x4xf32>, tensor<?x4xf32>
  return
}

// -----

func.func @reduce_with_batch(%a: tensor<?x4xf32>) {
  // expected-error@+1 {{expected the batch axis to be reduced alone, found 2 axes}}
  %0 = mt.reduce sum, %a over [0, 1] : tensor<?x4xf32>
  return
}

// -----

func.func @max_over_batch(%a: tensor<?x4xf32>) {
  // expected-error@+1 {{expected sum over the batch axis, found max}}
  %0 = mt.reduce max, %a over [0] : tensor<?x4xf32>
  return
}

// -----

func.func @no_such_axis(%a: tensor<?x4xf32>) {
  // expected-error@+1 {{expected axes from 0 to 1, found 2}}
  %0 = mt.reduce sum, %a over [2] : tensor<?x4xf32>
  return
}

// -----

func.func @moved_batch(%a: tensor<?x4xf32>) {
  // expected-error@+1 {{expected the batch axis to stay first, found axis 1 first}}
  %0 = mt.transpose %a by [1, 0] : tensor<?x4xf32>
  return
}

// -----

func.func @no_permutation(%a: tensor<3x4xf32>) {
  // expected-error@+1 {{expected a permutation of 2 axes, found [}}
  %0 = mt.transpose %a by [1, 1] : tensor<3x4xf32>
  return
}

// -----

func.func @reshape(%a: tensor<?x6xf32>) {
  // expected-error@+1 {{expected 6 elements per row in the result, found 8}}
  %0 = mt.reshape %a : tensor<?x6xf32> to tensor<?x2x4xf32>
  return
}

// -----

func.func @broadcast(%a: tensor<2x3xf32>) {
  // expected-error@+1 {{expected equal sizes or 1 on axis 0 of the operand, found 'tensor<2x3xf32>' to 'tensor<4x3xf32>'}}
  %0 = mt.broadcast %a : tensor<2x3xf32> to tensor<4x3xf32>
  return
}

// -----

func.func @labels(%p: tensor<?x10xf32>, %t: tensor<?xf32>) {
  // expected-error@+1 {{expected targets of type 'tensor<?xi32>', found 'tensor<?xf32>'}}
  %0 = mt.sparse_categorical_crossentropy %p, %t from_logits : tensor<?x10xf32>, tensor<?xf32>
  return
}

// -----

func.func @one_hot(%t: tensor<?xi32>) {
  // expected-error@+1 {{expected the labels' shape and one more axis, found 'tensor<?xi32>' to 'tensor<?xf32>'}}
  %0 = mt.one_hot %t : tensor<?xi32> to tensor<?xf32>
  return
}

// -----

func.func @iota() {
  // expected-error@+1 {{expected a dim from 0 to 1, found 2}}
  %0 = mt.iota dim = 2 : tensor<3x4xi32>
  return
}

// -----

func.func @unknown(%a: tensor<3xf32>) {
  // expected-error@+1 {{custom op 'mt.convolve' is unknown}}
  %0 = mt.convolve %a : tensor<3xf32>
  return
}

// -----

func.func @syntax(%a: tensor<3xf32>) {
  // expected-error@+1 {{expected ':'}}
  %0 = mt.exp %a tensor<3xf32>
  return
}

// -----

func.func @reduce_integers_over_the_batch(%a: tensor<?x4xi32>) {
  // expected-error@+1 {{expected floats to sum over the batch axis, found 'tensor<?x4xi32>'}}
  %0 = mt.reduce sum, %a over [0] : tensor<?x4xi32>
  return
}

// -----

func.func @divide_integers(%a: tensor<?x4xi32>) {
  // expected-error@+1 {{expected f32 elements, found 'i32'}}
  %0 = mt.div %a, %a : tensor<?x4xi32>, tensor<?x4xi32>
  return
}

// -----

func.func @pad_integers(%a: tensor<?x4xi32>) {
  // expected-error@+1 {{expected a whole number as value of 'tensor<?x4xi32>', found 5.000000e-01}}
  %0 = mt.pad %a low = [1] high = [0] value = 0.5 : tensor<?x4xi32>
  return
}

// -----

func.func @words(%key: tensor<i32>, %count: tensor<4xf32>) {
  // expected-error@+1 {{expected operands of i32, found 'tensor<4xf32>'}}
  %0 = mt.threefry both, %key, %key, %count : tensor<i32>, tensor<i32>, tensor<4xf32>
  return
}
