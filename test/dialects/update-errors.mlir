// SPDX-License-Identifier: Apache-2.0
// What is refused in mt.update, and of variables of optimizers.
// RUN: mt-opt %s --split-input-file --verify-diagnostics

mt.model @twice {
  %x = mt.input "x" : tensor<?x4xf32>
  %w = mt.variable "w" init(zeros) : tensor<4xf32>
  %i = mt.variable "iteration" init(zeros) frozen role(iteration) : tensor<i32>
  %p = mt.mul %x, %w : tensor<?x4xf32>, tensor<4xf32>
  mt.loss "loss", %p : tensor<?x4xf32>
  mt.update {
  }
  // expected-error@+1 {{expected one optimizer in a model, found a second}}
  mt.update {
  }
}

// -----

mt.model @both {
  %x = mt.input "x" : tensor<?x4xf32>
  %w = mt.variable "w" init(zeros) : tensor<4xf32>
  %i = mt.variable "iteration" init(zeros) frozen role(iteration) : tensor<i32>
  %p = mt.mul %x, %w : tensor<?x4xf32>, tensor<4xf32>
  mt.loss "loss", %p : tensor<?x4xf32>
  mt.sgd
  // expected-error@+1 {{expected one optimizer in a model, found a second}}
  mt.update {
  }
}

// -----

mt.model @short_form_with_slot {
  %x = mt.input "x" : tensor<?x4xf32>
  %w = mt.variable "w" init(zeros) : tensor<4xf32>
  // expected-error@+1 {{expected a variable without `slot` and `role` in a model without mt.update, found `role`}}
  %i = mt.variable "iteration" init(zeros) frozen role(iteration) : tensor<i32>
  %p = mt.mul %x, %w : tensor<?x4xf32>, tensor<4xf32>
  mt.loss "loss", %p : tensor<?x4xf32>
  mt.sgd
}

// -----

mt.model @no_iteration {
  %x = mt.input "x" : tensor<?x4xf32>
  %w = mt.variable "w" init(zeros) : tensor<4xf32>
  %i = mt.variable "iteration" init(zeros) frozen : tensor<i32>
  %p = mt.mul %x, %w : tensor<?x4xf32>, tensor<4xf32>
  mt.loss "loss", %p : tensor<?x4xf32>
  // expected-error@+1 {{expected a variable with role(iteration) in a model with mt.update, found none}}
  mt.update {
  }
}

// -----

mt.model @two_iterations {
  %x = mt.input "x" : tensor<?x4xf32>
  %w = mt.variable "w" init(zeros) : tensor<4xf32>
  %i = mt.variable "iteration" init(zeros) frozen role(iteration) : tensor<i32>
  // expected-error@+1 {{expected one variable with role(iteration), found a second}}
  %j = mt.variable "j" init(zeros) frozen role(iteration) : tensor<i32>
  %p = mt.mul %x, %w : tensor<?x4xf32>, tensor<4xf32>
  mt.loss "loss", %p : tensor<?x4xf32>
  mt.update {
  }
}

// -----

mt.model @two_rates {
  %x = mt.input "x" : tensor<?x4xf32>
  %w = mt.variable "w" init(zeros) : tensor<4xf32>
  %i = mt.variable "iteration" init(zeros) frozen role(iteration) : tensor<i32>
  %r = mt.variable "r" init(zeros) frozen role(learning_rate) : tensor<f32>
  // expected-error@+1 {{expected one variable with role(learning_rate) at most, found a second}}
  %s = mt.variable "s" init(zeros) frozen role(learning_rate) : tensor<f32>
  %p = mt.mul %x, %w : tensor<?x4xf32>, tensor<4xf32>
  mt.loss "loss", %p : tensor<?x4xf32>
  mt.update {
  }
}

// -----

mt.model @trained_rate {
  %x = mt.input "x" : tensor<?x4xf32>
  %w = mt.variable "w" init(zeros) : tensor<4xf32>
  %i = mt.variable "iteration" init(zeros) frozen role(iteration) : tensor<i32>
  // expected-error@+1 {{expected a frozen variable of type tensor<f32> with the role learning_rate, found another of 'tensor<f32>'}}
  %r = mt.variable "r" init(zeros) role(learning_rate) : tensor<f32>
  %p = mt.mul %x, %w : tensor<?x4xf32>, tensor<4xf32>
  mt.loss "loss", %p : tensor<?x4xf32>
  mt.update {
  }
}

