// SPDX-License-Identifier: Apache-2.0
//
// The ops that give a module its shape: model, program, signature, variables, kernels.
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
  let summary = "what the user wrote: signature, variables, forward body, losses, metrics, optimizer";
  let description = "Written by users and importers; `mt-differentiate` turns it into programs, after which it must "
                    "not exist.";
  let hasRegionVerifier = 1;
}
def ProgramOp : Mt_Body<"program"> {
  let summary = "one entry point of the plan: init, train_step, eval_step, predict";
  let description = "Made by `mt-differentiate`; becomes `plan.program` in `mt-allocate`.";
}
def DeclareOp : Mt_Op<"declare"> {
  let summary = "a variable of the plan, at module level, made by `mt-differentiate`; order here is order in the plan";
  let description = [{
    A role says what the optimizer has a variable for, whatever the model calls its own: `mt.declare "adam/iteration"
    non_trainable role iteration tensor<i32>`. An average has the name of the variable that it is the average of:
    `mt.declare "adam/w_average" slot role average of "w" tensor<4xf32>`.
  }];
  let arguments = (ins StrAttr:$name, Mt_VariableKindAttr:$kind, TypeAttr:$type,
                   OptionalAttr<Mt_VariableRoleAttr>:$role, OptionalAttr<StrAttr>:$of);
  let assemblyFormat = "$name `` $kind (`role` `` $role^)? (`of` $of^)? $type attr-dict";
  let hasVerifier = 1;
}

// Signature. In models and programs.
class Mt_SignatureOp<string mnemonic> : Mt_Op<mnemonic, [Mt_Boundary]> {
  let arguments = (ins StrAttr:$name);
  let results = (outs Mt_Tensor:$result);
  let assemblyFormat = "$name attr-dict `:` type($result)";
  let hasVerifier = 1;
}
// With a limit L its numbers pick one of so many rows or classes: 0 to L - 1.
class Mt_LimitedOp<string mnemonic> : Mt_SignatureOp<mnemonic> {
  let description = "`limit = 1000`: its numbers pick one of 1000 rows or classes. `mt-differentiate` finds it "
                    "(`IndexOpInterface`), and whoever runs the plan checks the data.";
  let arguments = (ins StrAttr:$name, OptionalAttr<I64Attr>:$limit);
  let assemblyFormat = "$name (`limit` `=` $limit^)? attr-dict `:` type($result)";
}
def InputOp : Mt_LimitedOp<"input"> { let summary = "a named input; its first axis is the batch axis"; }
def TargetOp : Mt_LimitedOp<"target"> { let summary = "a named target (label)"; }
def SampleWeightOp
    : Mt_SignatureOp<"sample_weight"> { let summary = "named weights, tensor<?xf32>; ones where the caller has none"; }
def OutputOp : Mt_Op<"output", [Mt_Boundary]> {
  let summary = "a named result with a batch axis, for predict";
  let arguments = (ins StrAttr:$name, Mt_Tensor:$value);
  let assemblyFormat = "$name `,` $value attr-dict `:` type($value)";
  let hasVerifier = 1;
}

// Variables.
def VariableOp : Mt_Op<"variable", [Pure]> {
  let summary = "a named persistent tensor of a model, and its current value";
  let description = [{
    `mt.variable "dense/kernel" init(glorot_uniform) : tensor<784x256xf32>`. `init(constant = 0.5)` has a value;
    `init(normal = 0.02)` is normal with mean 0 and this standard deviation, `init(uniform = 0.05)` uniform between
    -0.05 and 0.05. `frozen` makes it non-trainable, `no_weight_decay` leaves it out of the optimizer's
    `weight_decay`. Fans of the initialisers (Keras): rank 1: both n; rank 2: (rows, columns); more: receptive field
    times the last two axes.
  }];
  let arguments = (ins StrAttr:$name, Mt_InitKindAttr:$init, OptionalAttr<F32Attr>:$value, UnitAttr:$frozen,
                       UnitAttr:$no_weight_decay);
  let results = (outs Mt_Tensor:$result);
  let assemblyFormat = "$name custom<Start>($init, $value) (`frozen` $frozen^)? "
                       "(`no_weight_decay` $no_weight_decay^)? attr-dict `:` type($result)";
  let hasVerifier = 1;
}
def ReadOp : Mt_Op<"read", [Mt_Boundary, Pure]> {
  let summary = "in a program: the value of a declared variable before the step";
  let arguments = (ins StrAttr:$name);
  let results = (outs Mt_Tensor:$result);
  let assemblyFormat = "$name attr-dict `:` type($result)";
}
def AssignOp : Mt_Op<"assign", [Mt_Boundary]> {
  let summary = "in a program: the variable's value after the step, if `apply` holds (always, without it)";
  let arguments = (ins StrAttr:$name, Mt_Tensor:$value, Optional<Mt_Predicate>:$apply);
  let assemblyFormat = "$name `,` $value (`if` $apply^)? attr-dict `:` type($value)";
}

