// SPDX-License-Identifier: Apache-2.0
// RUN: mt-opt %s --split-input-file --verify-diagnostics

func.func @axis(%x: tensor<?xf32>) {
  // expected-error@+1 {{expected an input with an axis of steps, found 'tensor<?xf32>'}}
  %0 = mt.scan over(%a = %x : tensor<?xf32>) {
    mt.yield %a : tensor<?xf32>
  }
  return
}

// -----

func.func @lengths(%x: tensor<?x4xf32>, %y: tensor<5xf32>) {
  // expected-error@+1 {{expected inputs of equally many steps, found 4 and 5}}
  %0 = mt.scan over(%a = %x : tensor<?x4xf32>, %b = %y : tensor<5xf32>) {
    mt.yield %a : tensor<?xf32>
  }
  return
}

// -----

func.func @steps(%x: tensor<?x4xf32>) {
  // expected-error@+1 {{expected either inputs or `steps`, found 1 inputs and steps}}
  %0 = mt.scan over(%a = %x : tensor<?x4xf32>) steps = 4 {
    mt.yield %a : tensor<?xf32>
  }
  return
}

// -----

func.func @none(%x: tensor<?xf32>) {
  // expected-error@+1 {{expected either inputs or `steps`, found 0 inputs and no steps}}
  %0 = mt.scan from(%a = %x : tensor<?xf32>) {
    mt.yield %a : tensor<?xf32>
  }
  return
}

// -----

func.func @few(%x: tensor<?xf32>) {
  // expected-error@+1 {{expected 1 step or more, found 0}}
  %0 = mt.scan from(%a = %x : tensor<?xf32>) steps = 0 {
    mt.yield %a : tensor<?xf32>
  }
  return
}

// -----

func.func @carry(%x: tensor<?x4xf32>, %h: tensor<?x3xf32>) {
  %0 = mt.scan over(%a = %x : tensor<?x4xf32>) from(%b = %h : tensor<?x3xf32>) {
    // expected-error@+1 {{expected a carry of type 'tensor<?x3xf32>', found 'tensor<?xf32>'}}
    mt.yield %a : tensor<?xf32>
  }
  return
}

// -----

func.func @nothing(%x: tensor<?x4xf32>) {
  mt.scan over(%a = %x : tensor<?x4xf32>) {
    // expected-error@+1 {{expected the 0 carries and the outputs of a step, found 0 values}}
    mt.yield
  }
  return
}

// -----

func.func @other(%x: tensor<?x4xf32>) {
  %0 = mt.scan over(%a = %x : tensor<?x4xf32>) {
    // expected-error@+1 {{expected a computation inside mt.scan, found this}}
    %w = mt.variable "w" init(ones) : tensor<3xf32>
    mt.yield %a : tensor<?xf32>
  }
  return
}

// -----

mt.model @large {
  %x = mt.input "x" : tensor<?x4x2xf32>
  %0 = mt.scan over(%a = %x : tensor<?x4x2xf32>) {
    // expected-error@+1 {{expected at most 2^40 elements, found 'tensor<2000000x2000000xf32>'}}
    %wide = mt.iota dim = 1 : tensor<2000000x2000000xf32>
    mt.yield %a : tensor<?x2xf32>
  }
  mt.output "y", %0 : tensor<?x4x2xf32>
}

// -----

func.func @cumsum(%x: tensor<?x4xf32>) {
  // expected-error@+1 {{expected an axis from 1 to 1 of 'tensor<?x4xf32>', found 0}}
  %0 = mt.cumsum %x dim = 0 : tensor<?x4xf32>
  return
}
