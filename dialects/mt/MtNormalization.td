// SPDX-License-Identifier: Apache-2.0
//
// Normalisation, and the layers that only act while training.
#ifndef MT_NORMALIZATION_TD
#define MT_NORMALIZATION_TD

include "dialects/mt/MtBase.td"

def BatchNormalizationOp : Mt_Composite<"batch_normalization", [DeclareOpInterfaceMethods<GradientOpInterface>,
    DeclareOpInterfaceMethods<TrainingOpInterface>, TypesMatchWith<"a result like the operand", "operand", "result",
                                                                   "$_self">]> {
  let summary = "gamma (x - mean) / sqrt(variance + epsilon) + beta, for each channel of the last axis";
  let description = [{
    `mt.batch_normalization %x, %gamma, %beta, %mean, %variance : tensor<?x8x8x32xf32>`; a layer without scale or centre
    has constants of ones or zeros. In eval_step and predict mean and variance are the operands, frozen variables. In
    train_step (`training`) they are those of the global batch's valid samples (with `mt.local_statistics` on the
    module, of each shard's own), over all axes but the last: the mean first, then the mean of the squared differences
    from it, each one sum along the tree (docs/exactness.md). The step changes the frozen variables: v = v * momentum +
    batch * (1 - momentum), with the biased variance. `frozen` (Keras' trainable = False) keeps the form of eval_step in
    train_step.
  }];
  let arguments = (ins Mt_Float:$operand, Mt_Float:$gamma, Mt_Float:$beta, Mt_Float:$mean, Mt_Float:$variance,
                   DefaultValuedAttr<F32Attr, "0.99f">:$momentum,
                       DefaultValuedAttr<F32Attr, "1e-3f">:$epsilon, UnitAttr:$frozen, UnitAttr:$training);
  let results = (outs Mt_Float:$result);
  let assemblyFormat = [{$operand `,` $gamma `,` $beta `,` $mean `,` $variance (`momentum` `=` $momentum^)?
    (`epsilon` `=` $epsilon^)? (`frozen` $frozen^)? (`training` $training^)? attr-dict `:`
    type($operand) `,` type($gamma) `,` type($beta) `,` type($mean) `,` type($variance)}];
  let hasVerifier = 1;
}

def NormalizeOp : Mt_Composite<"normalize",
                               [SameOperandsAndResultType, DeclareOpInterfaceMethods<GradientOpInterface>]> {
  let summary = "(x - mean) / sqrt(variance + epsilon) over axes of a sample: layer and group normalisation without "
                "scale and centre";
  let arguments = (ins Mt_Float:$operand, DenseI64ArrayAttr:$dims, DefaultValuedAttr<F32Attr, "1e-3f">:$epsilon);
  let results = (outs Mt_Float:$result);
  let assemblyFormat = "$operand `over` $dims (`epsilon` `=` $epsilon^)? attr-dict `:` type($operand)";
  let hasVerifier = 1;
}

def RandomNormalOp : Mt_Composite<"random_normal"> {
  let summary = "normal, mean 0 and variance 1: sqrt(2) erf_inv(2 u - 1 + 2^-24), u as mt.random_uniform";
  let arguments = (ins StrAttr:$stream, Optional<Mt_Step>:$step);
  let results = (outs Mt_Float:$result);
  let assemblyFormat = "$stream (`step` `(` $step^ `)`)? attr-dict `:` type($result)";
}

// Random numbers of `stream` at the iteration, indexed by global sample: the same for every number of devices, and in
// backward.
class Mt_Noise<string mnemonic, string amount, string text> : Mt_DerivedComposite<mnemonic,
    [DeclareOpInterfaceMethods<TrainingOpInterface>,
    TypesMatchWith<"a result like the operand", "operand", "result", "$_self">]> {
  let summary = text;
  let description = "Without `step`, as in eval_step and predict, the operand itself; mt-differentiate gives it the "
                    "iteration in train_step.";
  let arguments = !con((ins Mt_Float:$operand, Optional<Mt_Step>:$step, StrAttr:$stream),
                       !dag(ins, [F32Attr], [amount]));
  let results = (outs Mt_Float:$result);
  let assemblyFormat = "$operand $stream `" # amount # "` `=` $" # amount #
      " (`step` `(` $step^ `)`)? attr-dict `:` type($operand)";
  let hasVerifier = 1;
  let extraClassDefinition = derivedGradient # [{
    void $cppClass::beginTraining(::mlir::OpBuilder &, ::mlir::Value iteration,
                                  ::llvm::SmallVectorImpl<std::pair<unsigned, ::mlir::Value>> &) {
      if (!getStep())
        getStepMutable().assign(iteration);
    }
    int64_t $cppClass::getFlops() { return 40 * elementsPerRow(getType()); }
    ::llvm::SmallVector<::mlir::utils::IteratorType> $cppClass::getLoopIteratorTypes() {
      return elementwiseLoops(getOperation());
    }
    ::llvm::SmallVector<::mlir::shard::ReductionKind> $cppClass::getReductionLoopIteratorKinds() { return {}; }
    ::llvm::SmallVector<::mlir::AffineMap> $cppClass::getIndexingMaps() { return elementwiseMaps(getOperation()); }
  }];
}
def DropoutOp : Mt_Noise<"dropout", "rate",
                         "0 with probability `rate`, else x / (1 - rate): kept where mt.random_uniform >= rate"> {
  let arguments = (ins Mt_Float:$operand, Optional<Mt_Step>:$step, StrAttr:$stream, F32Attr:$rate,
                   DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$shared);
  let assemblyFormat = "$operand $stream `rate` `=` $rate (`shared` `=` $shared^)? (`step` `(` $step^ `)`)? attr-dict "
                       "`:` type($operand)";
  let description = "Without `step`, as in eval_step and predict, the operand itself. Elements along the axes `shared` "
                    "are dropped together: [1, 2] of an image drops whole channels.";
}
def GaussianNoiseOp : Mt_Noise<"gaussian_noise", "stddev", "x + stddev z, z as mt.random_normal">;
def GaussianDropoutOp : Mt_Noise<"gaussian_dropout", "rate",
                                 "x (1 + sqrt(rate / (1 - rate)) z), z as mt.random_normal">;

// What random augmentation is made of: its formula, of ordinary ops, is one operand, the samples as they are the other.
def WhileTrainingOp : Mt_DerivedComposite<"while_training", [DeclareOpInterfaceMethods<TrainingOpInterface>,
                                                             AllTypesMatch<["operand", "otherwise", "result"]>]> {
  let summary = "%a in train_step, %b in eval_step and predict: mt.while_training %a else %b : tensor<?x28x28x3xf32>";
  let arguments = (ins Mt_Float:$operand, Mt_Float:$otherwise, UnitAttr:$training);
  let results = (outs Mt_Float:$result);
  let assemblyFormat = "$operand `else` $otherwise (`training` $training^)? attr-dict `:` type($result)";
}
#endif
