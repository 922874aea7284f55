// SPDX-License-Identifier: Apache-2.0
//
// The computations. A new element-wise op is one record here and one test.
//
//   evaluate  C++ expression of doubles a (, b): the meaning
//   gradient  C++ expression of Expr (dialects/mt/Expr.h): operands a (, b), result y, dL/dresult dy -> dL/doperand
//   lower     C++ expression of Lane (dialects/mt/Lane.h): operands a (, b): exact, target-independent arithmetic
#ifndef MT_OPS_TD
#define MT_OPS_TD

include "dialects/mt/MtBase.td"
include "dialects/mt/MtStructure.td"
include "dialects/mt/MtSpatial.td"

class Mt_Elementwise<string mnemonic, list<Trait> traits = []> : Mt_PureOp<mnemonic, !listconcat([
    DeclareOpInterfaceMethods<ElementwiseOpInterface>], traits)>;

class Mt_Unary<string mnemonic, string text, code evaluate, code gradient, code lower, int flops = 1> : Mt_Elementwise<mnemonic, [
    SameOperandsAndResultType, DeclareOpInterfaceMethods<GradientOpInterface>]> {
  let summary = text;
  let arguments = (ins Mt_Float:$operand);
  let results = (outs Mt_Float:$result);
  let assemblyFormat = "$operand attr-dict `:` type($operand)";
  let extraClassDeclaration = "static constexpr int64_t flopsPerElement = " # flops # "; static double evaluate(double a);";
  let extraClassDefinition = [{
    double $cppClass::evaluate(double a) { return }] # evaluate # [{; }
    void $cppClass::buildGradient(::mlir::OpBuilder &builder, ::mlir::ValueRange resultGradients, ::llvm::SmallVectorImpl<::mlir::Value> &operandGradients) {
      if (!resultGradients[0]) { operandGradients.push_back({}); return; }
      [[maybe_unused]] Expr a(builder, getLoc(), getOperand()), y(builder, getLoc(), getResult()), dy(builder, getLoc(), resultGradients[0]);
      operandGradients.push_back(Expr(}] # gradient # [{).value());
    }
    ::mlir::Value $cppClass::lowerElement(::mlir::OpBuilder &builder, ::mlir::ValueRange operands) {
      Lane a(builder, getLoc(), operands[0]);
      return Lane(}] # lower # [{).value();
    }
    ::llvm::LogicalResult $cppClass::interpret(const EvalContext &context, ::llvm::ArrayRef<Tensor> operands, ::llvm::SmallVectorImpl<Tensor> &results) {
      results.push_back(interpretUnary(context, getType(), operands[0], &evaluate)); return ::mlir::success();
    }
    int64_t $cppClass::getFlops() { return flopsPerElement * elementsPerRow(getType()); }
    ::llvm::SmallVector<::mlir::utils::IteratorType> $cppClass::getLoopIteratorTypes() { return elementwiseLoops(getOperation()); }
    ::llvm::SmallVector<::mlir::shard::ReductionKind> $cppClass::getReductionLoopIteratorKinds() { return {}; }
    ::llvm::SmallVector<::mlir::AffineMap> $cppClass::getIndexingMaps() { return elementwiseMaps(getOperation()); }
  }];
}

