// SPDX-License-Identifier: Apache-2.0
//
// Element-wise ops. A new element-wise op takes one record here and one test.
//
//   evaluate  C++ expression of doubles a (, b): the reference evaluation
//   gradient  C++ expression of Expr (dialects/mt/Expr.h): operands a (, b), result y, dL/dresult dy -> dL/doperand
//   lower     C++ expression of VectorExpr (VectorExpr.h): operands a (, b). Its bits do not depend on the target
#ifndef MT_ELEMENTWISE_TD
#define MT_ELEMENTWISE_TD

include "dialects/mt/MtBase.td"

class Mt_Elementwise<string mnemonic, list<Trait> traits = []> : Mt_PureOp<mnemonic, !listconcat([
    DeclareOpInterfaceMethods<ElementwiseOpInterface>], traits)>;

class Mt_Unary<string mnemonic, string text, code evaluate, code gradient, code lower, int flops = 1>
    : Mt_Elementwise<mnemonic, [
    SameOperandsAndResultType, DeclareOpInterfaceMethods<GradientOpInterface>]> {
  let summary = text;
  let arguments = (ins Mt_Float:$operand);
  let results = (outs Mt_Float:$result);
  let assemblyFormat = "$operand attr-dict `:` type($operand)";
  let extraClassDeclaration = "static constexpr int64_t flopsPerElement = " # flops #
      "; static double evaluate(double a);";
  let extraClassDefinition = [{
    double $cppClass::evaluate(double a) { return }] # evaluate # [{; }
    void $cppClass::buildGradient(::mlir::OpBuilder &builder, ::mlir::ValueRange resultGradients,
                                  ::llvm::SmallVectorImpl<::mlir::Value> &operandGradients) {
      if (!resultGradients[0]) { operandGradients.push_back({}); return; }
      [[maybe_unused]] Expr a(builder, getLoc(), getOperand()), y(builder, getLoc(), getResult()),
          dy(builder, getLoc(), resultGradients[0]);
      operandGradients.push_back(Expr(}] # gradient # [{).value());
    }
    ::mlir::Value $cppClass::lowerElement(::mlir::OpBuilder &builder, ::mlir::ValueRange operands) {
      VectorExpr a(builder, getLoc(), operands[0]);
      return VectorExpr(}] # lower # [{).value();
    }
    ::llvm::LogicalResult $cppClass::interpret(const EvalContext &context, ::llvm::ArrayRef<Tensor> operands,
                                               ::llvm::SmallVectorImpl<Tensor> &results) {
      results.push_back(interpretUnary(context, getType(), operands[0], &evaluate)); return ::mlir::success();
    }
    int64_t $cppClass::getFlops() { return flopsPerElement * elementsPerRow(getType()); }
    ::llvm::SmallVector<::mlir::utils::IteratorType> $cppClass::getLoopIteratorTypes() {
      return elementwiseLoops(getOperation());
    }
    ::llvm::SmallVector<::mlir::shard::ReductionKind> $cppClass::getReductionLoopIteratorKinds() { return {}; }
    ::llvm::SmallVector<::mlir::AffineMap> $cppClass::getIndexingMaps() { return elementwiseMaps(getOperation()); }
  }];
}

def NegOp : Mt_Unary<"neg", "-a", "-a", "-dy", "-a">;
def AbsOp : Mt_Unary<"abs", "|a|", "std::fabs(a)", "gradientOfAbs(a, dy)", "abs(a)">;
def SignOp : Mt_Unary<"sign", "sign: -1, 0 or 1; NaN for NaN", "a > 0 ? 1 : a < 0 ? -1 : a - a", "0.0",
                      "select(a > 0.0f, 1.0f, select(a < 0.0f, -1.0f, a - a))">;
def SquareOp : Mt_Unary<"square", "a * a", "a * a", "dy * (a * 2.0)", "a * a">;
def ExpOp : Mt_Unary<"exp", "e^a", "std::exp(a)", "dy * y", "exp(a)", 10>;
def LogOp : Mt_Unary<"log", "natural logarithm", "std::log(a)", "dy / a", "log(a)", 12>;
def Log1pOp : Mt_Unary<"log1p", "log(1 + a)", "std::log1p(a)", "dy / (a + 1.0)", "log1p(a)", 14>;
def SqrtOp : Mt_Unary<"sqrt", "square root", "std::sqrt(a)", "dy * 0.5 / y", "sqrt(a)">;
def RsqrtOp : Mt_Unary<"rsqrt", "1 / sqrt(a)", "1.0 / std::sqrt(a)", "dy * -0.5 * y / a", "1.0f / sqrt(a)", 2>;
def TanhOp : Mt_Unary<"tanh", "hyperbolic tangent", "std::tanh(a)", "dy * (1.0 - y * y)", "tanh(a)", 12>;
def SigmoidOp : Mt_Unary<"sigmoid", "1 / (1 + e^-a)", "1.0 / (1.0 + std::exp(-a))", "dy * y * (1.0 - y)",
                         "1.0f / (exp(-a) + 1.0f)", 13>;