// -----

mt.model @rate_of_integers {
  %x = mt.input "x" : tensor<?x4xf32>
  %w = mt.variable "w" init(zeros) : tensor<4xf32>
  %i = mt.variable "iteration" init(zeros) frozen role(iteration) : tensor<i32>
  // expected-error@+1 {{expected a frozen variable of type tensor<f32> with the role learning_rate, found one of 'tensor<i32>'}}
  %r = mt.variable "r" init(zeros) frozen role(learning_rate) : tensor<i32>
  %p = mt.mul %x, %w : tensor<?x4xf32>, tensor<4xf32>
  mt.loss "loss", %p : tensor<?x4xf32>
  mt.update {
  }
}

// -----

mt.model @frozen_slot {
  %x = mt.input "x" : tensor<?x4xf32>
  %w = mt.variable "w" init(zeros) : tensor<4xf32>
  %i = mt.variable "iteration" init(zeros) frozen role(iteration) : tensor<i32>
  // expected-error@+1 {{expected `frozen` or `slot`, found both}}
  %r = mt.variable "r" init(zeros) frozen slot : tensor<f32>
  %p = mt.mul %x, %w : tensor<?x4xf32>, tensor<4xf32>
  mt.loss "loss", %p : tensor<?x4xf32>
  mt.update {
  }
}

// -----

mt.model @average_of_none {
  %x = mt.input "x" : tensor<?x4xf32>
  %w = mt.variable "w" init(zeros) : tensor<4xf32>
  %i = mt.variable "iteration" init(zeros) frozen role(iteration) : tensor<i32>
  // expected-error@+1 {{expected an average of another variable of type 'tensor<4xf32>', found "v", which is none}}
  %r = mt.variable "r" init(zeros) slot role(average) of "v" : tensor<4xf32>
  %p = mt.mul %x, %w : tensor<?x4xf32>, tensor<4xf32>
  mt.loss "loss", %p : tensor<?x4xf32>
  mt.update {
  }
}

// -----

mt.model @average_without {
  %x = mt.input "x" : tensor<?x4xf32>
  %w = mt.variable "w" init(zeros) : tensor<4xf32>
  %i = mt.variable "iteration" init(zeros) frozen role(iteration) : tensor<i32>
  // expected-error@+1 {{expected `of` with the role average, and with no other role, found none}}
  %r = mt.variable "r" init(zeros) slot role(average) : tensor<4xf32>
  %p = mt.mul %x, %w : tensor<?x4xf32>, tensor<4xf32>
  mt.loss "loss", %p : tensor<?x4xf32>
  mt.update {
  }
}

// -----

mt.model @no_such_role {
  %x = mt.input "x" : tensor<?x4xf32>
  %w = mt.variable "w" init(zeros) : tensor<4xf32>
  %i = mt.variable "iteration" init(zeros) frozen role(iteration) : tensor<i32>
  // expected-error@+1 {{expected learning_rate, iteration or average, found momentum}}
  %r = mt.variable "r" init(zeros) slot role(momentum) : tensor<4xf32>
  %p = mt.mul %x, %w : tensor<?x4xf32>, tensor<4xf32>
  mt.loss "loss", %p : tensor<?x4xf32>
  mt.update {
  }
}

// -----

mt.model @random_integers {
  %x = mt.input "x" : tensor<?x4xf32>
  %w = mt.variable "w" init(zeros) : tensor<4xf32>
  %i = mt.variable "iteration" init(zeros) frozen role(iteration) : tensor<i32>
  // expected-error@+1 {{expected init(zeros), init(ones) or init(constant) of an i32 variable, found normal}}
  %r = mt.variable "r" init(normal = 1.0) slot : tensor<4xi32>
  %p = mt.mul %x, %w : tensor<?x4xf32>, tensor<4xf32>
  mt.loss "loss", %p : tensor<?x4xf32>
  mt.update {
  }
}

// -----

mt.model @half_an_integer {
  %x = mt.input "x" : tensor<?x4xf32>
  %w = mt.variable "w" init(zeros) : tensor<4xf32>
  %i = mt.variable "iteration" init(zeros) frozen role(iteration) : tensor<i32>
  // expected-error@+1 {{expected a whole number of 32 bits to start with, found 5.000000e-01}}
  %r = mt.variable "r" init(constant = 0.5) slot : tensor<4xi32>
  %p = mt.mul %x, %w : tensor<?x4xf32>, tensor<4xf32>
  mt.loss "loss", %p : tensor<?x4xf32>
  mt.update {
  }
}

