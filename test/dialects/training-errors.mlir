// SPDX-License-Identifier: Apache-2.0
// RUN: mt-opt %s --split-input-file --verify-diagnostics
mt.model @channels_first {
  %x = mt.input "x" : tensor<?x8x3xf32>
  %p = mt.variable "p" init(ones) frozen : tensor<8xf32>
  // expected-error@+1 {{expected parameters of type 'tensor<3xf32>', found 'tensor<8xf32>'}}
  %y = mt.batch_normalization %x, %p, %p, %p, %p : tensor<?x8x3xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}

// -----

mt.model @no_batch {
  %p = mt.variable "p" init(ones) frozen : tensor<3xf32>
  %x = mt.variable "x" init(ones) frozen : tensor<8x3xf32>
  // expected-error@+1 {{expected a batch axis first and channels last, found 'tensor<8x3xf32>'}}
  %y = mt.batch_normalization %x, %p, %p, %p, %p : tensor<8x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>
}

// -----

mt.model @batch_axis {
  %x = mt.input "x" : tensor<?x3xf32>
  // expected-error@+1 {{expected axes from 1 to 1, found 0}}
  %y = mt.normalize %x over [0] : tensor<?x3xf32>
}

// -----

mt.model @rate {
  %x = mt.input "x" : tensor<?x3xf32>
  // expected-error@+1 {{expected a rate from 0 to less than 1, found 1}}
  %y = mt.dropout %x "d" rate = 1.0 : tensor<?x3xf32>
}

// -----

mt.model @shared {
  %x = mt.input "x" : tensor<?x3xf32>
  // expected-error@+1 {{expected shared axes from 1 to 1, found 2}}
  %y = mt.dropout %x "d" rate = 0.5 shared = [2] : tensor<?x3xf32>
}

// -----

mt.model @stddev {
  %x = mt.input "x" : tensor<?x3xf32>
  // expected-error@+1 {{expected a finite stddev of 0 or more, found -1}}
  %y = mt.gaussian_noise %x "d" stddev = -1.0 : tensor<?x3xf32>
}

// -----

mt.model @smoothing {
  %x = mt.input "x" : tensor<?x3xf32>
  // expected-error@+1 {{expected label_smoothing from 0 to 1, found 2}}
  %y = mt.categorical_crossentropy %x, %x label_smoothing = 2.0 : tensor<?x3xf32>, tensor<?x3xf32>
}

// -----

mt.model @top_none {
  %x = mt.input "x" : tensor<?x3xf32>
  // expected-error@+1 {{expected k of 1 or more, found 0}}
  %y = mt.top_k_categorical_accuracy %x, %x k = 0 : tensor<?x3xf32>, tensor<?x3xf32>
}

// -----

mt.model @two_clips {
  // expected-error@+1 {{expected one of clipnorm, clipvalue and global_clipnorm at most, found 2}}
  mt.sgd <{clipnorm = 1.0 : f32, clipvalue = 1.0 : f32}>
}

// -----

mt.model @overwrite_with_what {
  // expected-error@+1 {{expected an ema_momentum with ema_overwrite_frequency, found none}}
  mt.adam <{ema_overwrite_frequency = 3 : i64}>
}

// -----

mt.model @boundaries {
  %i = mt.iteration
  // expected-error@+1 {{expected one value more than boundaries, found 2 values and 2 boundaries}}
  %r = mt.piecewise_constant_decay %i <{boundaries = array<i64: 1, 2>, values = array<f32: 0.1, 0.2>}>
}

// -----

mt.model @no_steps {
  %i = mt.iteration
  // expected-error@+1 {{expected finite decay_steps above 0, found 0}}
  %r = mt.exponential_decay %i <{initial_learning_rate = 0.1 : f32, decay_steps = 0.0 : f32, decay_rate = 0.5 : f32}>
}
