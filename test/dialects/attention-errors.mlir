// SPDX-License-Identifier: Apache-2.0
// RUN: mt-opt %s --split-input-file --verify-diagnostics

func.func @rank(%q: tensor<?x8xf32>) {
  // expected-error@+1 {{expected queries of 3 axes or more, found 'tensor<?x8xf32>'}}
  %0 = mt.attention %q, %q, %q : tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>
  return
}

// -----

func.func @axes(%q: tensor<?x8x4xf32>, %k: tensor<?x2x8x4xf32>) {
  // expected-error@+1 {{expected equal axes before the positions, found 'tensor<?x8x4xf32>' and 'tensor<?x2x8x4xf32>'}}
  %0 = mt.attention %q, %k, %k : tensor<?x8x4xf32>, tensor<?x2x8x4xf32>, tensor<?x2x8x4xf32>
  return
}

// -----

func.func @values(%q: tensor<?x8x4xf32>, %k: tensor<?x9x4xf32>) {
  // expected-error@+1 {{expected as many values as keys, found 'tensor<?x9x4xf32>' and 'tensor<?x8x4xf32>'}}
  %0 = mt.attention %q, %k, %q : tensor<?x8x4xf32>, tensor<?x9x4xf32>, tensor<?x8x4xf32>
  return
}

// -----

func.func @heads(%q: tensor<?x8x12xf32>) {
  // expected-error@+1 {{expected heads that are a multiple of the key_heads, found 3 and 2}}
  %0 = mt.attention %q, %q, %q heads = 3 key_heads = 2 : tensor<?x8x12xf32>, tensor<?x8x12xf32>, tensor<?x8x12xf32>
  return
}

// -----

func.func @channels(%q: tensor<?x8x12xf32>, %k: tensor<?x8x6xf32>) {
  // expected-error@+1 {{expected keys with the channels of the queries for each head, found 4 heads of 'tensor<?x8x12xf32>' and 1 of 'tensor<?x8x6xf32>'}}
  %0 = mt.attention %q, %k, %k heads = 4 key_heads = 1 : tensor<?x8x12xf32>, tensor<?x8x6xf32>, tensor<?x8x6xf32>
  return
}

// -----

func.func @value_heads(%q: tensor<?x8x12xf32>, %v: tensor<?x8x5xf32>) {
  // expected-error@+1 {{expected values of 2 heads, found 'tensor<?x8x5xf32>'}}
  %0 = mt.attention %q, %q, %v heads = 2 : tensor<?x8x12xf32>, tensor<?x8x12xf32>, tensor<?x8x5xf32>
  return
}

// -----

func.func @window(%q: tensor<?x8x4xf32>) {
  // expected-error@+1 {{expected a window of 1 or more, found 0}}
  %0 = mt.attention %q, %q, %q window = 0 : tensor<?x8x4xf32>, tensor<?x8x4xf32>, tensor<?x8x4xf32>
  return
}

// -----

func.func @mask(%q: tensor<?x8x4xf32>, %m: tensor<?x1x8x7xi1>) {
  // expected-error@+1 {{expected a mask that broadcasts to}}
  %0 = mt.attention %q, %q, %q mask %m : tensor<?x8x4xf32>, tensor<?x8x4xf32>, tensor<?x8x4xf32>, tensor<?x1x8x7xi1>
  return
}

// -----

func.func @rate(%q: tensor<?x8x4xf32>) {
  // expected-error@+1 {{expected a rate from 0 to less than 1, found 1}}
  %0 = mt.attention %q, %q, %q dropout "s" rate = 1.0 : tensor<?x8x4xf32>, tensor<?x8x4xf32>, tensor<?x8x4xf32>
  return
}

// -----

func.func @gradient(%q: tensor<?x8x4xf32>, %l: tensor<?x2x8xf32>) {
  // expected-error@+1 {{expected 'tensor<?x1x8xf32>', found 'tensor<?x2x8xf32>'}}
  %0 = mt.attention_gradient key, %q, %q, %q, %q, %q, %l : tensor<?x8x4xf32>, tensor<?x8x4xf32>, tensor<?x8x4xf32>,
    tensor<?x8x4xf32>, tensor<?x8x4xf32>, tensor<?x2x8xf32>
  return
}

// -----

mt.model @mask {
  // expected-error@+1 {{expected tensors as operands, found 'f32'}}
  %0 = mt.attention %q, %q, %q mask %m : tensor<?x8x4xf32>, tensor<?x8x4xf32>, tensor<?x8x4xf32>, f32
}