// -----

mt.model @decay_marks {
  %x = mt.input "x" : tensor<?x4xf32>
  %w = mt.variable "w" init(zeros) : tensor<4xf32>
  %i = mt.variable "iteration" init(zeros) frozen role(iteration) : tensor<i32>
  // expected-error@+1 {{expected no mark for rates and decays in a model with mt.update, whose formulas have them, found no_weight_decay}}
  %r = mt.variable "r" init(zeros) no_weight_decay : tensor<4xf32>
  %p = mt.mul %x, %w : tensor<?x4xf32>, tensor<4xf32>
  mt.loss "loss", %p : tensor<?x4xf32>
  mt.update {
  }
}

// -----

mt.model @gradient_of_none {
  %x = mt.input "x" : tensor<?x4xf32>
  %w = mt.variable "w" init(zeros) : tensor<4xf32>
  %i = mt.variable "iteration" init(zeros) frozen role(iteration) : tensor<i32>
  %p = mt.mul %x, %w : tensor<?x4xf32>, tensor<4xf32>
  mt.loss "loss", %p : tensor<?x4xf32>
  mt.update {
    // expected-error@+1 {{expected the name of a trainable variable, found "v", which is none}}
    %g = mt.gradient "v" : tensor<4xf32>
  }
}

// -----

mt.model @gradient_of_frozen {
  %x = mt.input "x" : tensor<?x4xf32>
  %w = mt.variable "w" init(zeros) : tensor<4xf32>
  %i = mt.variable "iteration" init(zeros) frozen role(iteration) : tensor<i32>
  // expected-note@+1 {{the variable is here}}
  %r = mt.variable "r" init(zeros) frozen : tensor<4xf32>
  %p = mt.mul %x, %w : tensor<?x4xf32>, tensor<4xf32>
  mt.loss "loss", %p : tensor<?x4xf32>
  mt.update {
    // expected-error@+1 {{expected a trainable variable, found the frozen variable "r"}}
    %g = mt.gradient "r" : tensor<4xf32>
  }
}

// -----

mt.model @gradient_of_slot {
  %x = mt.input "x" : tensor<?x4xf32>
  %w = mt.variable "w" init(zeros) : tensor<4xf32>
  %i = mt.variable "iteration" init(zeros) frozen role(iteration) : tensor<i32>
  // expected-note@+1 {{the variable is here}}
  %r = mt.variable "r" init(zeros) slot : tensor<4xf32>
  %p = mt.mul %x, %w : tensor<?x4xf32>, tensor<4xf32>
  mt.loss "loss", %p : tensor<?x4xf32>
  mt.update {
    // expected-error@+1 {{expected a trainable variable, found the slot "r"}}
    %g = mt.gradient "r" : tensor<4xf32>
  }
}

// -----

mt.model @gradient_of_another_type {
  %x = mt.input "x" : tensor<?x4xf32>
  %w = mt.variable "w" init(zeros) : tensor<4xf32>
  %i = mt.variable "iteration" init(zeros) frozen role(iteration) : tensor<i32>
  %p = mt.mul %x, %w : tensor<?x4xf32>, tensor<4xf32>
  mt.loss "loss", %p : tensor<?x4xf32>
  mt.update {
    // expected-error@+1 {{expected 'tensor<4xf32>', the type of "w", found 'tensor<5xf32>'}}
    %g = mt.gradient "w" : tensor<5xf32>
  }
}

// -----

mt.model @gradient_outside {
  %x = mt.input "x" : tensor<?x4xf32>
  %w = mt.variable "w" init(zeros) : tensor<4xf32>
  %i = mt.variable "iteration" init(zeros) frozen role(iteration) : tensor<i32>
  %p = mt.mul %x, %w : tensor<?x4xf32>, tensor<4xf32>
  mt.loss "loss", %p : tensor<?x4xf32>
  // expected-error@+1 {{expected mt.gradient in the body of mt.update, found it elsewhere}}
  %g = mt.gradient "w" : tensor<4xf32>
  mt.update {
  }
}

// -----

