// SPDX-License-Identifier: Apache-2.0
//
// Element-wise activations, with the formulas and defaults of Keras 3.
#ifndef MT_ACTIVATIONS_TD
#define MT_ACTIVATIONS_TD

include "dialects/mt/MtElementwise.td"

def Relu6Op : Mt_Unary<"relu6", "min(max(a, 0), 6)", "a <= 0 ? 0 : a >= 6 ? 6 : a",
                       "gradientByBounds(a, 0.0, 6.0, 0.0, dy, 0.0, AtBound::outside)",
  "select(a <= 0.0f, 0.0f, select(a >= 6.0f, 6.0f, a))", 2>;
def SeluOp : Mt_Unary<"selu", "1.0507 a if a > 0, else 1.7581 (e^a - 1) (Klambauer et al. 2017)",
                      "a > 0 ? 1.0507009873554805 * a : 1.7580993408473766 * std::expm1(a)",
  "select(a > 0.0, dy * 1.0507009873554805, dy * 1.7580993408473766 * exp(a))",
  "select(a > 0.0f, a * 1.0507009873554805, expm1(a) * 1.7580993408473766)", 24>;
def GeluOp : Mt_Unary<"gelu", "a (1 + erf(a / sqrt(2))) / 2 (Hendrycks and Gimpel 2016)",
                      "0.5 * a * (1.0 + std::erf(a * 0.7071067811865476))",
  "dy * ((erf(a * 0.7071067811865476) + 1.0) * 0.5 + a * exp(square(a) * -0.5) * 0.3989422804014327)",
  "a * 0.5f * (erf(a * 0.7071067811865476) + 1.0f)", 19>;
def GeluTanhOp : Mt_Unary<"gelu_tanh", "approximation of gelu: 0.5 a (1 + tanh(sqrt(2 / pi) (a + 0.044715 a^3)))",
  "0.5 * a * (1.0 + std::tanh(0.7978845608028654 * (a + 0.044715 * a * a * a)))",
  "dy * ((tanh((a + square(a) * a * 0.044715) * 0.7978845608028654) + 1.0) * 0.5 + a * (1.0 - square(tanh((a + "
  "square(a) * a * 0.044715) * 0.7978845608028654))) * (square(a) * 0.134145 + 1.0) * 0.3989422804014327)",
  "a * 0.5f * (tanh((a + a * a * a * 0.044715) * 0.7978845608028654) + 1.0f)", 20>;
def SiluOp : Mt_Unary<"silu", "a sigmoid(a)", "a / (1.0 + std::exp(-a))", "dy * (sigmoid(a) + y * (1.0 - sigmoid(a)))",
                      "a / (exp(-a) + 1.0f)", 13>;
def SoftplusOp : Mt_Unary<"softplus", "log(1 + e^a), without overflow",
                          "std::fmax(a, 0.0) + std::log1p(std::exp(-std::fabs(a)))", "dy * sigmoid(a)",
  "select(a > 0.0f, a, 0.0f) + log1p(exp(-abs(a)))", 26>;
def SoftsignOp : Mt_Unary<"softsign", "a / (1 + |a|)", "a / (1.0 + std::fabs(a))", "dy / square(abs(a) + 1.0)",
                          "a / (abs(a) + 1.0f)", 3>;
def LogSigmoidOp : Mt_Unary<"log_sigmoid", "log(sigmoid(a)), without overflow",
                            "std::fmin(a, 0.0) - std::log1p(std::exp(-std::fabs(a)))", "dy * sigmoid(-a)",
  "select(a < 0.0f, a, 0.0f) - log1p(exp(-abs(a)))", 26>;
def HardSigmoidOp : Mt_Unary<"hard_sigmoid", "relu6(a + 3) / 6", "smaller(larger(a + 3.0, 0.0), 6.0) / 6.0",
  "gradientByBounds(a, -3.0, 3.0, 0.0, dy / 6.0, 0.0, AtBound::outside)",
  "select(a <= -3.0f, 0.0f, select(a >= 3.0f, 1.0f, (a + 3.0f) / 6.0f))", 4>;
def HardSiluOp : Mt_Unary<"hard_silu", "a relu6(a + 3) / 6", "a <= -3 ? 0 : a >= 3 ? a : a * (a + 3.0) / 6.0",
  "gradientByBounds(a, -3.0, 3.0, 0.0, dy * (a * 2.0 + 3.0) / 6.0, dy, AtBound::outside)",
  "select(a <= -3.0f, 0.0f, select(a >= 3.0f, a, a * ((a + 3.0f) / 6.0f)))", 5>;
