// SPDX-License-Identifier: Apache-2.0
#include "dialects/mt/Expr.h"
#include "frontend/logical/Compute.h"

using namespace mlir;

namespace mtc::logical {

static mlir::Value reduceStored(Ops &ops, mt::Reduction kind, mlir::Value stored, ArrayRef<int64_t> places) {
  auto type = cast<RankedTensorType>(stored.getType());
  SmallVector<int64_t> shape;
  for (int64_t i = 0; i < type.getRank(); ++i)
    if (!llvm::is_contained(places, i))
      shape.push_back(type.getDimSize(i));
  return mt::ReduceOp::create(ops.builder, ops.location, type.clone(shape), kind, stored, places);
}

// Adds values of i32 over the batch. Sums over the batch are sums of floats, which are exact up to 2^24. So the numbers
// are split into digits of about 8 bits, whose sums are exact for 2^15 samples and more.
static mlir::Value sumOverBatch(Ops &ops, mlir::Value integers) {
  using mt::Expr;
  constexpr double base = 256;
  constexpr int digits = 4;
  auto whole = [&](const Expr &x) {
    return x.make(mt::CastOp::create(ops.builder, ops.location, x.type().clone(ops.i32()), x.value()));
  };
  Expr rest(ops.builder, ops.location, integers);
  std::optional<Expr> total;
  double scale = 1;
  for (int digit = 0; digit < digits; ++digit, scale *= base) {
    Expr above = whole(floor((toFloat(rest) + base / 2) * (1 / base)));
    Expr low = digit + 1 < digits ? rest - above * base : rest;
    mlir::Value sum = reduceStored(ops, mt::Reduction::sum, toFloat(low).value(), {0});
    Expr share = whole(rest.make(sum));
    total = total ? *total + share * scale : share;
    rest = above;
  }
  return total->value();
}

Value reduce(Ops &ops, mt::Reduction kind, const Value &value, ArrayRef<int64_t> axes) {
  checkAxes(axes, value.rank());
  if (value.isBoolean())
    throw Refused("a reduction of booleans");
  SmallVector<int64_t> gone;
  Value result{value.stored, {}};
  Size repeated; // elements that are stored once
  for (auto [index, parts] : llvm::enumerate(value.axes)) {
    if (!llvm::is_contained(axes, static_cast<int64_t>(index))) {
      result.axes.push_back(parts);
      continue;
    }
    for (const Axis &part : parts)
      if (part.isStored())
        gone.push_back(part.place);
      else
        repeated = {multiply(repeated.times, part.size.times), repeated.batch || part.size.batch};
  }
  llvm::sort(gone);
  bool overBatch = mt::isSplit(value.type()) && !gone.empty() && gone[0] == 0;
  if (overBatch && kind != mt::Reduction::sum)
    throw Refused("a maximum or minimum over the samples of the batch");
  ArrayRef<int64_t> inner = ArrayRef(gone).drop_front(overBatch);
  if (!inner.empty())
    result.stored = reduceStored(ops, kind, result.stored, inner);
  if (overBatch)
    result.stored = value.isInteger() ? sumOverBatch(ops, result.stored) : reduceStored(ops, kind, result.stored, {0});
  for (Parts &parts : result.axes)
    for (Axis &part : parts)
      if (part.isStored())
        part.place -= static_cast<int>(llvm::count_if(gone, [&](int64_t place) { return place < part.place; }));
  if (kind == mt::Reduction::sum && !repeated.isOne())
    result = repeated.batch ? binary<mt::MulOp>(ops, result, cast(ops, ops.count(repeated), value.element()))
                            : binary<mt::MulOp>(ops, result, static_cast<double>(repeated.times));
  return result;
}

Value reduceWithinSamples(Ops &ops, mt::Reduction kind, const Value &input, ArrayRef<int64_t> axes) {
  Value value = decide(input);
  checkAxes(axes, value.rank());
  Value apart{value.stored, {}}; // the batch, the axes that stay, then the other parts of the axes that go
  SmallVector<Parts, 4> gone;
  for (int64_t axis : axes)
    for (const Axis &part : value.axes[axis])
      (part.size.batch ? apart.axes : gone).push_back({part});
  if (apart.axes.size() != 1)
    throw Refused("expected the batch among the axes to reduce within samples");
  for (auto [index, parts] : llvm::enumerate(value.axes))
    if (!llvm::is_contained(axes, static_cast<int64_t>(index)))
      apart.axes.push_back(parts);
  auto kept = static_cast<int64_t>(apart.axes.size());
  llvm::append_range(apart.axes, gone);
  return reduce(ops, kind, apart, llvm::to_vector(llvm::seq<int64_t>(kept, static_cast<int64_t>(apart.rank()))));
}

Value mean(Ops &ops, const Value &value, ArrayRef<int64_t> axes) {
  Size size;
  for (int64_t axis : axes)
    size = {multiply(size.times, value.size(axis).times), size.batch || value.size(axis).batch};
  Value total = reduce(ops, mt::Reduction::sum, value, axes);
  return size.batch ? binary<mt::DivOp>(ops, total, ops.count(size))
                    : binary<mt::DivOp>(ops, total, static_cast<double>(size.times));
}

Value keepDims(const Value &reduced, ArrayRef<int64_t> axes) {
  SmallVector<int64_t> sorted(axes);
  llvm::sort(sorted);
  return expandDims(reduced, sorted);
}

Value softmax(Ops &ops, const Value &value, size_t axis, bool logarithm) {
  Value last = storedLast(ops, value, axis);
  if (logarithm)
    last.stored = mt::LogSoftmaxOp::create(ops.builder, ops.location, last.type(), last.stored);
  else
    last.stored = mt::SoftmaxOp::create(ops.builder, ops.location, last.type(), last.stored);
  return ops.tidy(last);
}

Value argmax(Ops &ops, const Value &value, size_t axis) {
  Value last = storedLast(ops, value.isInteger() ? value : cast(ops, value, ops.real()), axis);
  auto type = RankedTensorType::get(last.type().getShape().drop_back(), ops.i32());
  Value result{mt::ArgmaxOp::create(ops.builder, ops.location, type, last.stored), last.axes};
  result.axes.erase(result.axes.begin() + static_cast<int64_t>(axis));
  return result;
}

Value cumsum(Ops &ops, const Value &input, size_t axis, bool backward) {
  Value value = decide(input);
  if (value.size(axis).batch)
    throw Refused("a cumulative sum along the batch");
  value = withStored(ops, value, {static_cast<int>(firstPart(value, axis))});
  value.stored =
      mt::CumsumOp::create(ops.builder, ops.location, value.type(), value.stored, value.axes[axis][0].place, backward);
  return ops.tidy(value);
}

Value normalize(Ops &ops, const Value &input, ArrayRef<int64_t> axes, double epsilon) {
  Value value = decide(input);
  checkAxes(axes, value.rank());
  for (int64_t axis : axes)
    if (value.size(axis).batch)
      throw Refused("a normalization over the samples of the batch");
  auto placesOf = [&] {
    SmallVector<int64_t> places;
    for (int64_t axis : axes)
      for (const Axis &part : value.axes[axis])
        if (!part.size.isOne())
          places.push_back(part.place);
    llvm::sort(places);
    return places;
  };
  SmallVector<int64_t> places = placesOf();
  // Where they are the last ones of what is stored, in any order, nothing has to move.
  int64_t first = value.type().getRank() - static_cast<int64_t>(places.size());
  if (first < 0 || !llvm::equal(places, llvm::seq<int64_t>(first, value.type().getRank()))) {
    value = canonical(ops, value);
    places = placesOf();
  }
  if (places.empty())
    return ops.number(0, ops.real(), value.shape());
  auto made = mt::NormalizeOp::create(ops.builder, ops.location, value.type(), value.stored, places,
                                      llvm::APFloat(static_cast<float>(epsilon)));
  if (value.element().isF64())
    made.setEpsilonAttr(ops.builder.getF64FloatAttr(epsilon));
  return {made, value.axes};
}

Value crossEntropy(Ops &ops, const Value &logits, const Value &labels) {
  Value value = decide(logits);
  if (value.rank() == 0 || value.size(value.rank() - 1).batch)
    throw Refused("a cross entropy over the samples of a batch");
  if (!logits.isFloat() || !labels.isInteger())
    throw Refused("expected logits of f32 and labels of i32");
  checkCount(labels.rank(), value.rank() - 1);
  Parts classes = value.axes.pop_back_val();
  SmallVector<Value> both = align({value, decide(labels)});
  auto count = static_cast<int>(both[0].flat().size());
  SmallVector<int> order = batchFirst(both[0].flat());
  Value targets = both[1];
  both[0].axes.push_back(classes);
  SmallVector<int> withClasses(order);
  withClasses.push_back(count);
  mlir::Value predictions = arrange(ops, both[0], withClasses, withClasses);
  auto type = cast<RankedTensorType>(predictions.getType());
  mlir::Value made = mt::SparseCategoricalCrossentropyOp::create(
      ops.builder, ops.location, type.clone(type.getShape().drop_back()), predictions,
      arrange(ops, targets, order, order), /*from_logits=*/true);
  return replaced(targets, made, order);
}

} // namespace mtc::logical
