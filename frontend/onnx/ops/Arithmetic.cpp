// SPDX-License-Identifier: Apache-2.0
//
// Arithmetic of two operands or more, which broadcast; and what is computed of shapes.
#include "frontend/logical/Functions.h"
#include "frontend/onnx/OpTable.h"

#include <cmath>

using namespace mlir;

namespace mtc::onnx {
namespace {

using logical::Value;

// A shape times or divided by numbers: multiples of the batch stay such.
std::optional<Known> scaledShape(const Known &a, const Known &b, bool divides) {
  if (!a.hasBatch() && !b.hasBatch())
    return std::nullopt;
  const Known &shape = a.hasBatch() ? a : b, &factor = a.hasBatch() ? b : a;
  if (factor.hasBatch() || shape.type != Known::Type::Integer || (divides && b.hasBatch()))
    throw Refused("a computation with the number of samples");
  Indices full = commonSizes({&a, &b});
  Known result = shape.expanded(full), factors = factor.expanded(full);
  for (auto [number, by] : llvm::zip(result.numbers, factors.numbers)) {
    if (divides && (by == 0 || std::fmod(number, by) != 0))
      throw Refused("a quotient of the number of samples");
    number = divides ? number / by : number * by;
  }
  return result;
}

// A quotient of whole numbers is rounded by their type: towards zero.
template <typename Op, bool scales, bool divides> void buildBinary(Call &call) {
  const Known *a = call.known(0), *b = call.known(1);
  if (a && b) {
    if (scales)
      if (std::optional<Known> scaled = scaledShape(*a, *b, divides))
        return call.give(*scaled);
    if (!a->hasBatch() && !b->hasBatch())
      return call.give(logical::computedBy<Op>(*a, *b));
  }
  Value left = call.value(0), right = call.value(1);
  if (divides && left.isInteger())
    throw Refused("a quotient of integers that are computed from the data");
  call.give(logical::binary<Op>(call.ops, left, right));
}

// Applies an op of two operands to any number of operands, from the first to the last.
template <typename Op> Operand joined(Call &call) {
  call.shape(0); // one value
  Operand total = call.inputs[0];
  for (size_t i = 1; i < call.count(); ++i) {
    const Known *next = call.known(i);
    if (total.known && next && !total.known->hasBatch() && !next->hasBatch()) {
      total.known = std::make_shared<const Known>(logical::computedBy<Op>(*total.known, *next));
      continue;
    }
    Value before = total.known ? total.known->lift(call.ops) : total.value;
    total = {nullptr, logical::binary<Op>(call.ops, before, call.value(i)), nullptr};
  }
  return total;
}
template <typename Op> void buildJoined(Call &call) { call.results.push_back(joined<Op>(call)); }

void buildMean(Call &call) {
  Operand total = joined<mt::AddOp>(call);
  Value value = total.known ? total.known->lift(call.ops) : total.value;
  call.give(logical::binary<mt::DivOp>(call.ops, value, static_cast<double>(call.count())));
}

// Whole exponents hold for negative numbers too; mt.pow is of positive ones.
void buildPow(Call &call) {
  const Known *base = call.known(0), *exponent = call.known(1);
  if (base && exponent)
    return call.give(logical::computedBy<mt::PowOp>(*base, *exponent));
  Value value = call.value(0);
  constexpr double most = 16;
  if (!exponent || exponent->count() != 1)
    return call.give(logical::binary<mt::PowOp>(call.ops, call.floats(0), call.floats(1)));
  double power = exponent->numbers[0];
  auto shape = logical::commonShape({value, exponent->lift(call.ops)});
  value = logical::broadcast(value, shape);
  if (power == std::trunc(power) && std::fabs(power) <= most)
    return call.give(logical::integerPower(call.ops, value, static_cast<int64_t>(power)));
  constexpr double half = 0.5;
  if (power == half)
    return call.give(logical::unary<mt::SqrtOp>(call.ops, call.floats(0)));
  if (power == -half)
    return call.give(logical::unary<mt::RsqrtOp>(call.ops, call.floats(0)));
  call.give(logical::binary<mt::PowOp>(call.ops, call.floats(0), power));
}

// As NumPy's: of a divisor that is infinite too.
double remainder(double a, double b) {
  double rest = std::fmod(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest == 0 ? std::copysign(0.0, b) : rest;
}

// ONNX: the sign of the divisor, with fmod that of the dividend.
void buildMod(Call &call) {
  bool fmod = call.integer("fmod", 0) != 0;
  if ((!call.known(0) || !call.known(1)) && call.value(0).isFloat()) {
    Value rest = logical::findFunction("fmod")->build(call.ops, {call.floats(0), call.floats(1)});
    if (fmod)
      return call.give(rest);
    Value divisor = call.floats(1);
    Value signs = logical::binary<mt::MulOp>(call.ops, logical::unary<mt::SignOp>(call.ops, rest),
                                             logical::unary<mt::SignOp>(call.ops, divisor));
    Value other = logical::compare(call.ops, mt::Compare::lt, signs, call.ops.number(0, call.ops.real()));
    Value moved = logical::binary<mt::AddOp>(call.ops, rest, divisor);
    return call.give(logical::select(call.ops, other, moved, rest));
  }
  const char *operand = "an operand of a remainder";
  const Known &a = call.expectKnown(0, operand), &b = call.expectKnown(1, operand);
  bool whole = a.type == Known::Type::Integer;
  if (whole && llvm::is_contained(b.numbers, 0))
    throw Refused("a remainder of a division by 0");
  call.give(computed({&a, &b}, a.type, [&](ArrayRef<double> values) {
    return fmod ? std::fmod(values[0], values[1]) : remainder(values[0], values[1]);
  }));
}

} // namespace

llvm::ArrayRef<OpEntry> arithmeticOps() {
  static constexpr OpEntry entries[] = {{"Add", buildBinary<mt::AddOp, false, false>},
                                        {"Sub", buildBinary<mt::SubOp, false, false>},
                                        {"Mul", buildBinary<mt::MulOp, true, false>},
                                        {"Div", buildBinary<mt::DivOp, true, true>},
                                        {"Pow", buildPow},
                                        {"Mod", buildMod},
                                        {"Max", buildJoined<mt::MaximumOp>},
                                        {"Min", buildJoined<mt::MinimumOp>},
                                        {"Sum", buildJoined<mt::AddOp>},
                                        {"Mean", buildMean}};
  return entries;
}

} // namespace mtc::onnx
