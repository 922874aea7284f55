// SPDX-License-Identifier: Apache-2.0
//
// Functions of one number that are formulas of others.
#include "frontend/logical/Functions.h"
#include "frontend/onnx/OpTable.h"

using namespace mlir;

namespace mtc::onnx {
namespace {

using logical::Value;

// ONNX' name of a function begins with a capital letter.
void build(Call &call) { logical::buildFunction(call, StringRef(call.node.op).lower()); }
void buildRound(Call &call) { logical::buildFunction(call, "round_nearest_even"); }

// x sigmoid(alpha x)
Value swish(Call &call) {
  Value value = call.value(0);
  double alpha = call.number("alpha", 1);
  if (alpha == 1)
    return logical::unary<mt::SiluOp>(call.ops, value);
  Value gate = logical::unary<mt::SigmoidOp>(call.ops, logical::binary<mt::MulOp>(call.ops, value, alpha));
  return logical::binary<mt::MulOp>(call.ops, value, gate);
}

void buildSwish(Call &call) { call.give(swish(call)); }

void buildSwiGlu(Call &call) {
  if (call.shape(0) != call.shape(1))
    throw Refused("expected two operands of one shape, found " + logical::describe(call.shape(0)) + " and " +
                  logical::describe(call.shape(1)));
  call.give(logical::binary<mt::MulOp>(call.ops, swish(call), call.value(1)));
}

// x - bias above lambd, x + bias below -lambd, else 0.
void buildShrink(Call &call) {
  constexpr double half = 0.5;
  double bias = call.number("bias", 0), limit = call.number("lambd", half);
  Value value = call.value(0);
  if (!value.isFloat())
    throw Refused("expected floats, found integers or booleans");
  auto is = [&](mt::Compare kind, double number) {
    return logical::compare(call.ops, kind, value, call.ops.number(number, call.ops.real()));
  };
  Value zero = call.ops.number(0, call.ops.real());
  Value below =
      logical::select(call.ops, is(mt::Compare::lt, -limit), logical::binary<mt::AddOp>(call.ops, value, bias), zero);
  call.give(
      logical::select(call.ops, is(mt::Compare::gt, limit), logical::binary<mt::SubOp>(call.ops, value, bias), below));
}

// 1 at the first of the largest along an axis, else 0; before opset 13 over all axes from one on.
void buildHardmax(Call &call) {
  Value value = call.value(0);
  size_t axis = Call::axisOf(call.integer("axis", call.opset < 13 ? 1 : -1), value.rank());
  logical::Shape shape = value.shape();
  if (call.opset < 13 && axis + 1 < shape.size()) {
    logical::Shape lines(shape.begin(), shape.begin() + static_cast<int64_t>(axis));
    lines.push_back(call.elementsFrom(axis));
    value = logical::reshape(call.ops, value, lines);
  }
  Value hot = logical::oneHot(call.ops, logical::argmax(call.ops, value, axis), value.size(axis).times);
  Value made = logical::moveAxis(logical::cast(call.ops, hot, value.element()), value.rank() - 1, axis);
  call.give(logical::reshape(call.ops, made, shape));
}

} // namespace

llvm::ArrayRef<OpEntry> functionOps() {
  static constexpr OpEntry entries[] = {{"Ceil", build},         {"Tan", build},          {"Sinh", build},
                                        {"Cosh", build},         {"Asin", build},         {"Acos", build},
                                        {"Atan", build},         {"Asinh", build},        {"Acosh", build},
                                        {"Atanh", build},        {"Round", buildRound},   {"Swish", buildSwish},
                                        {"SwiGLU", buildSwiGlu}, {"Shrink", buildShrink}, {"Hardmax", buildHardmax}};
  return entries;
}

} // namespace mtc::onnx