def ReluOp : Mt_Unary<"relu", "max(a, 0)", "a <= 0 ? 0 : a", "select(y > 0.0, dy, 0.0)", "select(a <= 0.0f, 0.0f, a)">;
def ErfOp : Mt_Unary<"erf", "error function", "std::erf(a)", "dy * 1.1283791670955126 * exp(-(a * a))", "erf(a)", 15>;
def ErfInvOp : Mt_Unary<"erf_inv", "inverse error function (approximation by Giles 2010)", "evaluateErfInv(a)",
                        "dy * 0.886226925452758 * exp(y * y)", "erfInv(a)", 20>;
def Expm1Op : Mt_Unary<"expm1", "e^a - 1", "std::expm1(a)", "dy * (y + 1.0)", "expm1(a)", 23>;
def SinOp : Mt_Unary<"sin", "sine", "std::sin(a)", "dy * cos(a)", "sin(a)", 20>;
def CosOp : Mt_Unary<"cos", "cosine", "std::cos(a)", "-(dy * sin(a))", "cos(a)", 20>;
def FloorOp : Mt_Unary<"floor", "largest integer <= a", "std::floor(a)", "0.0", "floor(a)">;

// Binary ops broadcast as in NumPy, aligned at the last axis; a split operand has the rank of the result. `whole` is a
// C++ expression of int64_t a, b. An op that has it is also defined on i32, with wrap-around; any other op is defined
// on f32 alone.
class Mt_Binary<string mnemonic, string text, code evaluate, code gradientA, code gradientB, code lower, int flops = 1,
                code whole = "">
    : Mt_Elementwise<mnemonic, [
    DeclareOpInterfaceMethods<InferTypeOpInterface>, DeclareOpInterfaceMethods<GradientOpInterface>]> {
  let summary = text;
  let arguments = (ins Mt_Number:$lhs, Mt_Number:$rhs);
  let results = (outs Mt_Number:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` type($lhs) `,` type($rhs)";
  let extraClassDeclaration = "static constexpr int64_t flopsPerElement = " # flops #
      "; static double evaluate(double a, double b);";
  let extraClassDefinition = [{
    double $cppClass::evaluate(double a, double b) { return }] # evaluate # [{; }
    void $cppClass::buildGradient(::mlir::OpBuilder &builder, ::mlir::ValueRange resultGradients,
                                  ::llvm::SmallVectorImpl<::mlir::Value> &operandGradients) {
      if (!resultGradients[0]) { operandGradients.append(2, {}); return; }
      [[maybe_unused]] Expr a(builder, getLoc(), getLhs()), b(builder, getLoc(), getRhs()),
          y(builder, getLoc(), getResult()), dy(builder, getLoc(), resultGradients[0]);
      operandGradients.push_back(sumToShape(builder, getLoc(), Expr(}] # gradientA # [{).value(), getLhs().getType()));
      operandGradients.push_back(sumToShape(builder, getLoc(), Expr(}] # gradientB # [{).value(), getRhs().getType()));
    }
    ::mlir::Value $cppClass::lowerElement(::mlir::OpBuilder &builder, ::mlir::ValueRange operands) {
      VectorExpr a(builder, getLoc(), operands[0]), b(builder, getLoc(), operands[1]);
      return VectorExpr(}] # lower # [{).value();
    }
    ::llvm::LogicalResult $cppClass::interpret(const EvalContext &context, ::llvm::ArrayRef<Tensor> operands,
                                               ::llvm::SmallVectorImpl<Tensor> &results) {
      int64_t (*whole)(int64_t, int64_t) = nullptr;
      }] # !if(!empty(whole), "", "whole = [](int64_t a, int64_t b) -> int64_t { return " # whole # "; };") # [{
      results.push_back(interpretBinary(context, getType(), operands[0], operands[1], &evaluate, whole));
      return ::mlir::success();
    }
    ::llvm::LogicalResult $cppClass::inferReturnTypes(::mlir::MLIRContext *, std::optional<::mlir::Location> location,
                                                      ::mlir::ValueRange operands, ::mlir::DictionaryAttr,
        ::mlir::OpaqueProperties, ::mlir::RegionRange, ::llvm::SmallVectorImpl<::mlir::Type> &types) {
      return inferBroadcast(location, operands, types, }] # !if(!empty(whole), "false", "true") # [{);
    }
    int64_t $cppClass::getFlops() { return flopsPerElement * elementsPerRow(getType()); }
    ::llvm::SmallVector<::mlir::utils::IteratorType> $cppClass::getLoopIteratorTypes() {
      return elementwiseLoops(getOperation());
    }
    ::llvm::SmallVector<::mlir::shard::ReductionKind> $cppClass::getReductionLoopIteratorKinds() { return {}; }
    ::llvm::SmallVector<::mlir::AffineMap> $cppClass::getIndexingMaps() { return elementwiseMaps(getOperation()); }
  }];
}

def AddOp : Mt_Binary<"add", "a + b", "a + b", "dy", "dy", "a + b", 1, "a + b">;
def SubOp : Mt_Binary<"sub", "a - b", "a - b", "dy", "-dy", "a - b", 1, "a - b">;
def MulOp : Mt_Binary<"mul", "a * b", "a * b", "dy * b", "dy * a", "a * b", 1, "a * b">;
def DivOp : Mt_Binary<"div", "a / b", "a / b", "dy / b", "-(dy * y / b)", "a / b">;
def MaximumOp : Mt_Binary<"maximum", "maximum of a and b; NaN if either is NaN", "larger(a, b)",
                          "gradientToFirst(Compare::gt, a, b, dy)", "gradientToSecond(Compare::gt, a, b, dy)",
                          "maximum(a, b)", 1, "std::max(a, b)">;
def MinimumOp : Mt_Binary<"minimum", "minimum of a and b; NaN if either is NaN", "smaller(a, b)",
                          "gradientToFirst(Compare::lt, a, b, dy)", "gradientToSecond(Compare::lt, a, b, dy)",
                          "minimum(a, b)", 1, "std::min(a, b)">;
def PowOp : Mt_Binary<"pow", "a^b, for a > 0", "std::pow(a, b)", "dy * b * pow(a, b - 1.0)", "dy * y * log(a)",
                      "pow(a, b)", 30>;

// Element-wise ops that do not fit the two classes. MtElementwise.cpp defines their methods.
def CompareOp : Mt_Elementwise<"compare", [Mt_InferType]> {
  let summary = "element-wise comparison, with broadcasting";
  let description = "`mt.compare lt, %a, %b : tensor<?x8xf32>, tensor<8xf32>`. A comparison with NaN is false, but for "
                    "`ne`.";
  let arguments = (ins Mt_CompareAttr:$kind, Mt_Number:$lhs, Mt_Number:$rhs);
  let results = (outs Mt_Bool:$result);
  let assemblyFormat = "`` $kind `,` $lhs `,` $rhs attr-dict `:` type($lhs) `,` type($rhs)";
}
def AndOp : Mt_Elementwise<"and", [Mt_InferType]> {
  let summary = "logical and of two booleans, with broadcasting";
  let arguments = (ins Mt_Bool:$lhs, Mt_Bool:$rhs);
  let results = (outs Mt_Bool:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` type($lhs) `,` type($rhs)";
}
def NotOp : Mt_Elementwise<"not", [SameOperandsAndResultType]> {
  let summary = "logical not";
  let arguments = (ins Mt_Bool:$operand);
  let results = (outs Mt_Bool:$result);
  let assemblyFormat = "$operand attr-dict `:` type($operand)";
}
def SelectOp : Mt_Elementwise<"select", [Mt_InferType, DeclareOpInterfaceMethods<GradientOpInterface>]> {
  let summary = "lhs if the condition is true, else rhs; all three operands broadcast";
  let arguments = (ins Mt_Bool:$condition, Mt_Number:$lhs, Mt_Number:$rhs);
  let results = (outs Mt_Number:$result);
  let assemblyFormat = "$condition `,` $lhs `,` $rhs attr-dict `:` type($condition) `,` type($lhs) `,` type($rhs)";
}
def ThreefryOp : Mt_Elementwise<"threefry", [Mt_InferType]> {
  let summary = "random words of a counter and a key of two words, by Threefry 2x32-20; the operands broadcast";
  let description = [{
    `mt.threefry uniform, %key0, %key1, %count : tensor<i32>, tensor<i32>, tensor<?x8xi32>`

    The generator is Threefry 2x32-20 (Salmon et al., SC'11), that of `jax.random`. Its counter is (0, count). All
    operands are words of 32 bits, in i32. The result is the `first` word, the `second` one, or `both`, the exclusive or
    of the two, in i32; or `uniform`, an f32 in [0, 1): (both >> 9) * 2^-23, with zeros shifted in.
  }];
  let arguments = (ins Mt_ThreefryResultAttr:$kind, Mt_Number:$key0, Mt_Number:$key1, Mt_Number:$count);
  let results = (outs Mt_Number:$result);
  let assemblyFormat = "`` $kind `,` $key0 `,` $key1 `,` $count attr-dict `:` type($key0) `,` type($key1) `,` "
                       "type($count)";
}
def CastOp : Mt_Elementwise<"cast", [DeclareOpInterfaceMethods<GradientOpInterface>]> {
  let summary = "conversion of elements to another type";
  let description = [{
    i32 to f32 rounds to nearest. f32 to i32 rounds towards zero and saturates. i1 becomes 0 or 1 of f32 or i32.

    f32 to bf16 or f16 rounds to nearest, ties to even, and keeps subnormals. A number becomes infinite if it is at
    least halfway from the largest finite number to the next power of two (65520 for f16). bf16 and f16 convert to f32
    alone. The gradient passes through a rounding unchanged. A constant of f64 may be cast to f32, for a model that is
    read with the precision f64 (docs/precision.md section 5). The verifier fails for any other pair of types.
  }];
  let arguments = (ins Mt_Tensor:$operand);
  let results = (outs Mt_Tensor:$result);
  let assemblyFormat = "$operand attr-dict `:` type($operand) `to` type($result)";
  let hasVerifier = 1;
}
#endif
