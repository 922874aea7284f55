// SPDX-License-Identifier: Apache-2.0
//
// Ops that give a module its structure: model, program, signature, variables, kernels.
#ifndef MT_STRUCTURE_TD
#define MT_STRUCTURE_TD

include "dialects/mt/MtBase.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/IR/RegionKindInterface.td"

class Mt_Body<string mnemonic> : Mt_Op<mnemonic, [Symbol, SingleBlock, NoTerminator, IsolatedFromAbove]> {
  let arguments = (ins SymbolNameAttr:$sym_name);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name attr-dict-with-keyword $body";
}
def ModelOp : Mt_Body<"model"> {
  let summary = "a model as the user wrote it: signature, variables, forward body, losses, metrics, optimizer";
  let description = "`mt-differentiate` replaces the model by programs.";
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    // The model's mt.update; null if it has a short form.
    UpdateOp findUpdate();
    // Whether mt.update states what train_step reports, so that eval_step alone reports the losses and metrics.
    bool reportsInUpdate();
    // The assignment of a variable in mt.update; null if there is none.
    AssignOp findAssign(::llvm::StringRef variable);
  }];
}
def ProgramOp : Mt_Body<"program"> {
  let summary = "one entry point of the plan: init, train_step, eval_step or predict";
  let description = "`mt-differentiate` creates programs; `mt-allocate` replaces them by `plan.program`s.";
}
def DeclareOp : Mt_Op<"declare"> {
  let summary = "declaration of a variable of the plan";
  let description = [{
    `mt-differentiate` creates one declaration per variable, at the top of the module. The plan has the variables in
    the order of their declarations.

    A variable of the optimizer may have a `role`, so that no pass depends on its name: `mt.declare "adam/iteration"
    non_trainable role iteration tensor<i32>`. A moving average also has the name of its variable: `mt.declare
    "adam/w_average" slot role average of "w" tensor<4xf32>`.
  }];
  let arguments = (ins StrAttr:$name, Mt_VariableKindAttr:$kind, TypeAttr:$type,
                   OptionalAttr<Mt_VariableRoleAttr>:$role, OptionalAttr<StrAttr>:$of);
  let assemblyFormat = "$name `` $kind (`role` `` $role^)? (`of` $of^)? $type attr-dict";
  let hasVerifier = 1;
}

// Signature of models and programs.
class Mt_SignatureOp<string mnemonic> : Mt_Op<mnemonic, [Mt_Boundary]> {
  let arguments = (ins StrAttr:$name);
  let results = (outs Mt_Tensor:$result);
  let assemblyFormat = "$name attr-dict `:` type($result)";
  let hasVerifier = 1;
}
// An op whose values may be ids. With a limit L they are 0 to L - 1.
class Mt_LimitedOp<string mnemonic> : Mt_SignatureOp<mnemonic> {
  let description = "With `limit = 1000` the values are ids from 0 to 999, which select rows or classes. "
                    "`mt-differentiate` computes limits (`IndexOpInterface`), and the runtime checks data against "
                    "them.";
  let arguments = (ins StrAttr:$name, OptionalAttr<I64Attr>:$limit);
  let assemblyFormat = "$name (`limit` `=` $limit^)? attr-dict `:` type($result)";
}
def InputOp : Mt_LimitedOp<"input"> { let summary = "a named input, with the batch axis first"; }
def TargetOp : Mt_LimitedOp<"target"> { let summary = "a named target (labels), with the batch axis first"; }
def SampleWeightOp
    : Mt_SignatureOp<"sample_weight"> { let summary = "named weights, tensor<?xf32>; 1 if the caller passes none"; }
def OutputOp : Mt_Op<"output", [Mt_Boundary]> {
  let summary = "a named output of predict, with the batch axis first";
  let arguments = (ins StrAttr:$name, Mt_Tensor:$value);
  let assemblyFormat = "$name `,` $value attr-dict `:` type($value)";
  let hasVerifier = 1;
}

