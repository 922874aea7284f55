// SPDX-License-Identifier: Apache-2.0
//
// Comparisons, logic, and choices by them.
#include "frontend/onnx/OpTable.h"

#include <cmath>
#include <limits>

using namespace mlir;

namespace mtc::onnx {
namespace {

using logical::holds;
using logical::Value;

// A multiple of the batch is 1 or more, so it is told from numbers below 1.
std::optional<bool> holdsOfBatch(mt::Compare kind, Size a, Size b) {
  if (a.batch && b.batch && a.times == b.times)
    return holds(kind, 0, 0);
  if (a.batch != b.batch && (a.batch ? b : a).times < 1 && (a.batch ? a : b).times > 0)
    return holds(kind, a.batch ? 1 : 0, b.batch ? 1 : 0);
  return std::nullopt;
}

Known compareKnown(mt::Compare kind, const Known &a, const Known &b) {
  if (!a.hasBatch() && !b.hasBatch())
    return computed({&a, &b}, Known::Type::Boolean,
                    [&](ArrayRef<double> values) { return holds(kind, values[0], values[1]); });
  Indices shape = commonSizes({&a, &b});
  Known left = a.expanded(shape), right = b.expanded(shape), result = Known::zeros(shape, Known::Type::Boolean);
  for (int64_t i = 0; i < result.count(); ++i) {
    Size x = left.size(i), y = right.size(i);
    std::optional<bool> outcome =
        x.batch || y.batch ? holdsOfBatch(kind, x, y) : std::optional(holds(kind, left.numbers[i], right.numbers[i]));
    if (!outcome)
      throw Refused("a comparison of the number of samples with " + (x.batch ? y : x).text());
    result.numbers[i] = *outcome;
  }
  return result;
}

template <mt::Compare kind> void buildCompare(Call &call) {
  const Known *a = call.known(0), *b = call.known(1);
  if (a && b)
    return call.give(compareKnown(kind, *a, *b));
  Value left = call.value(0), right = call.value(1);
  if (left.isBoolean() && right.isBoolean())
    left = logical::cast(call.ops, left, call.ops.i32()), right = logical::cast(call.ops, right, call.ops.i32());
  call.give(logical::compare(call.ops, kind, left, right));
}

using Logic = Value (*)(logical::Ops &, const Value &, const Value &);
template <Logic logic, bool (*formula)(bool, bool)> void buildLogic(Call &call) {
  if (call.known(0) && call.known(1))
    return call.give(computed({call.known(0), call.known(1)}, Known::Type::Boolean,
                              [](ArrayRef<double> values) { return formula(values[0] != 0, values[1] != 0); }));
  Value a = call.value(0), b = call.value(1);
  if (!a.isBoolean() || !b.isBoolean())
    throw Refused("expected booleans, found numbers");
  call.give(logic(call.ops, a, b));
}
bool both(bool a, bool b) { return a && b; }
bool either(bool a, bool b) { return a || b; }
bool differ(bool a, bool b) { return a != b; }

void buildNot(Call &call) {
  if (call.known(0))
    return call.give(
        computed({call.known(0)}, Known::Type::Boolean, [](ArrayRef<double> values) { return values[0] == 0; }));
  call.give(logical::logicalNot(call.ops, call.value(0)));
}

// NaN is unequal to itself.
void buildIsNan(Call &call) {
  if (const Known *known = call.known(0); known && !known->hasBatch())
    return call.give(
        computed({known}, Known::Type::Boolean, [](ArrayRef<double> values) { return values[0] != values[0]; }));
  Value value = call.value(0);
  call.give(logical::compare(call.ops, mt::Compare::ne, value, value));
}

void buildIsInf(Call &call) {
  constexpr double infinite = std::numeric_limits<double>::infinity();
  bool positive = call.integer("detect_positive", 1) != 0, negative = call.integer("detect_negative", 1) != 0;
  if (const Known *known = call.known(0); known && !known->hasBatch())
    return call.give(computed({known}, Known::Type::Boolean, [&](ArrayRef<double> values) {
      return (positive && values[0] == infinite) || (negative && values[0] == -infinite);
    }));
  Value value = call.value(0);
  if (positive && negative)
    value = logical::unary<mt::AbsOp>(call.ops, value);
  // With neither, a number that is above infinity: none.
  mt::Compare kind = positive || negative ? mt::Compare::eq : mt::Compare::gt;
  call.give(logical::compare(call.ops, kind, value,
                             call.ops.number(positive || !negative ? infinite : -infinite, call.ops.real())));
}

Known chosen(const Known &condition, const Known &a, const Known &b) {
  Indices shape = commonSizes({&condition, &a, &b});
  Known flags = condition.expanded(shape), result = a.expanded(shape), other = b.expanded(shape);
  if (other.hasBatch())
    result.timesBatch.resize(result.numbers.size());
  for (int64_t i = 0; i < result.count(); ++i)
    if (flags.numbers[i] == 0) {
      result.numbers[i] = other.numbers[i];
      if (!result.timesBatch.empty())
        result.timesBatch[i] = other.size(i).batch;
    }
  return result;
}

void buildWhere(Call &call) {
  const Known *condition = call.known(0), *a = call.known(1), *b = call.known(2);
  if (condition && a && b)
    return call.give(chosen(*condition, *a, *b));
  Value x = call.value(1), y = call.value(2);
  if (condition && condition->count() == 1 && !condition->hasBatch()) { // one of the two
    logical::Shape shape = logical::commonShape({x, y, condition->lift(call.ops)});
    return call.give(logical::broadcast(condition->numbers[0] != 0 ? x : y, shape));
  }
  call.give(logical::select(call.ops, call.value(0), x, y));
}

} // namespace

llvm::ArrayRef<OpEntry> comparisonOps() {
  static constexpr OpEntry entries[] = {{"Equal", buildCompare<mt::Compare::eq>},
                                        {"Less", buildCompare<mt::Compare::lt>},
                                        {"LessOrEqual", buildCompare<mt::Compare::le>},
                                        {"Greater", buildCompare<mt::Compare::gt>},
                                        {"GreaterOrEqual", buildCompare<mt::Compare::ge>},
                                        {"And", buildLogic<logical::logicalAnd, both>},
                                        {"Or", buildLogic<logical::logicalOr, either>},
                                        {"Xor", buildLogic<logical::logicalXor, differ>},
                                        {"Not", buildNot},
                                        {"IsNaN", buildIsNan},
                                        {"IsInf", buildIsInf},
                                        {"Where", buildWhere}};
  return entries;
}

} // namespace mtc::onnx
