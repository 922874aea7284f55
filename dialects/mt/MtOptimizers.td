// SPDX-License-Identifier: Apache-2.0
//
// Optimizers and schedules of the learning rate. Defaults and formulas are Keras 3's; attributes choose those of
// PyTorch and optax where they differ.
#ifndef MT_OPTIMIZERS_TD
#define MT_OPTIMIZERS_TD

include "dialects/mt/MtBase.td"

// A step clips the gradients, decays the variables, updates them and their averages, in this order.
class Mt_Optimizer<string mnemonic, dag own, string weight_decay = "0.0f", list<string> methods = []>
    : Mt_Op<mnemonic, [DeclareOpInterfaceMethods<OptimizerOpInterface, methods>]> {
  let summary = "an optimizer; mt.adam rate(%schedule) <{beta_1 = 0.8 : f32}>";
  let description = [{
    rate                    an operand that replaces `learning_rate`: a schedule. There is no variable of the learning
                            rate then
    weight_decay            w -= w * weight_decay * rate, before the update
    clipnorm                each gradient scaled to this norm at most
    clipvalue               each element of a gradient from -clipvalue to clipvalue
    global_clipnorm         all gradients scaled by one factor, to this norm at most. One of the three at most
    ema_momentum            use_ema: slots `average` of the variables (the first step copies)
    ema_overwrite_frequency after every so many steps the variables become their averages

    Some optimizers have attributes that choose between two formulas. Without them it is Keras', with them PyTorch's:
    epsilon_after_correction epsilon is added to the root of the bias-corrected second moment, as in Algorithm 1 of
                             Kingma and Ba (2015): m' rate / (sqrt(v') + epsilon). Without it the correction is a part
                             of the rate: m alpha / (sqrt(v) + epsilon), as in the remark at the end of their section 2
    epsilon_after_root       sqrt(v) + epsilon in place of sqrt(v + epsilon)
    rate_after_momentum      m = momentum m + g, w -= rate m. Without it the rate is a part of the momentum:
                             m = momentum m - rate g, w += m. The two differ where the rate changes
  }];
  let arguments = !con((ins Optional<Mt_Scalar>:$rate), own,
                       (ins DefaultValuedAttr<F32Attr, weight_decay>:$weight_decay,
    OptionalAttr<F32Attr>:$clipnorm, OptionalAttr<F32Attr>:$clipvalue, OptionalAttr<F32Attr>:$global_clipnorm,
    OptionalAttr<F32Attr>:$ema_momentum, OptionalAttr<I64Attr>:$ema_overwrite_frequency));
  let assemblyFormat = "(`rate` `(` $rate^ `)`)? prop-dict attr-dict";
  let hasVerifier = 1;
}
defvar rate = (ins DefaultValuedAttr<F32Attr, "1e-3f">:$learning_rate);
defvar betas = (ins DefaultValuedAttr<F32Attr, "0.9f">:$beta_1, DefaultValuedAttr<F32Attr, "0.999f">:$beta_2,
                DefaultValuedAttr<F32Attr, "1e-7f">:$epsilon);

def SgdOp : Mt_Optimizer<"sgd", (ins DefaultValuedAttr<F32Attr, "0.01f">:$learning_rate,
                                 DefaultValuedAttr<F32Attr, "0.0f">:$momentum, UnitAttr:$nesterov,
                                 UnitAttr:$rate_after_momentum)>;
defvar adam = !con(rate, betas, (ins UnitAttr:$amsgrad, UnitAttr:$epsilon_after_correction));
def AdamOp : Mt_Optimizer<"adam", adam>;
def AdamWOp : Mt_Optimizer<"adamw", adam, "0.004f">;
def AdamaxOp : Mt_Optimizer<"adamax", !con(rate, betas)>;
def NadamOp : Mt_Optimizer<"nadam", !con(rate, betas), "0.0f", ["getState"]>;
def LambOp : Mt_Optimizer<"lamb", !con(rate, betas)>;
def RmspropOp : Mt_Optimizer<"rmsprop", !con(rate, (ins DefaultValuedAttr<F32Attr, "0.9f">:$rho,
    DefaultValuedAttr<F32Attr, "0.0f">:$momentum, DefaultValuedAttr<F32Attr, "1e-7f">:$epsilon, UnitAttr:$centered,
    UnitAttr:$epsilon_after_root, UnitAttr:$rate_after_momentum))>;
def AdagradOp : Mt_Optimizer<"adagrad", !con(rate, (ins DefaultValuedAttr<F32Attr, "0.1f">:$initial_accumulator_value,
    DefaultValuedAttr<F32Attr, "1e-7f">:$epsilon, UnitAttr:$epsilon_after_root)), "0.0f", ["getSlotStart"]>;
def AdadeltaOp : Mt_Optimizer<"adadelta",
                              !con(rate, (ins DefaultValuedAttr<F32Attr, "0.95f">:$rho,
                                          DefaultValuedAttr<F32Attr, "1e-7f">:$epsilon))>;
def LionOp : Mt_Optimizer<"lion",
                          !con(rate, (ins DefaultValuedAttr<F32Attr, "0.9f">:$beta_1,
                                      DefaultValuedAttr<F32Attr, "0.99f">:$beta_2))>;

def IterationOp : Mt_Op<"iteration", [Pure]> {
  let summary = "in a model: the steps before this one, as the optimizer counts them";
  let results = (outs Mt_Step:$result);
  let assemblyFormat = "attr-dict";
}

// The learning rate of a step, in float32 as Keras computes it.
class Mt_Schedule<string mnemonic, string text, dag attributes> : Mt_Composite<mnemonic> {
  let summary = text;
  let arguments = !con((ins Mt_Step:$step), attributes);
  let results = (outs Mt_Scalar:$result);
  let assemblyFormat = "$step prop-dict attr-dict";
  let hasVerifier = 1;
}
defvar decay = (ins F32Attr:$initial_learning_rate, F32Attr:$decay_steps);
def ExponentialDecayOp : Mt_Schedule<"exponential_decay",
                                     "initial * decay_rate^(step / decay_steps); staircase: whole powers",
                                     !con(decay, (ins F32Attr:$decay_rate, UnitAttr:$staircase))>;
def InverseTimeDecayOp : Mt_Schedule<"inverse_time_decay",
                                     "initial / (1 + decay_rate step / decay_steps); staircase: whole quotients",
                                     !con(decay, (ins F32Attr:$decay_rate, UnitAttr:$staircase))>;
def PiecewiseConstantDecayOp : Mt_Schedule<"piecewise_constant_decay",
                                           "values[i] where boundaries[i - 1] < step <= boundaries[i]",
                                           (ins DenseI64ArrayAttr:$boundaries, DenseF32ArrayAttr:$values)>;
def PolynomialDecayOp : Mt_Schedule<"polynomial_decay",
                                    "(initial - end) (1 - step / decay_steps)^power + end; cycle: decay_steps times "
                                    "the next whole number", !con(decay,
    (ins DefaultValuedAttr<F32Attr, "1e-4f">:$end_learning_rate, DefaultValuedAttr<F32Attr, "1.0f">:$power,
     UnitAttr:$cycle))>;
def CosineDecayOp : Mt_Schedule<"cosine_decay",
                                "initial ((1 - alpha) (1 + cos(pi step / decay_steps)) / 2 + alpha); with "
                                "warmup_target a line to it first, in warmup_steps", !con(decay,
    (ins DefaultValuedAttr<F32Attr, "0.0f">:$alpha, OptionalAttr<F32Attr>:$warmup_target,
     DefaultValuedAttr<F32Attr, "0.0f">:$warmup_steps))>;
#endif