def VariableOp : Mt_Op<"variable", [Pure]> {
  let summary = "a named variable of a model; the result is its current value";
  let description = [{
    `mt.variable "dense/kernel" init(glorot_uniform) : tensor<784x256xf32>`

    `init(constant = 0.5)` fills the variable with 0.5. `init(normal = 0.02)` draws from a normal distribution of mean 0
    and standard deviation 0.02, and `init(uniform = 0.05)` from a uniform distribution between -0.05 and 0.05. The
    other initializers are those of Keras. Their fans are (n, n) for [n], and (rows, columns) for [rows, columns]; for
    higher ranks, the last two sizes times the product of the other sizes.

    An optimizer does not change a `frozen` variable. The optimizer's `weight_decay` does not apply to a variable with
    `no_weight_decay`.

    A variable is trainable, `frozen` or a `slot`. `mt.update` may assign variables of all three kinds; a slot is state
    of the update and is never trained. In a model with `mt.update`, a variable may have a `role`:
    role(iteration)      number of steps before this one: a frozen tensor<i32>, which the compiler increments. The model
                         has one
    role(learning_rate)  learning rate that the runtime may change between steps: a frozen tensor<f32>. At most one
    role(average)        moving average of a variable: `mt.variable "w_average" init(zeros) slot role(average) of "w" :
                         tensor<4xf32>`
    Elements are f32; those of frozen variables and slots may be i32.
  }];
  let arguments = (ins StrAttr:$name, Mt_InitKindAttr:$init, OptionalAttr<Mt_Real>:$value, UnitAttr:$frozen,
                       UnitAttr:$slot, OptionalAttr<Mt_VariableRoleAttr>:$role, OptionalAttr<StrAttr>:$of,
                       UnitAttr:$no_weight_decay);
  let results = (outs Mt_Tensor:$result);
  let builders = [OpBuilder<(ins "::mlir::Type":$type, "::llvm::StringRef":$name, "InitKind":$init,
                                 "::mlir::FloatAttr":$value, "bool":$frozen)>];
  let assemblyFormat = "$name custom<Start>($init, $value) (`frozen` $frozen^)? (`slot` $slot^)? "
                       "(`role` `(` custom<Role>($role)^ `)`)? (`of` $of^)? (`no_weight_decay` $no_weight_decay^)? "
                       "attr-dict `:` type($result)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    // Whether the optimizer trains the variable.
    bool isTrainable() { return !getFrozen() && !getSlot(); }
    // Whether the variable is state or a parameter of the optimizer: a slot, a variable with a role, or a frozen
    // variable that only mt.update reads or assigns.
    bool isOfOptimizer();
  }];
}
def ReadOp : Mt_Op<"read", [Mt_Boundary, Pure]> {
  let summary = "value of a declared variable before the step, in a program";
  let arguments = (ins StrAttr:$name);
  let results = (outs Mt_Tensor:$result);
  let assemblyFormat = "$name attr-dict `:` type($result)";
}
def AssignOp : Mt_Op<"assign", [Mt_Boundary]> {
  let summary = "assignment of a variable's value after the step, in a program or in mt.update";
  let description = "`mt.assign \"w\", %new if %finite : tensor<4xf32>` changes the variable only if %finite is true. "
                    "In mt.update there is no condition.";
  let arguments = (ins StrAttr:$name, Mt_Tensor:$value, Optional<Mt_Predicate>:$apply);
  let assemblyFormat = "$name `,` $value (`if` $apply^)? attr-dict `:` type($value)";
}

