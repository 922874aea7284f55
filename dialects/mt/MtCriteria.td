// SPDX-License-Identifier: Apache-2.0
//
// Losses and metrics per sample: predictions [?, ..., C] and targets -> [?, ...], with the formulas of Keras 3: a
// categorical loss divides probabilities by their sum, then clips them to [1e-7, 1 - 1e-7]. In the summaries, p is an
// element of the predictions and t the element of the targets at the same index. The verifier fails if the shapes of
// predictions and targets do not match.
#ifndef MT_CRITERIA_TD
#define MT_CRITERIA_TD

include "dialects/mt/MtBase.td"

class Mt_Criterion<string mnemonic, string text, list<Trait> traits = []>
    : Mt_Composite<mnemonic, !listconcat([Mt_InferType], traits)> {
  let summary = text;
  let results = (outs Mt_Float:$result);
  let arguments = (ins Mt_Float:$predictions, Mt_Tensor:$targets);
  let assemblyFormat = "$predictions `,` $targets attr-dict `:` type($predictions) `,` type($targets)";
}
// A criterion that may be a loss: it has a gradient.
class Mt_LossCriterion<string mnemonic, string text, list<Trait> traits = []>
    : Mt_Criterion<mnemonic, text, !listconcat([DeclareOpInterfaceMethods<GradientOpInterface>, Mt_LowerIsBetter],
                                               traits)>;
class Mt_CrossEntropy<string mnemonic, string text, list<Trait> traits = []> : Mt_LossCriterion<mnemonic, text,
    traits> {
  let arguments = (ins Mt_Float:$predictions, Mt_Tensor:$targets, UnitAttr:$from_logits);
  let assemblyFormat = "$predictions `,` $targets (`from_logits` $from_logits^)? attr-dict `:` type($predictions) `,` "
                       "type($targets)";
}
def SparseCategoricalCrossentropyOp : Mt_CrossEntropy<"sparse_categorical_crossentropy",
                                                      "-log p[label] of integer labels [?, ...], i32",
                                                      [DeclareOpInterfaceMethods<IndexOpInterface>]>;
// With label_smoothing s a target t becomes t (1 - s) + s / C, or t (1 - s) + s / 2 if there are two classes.
class Mt_SmoothedCrossEntropy<string mnemonic, string text> : Mt_CrossEntropy<mnemonic, text> {
  let arguments = (ins Mt_Float:$predictions, Mt_Tensor:$targets, UnitAttr:$from_logits,
                   DefaultValuedAttr<Mt_Real, "0.0f">:$label_smoothing);
  let assemblyFormat = "$predictions `,` $targets (`from_logits` $from_logits^)? (`label_smoothing` `=` "
                       "custom<Real>($label_smoothing)^)? attr-dict `:` type($predictions) `,` type($targets)";
  let builders = [OpBuilder<(ins "::mlir::Value":$predictions, "::mlir::Value":$targets, "bool":$from_logits),
    "build($_builder, $_state, predictions, targets, from_logits, ::llvm::APFloat(0.0f));">];
  let hasVerifier = 1;
}
def CategoricalCrossentropyOp : Mt_SmoothedCrossEntropy<"categorical_crossentropy",
                                                        "-sum of t log p over the last axis; targets f32, "
                                                        "of the predictions' shape">;
def BinaryCrossentropyOp : Mt_SmoothedCrossEntropy<"binary_crossentropy",
                                                   "mean over the last axis of -(t log p + (1 - t) log(1 - p)); "
                                                   "targets f32, of the predictions' shape">;
def MeanSquaredErrorOp : Mt_LossCriterion<"mean_squared_error", "mean of (p - t)^2 over the last axis">;
def MeanAbsoluteErrorOp : Mt_LossCriterion<"mean_absolute_error", "mean of |p - t| over the last axis">;
def SparseCategoricalAccuracyOp : Mt_Criterion<"sparse_categorical_accuracy",
                                               "1 if the index of the largest prediction is the label, else 0",
                                               [Mt_HigherIsBetter, DeclareOpInterfaceMethods<IndexOpInterface>]>;
def CategoricalAccuracyOp : Mt_Criterion<"categorical_accuracy",
                                         "1 if the largest prediction and the largest target have the same index, "
                                         "else 0", [Mt_HigherIsBetter]>;
