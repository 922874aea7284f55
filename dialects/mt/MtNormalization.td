// SPDX-License-Identifier: Apache-2.0
//
// Normalization, and ops that change values only during training.
#ifndef MT_NORMALIZATION_TD
#define MT_NORMALIZATION_TD

include "dialects/mt/MtBase.td"

def BatchNormalizationOp : Mt_Composite<"batch_normalization", [DeclareOpInterfaceMethods<GradientOpInterface>,
    DeclareOpInterfaceMethods<TrainingOpInterface>, TypesMatchWith<"a result like the operand", "operand", "result",
                                                                   "$_self">]> {
  let summary = "gamma (x - mean) / sqrt(variance + epsilon) + beta, per channel (Ioffe and Szegedy 2015)";
  let description = [{
    `mt.batch_normalization %x, %gamma, %beta, %mean, %variance : tensor<?x8x8x32xf32>, tensor<32xf32>, ...`

    The channels are the last axis; the four other operands are [C]. A layer without scale or center has a gamma of ones
    or a beta of zeros.

    In eval_step and predict, mean and variance are the operands, which are frozen variables. In train_step
    (`training`), they are the statistics of the valid samples in the global batch, or in each shard if the module's
    `mt.compilation` has `local_statistics`. They are computed over all axes but the last: first the mean, then the mean
    of the squared differences from the mean, each as one sum along the reduction tree (docs/exactness.md). The step
    also updates both variables: v = v * momentum + statistic * (1 - momentum), with the biased variance.

    With `frozen` (Keras: trainable = False) train_step computes what eval_step computes. The verifier fails if an
    operand but the first is not [C].
  }];
  let arguments = (ins Mt_Float:$operand, Mt_Float:$gamma, Mt_Float:$beta, Mt_Float:$mean, Mt_Float:$variance,
                   DefaultValuedAttr<Mt_Real, "0.99f">:$momentum,
                       DefaultValuedAttr<Mt_Real, "1e-3f">:$epsilon, UnitAttr:$frozen, UnitAttr:$training);
  let results = (outs Mt_Float:$result);
  let assemblyFormat = [{$operand `,` $gamma `,` $beta `,` $mean `,` $variance
    (`momentum` `=` custom<Real>($momentum)^)? (`epsilon` `=` custom<Real>($epsilon)^)?
    (`frozen` $frozen^)? (`training` $training^)? attr-dict `:`
    type($operand) `,` type($gamma) `,` type($beta) `,` type($mean) `,` type($variance)}];
  let hasVerifier = 1;
}

def NormalizeOp : Mt_Composite<"normalize",
                               [SameOperandsAndResultType, DeclareOpInterfaceMethods<GradientOpInterface>]> {
  let summary = "(x - mean) / sqrt(variance + epsilon), with statistics over axes of each sample";
  let description = [{
    `mt.normalize %x over [2] epsilon = 1.0e-5 : tensor<?x128x256xf32>`

    Layer normalization (Ba, Kiros and Hinton 2016) and group normalization (Wu and He 2018) without scale and offset.
    The variance is the biased one. The verifier fails if `over` has the batch axis.
  }];
  let arguments = (ins Mt_Float:$operand, DenseI64ArrayAttr:$dims, DefaultValuedAttr<Mt_Real, "1e-3f">:$epsilon);
  let results = (outs Mt_Float:$result);
  let assemblyFormat = "$operand `over` $dims (`epsilon` `=` custom<Real>($epsilon)^)? attr-dict `:` type($operand)";
  let hasVerifier = 1;
}

def RandomNormalOp : Mt_Composite<"random_normal"> {
  let summary = "normal random numbers of mean 0 and variance 1: sqrt(2) erf_inv(2 u - 1 + 2^-24), u from "
                "mt.random_uniform";
  let arguments = (ins StrAttr:$stream, Optional<Mt_Step>:$step);
  let results = (outs Mt_Float:$result);
  let assemblyFormat = "$stream (`step` `(` $step^ `)`)? attr-dict `:` type($result)";
}

// A noise op. The random numbers of `stream` depend on the iteration and on the index of a sample in the global batch,
// so they are the same for every number of devices, and the same in the forward and the backward pass.
class Mt_Noise<string mnemonic, string amount, string text> : Mt_DerivedComposite<mnemonic,
    [DeclareOpInterfaceMethods<TrainingOpInterface>,
    TypesMatchWith<"a result like the operand", "operand", "result", "$_self">]> {
  let summary = text;
  let description = "Without `step`, as in eval_step and predict, the result is the operand. In train_step, "
                    "`mt-differentiate` adds `step(%iteration)`.";
  let arguments = !con((ins Mt_Float:$operand, Optional<Mt_Step>:$step, StrAttr:$stream),
                       !dag(ins, [Mt_Real], [amount]));
  let results = (outs Mt_Float:$result);
  let assemblyFormat = "$operand $stream `" # amount # "` `=` custom<Real>($" # amount # ")" #
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
                         "x / (1 - rate) if mt.random_uniform >= rate, else 0 (Srivastava et al. 2014)"> {
  let arguments = (ins Mt_Float:$operand, Optional<Mt_Step>:$step, StrAttr:$stream, Mt_Real:$rate,
                   DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$shared);
  let assemblyFormat = "$operand $stream `rate` `=` custom<Real>($rate) (`shared` `=` $shared^)? "
                       "(`step` `(` $step^ `)`)? attr-dict `:` type($operand)";
  let description = "Without `step`, as in eval_step and predict, the result is the operand. One random number is "
                    "drawn "
                    "for all elements along the axes `shared`: `shared = [1, 2]` drops whole channels of an image. The "
                    "verifier fails if the rate is not in [0, 1).";
}
def GaussianNoiseOp : Mt_Noise<"gaussian_noise", "stddev", "x + stddev z, with z from mt.random_normal">;
def GaussianDropoutOp : Mt_Noise<"gaussian_dropout", "rate",
                                 "x (1 + sqrt(rate / (1 - rate)) z), with z from mt.random_normal">;

// Selects between the results of random augmentation, which other ops compute, and the samples without augmentation.
def WhileTrainingOp : Mt_DerivedComposite<"while_training", [DeclareOpInterfaceMethods<TrainingOpInterface>,
                                                             AllTypesMatch<["operand", "otherwise", "result"]>]> {
  let summary = "the first operand in train_step, the second in eval_step and predict";
  let description = "`mt.while_training %a else %b : tensor<?x28x28x3xf32>`";
  let arguments = (ins Mt_Float:$operand, Mt_Float:$otherwise, UnitAttr:$training);
  let results = (outs Mt_Float:$result);
  let assemblyFormat = "$operand `else` $otherwise (`training` $training^)? attr-dict `:` type($result)";
}
#endif