// The update of a model's variables.
def UpdateOp : Mt_Op<"update", [SingleBlock, NoTerminator]> {
  let summary = "the update of a model's variables, as a graph";
  let description = [{
    ```mlir
    mt.update {
      %g = mt.gradient "w" : tensor<4xf32>
      %0 = mt.mul %g, %rate : tensor<4xf32>, tensor<f32>
      %1 = mt.sub %w, %0 : tensor<4xf32>, tensor<4xf32>
      mt.assign "w", %1 : tensor<4xf32>
    }
    ```

    A model has one `mt.update` or one optimizer, such as `mt.adam`, which is a short form: `mt-expand-optimizer`
    replaces it by variables and an `mt.update`.

    The body may read every value that is defined before it. A variable has its value before the step, and a value of
    the forward pass has its value in train_step. A variable that the body does not assign stays as it is. The body
    holds computations, in their training form, loops, `mt.gradient`, `mt.assign` and `mt.rate`. The verifier fails if a
    variable is assigned twice, if an assigned value has another type than its variable, or if the variable with
    role(iteration) is assigned.

    A whole step computes its losses in the body: it differentiates them by `mt.argument` and `mt.derivative`, and it
    reports values by `mt.result`. A body with an `mt.result` reports what train_step reports, and the model needs no
    `mt.loss`. If no `mt.result` is marked as a loss, the one named "loss" is, or else the first.

    With a scaled loss (docs/precision.md), steps whose gradients are not finite assign nothing. Products in the body
    have f32 operands in plans of every precision, unless an operand has the batch axis.
  }];
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "attr-dict-with-keyword $body";
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}
def GradientOp : Mt_Op<"gradient", [Pure]> {
  let summary = "gradient of the objective with respect to a trainable variable, in mt.update";
  let description = [{
    `%g = mt.gradient "w" : tensor<4xf32>`

    The objective is the sum of all losses, each times its scale, and of the regularizers. The gradient is that of the
    global batch, and it is already divided by a loss scale. It is zeros if no differentiable path leads from the
    variable to the objective; with `required` the compiler refuses the model instead. Only variables that an
    `mt.gradient` names are differentiated.
  }];
  let arguments = (ins StrAttr:$name, UnitAttr:$required);
  let results = (outs Mt_Float:$result);
  let assemblyFormat = "$name (`required` $required^)? attr-dict `:` type($result)";
  let hasVerifier = 1;
}
def ArgumentOp : Mt_Op<"argument", [Pure, SameOperandsAndResultType,
                                    DeclareOpInterfaceMethods<GradientOpInterface>]> {
  let summary = "a value by which mt.derivative differentiates";
  let description = [{
    `%a = mt.argument %w : tensor<4x3xf32>`

    The result equals the operand. A derivative by `%a` counts the uses of `%a`, and no other use of `%w`. The operand
    is any value: a variable, an input, a value that another derivative gave. The op stands in the body of `mt.model` or
    of `mt.update`.
  }];
  let arguments = (ins Mt_Float:$value);
  let results = (outs Mt_Float:$result);
  let assemblyFormat = "$value attr-dict `:` type($value)";
  let hasVerifier = 1;
}
def DerivativeOp : Mt_Op<"derivative", [Pure, AllTypesMatch<["argument", "result"]>,
                                        TypesMatchWith<"a loss of the argument's element type", "argument", "loss",
    "::mlir::RankedTensorType::get({}, ::llvm::cast<::mlir::RankedTensorType>($_self).getElementType())">]> {
  let summary = "derivative of a value of the batch by an mt.argument";
  let description = [{
    `%g = mt.derivative %loss by %a : tensor<4x3xf32>`

    `%loss` is one number for the whole batch, such as a mean over samples. The derivative is zeros if no differentiable
    path leads from the argument to it. `mt-differentiate` replaces the derivatives of one loss by one backward pass, in
    program order, so that a loss may depend on derivatives of other losses. In the body of `mt.model` a derivative is a
    part of the forward pass: the model's losses and outputs may depend on it, and all programs compute it.
  }];
  let arguments = (ins Mt_Scalar:$loss, Mt_Float:$argument);
  let results = (outs Mt_Float:$result);
  let assemblyFormat = "$loss `by` $argument attr-dict `:` type($argument)";
  let hasVerifier = 1;
}