def NegOp : Mt_Unary<"neg", "-a", "-a", "-dy", "-a">;
def AbsOp : Mt_Unary<"abs", "|a|", "std::fabs(a)", "dy * sign(a)", "abs(a)">;
def SignOp : Mt_Unary<"sign", "-1, 0 or 1", "(a > 0) - (a < 0)", "0.0", "select(a > 0.0f, 1.0f, select(a < 0.0f, -1.0f, 0.0f))">;
def SquareOp : Mt_Unary<"square", "a * a", "a * a", "dy * (a * 2.0)", "a * a">;
def ExpOp : Mt_Unary<"exp", "e^a", "std::exp(a)", "dy * y", "exp(a)", 10>;
def LogOp : Mt_Unary<"log", "natural logarithm", "std::log(a)", "dy / a", "log(a)", 12>;
def Log1pOp : Mt_Unary<"log1p", "log(1 + a)", "std::log1p(a)", "dy / (a + 1.0)", "log1p(a)", 14>;
def SqrtOp : Mt_Unary<"sqrt", "square root", "std::sqrt(a)", "dy * 0.5 / y", "sqrt(a)">;
def RsqrtOp : Mt_Unary<"rsqrt", "1 / sqrt(a)", "1.0 / std::sqrt(a)", "dy * -0.5 * y / a", "1.0f / sqrt(a)", 2>;
def TanhOp : Mt_Unary<"tanh", "hyperbolic tangent", "std::tanh(a)", "dy * (1.0 - y * y)", "tanh(a)", 12>;
def SigmoidOp : Mt_Unary<"sigmoid", "1 / (1 + e^-a)", "1.0 / (1.0 + std::exp(-a))", "dy * y * (1.0 - y)", "1.0f / (exp(-a) + 1.0f)", 13>;
def ReluOp : Mt_Unary<"relu", "max(a, 0)", "a > 0 ? a : 0", "select(y > 0.0, dy, 0.0)", "select(a > 0.0f, a, 0.0f)">;
def ErfOp : Mt_Unary<"erf", "error function", "std::erf(a)", "dy * 1.1283791670955126 * exp(-(a * a))", "erf(a)", 15>;
def ErfInvOp : Mt_Unary<"erf_inv", "inverse error function (Giles 2010)", "evaluateErfInv(a)", "dy * 0.886226925452758 * exp(y * y)", "erfInv(a)", 20>;
def FloorOp : Mt_Unary<"floor", "largest integer <= a", "std::floor(a)", "0.0", "floor(a)">;

