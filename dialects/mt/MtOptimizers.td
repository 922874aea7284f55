// SPDX-License-Identifier: Apache-2.0
//
// Optimizers and schedules of the learning rate, with the defaults and formulas of Keras 3; attributes select formulas
// of PyTorch and optax that differ.
#ifndef MT_OPTIMIZERS_TD
#define MT_OPTIMIZERS_TD

include "dialects/mt/MtBase.td"

// In each step an optimizer clips the gradients, decays the variables, updates them and updates their averages, in this
// order.
class Mt_Optimizer<string mnemonic, string text, dag own, string weight_decay = "0.0f", list<string> methods = []>
    : Mt_Op<mnemonic, [DeclareOpInterfaceMethods<OptimizerOpInterface, methods>]> {
  let summary = text;
  let description = "\n    `mt." # mnemonic # [{ rate(%schedule)`

    Attributes and operands of all optimizers, for a variable w with the gradient g:
    rate                    operand: the learning rate from a schedule, instead of `learning_rate`. The plan then has
                            no variable for the learning rate
    weight_decay            w -= w * weight_decay * rate, before the update (decoupled, Loshchilov and Hutter 2019)
    clipnorm                largest norm of each gradient; a gradient of a larger norm is scaled down
    clipvalue               largest absolute value of an element of a gradient
    global_clipnorm         largest norm of all gradients as one vector; one factor scales all gradients
    ema_momentum            momentum of moving averages of the variables, in slots `average`; the first step sets
                            each average to the new value of its variable
    ema_overwrite_frequency number of steps after which the variables are set to their averages

    The verifier fails if more than one of the three attributes for clipping is set.

    Attributes of some optimizers select the formula of PyTorch instead of that of Keras:
    epsilon_after_correction epsilon is added to the root of the bias-corrected second moment, as in Algorithm 1 of
                             Kingma and Ba (2015): m' rate / (sqrt(v') + epsilon). Without the attribute the correction
                             is part of the rate: m alpha / (sqrt(v) + epsilon), as at the end of their section 2
    epsilon_after_root       sqrt(v) + epsilon instead of sqrt(v + epsilon)
    rate_after_momentum      m = momentum m + g, w -= rate m. Without the attribute the rate is part of the momentum:
                             m = momentum m - rate g, w += m. The two differ if the rate changes
  }];
  let arguments = !con((ins Optional<Mt_Scalar>:$rate), own,
                       (ins DefaultValuedAttr<Mt_Real, weight_decay>:$weight_decay,
    OptionalAttr<Mt_Real>:$clipnorm, OptionalAttr<Mt_Real>:$clipvalue, OptionalAttr<Mt_Real>:$global_clipnorm,
    OptionalAttr<Mt_Real>:$ema_momentum, OptionalAttr<I64Attr>:$ema_overwrite_frequency));
  let assemblyFormat = "(`rate` `(` custom<OptionalScalar>($rate, type($rate))^ `)`)? prop-dict attr-dict";
  let hasVerifier = 1;
}
defvar rate = (ins DefaultValuedAttr<Mt_Real, "1e-3f">:$learning_rate);
defvar betas = (ins DefaultValuedAttr<Mt_Real, "0.9f">:$beta_1, DefaultValuedAttr<Mt_Real, "0.999f">:$beta_2,
                DefaultValuedAttr<Mt_Real, "1e-7f">:$epsilon);

def SgdOp : Mt_Optimizer<"sgd", "stochastic gradient descent, with momentum or Nesterov momentum",
                         (ins DefaultValuedAttr<Mt_Real, "0.01f">:$learning_rate,
                                 DefaultValuedAttr<Mt_Real, "0.0f">:$momentum, UnitAttr:$nesterov,
                                 UnitAttr:$rate_after_momentum)>;
defvar adam = !con(rate, betas, (ins UnitAttr:$amsgrad, UnitAttr:$epsilon_after_correction));
def AdamOp : Mt_Optimizer<"adam", "Adam (Kingma and Ba 2015), and AMSGrad (Reddi et al. 2018)", adam>;
def AdamWOp : Mt_Optimizer<"adamw", "AdamW: Adam with weight decay (Loshchilov and Hutter 2019)", adam, "0.004f">;
def AdamaxOp : Mt_Optimizer<"adamax", "AdaMax (Kingma and Ba 2015, section 7.1)", !con(rate, betas)>;
def NadamOp : Mt_Optimizer<"nadam", "Nadam (Dozat 2016)", !con(rate, betas), "0.0f", ["getState"]>;
def LambOp : Mt_Optimizer<"lamb", "LAMB (You et al. 2020)", !con(rate, betas)>;
def RmspropOp : Mt_Optimizer<"rmsprop", "RMSprop (Tieleman and Hinton 2012)", !con(rate,
    (ins DefaultValuedAttr<Mt_Real, "0.9f">:$rho,
    DefaultValuedAttr<Mt_Real, "0.0f">:$momentum, DefaultValuedAttr<Mt_Real, "1e-7f">:$epsilon, UnitAttr:$centered,
    UnitAttr:$epsilon_after_root, UnitAttr:$rate_after_momentum))>;