mt.model @gradient_in_a_loop {
  %x = mt.input "x" : tensor<?x4xf32>
  %w = mt.variable "w" init(zeros) : tensor<4xf32>
  %i = mt.variable "iteration" init(zeros) frozen role(iteration) : tensor<i32>
  %p = mt.mul %x, %w : tensor<?x4xf32>, tensor<4xf32>
  mt.loss "loss", %p : tensor<?x4xf32>
  mt.update {
    %0 = mt.scan from(%a = %w : tensor<4xf32>) steps = 2 {
      // expected-error@+1 {{expected mt.gradient in the body of mt.update, found it elsewhere}}
      %g = mt.gradient "w" : tensor<4xf32>
      mt.yield %g : tensor<4xf32>
    }
  }
}

// -----

mt.model @update_in_update {
  %x = mt.input "x" : tensor<?x4xf32>
  %w = mt.variable "w" init(zeros) : tensor<4xf32>
  %i = mt.variable "iteration" init(zeros) frozen role(iteration) : tensor<i32>
  %p = mt.mul %x, %w : tensor<?x4xf32>, tensor<4xf32>
  mt.loss "loss", %p : tensor<?x4xf32>
  mt.update {
    // expected-error@+1 {{expected mt.update in an mt.model, found it elsewhere}}
    mt.update {
    }
  }
}

// -----

mt.model @assign_of_none {
  %x = mt.input "x" : tensor<?x4xf32>
  %w = mt.variable "w" init(zeros) : tensor<4xf32>
  %i = mt.variable "iteration" init(zeros) frozen role(iteration) : tensor<i32>
  %p = mt.mul %x, %w : tensor<?x4xf32>, tensor<4xf32>
  mt.loss "loss", %p : tensor<?x4xf32>
  mt.update {
    // expected-error@+1 {{expected the name of a variable of the model, found "v", which is none}}
    mt.assign "v", %w : tensor<4xf32>
  }
}

// -----

mt.model @assign_twice {
  %x = mt.input "x" : tensor<?x4xf32>
  %w = mt.variable "w" init(zeros) : tensor<4xf32>
  %i = mt.variable "iteration" init(zeros) frozen role(iteration) : tensor<i32>
  %p = mt.mul %x, %w : tensor<?x4xf32>, tensor<4xf32>
  mt.loss "loss", %p : tensor<?x4xf32>
  mt.update {
    // expected-note@+1 {{the first is here}}
    mt.assign "w", %w : tensor<4xf32>
    // expected-error@+1 {{expected one assignment of a variable, found a second of "w"}}
    mt.assign "w", %w : tensor<4xf32>
  }
}

// -----

mt.model @assign_iteration {
  %x = mt.input "x" : tensor<?x4xf32>
  %w = mt.variable "w" init(zeros) : tensor<4xf32>
  %i = mt.variable "iteration" init(zeros) frozen role(iteration) : tensor<i32>
  %p = mt.mul %x, %w : tensor<?x4xf32>, tensor<4xf32>
  mt.loss "loss", %p : tensor<?x4xf32>
  mt.update {
    // expected-error@+1 {{expected another variable than that with role(iteration), which the compiler increments, found "iteration"}}
    mt.assign "iteration", %i : tensor<i32>
  }
}

// -----

mt.model @assign_another_type {
  %x = mt.input "x" : tensor<?x4xf32>
  %w = mt.variable "w" init(zeros) : tensor<4xf32>
  %i = mt.variable "iteration" init(zeros) frozen role(iteration) : tensor<i32>
  %p = mt.mul %x, %w : tensor<?x4xf32>, tensor<4xf32>
  mt.loss "loss", %p : tensor<?x4xf32>
  mt.update {
    // expected-error@+1 {{expected 'tensor<4xf32>', the type of "w", found 'tensor<i32>'}}
    mt.assign "w", %i : tensor<i32>
  }
}

// -----

mt.model @assign_split {
  %x = mt.input "x" : tensor<?x4xf32>
  %w = mt.variable "w" init(zeros) : tensor<4xf32>
  %i = mt.variable "iteration" init(zeros) frozen role(iteration) : tensor<i32>
  %p = mt.mul %x, %w : tensor<?x4xf32>, tensor<4xf32>
  mt.loss "loss", %p : tensor<?x4xf32>
  mt.update {
    // expected-error@+1 {{expected 'tensor<4xf32>', the type of "w", found 'tensor<?x4xf32>'}}
    mt.assign "w", %p : tensor<?x4xf32>
  }
}