// Losses, metrics.
def LossOp : Mt_Op<"loss"> {
  let summary = "in a model: a loss from per-sample or per-element values";
  let description = [{
    Adds `scale * sum(w_i * v_i) / divisor` to what is minimised. Divisor: `samples` (n), `elements` (n times the inner
    size: Keras' sum_over_batch_size) or `weights` (the sum of the weights).
    `mt.loss "loss", %l weights(%w) by elements : tensor<?xf32>`.
  }];
  let arguments = (ins StrAttr:$name, Mt_Float:$values, Optional<Mt_Float>:$weights,
                   DefaultValuedAttr<Mt_DivisorAttr, "::mlir::mt::Divisor::elements">:$divisor,
                       DefaultValuedAttr<F32Attr, "1.0f">:$scale);
  let assemblyFormat = "$name `,` $values (`weights` `(` $weights^ `:` type($weights) `)`)? "
                       "(`by` `` $divisor^)? (`scale` `=` $scale^)? attr-dict `:` type($values)";
  let hasVerifier = 1;
}
def RegularizerOp : Mt_Op<"regularizer"> {
  let summary = "in a model: adds l1 sum |v| + l2 sum v^2 to what is minimised, reported in the total of the losses";
  let description = [{
    Of a variable: Keras' kernel and bias regularisers. Of a value with a batch axis: its activity regulariser, the sum
    divided by n. `mt.regularizer %w l2 = 1.0e-4 : tensor<784x10xf32>`.
  }];
  let arguments = (ins Mt_Float:$value, DefaultValuedAttr<F32Attr, "0.0f">:$l1, DefaultValuedAttr<F32Attr, "0.0f">:$l2);
  let assemblyFormat = "$value (`l1` `=` $l1^)? (`l2` `=` $l2^)? attr-dict `:` type($value)";
}
def MetricOp : Mt_Op<"metric"> {
  let summary = "in a model: the mean of per-sample values, weighted, or a formula of their sums";
  let description = [{
    `mean` and `root_mean` (its square root) are of all values, with weights or without. The others are formulas of the
    values' sums over the samples, element by element, which add up over steps; weights are in the values:
      roc, precision_recall    [?, ..., 2, T]: for each of T rising thresholds, the first below all predictions, what is
                               predicted and true, and what is predicted and false. The area under the curve:
                               trapezoids; or Davis and Goadrich's interpolation. The mean over what stands before the 2
      f1_macro, f1_weighted    [?, 3, C]: what is predicted and true, predicted, true, of each class. The mean of 2 tp /
                               (predicted + true) over classes, plain or weighted by what is true
    A quotient by 0 is 0, as in Keras. `mt.metric "auc", %counts finalizer roc : tensor<?x2x200xf32>`.

    `better` says which of two values is the better one: `mt.metric "precision", %t weights(%p : tensor<?xf32>) better
    higher : tensor<?xf32>`. It may be left out where the op that made the values says it (losses and errors: lower;
    accuracies: higher), and of areas and F1 (higher).
  }];
  let arguments = (ins StrAttr:$name, Mt_Float:$values, Optional<Mt_Float>:$weights,
                   DefaultValuedAttr<Mt_FinalizerAttr, "::mlir::mt::Finalizer::mean">:$finalizer,
                       OptionalAttr<Mt_BetterAttr>:$better);
  let assemblyFormat = "$name `,` $values (`weights` `(` $weights^ `:` type($weights) `)`)? "
                       "(`finalizer` `` $finalizer^)? (`better` `` $better^)? attr-dict `:` type($values)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    // What is written, or what the formula or the op of the values says; none where nothing does.
    std::optional<Better> findBetter();
  }];
}
def ResultOp : Mt_Op<"result", [Mt_Reports]> {
  let summary = "in a program: a loss or metric; the mean of this step and its weight in a mean over steps, or this "
                "step's sums";
  let description = "`mt.result \"auc\", %sums, %n finalizer roc better higher : tensor<2x200xf32>`: sums add up over "
                    "steps as they are. The type of one mean is not written.";
  let arguments = (ins StrAttr:$name, Mt_Float:$value, Mt_Scalar:$weight, UnitAttr:$loss,
                   DefaultValuedAttr<Mt_FinalizerAttr, "::mlir::mt::Finalizer::mean">:$finalizer,
                       DefaultValuedAttr<Mt_BetterAttr, "::mlir::mt::Better::lower">:$better);
  let assemblyFormat = "$name `,` $value `,` $weight (`loss` $loss^)? (`finalizer` `` $finalizer^)? "
                       "(`better` `` $better^)? attr-dict custom<SumsType>(type($value))";
  let hasVerifier = 1;
}
def RateOp : Mt_Op<"rate", [Mt_Reports]> {
  let summary = "in train_step: the learning rate of this step, where a schedule computes it";
  let arguments = (ins Mt_Scalar:$value);
  let assemblyFormat = "$value attr-dict";
}

// Kernels. Made by `mt-fuse`, outlined by `mt-allocate`.
def KernelOp : Mt_Op<"kernel", [IsolatedFromAbove, SingleBlockImplicitTerminator<"YieldOp">]> {
  let summary = "one launch: a group of ops, made by mt-fuse";
  let description = [{
    Arguments of the block are the operands. What else the block may hold is the contract of its kind (KernelKinds.cpp).
    After the results stand marks: `recomputed`, of a kernel that `mt-recompute` made run a second time; `wait none`,
    `wait device` or `wait all`, which `mt-schedule` gives each kernel; and `share`, of one that writes what devices
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
  let summary = "the results of a kernel";
  let arguments = (ins Variadic<Mt_Tensor>:$values);
  let builders = [OpBuilder<(ins), "build($_builder, $_state, ::mlir::ValueRange{});">];
  let assemblyFormat = "attr-dict ($values^ `:` type($values))?";
}
#endif