// Losses and metrics.
def LossOp : Mt_Op<"loss"> {
  let summary = "a loss of a model, from values per sample or per element";
  let description = [{
    `mt.loss "loss", %l weights(%w : tensor<?xf32>) by elements : tensor<?xf32>`

    Adds `scale * sum(w_i * v_i) / divisor` to the objective that the optimizer minimizes. The divisor is n (`samples`),
    n times the number of elements of a sample (`elements`, Keras' sum_over_batch_size) or the sum of the weights
    (`weights`).
  }];
  let arguments = (ins StrAttr:$name, Mt_Float:$values, Optional<Mt_Float>:$weights,
                   DefaultValuedAttr<Mt_DivisorAttr, "::mlir::mt::Divisor::elements">:$divisor,
                       DefaultValuedAttr<Mt_Real, "1.0f">:$scale);
  let assemblyFormat = "$name `,` $values (`weights` `(` $weights^ `:` type($weights) `)`)? "
                       "(`by` `` $divisor^)? (`scale` `=` custom<Real>($scale)^)? attr-dict `:` type($values)";
  let hasVerifier = 1;
}
def RegularizerOp : Mt_Op<"regularizer"> {
  let summary = "a regularizer of a model: l1 sum |v| + l2 sum v^2";
  let description = [{
    `mt.regularizer %w l2 = 1.0e-4 : tensor<784x10xf32>`

    The term is added to the objective, and to the total loss that is reported. For a variable, this is Keras'
    kernel_regularizer or bias_regularizer. For a value with a batch axis it is Keras' activity_regularizer: the sum is
    divided by n.
  }];
  let arguments = (ins Mt_Float:$value, DefaultValuedAttr<Mt_Real, "0.0f">:$l1, DefaultValuedAttr<Mt_Real, "0.0f">:$l2);
  let assemblyFormat = "$value (`l1` `=` custom<Real>($l1)^)? (`l2` `=` custom<Real>($l2)^)? attr-dict `:` "
                       "type($value)";
}
def MetricOp : Mt_Op<"metric"> {
  let summary = "a metric of a model: a weighted mean of values, or another function of their sums";
  let description = [{
    `mt.metric "auc", %counts finalizer roc : tensor<?x2x200xf32>`

    The finalizer computes the metric. `mean` and `root_mean` (the square root of the mean) average all values, with
    weights if there are any. The other finalizers are functions of the element-wise sums of the values over all
    samples of an epoch; the model multiplies the values by the weights:
      roc, precision_recall    values [?, ..., 2, T]: for each of T increasing thresholds, of which the first is below
                               all predictions, the true positives and the false positives. The result is the area under
                               the curve: by trapezoids, or by the interpolation of Davis and Goadrich (2006). It is
                               averaged over the axes before the 2
      precision_recall_gain    the same of the gains of Flach and Kull (2015), by trapezoids
                               For these three, `parameters` are the way to add (0: as above; the lower, 1, or the
                               higher, 2, of a step's two heights), and weights of the areas in their mean
      f1_macro, f1_weighted    values [?, 3, C]: true positives, predicted positives and actual positives of each class.
                               The result is the mean over classes of (1 + b^2) tp / (predicted + b^2 actual),
                               unweighted, or weighted by the actual positives. `parameters`: b; none: 1
      sensitivity_at_specificity, specificity_at_sensitivity, precision_at_recall, recall_at_precision
                               values [?, 2, 1 + T]: true and false positives, of all predictions first, then above each
                               threshold. The highest first quantity of the thresholds at which the second one is
                               `parameters` or more; 0 if there is none
      iou                      values [?, C, C]: the counts of each true class and each predicted class. The mean of
                               intersection / union over those of the classes `parameters` that occur
      r2                       values [?, 4, C]: w y, w y^2, w (y - p)^2, w. The coefficient of determination.
                               `parameters`: 0 for the mean over C, or 1 for a mean by variances; the number of
                               regressors by which it is adjusted; and the columns of all targets, of which C may be one
      sum                      values [?]: the sum
    A quotient with the divisor 0 is 0, as in Keras (but for r2).

    `better` states whether lower or higher values are better: `mt.metric "precision", %t weights(%p : tensor<?xf32>)
    better higher : tensor<?xf32>`. It may be omitted if the op that computes the values implies it (losses and errors:
    lower; accuracies: higher), and for functions of sums but `sum` (higher).
  }];
  let arguments = (ins StrAttr:$name, Mt_Float:$values, Optional<Mt_Float>:$weights,
                   DefaultValuedAttr<Mt_FinalizerAttr, "::mlir::mt::Finalizer::mean">:$finalizer,
                       OptionalAttr<Mt_BetterAttr>:$better, DefaultValuedAttr<DenseF64ArrayAttr, "{}">:$parameters);
  let assemblyFormat = "$name `,` $values (`weights` `(` $weights^ `:` type($weights) `)`)? "
                       "(`finalizer` `` $finalizer^)? (`parameters` $parameters^)? "
                       "(`better` `` $better^)? attr-dict `:` type($values)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    // Returns the attribute, or what the finalizer or the op that computes the values implies, or none.
    std::optional<Better> findBetter();
  }];
}
def ResultOp : Mt_Op<"result", [Mt_Reports, TypesMatchWith<"a weight of the value's element type", "value", "weight",
    "::mlir::RankedTensorType::get({}, ::llvm::cast<::mlir::RankedTensorType>($_self).getElementType())">]> {
  let summary = "a loss or metric that a program or mt.update reports";
  let description = [{
    `mt.result "loss", %mean, %weight loss` reports the mean of this step and its weight in the mean over steps, which
    is the number of samples for a mean over samples.
    `mt.result "auc", %sums, %n finalizer roc better higher : tensor<2x200xf32>` reports sums, which the runtime adds
    over steps. The assembly format omits the type of a mean, tensor<f32>.
  }];
  let arguments = (ins StrAttr:$name, Mt_Float:$value, Mt_Scalar:$weight, UnitAttr:$loss,
                   DefaultValuedAttr<Mt_FinalizerAttr, "::mlir::mt::Finalizer::mean">:$finalizer,
                       DefaultValuedAttr<Mt_BetterAttr, "::mlir::mt::Better::lower">:$better,
                       DefaultValuedAttr<DenseF64ArrayAttr, "{}">:$parameters);
  let assemblyFormat = "$name `,` $value `,` $weight (`loss` $loss^)? (`finalizer` `` $finalizer^)? "
                       "(`parameters` $parameters^)? "
                       "(`better` `` $better^)? attr-dict custom<SumsType>(type($value))";
  let hasVerifier = 1;
}
def RateOp : Mt_Op<"rate", [Mt_Reports]> {
  let summary = "the learning rate of this step, which train_step reports if a schedule computes it";
  let description = "In a program or in mt.update.";
  let arguments = (ins Mt_Scalar:$value);
  let assemblyFormat = "custom<Scalar>($value, type($value)) attr-dict";
}