// -----

mt.model @assign_if {
  %x = mt.input "x" : tensor<?x4xf32>
  %w = mt.variable "w" init(zeros) : tensor<4xf32>
  %i = mt.variable "iteration" init(zeros) frozen role(iteration) : tensor<i32>
  %p = mt.mul %x, %w : tensor<?x4xf32>, tensor<4xf32>
  mt.loss "loss", %p : tensor<?x4xf32>
  mt.update {
    %c = mt.constant dense<true> : tensor<i1>
    // expected-error@+1 {{expected no condition in mt.update, found one}}
    mt.assign "w", %w if %c : tensor<4xf32>
  }
}

// -----

mt.model @assign_outside {
  %x = mt.input "x" : tensor<?x4xf32>
  %w = mt.variable "w" init(zeros) : tensor<4xf32>
  %i = mt.variable "iteration" init(zeros) frozen role(iteration) : tensor<i32>
  %p = mt.mul %x, %w : tensor<?x4xf32>, tensor<4xf32>
  mt.loss "loss", %p : tensor<?x4xf32>
  // expected-error@+1 {{expected an op of a model inside mt.model}}
  mt.assign "w", %w : tensor<4xf32>
  mt.update {
  }
}

// -----

mt.model @two_rates_of_a_step {
  %x = mt.input "x" : tensor<?x4xf32>
  %w = mt.variable "w" init(zeros) : tensor<4xf32>
  %i = mt.variable "iteration" init(zeros) frozen role(iteration) : tensor<i32>
  %r = mt.variable "r" init(zeros) frozen : tensor<f32>
  %p = mt.mul %x, %w : tensor<?x4xf32>, tensor<4xf32>
  mt.loss "loss", %p : tensor<?x4xf32>
  mt.update {
    mt.rate %r
    // expected-error@+1 {{expected one mt.rate in mt.update, found a second}}
    mt.rate %r
  }
}

// -----

mt.model @input_inside {
  %x = mt.input "x" : tensor<?x4xf32>
  %w = mt.variable "w" init(zeros) : tensor<4xf32>
  %i = mt.variable "iteration" init(zeros) frozen role(iteration) : tensor<i32>
  %p = mt.mul %x, %w : tensor<?x4xf32>, tensor<4xf32>
  mt.loss "loss", %p : tensor<?x4xf32>
  mt.update {
    // expected-error@+1 {{expected a computation, mt.gradient, mt.argument, mt.derivative, mt.assign, mt.result or mt.rate inside mt.update, found this}}
    %y = mt.input "y" : tensor<?x4xf32>
  }
}

// -----

mt.model @variable_inside {
  %x = mt.input "x" : tensor<?x4xf32>
  %w = mt.variable "w" init(zeros) : tensor<4xf32>
  %i = mt.variable "iteration" init(zeros) frozen role(iteration) : tensor<i32>
  %p = mt.mul %x, %w : tensor<?x4xf32>, tensor<4xf32>
  mt.loss "loss", %p : tensor<?x4xf32>
  mt.update {
    // expected-error@+1 {{expected a computation, mt.gradient, mt.argument, mt.derivative, mt.assign, mt.result or mt.rate inside mt.update, found this}}
    %y = mt.variable "y" init(zeros) : tensor<4xf32>
  }
}

// -----

mt.model @loss_inside {
  %x = mt.input "x" : tensor<?x4xf32>
  %w = mt.variable "w" init(zeros) : tensor<4xf32>
  %i = mt.variable "iteration" init(zeros) frozen role(iteration) : tensor<i32>
  %p = mt.mul %x, %w : tensor<?x4xf32>, tensor<4xf32>
  mt.loss "loss", %p : tensor<?x4xf32>
  mt.update {
    // expected-error@+1 {{expected a computation, mt.gradient, mt.argument, mt.derivative, mt.assign, mt.result or mt.rate inside mt.update, found this}}
    mt.loss "l", %p : tensor<?x4xf32>
  }
}

// -----