// Binary ops broadcast like NumPy, aligned at the last axis; a split operand has the result's rank.
class Mt_Binary<string mnemonic, string text, code evaluate, code gradientA, code gradientB, code lower, int flops = 1> : Mt_Elementwise<mnemonic, [
    DeclareOpInterfaceMethods<InferTypeOpInterface>, DeclareOpInterfaceMethods<GradientOpInterface>]> {
  let summary = text;
  let arguments = (ins Mt_Tensor:$lhs, Mt_Tensor:$rhs);
  let results = (outs Mt_Tensor:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` type($lhs) `,` type($rhs)";
  let extraClassDeclaration = "static constexpr int64_t flopsPerElement = " # flops # "; static double evaluate(double a, double b);";
  let extraClassDefinition = [{
    double $cppClass::evaluate(double a, double b) { return }] # evaluate # [{; }
    void $cppClass::buildGradient(::mlir::OpBuilder &builder, ::mlir::ValueRange resultGradients, ::llvm::SmallVectorImpl<::mlir::Value> &operandGradients) {
      if (!resultGradients[0]) { operandGradients.append(2, {}); return; }
      [[maybe_unused]] Expr a(builder, getLoc(), getLhs()), b(builder, getLoc(), getRhs()), y(builder, getLoc(), getResult()), dy(builder, getLoc(), resultGradients[0]);
      operandGradients.push_back(sumToShape(builder, getLoc(), Expr(}] # gradientA # [{).value(), getLhs().getType()));
      operandGradients.push_back(sumToShape(builder, getLoc(), Expr(}] # gradientB # [{).value(), getRhs().getType()));
    }
    ::mlir::Value $cppClass::lowerElement(::mlir::OpBuilder &builder, ::mlir::ValueRange operands) {
      Lane a(builder, getLoc(), operands[0]), b(builder, getLoc(), operands[1]);
      return Lane(}] # lower # [{).value();
    }
    ::llvm::LogicalResult $cppClass::interpret(const EvalContext &context, ::llvm::ArrayRef<Tensor> operands, ::llvm::SmallVectorImpl<Tensor> &results) {
      results.push_back(interpretBinary(context, getType(), operands[0], operands[1], &evaluate)); return ::mlir::success();
    }
    ::llvm::LogicalResult $cppClass::inferReturnTypes(::mlir::MLIRContext *, std::optional<::mlir::Location> location, ::mlir::ValueRange operands, ::mlir::DictionaryAttr,
        ::mlir::OpaqueProperties, ::mlir::RegionRange, ::llvm::SmallVectorImpl<::mlir::Type> &types) {
      return inferBroadcast(location, operands, types);
    }
    int64_t $cppClass::getFlops() { return flopsPerElement * elementsPerRow(getType()); }
    ::llvm::SmallVector<::mlir::utils::IteratorType> $cppClass::getLoopIteratorTypes() { return elementwiseLoops(getOperation()); }
    ::llvm::SmallVector<::mlir::shard::ReductionKind> $cppClass::getReductionLoopIteratorKinds() { return {}; }
    ::llvm::SmallVector<::mlir::AffineMap> $cppClass::getIndexingMaps() { return elementwiseMaps(getOperation()); }
  }];
}

def AddOp : Mt_Binary<"add", "a + b", "a + b", "dy", "dy", "a + b">;
def SubOp : Mt_Binary<"sub", "a - b", "a - b", "dy", "-dy", "a - b">;
def MulOp : Mt_Binary<"mul", "a * b", "a * b", "dy * b", "dy * a", "a * b">;
def DivOp : Mt_Binary<"div", "a / b", "a / b", "dy / b", "-(dy * y / b)", "a / b">;
def MaximumOp : Mt_Binary<"maximum", "the larger; the gradient goes to a where equal", "a >= b ? a : b", "select(a >= b, dy, 0.0)", "select(a >= b, 0.0, dy)", "select(a >= b, a, b)">;
def MinimumOp : Mt_Binary<"minimum", "the smaller; the gradient goes to a where equal", "a <= b ? a : b", "select(a <= b, dy, 0.0)", "select(a <= b, 0.0, dy)", "select(a <= b, a, b)">;
def PowOp : Mt_Binary<"pow", "a to the b; a > 0", "std::pow(a, b)", "dy * b * pow(a, b - 1.0)", "dy * y * log(a)", "pow(a, b)", 30>;

// Element-wise ops that do not fit the two classes: lower, interpret and loops are in C++ beside the others.
def CompareOp : Mt_Elementwise<"compare", [InferTypeOpAdaptor]> {
  let summary = "element-wise comparison, broadcasting: mt.compare lt, %a, %b : tensor<..>, tensor<..>";
  let arguments = (ins Mt_CompareAttr:$kind, Mt_Tensor:$lhs, Mt_Tensor:$rhs);
  let results = (outs Mt_Bool:$result);
  let assemblyFormat = "$kind `,` $lhs `,` $rhs attr-dict `:` type($lhs) `,` type($rhs)";
}
def AndOp : Mt_Elementwise<"and", [InferTypeOpAdaptor]> {
  let summary = "both, broadcasting";
  let arguments = (ins Mt_Bool:$lhs, Mt_Bool:$rhs);
  let results = (outs Mt_Bool:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` type($lhs) `,` type($rhs)";
}
def NotOp : Mt_Elementwise<"not", [SameOperandsAndResultType]> {
  let summary = "negation";
  let arguments = (ins Mt_Bool:$operand);
  let results = (outs Mt_Bool:$result);
  let assemblyFormat = "$operand attr-dict `:` type($operand)";
}
def SelectOp : Mt_Elementwise<"select", [InferTypeOpAdaptor, DeclareOpInterfaceMethods<GradientOpInterface>]> {
  let summary = "a where the condition holds, else b; all three broadcast";
  let arguments = (ins Mt_Bool:$condition, Mt_Tensor:$lhs, Mt_Tensor:$rhs);
  let results = (outs Mt_Tensor:$result);
  let assemblyFormat = "$condition `,` $lhs `,` $rhs attr-dict `:` type($condition) `,` type($lhs) `,` type($rhs)";
}
def CastOp : Mt_Elementwise<"cast", [DeclareOpInterfaceMethods<GradientOpInterface>]> {
  let summary = "converts elements: i32 and i1 to f32 (nearest), f32 to i32 (towards zero, saturating), i1 to i32";
  let arguments = (ins Mt_Tensor:$operand);
  let results = (outs Mt_Tensor:$result);
  let assemblyFormat = "$operand attr-dict `:` type($operand) `to` type($result)";
  let hasVerifier = 1;
}

// Values out of nothing.
def ConstantOp : Mt_PureOp<"constant", [ConstantLike, InferTypeOpAdaptor]> {
  let summary = "mt.constant dense<1.0> : tensor<4xf32>; no batch axis";
  let arguments = (ins ElementsAttr:$value);
  let results = (outs Mt_Tensor:$result);
  let assemblyFormat = "attr-dict $value";
  let hasFolder = 1;
  let builders = [OpBuilder<(ins "float":$value), "build($_builder, $_state, ::mlir::RankedTensorType::get({}, $_builder.getF32Type()), ::mlir::DenseElementsAttr::get(::mlir::RankedTensorType::get({}, $_builder.getF32Type()), value));">];
  let hasVerifier = 1;
}
def IotaOp : Mt_PureOp<"iota"> {
  let summary = "0, 1, 2 ... along an axis; no batch axis: mt.iota dim = 1 : tensor<3x10xi32>";
  let arguments = (ins I64Attr:$dim);
  let results = (outs Mt_Tensor:$result);
  let assemblyFormat = "`dim` `=` $dim attr-dict `:` type($result)";
  let hasVerifier = 1;
}
def BatchSizeOp : Mt_PureOp<"batch_size"> {
  let summary = "n, the valid samples of the global batch, as f32; the same on every replica";
  let results = (outs Mt_Scalar:$result);
  let assemblyFormat = "attr-dict";
}
def RandomUniformOp : Mt_PureOp<"random_uniform"> {
  let summary = "uniform in [0, 1), multiples of 2^-24";
  let description = [{
    Philox 4x32-10 (Salmon et al., SC'11). Key: (seed low, seed high). Counter: (index low, index high, step, hash of `stream`) where index = element / 4, and
    element % 4 selects the word; element = linear index in the global tensor (a split tensor's row is first_row + row). Value = (word >> 8) * 2^-24.
    step is 0 without the operand. hash: 32-bit FNV-1a of the stream's bytes.
  }];
  let arguments = (ins StrAttr:$stream, Optional<Mt_Step>:$step);
  let results = (outs Mt_Float:$result);
  let assemblyFormat = "$stream (`step` `(` $step^ `)`)? attr-dict `:` type($result)";
}

// Shapes.
def BroadcastOp : Mt_PureOp<"broadcast", [DeclareOpInterfaceMethods<GradientOpInterface>]> {
  let summary = "repeats along axes that are missing (leading) or 1";
  let arguments = (ins Mt_Tensor:$operand);
  let results = (outs Mt_Tensor:$result);
  let assemblyFormat = "$operand attr-dict `:` type($operand) `to` type($result)";
  let hasVerifier = 1;
}
def ReshapeOp : Mt_PureOp<"reshape", [DeclareOpInterfaceMethods<GradientOpInterface>]> {
  let summary = "the same elements, row major; a batch axis stays first and by itself";
  let arguments = (ins Mt_Tensor:$operand);
  let results = (outs Mt_Tensor:$result);
  let assemblyFormat = "$operand attr-dict `:` type($operand) `to` type($result)";
  let hasVerifier = 1;
}
def TransposeOp : Mt_PureOp<"transpose", [InferTypeOpAdaptor, DeclareOpInterfaceMethods<GradientOpInterface>]> {
  let summary = "result axis i is operand axis permutation[i]; a batch axis stays first";
  let arguments = (ins Mt_Tensor:$operand, DenseI64ArrayAttr:$permutation);
  let results = (outs Mt_Tensor:$result);
  let assemblyFormat = "$operand `by` $permutation attr-dict `:` type($operand)";
}

// Reductions and products.
def ReduceOp : Mt_PureOp<"reduce", [InferTypeOpAdaptor, DeclareOpInterfaceMethods<GradientOpInterface>]> {
  let summary = "sum, max or min over axes, which disappear: mt.reduce sum, %x over [0] : tensor<?x10xf32>";
  let description = "Over the batch axis: sum only, and alone (`over [0]`). Gradient of max and min: shared equally among ties.";
  let arguments = (ins Mt_ReductionAttr:$kind, Mt_Float:$operand, DenseI64ArrayAttr:$dims);
  let results = (outs Mt_Float:$result);
  let assemblyFormat = "$kind `,` $operand `over` $dims attr-dict `:` type($operand)";
}
def ArgmaxOp : Mt_PureOp<"argmax", [InferTypeOpAdaptor]> {
  let summary = "index of the first largest element along the last axis";
  let arguments = (ins Mt_Float:$operand);
  let results = (outs Mt_Int:$result);
  let assemblyFormat = "$operand attr-dict `:` type($operand)";
}
def MatmulOp : Mt_PureOp<"matmul", [InferTypeOpAdaptor, DeclareOpInterfaceMethods<GradientOpInterface>]> {
  let summary = "matrix product of the last two axes; leading axes are equal, or missing on the right";
  let description = [{
    `transpose_a` / `transpose_b` swap the last two axes of an operand first. A contraction of two batch axes (`transpose_a`, both rank 2 and split) is a sum over the batch.
  }];
  let arguments = (ins Mt_Float:$lhs, Mt_Float:$rhs, UnitAttr:$transpose_a, UnitAttr:$transpose_b);
  let results = (outs Mt_Float:$result);
  let assemblyFormat = "$lhs `,` $rhs (`transpose_a` $transpose_a^)? (`transpose_b` $transpose_b^)? attr-dict `:` type($lhs) `,` type($rhs)";
}

// Composites: each has a gradient of its own and a decomposition.
class Mt_Composite<string mnemonic, list<Trait> traits = []> : Mt_PureOp<mnemonic, !listconcat([DeclareOpInterfaceMethods<DecomposeOpInterface>], traits)>;

class Mt_LastAxis<string mnemonic, string text> : Mt_Composite<mnemonic, [SameOperandsAndResultType, DeclareOpInterfaceMethods<GradientOpInterface>]> {
  let summary = text;
  let arguments = (ins Mt_Float:$operand);
  let results = (outs Mt_Float:$result);
  let assemblyFormat = "$operand attr-dict `:` type($operand)";
  let hasVerifier = 1;
}
def SoftmaxOp : Mt_LastAxis<"softmax", "exp(a - max) / sum over the last axis">;
def LogSoftmaxOp : Mt_LastAxis<"log_softmax", "logarithm of softmax over the last axis">;
def OneHotOp : Mt_Composite<"one_hot"> {
  let summary = "1 at the label's place along a new last axis, else 0";
  let arguments = (ins Mt_Int:$labels);
  let results = (outs Mt_Float:$result);
  let assemblyFormat = "$labels attr-dict `:` type($labels) `to` type($result)";
  let hasVerifier = 1;
}

// Per-sample losses and metrics: predictions [?, ..., C] and targets -> [?, ...]. Keras' formulas (probabilities of a categorical loss are
// divided by their sum, then clipped to [1e-7, 1 - 1e-7]).
class Mt_Criterion<string mnemonic, string text, list<Trait> traits = []> : Mt_Composite<mnemonic, !listconcat([InferTypeOpAdaptor], traits)> {
  let summary = text;
  let results = (outs Mt_Float:$result);
  let arguments = (ins Mt_Float:$predictions, Mt_Tensor:$targets);
  let assemblyFormat = "$predictions `,` $targets attr-dict `:` type($predictions) `,` type($targets)";
}
class Mt_CrossEntropy<string mnemonic, string text> : Mt_Criterion<mnemonic, text, [DeclareOpInterfaceMethods<GradientOpInterface>]> {
  let arguments = (ins Mt_Float:$predictions, Mt_Tensor:$targets, UnitAttr:$from_logits);
  let assemblyFormat = "$predictions `,` $targets (`from_logits` $from_logits^)? attr-dict `:` type($predictions) `,` type($targets)";
}
def SparseCategoricalCrossentropyOp : Mt_CrossEntropy<"sparse_categorical_crossentropy", "-log p[label]; targets i32 [?, ...]">;
def CategoricalCrossentropyOp : Mt_CrossEntropy<"categorical_crossentropy", "-sum t log p; targets f32 like predictions">;
def BinaryCrossentropyOp : Mt_CrossEntropy<"binary_crossentropy", "mean over the last axis of -(t log p + (1 - t) log(1 - p)); targets f32 like predictions">;
def MeanSquaredErrorOp : Mt_Criterion<"mean_squared_error", "mean of (p - t)^2 over the last axis", [DeclareOpInterfaceMethods<GradientOpInterface>]>;
def MeanAbsoluteErrorOp : Mt_Criterion<"mean_absolute_error", "mean of |p - t| over the last axis", [DeclareOpInterfaceMethods<GradientOpInterface>]>;
def SparseCategoricalAccuracyOp : Mt_Criterion<"sparse_categorical_accuracy", "1 where argmax is the label">;
def CategoricalAccuracyOp : Mt_Criterion<"categorical_accuracy", "1 where argmax of both agree">;
def BinaryAccuracyOp : Mt_Criterion<"binary_accuracy", "mean over the last axis of (p > 0.5) == t">;
#endif