// From `mt-differentiate` to `mt-precision`.
def CompleteGradientOp : Mt_Op<"complete_gradient", [AllTypesMatch<["gradient", "value"]>]> {
  let summary = "states that a value is the complete gradient of another, the sum of all its parts";
  let description = [{
    `mt.complete_gradient %g, %v : tensor<?x64xf32>`

    `mt-differentiate` adds it to train_step for values with a batch axis, in plans of 16-bit types. `mt-precision`
    rounds the gradient where it rounds the value (docs/precision.md), and erases the op.
  }];
  let arguments = (ins Mt_Float:$gradient, Mt_Float:$value);
  let assemblyFormat = "$gradient `,` $value attr-dict `:` type($gradient)";
}

// Kernels, which `mt-fuse` creates and `mt-allocate` outlines.
def KernelOp : Mt_Op<"kernel", [IsolatedFromAbove, SingleBlockImplicitTerminator<"YieldOp">]> {
  let summary = "a kernel: a group of ops that one launch computes";
  let description = [{
    The arguments of the block are the operands. KernelKinds.cpp states which ops a kernel of each kind may hold.

    The result types are followed by marks. `recomputed`: `mt-recompute` cloned the kernel. `wait none`, `wait device`
    or `wait all`: the barrier before the kernel, set by `mt-schedule`. `share`: the kernel writes memory that devices
    share.
  }];
  let arguments = (ins Variadic<Mt_Tensor>:$operands, Mt_KernelKindAttr:$kind, StrAttr:$name,
                   OptionalAttr<Mt_WaitAttr>:$wait, UnitAttr:$share,
                       UnitAttr:$recomputed);
  let results = (outs Variadic<Mt_Tensor>:$results);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}
def YieldOp : Mt_Op<"yield", [Pure, Terminator]> {
  let summary = "terminator of a kernel or of the body of a loop: its results";
  let arguments = (ins Variadic<Mt_Tensor>:$values);
  let builders = [OpBuilder<(ins), "build($_builder, $_state, ::mlir::ValueRange{});">];
  let assemblyFormat = "attr-dict ($values^ `:` type($values))?";
}
#endif