def AdagradOp : Mt_Optimizer<"adagrad", "Adagrad (Duchi, Hazan and Singer 2011)", !con(rate,
    (ins DefaultValuedAttr<Mt_Real, "0.1f">:$initial_accumulator_value,
    DefaultValuedAttr<Mt_Real, "1e-7f">:$epsilon, UnitAttr:$epsilon_after_root)), "0.0f", ["getSlotStart"]>;
def AdadeltaOp : Mt_Optimizer<"adadelta", "Adadelta (Zeiler 2012)",
                              !con(rate, (ins DefaultValuedAttr<Mt_Real, "0.95f">:$rho,
                                          DefaultValuedAttr<Mt_Real, "1e-7f">:$epsilon))>;
def LionOp : Mt_Optimizer<"lion", "Lion (Chen et al. 2023)",
                          !con(rate, (ins DefaultValuedAttr<Mt_Real, "0.9f">:$beta_1,
                                      DefaultValuedAttr<Mt_Real, "0.99f">:$beta_2))>;

def IterationOp : Mt_Op<"iteration", [Pure]> {
  let summary = "number of steps before this one, in a model";
  let results = (outs Mt_Step:$result);
  let assemblyFormat = "attr-dict";
}

// A schedule computes the learning rate of a step in f32, as Keras does.
class Mt_Schedule<string mnemonic, string text, dag attributes> : Mt_Composite<mnemonic> {
  let summary = text;
  let arguments = !con((ins Mt_Step:$step), attributes);
  let results = (outs Mt_Scalar:$result);
  let assemblyFormat = "custom<Scalar>($step, type($result)) prop-dict attr-dict";
  let hasVerifier = 1;
}
defvar decay = (ins Mt_Real:$initial_learning_rate, Mt_Real:$decay_steps);
def ExponentialDecayOp : Mt_Schedule<"exponential_decay",
                                     "initial * decay_rate^(step / decay_steps); with staircase, the quotient is "
                                     "rounded down",
                                     !con(decay, (ins Mt_Real:$decay_rate, UnitAttr:$staircase))>;
def InverseTimeDecayOp : Mt_Schedule<"inverse_time_decay",
                                     "initial / (1 + decay_rate step / decay_steps); with staircase, the quotient is "
                                     "rounded down",
                                     !con(decay, (ins Mt_Real:$decay_rate, UnitAttr:$staircase))>;
def PiecewiseConstantDecayOp : Mt_Schedule<"piecewise_constant_decay",
                                           "values[i] for the i with boundaries[i - 1] < step <= boundaries[i]",
                                           (ins DenseI64ArrayAttr:$boundaries, DenseF32ArrayAttr:$values)>;
def PolynomialDecayOp : Mt_Schedule<"polynomial_decay",
                                    "(initial - end) (1 - step / decay_steps)^power + end", !con(decay,
    (ins DefaultValuedAttr<Mt_Real, "1e-4f">:$end_learning_rate, DefaultValuedAttr<Mt_Real, "1.0f">:$power,
     UnitAttr:$cycle))> {
  let description = "With `cycle`, `decay_steps` is multiplied by the smallest integer that makes it at least `step`. "
                    "Without it, the rate stays at `end` after `decay_steps` steps.";
}
def CosineDecayOp : Mt_Schedule<"cosine_decay",
                                "initial ((1 - alpha) (1 + cos(pi step / decay_steps)) / 2 + alpha) (Loshchilov and "
                                "Hutter 2017)", !con(decay,
    (ins DefaultValuedAttr<Mt_Real, "0.0f">:$alpha, OptionalAttr<Mt_Real>:$warmup_target,
     DefaultValuedAttr<Mt_Real, "0.0f">:$warmup_steps))> {
  let description = "With `warmup_target`, the rate first rises linearly from the initial rate to `warmup_target` in "
                    "`warmup_steps` steps, and then decays from `warmup_target`. The verifier fails if only one of "
                    "these two attributes is set.";
}
#endif
