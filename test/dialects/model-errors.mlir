// SPDX-License-Identifier: Apache-2.0
// RUN: mt-opt %s --split-input-file --verify-diagnostics

mt.model @no_batch_axis {
  // expected-error@+1 {{expected a batch axis `?` first, found 'tensor<32x784xf32>'}}
  %x = mt.input "x" : tensor<32x784xf32>
}

// -----

// expected-error@+1 {{expected one mt.input or more, found none}}
mt.model @empty {
  mt.sgd
}

// -----

// expected-error@+1 {{expected one mt.loss or more, found none}}
mt.model @no_loss {
  %x = mt.input "x" : tensor<?xf32>
  mt.sgd
}

// -----

// expected-error@+1 {{expected one optimizer, found none}}
mt.model @no_optimizer {
  %x = mt.input "x" : tensor<?xf32>
  mt.loss "loss", %x : tensor<?xf32>
}

// -----

mt.model @same_names {
  %x = mt.input "x" : tensor<?x4xf32>
  // expected-note@+1 {{the first is here}}
  %a = mt.variable "w" init(zeros) : tensor<4xf32>
  // expected-error@+1 {{expected variables of different names, found a second "w"}}
  %b = mt.variable "w" init(zeros) : tensor<4xf32>
  mt.loss "loss", %x : tensor<?x4xf32>
  mt.sgd
}

// -----

mt.model @two_losses {
  %x = mt.input "x" : tensor<?xf32>
  // expected-error@+1 {{expected another name than "loss", which is the total of the 2 losses}}
  mt.loss "loss", %x : tensor<?xf32>
  mt.loss "other", %x : tensor<?xf32>
  mt.sgd
}

// -----

mt.model @variable_of_unknown_size {
  // expected-error@+1 {{expected a static shape, found 'tensor<?x4xf32>'}}
  %w = mt.variable "w" init(zeros) : tensor<?x4xf32>
}

// -----

mt.model @value_missing {
  // expected-error@+1 {{expected a value: init(constant = 0.5)}}
  %w = mt.variable "w" init(constant) : tensor<4xf32>
}

// -----

mt.model @deviation_missing {
  // expected-error@+1 {{expected a value: init(normal = 0.5)}}
  %w = mt.variable "w" init(normal) : tensor<4xf32>
}

// -----

mt.model @deviation_negative {
  // expected-error@+1 {{expected init(uniform) of a finite value of 0 or more, found -5.000000e-01}}
  %w = mt.variable "w" init(uniform = -0.5) : tensor<4xf32>
}

// -----

mt.model @value_of_another {
  // expected-error@+1 {{expected a value with init(constant), init(normal) and init(uniform) only, found one with zeros}}
  %w = mt.variable "w" init(zeros = 0.5) : tensor<4xf32>
}

// -----

mt.model @trainable_integers {
  // expected-error@+1 {{expected a trainable variable of f32, found 'tensor<4xi32>'}}
  %w = mt.variable "w" init(zeros) : tensor<4xi32>
}

// -----

mt.model @no_such_initialiser {
  // expected-error@+1 {{expected the name of an initialiser, found orthogonal}}
  %w = mt.variable "w" init(orthogonal) : tensor<4xf32>
}

// -----

mt.model @weights {
  %x = mt.input "x" : tensor<?x4xf32>
  %w = mt.input "w" : tensor<?x3xf32>
  // expected-error@+1 {{expected weights of the shape of the values or of its first axes, found 'tensor<?x3xf32>' for 'tensor<?x4xf32>'}}
  mt.loss "loss", %x weights(%w : tensor<?x3xf32>) : tensor<?x4xf32>
}

// -----

mt.model @divided_by_nothing {
  %x = mt.input "x" : tensor<?xf32>
  // expected-error@+1 {{expected weights to divide by, found none}}
  mt.loss "loss", %x by weights : tensor<?xf32>
}

// -----

mt.model @momentum {
  // expected-error@+1 {{expected momentum from 0 to less than 1, found 1}}
  mt.sgd <{momentum = 1.0 : f32}>
}

// -----

mt.model @nesterov {
  // expected-error@+1 {{expected a momentum above 0 with nesterov, found 0}}
  mt.sgd <{nesterov}>
}

// -----

mt.model @rate_after_momentum {
  // expected-error@+1 {{expected a momentum above 0 with rate_after_momentum, found 0}}
  mt.rmsprop <{rate_after_momentum}>
}

// -----

mt.model @beta {
  // expected-error@+1 {{expected beta_2 from 0 to less than 1, found -1}}
  mt.adam <{beta_2 = -1.0 : f32}>
}

// -----

mt.model @rate {
  // expected-error@+1 {{expected a finite learning_rate of 0 or more, found -5.000000e-01}}
  mt.lion <{learning_rate = -0.5 : f32}>
}

// -----

mt.model @program_op {
  %x = mt.input "x" : tensor<?xf32>
  // expected-error@+1 {{expected an op of a model inside mt.model}}
  %r = mt.read "w" : tensor<4xf32>
  mt.loss "loss", %x : tensor<?xf32>
  mt.sgd
}

// -----

mt.model @batch_axis_second {
  // expected-error@+1 {{expected `?` as first axis only, found 'tensor<?x?xf32>'}}
  %x = mt.input "x" : tensor<?x?xf32>
}

// -----

mt.model @two_optimizers {
  %x = mt.input "x" : tensor<?xf32>
  mt.loss "loss", %x : tensor<?xf32>
  mt.sgd
  // expected-error@+1 {{expected one optimizer in a model, found a second}}
  mt.adam
}

// -----

mt.model @no_direction {
  %x = mt.input "x" : tensor<?xf32>
  mt.loss "loss", %x : tensor<?xf32>
  // expected-error@+1 {{expected "better higher" or "better lower", which the op of the values does not imply, found neither}}
  mt.metric "share", %x : tensor<?xf32>
  mt.sgd
}

// -----

// Sizes whose product does not fit into 64 bits.
mt.model @wraps {
  // expected-error@+1 {{expected at most 2^40 elements, found 'tensor<?x1099511627776x1099511627776xf32>'}}
  %x = mt.input "x" : tensor<?x1099511627776x1099511627776xf32>
}
