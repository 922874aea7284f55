// SPDX-License-Identifier: Apache-2.0
//
// Reductions over axes, which are an attribute in older opsets and an operand in newer ones.
#include "frontend/logical/Functions.h"
#include "frontend/onnx/OpTable.h"

#include <cmath>
#include <limits>

using namespace mlir;

namespace mtc::onnx {
namespace {

using logical::Value;
using Axes = SmallVector<int64_t>;

// Null where there is nothing to reduce.
std::optional<Axes> readAxes(Call &call) {
  size_t rank = call.rank(0);
  std::optional<SmallVector<int64_t>> requested = call.operandOrAttribute(1, "axes");
  bool noop = call.integer("noop_with_empty_axes", 0) != 0;
  if (requested && !requested->empty())
    return Call::axesOf(*requested, rank);
  return noop ? std::nullopt : std::optional(llvm::to_vector(llvm::seq<int64_t>(0, static_cast<int64_t>(rank))));
}

using Formula = double (*)(double, double);
Known reduceKnown(const Known &known, ArrayRef<int64_t> axes, bool keeps, double start, Formula formula) {
  if (known.hasBatch())
    throw Refused("a reduction of the number of samples");
  Indices remaining, narrow(known.shape);
  for (size_t i = 0; i < known.shape.size(); ++i)
    if (llvm::is_contained(axes, static_cast<int64_t>(i)))
      narrow[i] = 1;
    else
      remaining.push_back(known.shape[i]);
  Known result = Known::zeros(narrow, known.type);
  result.width = known.width;
  llvm::fill(result.numbers, start);
  // Each element's place in the result.
  Known places = Known::zeros(narrow, Known::Type::Integer);
  for (int64_t i = 0; i < places.count(); ++i)
    places.numbers[i] = static_cast<double>(i);
  Known spread = places.expanded(known.shape);
  for (int64_t i = 0; i < known.count(); ++i) {
    double &to = result.numbers[static_cast<size_t>(spread.numbers[i])];
    to = formula(to, known.numbers[i]);
  }
  result.round();
  return keeps ? result : result.reshaped(remaining);
}

// The least or the largest number of the type: of no elements the maximum or the minimum.
double limitOf(const Known &known, bool least) {
  if (known.type == Known::Type::Float)
    return (least ? -1 : 1) * std::numeric_limits<double>::infinity();
  if (known.type == Known::Type::Boolean)
    return least ? 0 : 1;
  double range = std::ldexp(1.0, std::abs(known.width)), lowest = known.width < 0 ? 0 : -range / 2;
  return least ? lowest : lowest + range - 1;
}

Value finished(Call &call, const Value &value, ArrayRef<int64_t> axes, bool keeps) {
  return keeps ? logical::keepDims(value, axes) : value;
}

template <mt::Reduction kind> void buildReduce(Call &call) {
  bool keeps = call.integer("keepdims", 1) != 0;
  std::optional<Axes> axes = readAxes(call);
  if (!axes)
    return call.results.push_back(call.inputs[0]);
  constexpr bool sum = kind == mt::Reduction::sum, max = kind == mt::Reduction::max;
  Formula formula = sum ? mt::AddOp::evaluate : max ? mt::MaximumOp::evaluate : mt::MinimumOp::evaluate;
  if (const Known *known = call.known(0))
    return call.give(reduceKnown(*known, *axes, keeps, sum ? 0 : limitOf(*known, max), formula));
  call.give(finished(call, logical::reduce(call.ops, kind, call.value(0), *axes), *axes, keeps));
}

void buildReduceProd(Call &call) {
  bool keeps = call.integer("keepdims", 1) != 0;
  std::optional<Axes> axes = readAxes(call);
  if (!axes)
    return call.results.push_back(call.inputs[0]);
  if (!call.known(0)) {
    Value value = call.value(0);
    for (int64_t axis : llvm::reverse(*axes))
      value = logical::productAlong(call.ops, value, static_cast<size_t>(axis));
    return call.give(finished(call, value, *axes, keeps));
  }
  const Known &known = *call.known(0);
  if (!known.hasBatch())
    return call.give(reduceKnown(known, *axes, keeps, 1, mt::MulOp::evaluate));
  Size product; // of a shape
  for (const Size &size : known.sizes()) {
    if (product.batch && size.batch)
      throw Refused("the square of the number of samples");
    product = {logical::multiply(product.times, size.times), product.batch || size.batch};
  }
  Known result = Known::shapeOf({product});
  call.give(keeps ? result : result.reshaped({}));
}

void buildReduceMean(Call &call) {
  bool keeps = call.integer("keepdims", 1) != 0;
  if (std::optional<Axes> axes = readAxes(call))
    return call.give(finished(call, logical::mean(call.ops, call.floats(0), *axes), *axes, keeps));
  call.results.push_back(call.inputs[0]);
}

enum class Norm { One, Two, SumSquare, LogSum, LogSumExp };

template <Norm norm> void buildNorm(Call &call) {
  bool keeps = call.integer("keepdims", 1) != 0;
  std::optional<Axes> axes = readAxes(call);
  if (!axes)
    throw Refused("a norm over no axes");
  logical::Ops &ops = call.ops;
  Value value = call.floats(0);
  auto sum = [&](const Value &of) { return logical::reduce(ops, mt::Reduction::sum, of, *axes); };
  Value result;
  if constexpr (norm == Norm::One)
    result = sum(logical::unary<mt::AbsOp>(ops, value));
  else if constexpr (norm == Norm::Two)
    result = logical::unary<mt::SqrtOp>(ops, sum(logical::unary<mt::SquareOp>(ops, value)));
  else if constexpr (norm == Norm::SumSquare)
    result = sum(logical::unary<mt::SquareOp>(ops, value));
  else if constexpr (norm == Norm::LogSum)
    result = logical::unary<mt::LogOp>(ops, sum(value));
  else { // the maximum outside of the sum
    Value most = logical::reduce(ops, mt::Reduction::max, value, *axes);
    Value shifted = logical::binary<mt::SubOp>(ops, value, logical::keepDims(most, *axes));
    result = logical::binary<mt::AddOp>(
        ops, logical::unary<mt::LogOp>(ops, sum(logical::unary<mt::ExpOp>(ops, shifted))), most);
  }
  call.give(finished(call, result, *axes, keeps));
}

// Finds the index of the largest number. ArgMin negates the numbers; select_last_index reverses them. Integers beyond
// 2^24 are refused.
template <bool largest> void buildArgMax(Call &call) {
  bool keeps = call.integer("keepdims", 1) != 0, last = call.integer("select_last_index", 0) != 0;
  Value value = call.value(0);
  size_t axis = Call::axisOf(call.integer("axis", 0), value.rank());
  int64_t number = static_cast<int64_t>(axis);
  if (!largest)
    value = value.isInteger() ? logical::binary<mt::SubOp>(call.ops, call.ops.number(0, value.element()), value)
                              : logical::unary<mt::NegOp>(call.ops, value);
  if (last)
    value = logical::reverse(call.ops, value, {number});
  Value place = logical::argmax(call.ops, value, axis);
  if (last)
    place = logical::binary<mt::SubOp>(
        call.ops, call.ops.number(static_cast<double>(value.size(axis).times - 1), place.element()), place);
  call.give(finished(call, place, {number}, keeps));
}

// x / (sum of |x|^p)^(1/p) along an axis, and 0 for zeros.
void buildLpNormalization(Call &call) {
  logical::Ops &ops = call.ops;
  Value value = call.floats(0);
  size_t axis = Call::axisOf(call.integer("axis", -1), value.rank());
  int64_t p = call.integer("p", 2), number = static_cast<int64_t>(axis);
  if (p != 1 && p != 2)
    throw Refused("expected p of 1 or 2, found " + std::to_string(p));
  Value powers = p == 1 ? logical::unary<mt::AbsOp>(ops, value) : logical::unary<mt::SquareOp>(ops, value);
  Value sum = logical::keepDims(logical::reduce(ops, mt::Reduction::sum, powers, {number}), {number});
  Value zero = logical::compare(ops, mt::Compare::eq, sum, ops.number(0, ops.real()));
  sum = logical::select(ops, zero, ops.number(1, ops.real()), sum);
  call.give(logical::binary<mt::DivOp>(ops, value, p == 1 ? sum : logical::unary<mt::SqrtOp>(ops, sum)));
}

void buildCumProd(Call &call) {
  int64_t number = call.expectInteger(1, "an axis");
  bool exclusive = call.integer("exclusive", 0) != 0, backward = call.integer("reverse", 0) != 0;
  size_t axis = Call::axisOf(number, call.rank(0));
  Value value = call.value(0);
  if (!exclusive)
    return call.give(logical::cumulativeProduct(call.ops, value, axis, backward));
  if (value.size(axis).batch)
    throw Refused("a product over the batch");
  int64_t size = value.size(axis).times; // 1 and all but the last element
  SmallVector<int64_t> low(value.rank(), 0), high(value.rank(), 0);
  (backward ? high : low)[axis] = 1;
  value = logical::pad(call.ops, logical::sliceAxis(call.ops, value, axis, backward ? 1 : 0, size - 1), 1, low, high);
  call.give(logical::cumulativeProduct(call.ops, value, axis, backward));
}

void buildCumSum(Call &call) {
  int64_t number = call.expectInteger(1, "an axis");
  bool exclusive = call.integer("exclusive", 0) != 0, backward = call.integer("reverse", 0) != 0;
  size_t axis = Call::axisOf(number, call.rank(0));
  if (const Known *numbers = call.known(0); numbers && !numbers->hasBatch() && !exclusive && !backward) {
    Known sums = *numbers; // each element and the one before it
    int64_t inner = 1;
    for (size_t i = axis + 1; i < sums.shape.size(); ++i)
      inner *= sums.shape[i];
    for (int64_t i = 0; i < sums.count(); ++i)
      if (i / inner % sums.shape[axis] != 0)
        sums.numbers[i] += sums.numbers[i - inner];
    return call.give(sums);
  }
  Value value = call.value(0), sums = logical::cumsum(call.ops, value, axis, backward);
  call.give(exclusive ? logical::binary<mt::SubOp>(call.ops, sums, value) : sums);
}

} // namespace

llvm::ArrayRef<OpEntry> reductionOps() {
  static constexpr OpEntry entries[] = {{"ReduceSum", buildReduce<mt::Reduction::sum>},
                                        {"ReduceMax", buildReduce<mt::Reduction::max>},
                                        {"ReduceMin", buildReduce<mt::Reduction::min>},
                                        {"ReduceProd", buildReduceProd},
                                        {"ReduceMean", buildReduceMean},
                                        {"ReduceL1", buildNorm<Norm::One>},
                                        {"ReduceL2", buildNorm<Norm::Two>},
                                        {"ReduceSumSquare", buildNorm<Norm::SumSquare>},
                                        {"ReduceLogSum", buildNorm<Norm::LogSum>},
                                        {"ReduceLogSumExp", buildNorm<Norm::LogSumExp>},
                                        {"ArgMax", buildArgMax<true>},
                                        {"ArgMin", buildArgMax<false>},
                                        {"LpNormalization", buildLpNormalization},
                                        {"CumProd", buildCumProd},
                                        {"CumSum", buildCumSum}};
  return entries;
}

} // namespace mtc::onnx
