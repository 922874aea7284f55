// SPDX-License-Identifier: Apache-2.0
//
// Functions of one number, and softmax.
#include "frontend/logical/Functions.h"
#include "frontend/onnx/OpTable.h"

#include <cmath>
#include <limits>

using namespace mlir;

namespace mtc::onnx {
namespace {

using logical::buildUnary;
using logical::Value;

void buildNeg(Call &call) {
  if (!call.known(0) && call.value(0).isInteger())
    return call.give(logical::binary<mt::SubOp>(call.ops, call.ops.number(0, call.ops.i32()), call.value(0)));
  buildUnary<mt::NegOp>(call);
}

void buildReciprocal(Call &call) {
  if (const Known *known = call.known(0))
    return call.give(computed({known}, known->type, [](ArrayRef<double> values) { return 1 / values[0]; }));
  Value value = call.floats(0);
  call.give(logical::binary<mt::DivOp>(call.ops, call.ops.number(1, call.ops.real(), value.shape()), value));
}

void buildGelu(Call &call) {
  std::string kind = call.text("approximate", "none");
  if (kind == "tanh")
    return call.give(logical::unary<mt::GeluTanhOp>(call.ops, call.value(0)));
  if (kind != "none")
    throw Refused("expected approximate of none or tanh, found " + kind);
  call.give(logical::unary<mt::GeluOp>(call.ops, call.value(0)));
}

template <typename Op> void buildUnaryWith(Call &call, const char *attribute, const char *name, double otherwise) {
  float number = static_cast<float>(call.number(attribute, otherwise));
  call.give(logical::unary<Op>(call.ops, call.value(0),
                               call.ops.builder.getNamedAttr(name, call.ops.builder.getF32FloatAttr(number))));
}
void buildLeakyRelu(Call &call) { buildUnaryWith<mt::LeakyReluOp>(call, "alpha", "negative_slope", 0.01); }
void buildElu(Call &call) { buildUnaryWith<mt::EluOp>(call, "alpha", "alpha", 1); }
void buildCelu(Call &call) { buildUnaryWith<mt::CeluOp>(call, "alpha", "alpha", 1); }

void buildSelu(Call &call) {
  constexpr double alpha = 1.67326319217681884765625, gamma = 1.05070102214813232421875, near = 1e-6;
  if (std::fabs(call.number("alpha", alpha) - alpha) > near ||
      std::fabs(call.number("gamma", gamma) - gamma) > near) { // gamma (max(0, x) + min(0, alpha (e^x - 1)))
    Value elu = logical::unary<mt::EluOp>(
        call.ops, call.value(0),
        call.ops.builder.getNamedAttr(
            "alpha", call.ops.builder.getF32FloatAttr(static_cast<float>(call.number("alpha", alpha)))));
    return call.give(logical::binary<mt::MulOp>(call.ops, elu, call.number("gamma", gamma)));
  }
  call.give(logical::unary<mt::SeluOp>(call.ops, call.value(0)));
}

Value clipped(Call &call, Value value, std::optional<double> low, std::optional<double> high) {
  if (low)
    value = logical::binary<mt::MaximumOp>(call.ops, value, *low);
  return high ? logical::binary<mt::MinimumOp>(call.ops, value, *high) : value;
}

// max(0, min(1, alpha x + beta))
void buildHardSigmoid(Call &call) {
  constexpr double defaultAlpha = 0.2, defaultBeta = 0.5;
  double alpha = call.number("alpha", defaultAlpha), beta = call.number("beta", defaultBeta);
  Value value = call.value(0);
  constexpr double sixth = 1.0 / 6, near = 1e-6;
  if (std::fabs(alpha - sixth) < near && beta == defaultBeta)
    return call.give(logical::unary<mt::HardSigmoidOp>(call.ops, value));
  value = logical::binary<mt::AddOp>(call.ops, logical::binary<mt::MulOp>(call.ops, value, alpha), beta);
  call.give(clipped(call, value, 0, 1));
}

void buildThresholdedRelu(Call &call) {
  double alpha = call.number("alpha", 1);
  Value value = call.value(0), limit = call.ops.number(alpha, call.ops.real());
  call.give(logical::select(call.ops, logical::compare(call.ops, mt::Compare::gt, value, limit), value,
                            call.ops.number(0, call.ops.real())));
}

// A slope for numbers below 0, which broadcasts.
void buildPrelu(Call &call) {
  Value value = call.value(0), slope = call.value(1);
  Value below = logical::binary<mt::MulOp>(call.ops, value, slope);
  Value positive = logical::compare(call.ops, mt::Compare::gt, value, call.ops.number(0, call.ops.real()));
  call.give(logical::select(call.ops, positive, value, below));
}

std::optional<double> bound(Call &call, size_t index) {
  if (!call.has(index))
    return std::nullopt;
  double number = call.expectNumber(index, "a bound");
  return std::fabs(number) >= std::numeric_limits<float>::max() ? std::nullopt : std::optional(number);
}

void buildClip(Call &call) {
  constexpr double largest = std::numeric_limits<float>::max();
  bool asAttributes = call.opset < 11;
  auto limitOf = [&](size_t index, const char *name, double otherwise) -> std::optional<double> {
    if (!asAttributes)
      return bound(call, index);
    double number = call.number(name, otherwise);
    return std::fabs(number) >= largest ? std::nullopt : std::optional(number);
  };
  std::optional<double> low = limitOf(1, "min", -largest), high = limitOf(2, "max", largest);
  if (const Known *known = call.known(0); known && !known->hasBatch())
    return call.give(computed({known}, known->type, [&](ArrayRef<double> values) {
      double at = low ? std::fmax(values[0], *low) : values[0];
      return high ? std::fmin(at, *high) : at;
    }));
  constexpr double six = 6;
  if (low == 0.0 && high == six && call.value(0).isFloat())
    return call.give(logical::unary<mt::Relu6Op>(call.ops, call.value(0)));
  if (low == 0.0 && !high && call.value(0).isFloat())
    return call.give(logical::unary<mt::ReluOp>(call.ops, call.value(0)));
  call.give(clipped(call, call.value(0), low, high));
}

// Before opset 13 over all axes from one on.
template <bool logarithmic> void buildSoftmax(Call &call) {
  Value value = call.value(0);
  size_t axis = Call::axisOf(call.integer("axis", call.opset < 13 ? 1 : -1), value.rank());
  if (call.opset >= 13 || axis + 1 == value.rank())
    return call.give(logical::softmax(call.ops, value, axis, logarithmic));
  logical::Shape shape = value.shape(), lines(shape.begin(), shape.begin() + static_cast<int64_t>(axis));
  lines.push_back(call.elementsFrom(axis));
  Value made = logical::softmax(call.ops, logical::reshape(call.ops, value, lines), axis, logarithmic);
  call.give(logical::reshape(call.ops, made, shape));
}

} // namespace

llvm::ArrayRef<OpEntry> activationOps() {
  static constexpr OpEntry entries[] = {{"Neg", buildNeg},
                                        {"Abs", buildUnary<mt::AbsOp>},
                                        {"Sign", buildUnary<mt::SignOp>},
                                        {"Exp", buildUnary<mt::ExpOp>},
                                        {"Log", buildUnary<mt::LogOp>},
                                        {"Sqrt", buildUnary<mt::SqrtOp>},
                                        {"Sin", buildUnary<mt::SinOp>},
                                        {"Cos", buildUnary<mt::CosOp>},
                                        {"Floor", buildUnary<mt::FloorOp>},
                                        {"Reciprocal", buildReciprocal},
                                        {"Erf", buildUnary<mt::ErfOp>},
                                        {"Relu", buildUnary<mt::ReluOp>},
                                        {"Sigmoid", buildUnary<mt::SigmoidOp>},
                                        {"Tanh", buildUnary<mt::TanhOp>},
                                        {"Softplus", buildUnary<mt::SoftplusOp>},
                                        {"Softsign", buildUnary<mt::SoftsignOp>},
                                        {"Mish", buildUnary<mt::MishOp>},
                                        {"HardSwish", buildUnary<mt::HardSiluOp>},
                                        {"HardSigmoid", buildHardSigmoid},
                                        {"Gelu", buildGelu},
                                        {"LeakyRelu", buildLeakyRelu},
                                        {"Elu", buildElu},
                                        {"Celu", buildCelu},
                                        {"Selu", buildSelu},
                                        {"PRelu", buildPrelu},
                                        {"ThresholdedRelu", buildThresholdedRelu},
                                        {"Clip", buildClip},
                                        {"Softmax", buildSoftmax<false>},
                                        {"LogSoftmax", buildSoftmax<true>}};
  return entries;
}

} // namespace mtc::onnx