mt.model @optimizer_inside {
  %x = mt.input "x" : tensor<?x4xf32>
  %w = mt.variable "w" init(zeros) : tensor<4xf32>
  %i = mt.variable "iteration" init(zeros) frozen role(iteration) : tensor<i32>
  %p = mt.mul %x, %w : tensor<?x4xf32>, tensor<4xf32>
  mt.loss "loss", %p : tensor<?x4xf32>
  mt.update {
    // expected-error@+1 {{expected a computation, mt.gradient, mt.argument, mt.derivative, mt.assign, mt.result or mt.rate inside mt.update, found this}}
    mt.sgd
  }
}

// -----

mt.model @yield_inside {
  %x = mt.input "x" : tensor<?x4xf32>
  %w = mt.variable "w" init(zeros) : tensor<4xf32>
  %i = mt.variable "iteration" init(zeros) frozen role(iteration) : tensor<i32>
  %p = mt.mul %x, %w : tensor<?x4xf32>, tensor<4xf32>
  mt.loss "loss", %p : tensor<?x4xf32>
  mt.update {
    // expected-error@+1 {{expected a computation, mt.gradient, mt.argument, mt.derivative, mt.assign, mt.result or mt.rate inside mt.update, found this}}
    mt.yield
  }
}

// -----

mt.model @arguments {
  %x = mt.input "x" : tensor<?x4xf32>
  mt.loss "loss", %x : tensor<?x4xf32>
  // expected-error@+1 {{expected a body without arguments, found 1}}
  "mt.update"() ({
  ^bb0(%a: tensor<4xf32>):
  }) : () -> ()
}

// -----

mt.program @argument_outside {
  %x = mt.input "x" : tensor<?x4xf32>
  // expected-error@+1 {{expected this op in the body of mt.model or mt.update, found it elsewhere}}
  %a = mt.argument %x : tensor<?x4xf32>
}

// -----

mt.model @derivative_by_variable {
  %x = mt.input "x" : tensor<?x4xf32>
  %w = mt.variable "w" init(zeros) : tensor<4xf32>
  %i = mt.variable "iteration" init(zeros) frozen role(iteration) : tensor<i32>
  %p = mt.mul %x, %w : tensor<?x4xf32>, tensor<4xf32>
  mt.loss "loss", %p : tensor<?x4xf32>
  mt.update {
    %n = mt.batch_size
    // expected-error@+1 {{expected an mt.argument by which to differentiate, found another value}}
    %g = mt.derivative %n by %w : tensor<4xf32>
  }
}

// -----

mt.model @derivative_of_samples {
  %x = mt.input "x" : tensor<?x4xf32>
  %w = mt.variable "w" init(zeros) : tensor<4xf32>
  %i = mt.variable "iteration" init(zeros) frozen role(iteration) : tensor<i32>
  %p = mt.mul %x, %w : tensor<?x4xf32>, tensor<4xf32>
  mt.loss "loss", %p : tensor<?x4xf32>
  mt.update {
    %a = mt.argument %w : tensor<4xf32>
    // expected-note@+1 {{prior use here}}
    %l = mt.mul %x, %a : tensor<?x4xf32>, tensor<4xf32>
    // expected-error@+1 {{use of value '%l' expects different type than prior uses: 'tensor<f32>' vs 'tensor<?x4xf32>'}}
    %g = mt.derivative %l by %a : tensor<4xf32>
  }
}

// -----

mt.model @derivative_of_other_type {
  %x = mt.input "x" : tensor<?x4xf32>
  %w = mt.variable "w" init(zeros) : tensor<4xf32>
  %i = mt.variable "iteration" init(zeros) frozen role(iteration) : tensor<i32>
  %p = mt.mul %x, %w : tensor<?x4xf32>, tensor<4xf32>
  mt.loss "loss", %p : tensor<?x4xf32>
  mt.update {
    // expected-note@+1 {{prior use here}}
    %a = mt.argument %w : tensor<4xf32>
    %n = mt.batch_size
    // expected-error@+1 {{use of value '%a' expects different type than prior uses: 'tensor<3xf32>' vs 'tensor<4xf32>'}}
    %g = mt.derivative %n by %a : tensor<3xf32>
  }
}

// -----