def HardTanhOp : Mt_Unary<"hard_tanh", "min(max(a, -1), 1)", "smaller(larger(a, -1.0), 1.0)",
                          "gradientByBounds(a, -1.0, 1.0, 0.0, dy, 0.0, AtBound::inside)",
  "select(a <= -1.0f, -1.0f, select(a >= 1.0f, 1.0f, a))", 2>;
def MishOp : Mt_Unary<"mish", "a tanh(softplus(a))",
                      "a * std::tanh(std::fmax(a, 0.0) + std::log1p(std::exp(-std::fabs(a))))",
  "dy * (tanh(softplus(a)) + a * sigmoid(a) * (1.0 - square(tanh(softplus(a)))))",
  "a * tanh(select(a > 0.0f, a, 0.0f) + log1p(exp(-abs(a))))", 39>;

// An activation with one floating-point parameter p, an attribute.
class Mt_UnaryWith<string mnemonic, string parameter, string default, string text, code evaluate, code gradient,
                   code lower, int flops> : Mt_Elementwise<mnemonic, [
    SameOperandsAndResultType, DeclareOpInterfaceMethods<GradientOpInterface>]> {
  let summary = text;
  let arguments = !con((ins Mt_Float:$operand), !dag(ins, [DefaultValuedAttr<Mt_Real, default>], [parameter]));
  let results = (outs Mt_Float:$result);
  let assemblyFormat = "$operand (`" # parameter # "` `=` custom<Real>($" # parameter # ")^)? attr-dict `:` "
                       "type($operand)";
  let extraClassDeclaration = "double parameter() { return getProperties()." # parameter # ".getValueAsDouble(); }";
  let extraClassDefinition = [{
    void $cppClass::buildGradient(::mlir::OpBuilder &builder, ::mlir::ValueRange resultGradients,
                                  ::llvm::SmallVectorImpl<::mlir::Value> &operandGradients) {
      if (!resultGradients[0]) { operandGradients.push_back({}); return; }
      [[maybe_unused]] Expr a(builder, getLoc(), getOperand()), y(builder, getLoc(), getResult()),
          dy(builder, getLoc(), resultGradients[0]);
      double p = parameter();
      operandGradients.push_back(Expr(}] # gradient # [{).value());
    }
    ::mlir::Value $cppClass::lowerElement(::mlir::OpBuilder &builder, ::mlir::ValueRange operands) {
      VectorExpr a(builder, getLoc(), operands[0]), p(parameter());
      return VectorExpr(}] # lower # [{).value();
    }
    ::llvm::LogicalResult $cppClass::interpret(const EvalContext &, ::llvm::ArrayRef<Tensor> operands,
                                               ::llvm::SmallVectorImpl<Tensor> &results) {
      double p = parameter();
      results.push_back(operands[0]);
      for (double &a : results.back().data)
        a = }] # evaluate # [{;
      return ::mlir::success();
    }
    int64_t $cppClass::getFlops() { return }] # flops # [{ * elementsPerRow(getType()); }
    ::llvm::SmallVector<::mlir::utils::IteratorType> $cppClass::getLoopIteratorTypes() {
      return elementwiseLoops(getOperation());
    }
    ::llvm::SmallVector<::mlir::shard::ReductionKind> $cppClass::getReductionLoopIteratorKinds() { return {}; }
    ::llvm::SmallVector<::mlir::AffineMap> $cppClass::getIndexingMaps() { return elementwiseMaps(getOperation()); }
  }];
}
def LeakyReluOp : Mt_UnaryWith<"leaky_relu", "negative_slope", "0.2f", "a if a > 0, else negative_slope a",
                               "a > 0 ? a : a * p", "select(isAboveKink(a), dy, dy * p)",
  "select(a > 0.0f, a, a * p)", 2>;
def EluOp : Mt_UnaryWith<"elu", "alpha", "1.0f", "a if a > 0, else alpha (e^a - 1)", "a > 0 ? a : p * std::expm1(a)",
                         "select(a > 0.0, dy, dy * p * exp(a))",
  "select(a > 0.0f, a, expm1(a) * p)", 24>;
def CeluOp : Mt_UnaryWith<"celu", "alpha", "1.0f", "a if a > 0, else alpha (e^(a / alpha) - 1)",
                          "a > 0 ? a : p * std::expm1(a / p)",
  "select(a > 0.0, dy, dy * exp(a / p))", "select(a > 0.0f, a, expm1(a / p) * p)", 25> {
  let hasVerifier = 1;
}
#endif
