// SPDX-License-Identifier: Apache-2.0
//
// Ops of StableHLO that compute element by element.
#include "frontend/logical/Functions.h"
#include "frontend/stablehlo/Call.h"

#include "llvm/ADT/bit.h"

#include <cmath>
#include <limits>

using namespace mlir;

namespace mtc::stablehlo {
namespace {

using logical::buildUnary;
using logical::Value;

bool isKnown(const Call &call, size_t count) {
  for (size_t i = 0; i < count; ++i)
    if (!call.known(i))
      return false;
  return true;
}

// The number of a scalar constant; none of anything else.
std::optional<double> scalarOf(const Call &call, size_t index) {
  const Known *known = call.known(index);
  bool same = known && !known->hasBatch() && known->count() >= 1 && llvm::all_equal(known->numbers);
  return same ? std::optional(known->numbers[0]) : std::nullopt;
}

// Means are added, and multiplied by numbers.
bool scaleMeans(Call &call, size_t index, double factor) {
  if (index >= call.operands.size() || call.operands[index].means.empty())
    return false;
  Operand result;
  result.means = call.operands[index].means;
  for (MeanTerm &term : result.means)
    term.scale *= factor;
  call.results.push_back(result);
  return true;
}
// Terms of the same values are one, so that a sum of a sum with itself does not double them.
bool addMeans(Call &call, double sign) {
  if (call.operands[0].means.empty() || call.operands[1].means.empty())
    return false;
  Operand result = call.operands[0];
  for (const MeanTerm &term : call.operands[1].means) {
    auto same = llvm::find_if(result.means, [&](const MeanTerm &other) { return other.values == term.values; });
    if (same == result.means.end())
      result.means.push_back({term.values, sign * term.scale});
    else
      same->scale += sign * term.scale;
  }
  constexpr size_t most = 1000;
  if (result.means.size() > most)
    throw Refused("a loss of more than 1000 means over the samples");
  call.results.push_back(result);
  return true;
}

void buildNegate(Call &call) {
  if (scaleMeans(call, 0, -1))
    return;
  if (const Known *known = call.known(0); known && !known->hasBatch())
    return call.give(logical::computed({known}, known->type, [](ArrayRef<double> values) { return -values[0]; }));
  Value value = call.value(0);
  call.give(value.isFloat() ? logical::unary<mt::NegOp>(call.ops, value)
                            : logical::binary<mt::SubOp>(call.ops, call.ops.number(0, value.element()), value));
}

template <typename Op> void buildBinary(Call &call) {
  const Known *a = call.known(0), *b = call.known(1);
  if (a && b && !a->hasBatch() && !b->hasBatch())
    return call.give(logical::computedBy<Op>(*a, *b));
  call.give(logical::binary<Op>(call.ops, call.value(0), call.value(1)));
}

// Two lists of sizes, some of which are multiples of the batch, size by size; false: they are none, or `combine` has no
// size for two of them.
bool combineSizes(Call &call, llvm::function_ref<std::optional<Size>(Size, Size)> combine) {
  const Known *a = call.known(0), *b = call.known(1);
  if (!a || !b || a->shape != b->shape || !(a->hasBatch() || b->hasBatch()))
    return false;
  Known result = *a;
  result.timesBatch.assign(result.numbers.size(), false);
  for (int64_t i = 0; i < a->count(); ++i) {
    std::optional<Size> size = combine(a->size(i), b->size(i));
    if (!size)
      return false;
    result.numbers[i] = static_cast<double>(size->times);
    result.timesBatch[i] = size->batch;
  }
  call.give(result);
  return true;
}

// Adds two multiples of the batch, or a size and 0; false: the operands are something else.
bool addSizes(Call &call, int64_t sign) {
  return combineSizes(call, [&](Size x, Size y) -> std::optional<Size> {
    int64_t times;
    if ((x.batch != y.batch && (x.batch ? y : x).times != 0) || __builtin_mul_overflow(y.times, sign, &times) ||
        __builtin_add_overflow(x.times, times, &times))
      return std::nullopt;
    return Size(times, times != 0 && (x.batch || y.batch));
  });
}

void buildAdd(Call &call) {
  if (!addMeans(call, 1) && !addSizes(call, 1))
    buildBinary<mt::AddOp>(call);
}
void buildSubtract(Call &call) {
  if (!addMeans(call, -1) && !addSizes(call, -1))
    buildBinary<mt::SubOp>(call);
}

// A number of samples times a number.
bool scaleCount(Call &call) {
  for (size_t i : {0, 1}) {
    const Known *count = call.known(i);
    std::optional<double> factor = scalarOf(call, 1 - i);
    if (!count || !count->hasBatch() || count->count() != 1 || !factor)
      continue;
    Known result = *count;
    result.numbers[0] *= *factor;
    call.give(result);
    return true;
  }
  return false;
}

// torch-xla lets no size be below 1. A batch has a sample or more, so n times k is at least k.
bool takeLargerSizes(Call &call) {
  return combineSizes(call, [](Size x, Size y) -> std::optional<Size> {
    if (x.batch == y.batch ? x.times < y.times : y.batch)
      std::swap(x, y);
    if (x.batch && !y.batch && x.times < y.times)
      return std::nullopt;
    return x;
  });
}

void buildMaximum(Call &call) {
  if (!takeLargerSizes(call))
    buildBinary<mt::MaximumOp>(call);
}

void buildMultiply(Call &call) {
  for (size_t i : {0, 1})
    if (std::optional<double> factor = scalarOf(call, 1 - i); factor && scaleMeans(call, i, *factor))
      return;
  if (!scaleCount(call))
    buildBinary<mt::MulOp>(call);
}

// A sum over the batch divided by the number of samples is a mean.
bool buildMean(Call &call) {
  const Known *count = call.known(1);
  if (call.isStep || !count || !count->hasBatch() || count->count() != 1 || !call.operands[0].value)
    return false;
  const Value &sum = call.operands[0].value;
  auto reduce = sum.stored.getDefiningOp<mt::ReduceOp>();
  if (sum.rank() != 0 || !reduce || reduce.getKind() != mt::Reduction::sum ||
      reduce.getDims() != ArrayRef<int64_t>{0} || cast<RankedTensorType>(reduce.getOperand().getType()).getRank() != 1)
    return false;
  Operand result;
  result.means.push_back({reduce.getOperand(), 1 / count->numbers[0]});
  call.results.push_back(result);
  return true;
}

void buildDivide(Call &call) {
  if (std::optional<double> divisor = scalarOf(call, 1); divisor && scaleMeans(call, 0, 1 / *divisor))
    return;
  if (buildMean(call))
    return;
  if (!isKnown(call, 2) && call.value(0).isInteger())
    throw Refused("a quotient of integers that are computed from the data");
  if (const Known *count = call.known(1); count && count->hasBatch() && count->count() == 1)
    return call.give(logical::binary<mt::DivOp>(call.ops, call.value(0), call.ops.count(count->size(0))));
  buildBinary<mt::DivOp>(call);
}

// With the sign of the first one.
void buildRemainder(Call &call) {
  if (!isKnown(call, 2) && call.value(0).isInteger())
    throw Refused("a remainder of integers that are computed from the data");
  if (!isKnown(call, 2))
    return logical::buildFunction(call, "fmod");
  bool integers = call.known(0)->type == Known::Type::Integer;
  call.give(logical::computed({call.known(0), call.known(1)}, call.known(0)->type, [&](ArrayRef<double> values) {
    return integers && values[1] == 0 ? values[0] : std::fmod(values[0], values[1]);
  }));
}

void buildPower(Call &call) {
  std::optional<double> exponent = scalarOf(call, 1);
  constexpr double most = 16;
  if (!call.known(0) && exponent && *exponent == std::trunc(*exponent) && std::fabs(*exponent) <= most)
    return call.give(logical::integerPower(call.ops, call.value(0), static_cast<int64_t>(*exponent)));
  buildBinary<mt::PowOp>(call);
}

Known withWidth(Call &call, const Known &known) {
  Known result = known;
  result.width = widthOf(call.resultType().getElementType());
  return result;
}

// Builds a logic op of booleans, or computes it for integers that are known.
template <Value (*logic)(logical::Ops &, const Value &, const Value &), uint64_t (*formula)(uint64_t, uint64_t)>
void buildLogic(Call &call) {
  if (isKnown(call, 2) && call.known(0)->type == Known::Type::Boolean)
    return call.give(
        logical::computed({call.known(0), call.known(1)}, Known::Type::Boolean, [](ArrayRef<double> values) {
          return static_cast<double>(formula(values[0] != 0, values[1] != 0));
        }));
  if (isKnown(call, 2) && call.known(0)->type == Known::Type::Integer)
    return call.give(logical::bitwise(withWidth(call, *call.known(0)), withWidth(call, *call.known(1)), formula));
  Value a = call.value(0), b = call.value(1);
  if (call.op.getName().stripDialect() == "and" && isSignBit(call)) // the other bits are not there
    return call.give(call.known(0) || !call.op.getOperand(0).getDefiningOp() ||
                             call.op.getOperand(0).getDefiningOp()->getName().stripDialect() != "bitcast_convert"
                         ? b
                         : a);
  if (!a.isBoolean() || !b.isBoolean())
    throw Refused("bits of integers");
  call.give(logic(call.ops, a, b));
}
uint64_t both(uint64_t a, uint64_t b) { return a & b; }
uint64_t either(uint64_t a, uint64_t b) { return a | b; }
uint64_t oneOf(uint64_t a, uint64_t b) { return a ^ b; }

template <logical::Shift shift> void buildShift(Call &call) {
  if (!isKnown(call, 2))
    throw Refused("bits of integers");
  call.give(logical::shifted(withWidth(call, *call.known(0)), *call.known(1), shift));
}

void buildPopulation(Call &call) {
  const Known known = withWidth(call, call.expectKnown(0, "bits that are counted"));
  call.give(logical::bitwise(known, known,
                             [](uint64_t word, uint64_t) { return static_cast<uint64_t>(llvm::popcount(word)); }));
}

void buildNot(Call &call) {
  if (const Known *known = call.known(0); known && known->type == Known::Type::Integer) {
    Known word = withWidth(call, *known);
    return call.give(logical::bitwise(word, word, [](uint64_t bits, uint64_t) { return ~bits; }));
  }
  if (const Known *known = call.known(0); known && known->type == Known::Type::Boolean)
    return call.give(logical::computed({known}, known->type, [](ArrayRef<double> values) { return values[0] == 0; }));
  Value value = call.value(0);
  if (!value.isBoolean())
    throw Refused("bits of integers");
  call.give(logical::logicalNot(call.ops, value));
}

// Compares a multiple of the number of samples with a number. The number of samples is 1 or more, so the result is
// known where the number is less than the factor, as in the divisor of a variance; none: the number of samples decides.
std::optional<bool> compareCounts(mt::Compare kind, const Known &a, const Known &b) {
  if (a.count() != 1 || b.count() != 1 || a.hasBatch() == b.hasBatch())
    return std::nullopt;
  bool first = a.hasBatch(); // is the number of samples
  if ((first ? a : b).numbers[0] <= (first ? b : a).numbers[0])
    return std::nullopt;
  return logical::holds(kind, first ? 1 : 0, first ? 0 : 1);
}

// In the total order a NaN is equal to another one and above all numbers. What writes it, searches and sorts, has one
// zero and one NaN: those with a sign, which the order tells apart, are taken as those without.
Value compareInTotalOrder(logical::Ops &ops, mt::Compare kind, const Value &a, const Value &b) {
  auto isNan = [&](const Value &value) { return logical::compare(ops, mt::Compare::ne, value, value); };
  auto both = [&](const Value &x, const Value &y) { return logical::logicalAnd(ops, x, y); };
  auto either = [&](const Value &x, const Value &y) { return logical::logicalOr(ops, x, y); };
  switch (kind) {
  case mt::Compare::ne:
    return logical::logicalNot(ops, compareInTotalOrder(ops, mt::Compare::eq, a, b));
  case mt::Compare::gt:
    return compareInTotalOrder(ops, mt::Compare::lt, b, a);
  case mt::Compare::ge:
    return compareInTotalOrder(ops, mt::Compare::le, b, a);
  case mt::Compare::eq:
    return either(logical::compare(ops, kind, a, b), both(isNan(a), isNan(b)));
  case mt::Compare::lt:
    return either(logical::compare(ops, kind, a, b), both(logical::logicalNot(ops, isNan(a)), isNan(b)));
  case mt::Compare::le:
    return either(logical::compare(ops, kind, a, b), isNan(b));
  }
  llvm_unreachable("a kind of comparison");
}

void buildCompare(Call &call) {
  std::string direction = call.text("comparison_direction");
  std::optional<mt::Compare> kind = mt::symbolizeCompare(StringRef(direction).take_back(2).lower());
  if (!kind)
    throw Refused("a comparison '" + direction + "'");
  const Known *a = call.known(0), *b = call.known(1);
  if (a && b && (a->hasBatch() || b->hasBatch())) {
    if (std::optional<bool> known = compareCounts(*kind, *a, *b))
      return call.give(Known::scalar(*known, Known::Type::Boolean));
    // What an exporter asserts of the batch, mtc checks itself.
    for (Operation *user : call.op.getUsers())
      if (user->getName().getStringRef() != "stablehlo.custom_call")
        throw Refused("a comparison of the number of samples");
    return call.give(Known::scalar(1, Known::Type::Boolean));
  }
  bool total = StringRef(call.text("compare_type")).contains("TOTALORDER");
  if (a && b)
    return call.give(logical::computed({a, b}, Known::Type::Boolean, [&](ArrayRef<double> values) {
      double x = values[0], y = values[1];
      bool differs = total && (x != x || y != y); // with a NaN the order is decided by what is one
      return differs ? logical::holds(*kind, x != x, y != y) : logical::holds(*kind, x, y);
    }));
  bool isTotal = total && call.value(0).isFloat();
  call.give(isTotal ? compareInTotalOrder(call.ops, *kind, call.value(0), call.value(1))
                    : logical::compare(call.ops, *kind, call.value(0), call.value(1)));
}

void buildSelect(Call &call) {
  const Known *condition = call.known(0);
  if (condition && !condition->hasBatch() && condition->count() && llvm::all_equal(condition->numbers))
    return call.results.push_back(call.operands[condition->numbers[0] != 0 ? 1 : 2]);
  if (isKnown(call, 3) && !call.known(1)->hasBatch() && !call.known(2)->hasBatch())
    return call.give(logical::computed({condition, call.known(1), call.known(2)}, call.known(1)->type,
                                       [](ArrayRef<double> v) { return v[0] != 0 ? v[1] : v[2]; }));
  call.give(logical::select(call.ops, call.value(0), call.value(1), call.value(2)));
}

void buildClamp(Call &call) {
  const Known *least = call.known(0), *value = call.known(1), *most = call.known(2);
  if (least && value && most && !least->hasBatch() && !value->hasBatch() && !most->hasBatch())
    return call.give(logical::computed({least, value, most}, value->type, [](ArrayRef<double> numbers) {
      return mt::MinimumOp::evaluate(mt::MaximumOp::evaluate(numbers[1], numbers[0]), numbers[2]);
    }));
  Value low = logical::binary<mt::MaximumOp>(call.ops, call.value(1), call.value(0));
  call.give(logical::binary<mt::MinimumOp>(call.ops, low, call.value(2)));
}

// Floats that are no numbers of the type become the next that is, and NaN becomes 0, as XLA does it.
double saturated(double number, double least, double most) {
  return std::isnan(number) ? 0 : std::fmin(std::fmax(std::trunc(number), least), most);
}

void buildConvert(Call &call) {
  Type element = call.resultType().getElementType();
  Known::Type type = knownTypeOf(element);
  int width = type == Known::Type::Integer ? widthOf(element) : 64;
  double range = std::ldexp(1.0, std::abs(width)), least = width < 0 ? 0 : -range / 2, most = least + range - 1;
  if (const Known *known = call.known(0)) {
    Known result = *known;
    if (known->type == Known::Type::Float && type == Known::Type::Integer)
      for (double &number : result.numbers)
        number = saturated(number, least, most);
    result.type = type;
    result.width = width;
    result.round();
    return call.give(result);
  }
  Value value = call.value(0), result = logical::cast(call.ops, value, logical::elementOf(call.ops.builder, type));
  if (type == Known::Type::Integer && value.isFloat() && width < 0)
    result = logical::binary<mt::MaximumOp>(call.ops, result, 0);
  constexpr int bits = 32; // of what is computed with
  if (type == Known::Type::Integer && std::abs(width) < bits)
    result =
        value.isFloat() ? logical::saturated(call.ops, result, least, most) : logical::wrapped(call.ops, result, width);
  call.give(result);
}

void buildIsFinite(Call &call) {
  Value size = logical::unary<mt::AbsOp>(call.ops, call.value(0));
  call.give(logical::compare(call.ops, mt::Compare::lt, size,
                             call.ops.number(std::numeric_limits<double>::infinity(), call.ops.real())));
}

} // namespace

llvm::ArrayRef<OpEntry> elementwiseOps() {
  static constexpr OpEntry entries[] = {{"abs", buildUnary<mt::AbsOp>, 1},
                                        {"exponential", buildUnary<mt::ExpOp>, 1},
                                        {"exponential_minus_one", buildUnary<mt::Expm1Op>, 1},
                                        {"log", buildUnary<mt::LogOp>, 1},
                                        {"log_plus_one", buildUnary<mt::Log1pOp>, 1},
                                        {"sqrt", buildUnary<mt::SqrtOp>, 1},
                                        {"rsqrt", buildUnary<mt::RsqrtOp>, 1},
                                        {"tanh", buildUnary<mt::TanhOp>, 1},
                                        {"logistic", buildUnary<mt::SigmoidOp>, 1},
                                        {"sine", buildUnary<mt::SinOp>, 1},
                                        {"cosine", buildUnary<mt::CosOp>, 1},
                                        {"floor", buildUnary<mt::FloorOp>, 1},
                                        {"sign", buildUnary<mt::SignOp>, 1},
                                        {"erf", buildUnary<mt::ErfOp>, 1},
                                        {"square", buildUnary<mt::SquareOp>, 1},
                                        {"negate", buildNegate, 1},
                                        {"add", buildAdd, 2},
                                        {"subtract", buildSubtract, 2},
                                        {"multiply", buildMultiply, 2},
                                        {"divide", buildDivide, 2},
                                        {"maximum", buildMaximum, 2},
                                        {"minimum", buildBinary<mt::MinimumOp>, 2},
                                        {"power", buildPower, 2},
                                        {"remainder", buildRemainder, 2},
                                        {"and", buildLogic<logical::logicalAnd, both>, 2},
                                        {"or", buildLogic<logical::logicalOr, either>, 2},
                                        {"xor", buildLogic<logical::logicalXor, oneOf>, 2},
                                        {"shift_left", buildShift<logical::Shift::left>, 2},
                                        {"shift_right_arithmetic", buildShift<logical::Shift::arithmetic>, 2},
                                        {"shift_right_logical", buildShift<logical::Shift::logical>, 2},
                                        {"popcnt", buildPopulation, 1},
                                        {"not", buildNot, 1},
                                        {"compare", buildCompare, 2},
                                        {"select", buildSelect, 3},
                                        {"clamp", buildClamp, 3},
                                        {"convert", buildConvert, 1},
                                        {"is_finite", buildIsFinite, 1}};
  return entries;
}

} // namespace mtc::stablehlo