mt.model @same_result {
  %x = mt.input "x" : tensor<?x4xf32>
  %w = mt.variable "w" init(zeros) : tensor<4xf32>
  %i = mt.variable "iteration" init(zeros) frozen role(iteration) : tensor<i32>
  %p = mt.mul %x, %w : tensor<?x4xf32>, tensor<4xf32>
  mt.loss "loss", %p : tensor<?x4xf32>
  mt.update {
    %n = mt.batch_size
    // expected-note@+1 {{the first is here}}
    mt.result "loss", %n, %n
    // expected-error@+1 {{expected results of different names, found a second "loss"}}
    mt.result "loss", %n, %n
  }
}

// -----

mt.model @result_of_samples {
  %x = mt.input "x" : tensor<?x4xf32>
  %w = mt.variable "w" init(zeros) : tensor<4xf32>
  %i = mt.variable "iteration" init(zeros) frozen role(iteration) : tensor<i32>
  %p = mt.mul %x, %w : tensor<?x4xf32>, tensor<4xf32>
  mt.loss "loss", %p : tensor<?x4xf32>
  mt.update {
    %n = mt.batch_size
    // expected-error@+1 {{expected one value for the whole batch, found 'tensor<?x4xf32>'}}
    mt.result "loss", %x, %n finalizer roc : tensor<?x4xf32>
  }
}

// -----

mt.model @result_of_several {
  %x = mt.input "x" : tensor<?x4xf32>
  %w = mt.variable "w" init(zeros) : tensor<4xf32>
  %i = mt.variable "iteration" init(zeros) frozen role(iteration) : tensor<i32>
  %p = mt.mul %x, %w : tensor<?x4xf32>, tensor<4xf32>
  mt.loss "loss", %p : tensor<?x4xf32>
  mt.update {
    %n = mt.batch_size
    // expected-error@+1 {{expected sums of shape [..., 2, thresholds] for roc, found 'tensor<4xf32>'}}
    mt.result "loss", %w, %n finalizer roc : tensor<4xf32>
  }
}

// -----

mt.model @metrics_of_sums {
  %x = mt.input "x" : tensor<?x2x2xf32>
  // expected-error@+1 {{expected other parameters for iou}}
  mt.metric "iou", %x finalizer iou parameters [2.0] : tensor<?x2x2xf32>
}

// -----

mt.model @a_sum {
  %x = mt.input "x" : tensor<?x2x2xf32>
  // expected-error@+1 {{expected sums of shape [] for sum}}
  mt.metric "sum", %x finalizer sum better lower : tensor<?x2x2xf32>
}

// -----

mt.model @a_mean {
  %x = mt.input "x" : tensor<?x2x2xf32>
  // expected-error@+1 {{expected no parameters of a mean, found some}}
  mt.metric "mean", %x parameters [0.5] better lower : tensor<?x2x2xf32>
}

// -----

// expected-error@+1 {{expected one mt.loss or more, or an mt.result in mt.update, found none}}
mt.model @no_report {
  %x = mt.input "x" : tensor<?x4xf32>
  %w = mt.variable "w" init(zeros) : tensor<4xf32>
  %i = mt.variable "iteration" init(zeros) frozen role(iteration) : tensor<i32>
  %p = mt.mul %x, %w : tensor<?x4xf32>, tensor<4xf32>
  mt.update {
    mt.assign "w", %w : tensor<4xf32>
  }
}

// -----

mt.model @gradient_of_nothing {
  %x = mt.input "x" : tensor<?x4xf32>
  %w = mt.variable "w" init(zeros) : tensor<4xf32>
  %i = mt.variable "iteration" init(zeros) frozen role(iteration) : tensor<i32>
  %p = mt.mul %x, %w : tensor<?x4xf32>, tensor<4xf32>
  mt.update {
    %n = mt.batch_size
    mt.result "loss", %n, %n
    // expected-error@+1 {{expected an mt.loss, whose gradient this is, found none}}
    %g = mt.gradient "w" : tensor<4xf32>
  }
}

// -----

mt.model @regularizer_of_nothing {
  %x = mt.input "x" : tensor<?x4xf32>
  %w = mt.variable "w" init(zeros) : tensor<4xf32>
  %i = mt.variable "iteration" init(zeros) frozen role(iteration) : tensor<i32>
  %p = mt.mul %x, %w : tensor<?x4xf32>, tensor<4xf32>
  // expected-error@+1 {{expected an mt.loss to which the regularizer adds, found none}}
  mt.regularizer %w l2 = 0.1 : tensor<4xf32>
  mt.update {
    %n = mt.batch_size
    mt.result "loss", %n, %n
  }
}