def BinaryAccuracyOp : Mt_Criterion<"binary_accuracy", "mean over the last axis of 1 if (p > 0.5) == t, else 0",
                                    [Mt_HigherIsBetter]>;

// Losses whose gradient is the gradient of their decomposition. Targets are f32, of the shape of the predictions.
class Mt_DerivedCriterion<string mnemonic, string text> : Mt_LossCriterion<mnemonic, text> {
  let extraClassDefinition = [{
    void $cppClass::buildGradient(::mlir::OpBuilder &builder, ::mlir::ValueRange resultGradients,
                                  ::llvm::SmallVectorImpl<::mlir::Value> &operandGradients) {
      buildDecomposedGradient(builder, *this, resultGradients, operandGradients);
    }
  }];
}
def HuberOp : Mt_DerivedCriterion<"huber",
                                  "mean over the last axis of d^2 / 2 if |d| <= delta, else delta |d| - delta^2 / 2; "
                                  "d = p - t"> {
  let arguments = (ins Mt_Float:$predictions, Mt_Tensor:$targets, DefaultValuedAttr<Mt_Real, "1.0f">:$delta);
  let assemblyFormat = "$predictions `,` $targets (`delta` `=` custom<Real>($delta)^)? attr-dict `:` "
                       "type($predictions) `,` "
                       "type($targets)";
}
// A target of 0 counts as -1. (Keras converts only a batch that holds nothing but zeros and ones; the result is the
// same if all labels of a data set are 0 and 1, or all are -1 and 1.)
def HingeOp : Mt_DerivedCriterion<"hinge", "mean over the last axis of max(1 - t p, 0)">;
def SquaredHingeOp : Mt_DerivedCriterion<"squared_hinge", "mean over the last axis of max(1 - t p, 0)^2">;
def CategoricalHingeOp : Mt_DerivedCriterion<"categorical_hinge", "max(1 + max((1 - t) p) - sum(t p), 0)">;
def KlDivergenceOp : Mt_DerivedCriterion<"kl_divergence",
                                         "sum of t log(t / p) over the last axis; p and t are clipped to [1e-7, 1]">;
def PoissonOp : Mt_DerivedCriterion<"poisson", "mean over the last axis of p - t log(p + 1e-7)">;
def LogCoshOp : Mt_DerivedCriterion<"log_cosh",
                                    "mean over the last axis of log(cosh(d)) = d + softplus(-2 d) - log 2; d = p - t">;
def CosineSimilarityOp : Mt_DerivedCriterion<"cosine_similarity",
                                             "-sum of p t over the last axis / (|p| |t|), with norms of at least 1e-7; "
                                             "Keras' metric of this name has the opposite sign">;
def MeanAbsolutePercentageErrorOp : Mt_DerivedCriterion<"mean_absolute_percentage_error",
                                                        "100 times the mean over the last axis of |t - p| / max(|t|, "
                                                        "1e-7)">;
def MeanSquaredLogarithmicErrorOp : Mt_DerivedCriterion<"mean_squared_logarithmic_error",
                                                        "mean over the last axis of (log(1 + p) - log(1 + t))^2, with "
                                                        "p and t of at least 1e-7">;

// 1 if fewer than k classes have a larger prediction than the target's class, else 0.
class Mt_TopK<string mnemonic, string text, list<Trait> traits = []> : Mt_Criterion<mnemonic, text,
    !listconcat([Mt_HigherIsBetter], traits)> {
  let arguments = (ins Mt_Float:$predictions, Mt_Tensor:$targets, DefaultValuedAttr<I64Attr, "5">:$k);
  let assemblyFormat = "$predictions `,` $targets (`k` `=` $k^)? attr-dict `:` type($predictions) `,` type($targets)";
  let hasVerifier = 1;
}
def SparseTopKCategoricalAccuracyOp : Mt_TopK<"sparse_top_k_categorical_accuracy",
                                              "1 if the label is among the k most probable classes, else 0; "
                                              "labels i32 [?, ...]",
                                              [DeclareOpInterfaceMethods<IndexOpInterface>]>;
def TopKCategoricalAccuracyOp : Mt_TopK<"top_k_categorical_accuracy",
                                        "1 if the class of the largest target is among the k most probable classes, "
                                        "else 0; targets f32, of the predictions' shape">;
#endif
