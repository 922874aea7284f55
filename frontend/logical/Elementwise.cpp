// SPDX-License-Identifier: Apache-2.0
#include "frontend/logical/Compute.h"

#include <cmath>

using namespace mlir;

namespace mtc::logical {

// A tensor has the batch as one axis.
static void checkBatch(ArrayRef<Value> aligned, StringRef what) {
  std::optional<size_t> found;
  for (const Value &value : aligned)
    for (auto [axis, parts] : llvm::enumerate(value.axes))
      for (const Axis &part : parts)
        if (part.isStored() && part.size.batch && found.value_or(axis) != axis)
          throw Refused(what.str() +
                        " of every sample with every other one: two operands have the batch as different axes of " +
                        describe(value.shape()) + "; give both as many axes");
        else if (part.isStored() && part.size.batch)
          found = axis;
}

Aligned alignStored(Ops &ops, ArrayRef<Value> values, Type element, StringRef what, bool whole) {
  Shape shape = commonShape(values);
  SmallVector<Value> repeated;
  for (const Value &value : values)
    repeated.push_back(broadcast(value, shape));
  repeated = align(repeated);
  checkBatch(repeated, what);
  Aligned result;
  result.like = repeated[0];
  result.order = orderOf(repeated);
  SmallVector<Axis> flat = repeated[0].flat();
  SmallVector<int64_t> sizes;
  for (int part : result.order)
    sizes.push_back(storedSize(flat[part].size));
  for (const Value &value : repeated) {
    mlir::Value stored = arrange(ops, value, result.order, whole ? ArrayRef<int>(result.order) : ArrayRef<int>());
    auto type = cast<RankedTensorType>(stored.getType());
    if (!whole && !mt::isSplit(type)) // axes of size 1 in front are not written, but of a split tensor
      stored = ops.reshapeStored(stored, type.getShape().drop_while([](int64_t size) { return size == 1; }));
    result.stored.push_back(stored);
  }
  result.type = RankedTensorType::get(sizes, element);
  return result;
}

Value compare(Ops &ops, mt::Compare kind, const Value &a, const Value &b) {
  if (a.element() != b.element() || a.isBoolean())
    throw Refused("a comparison of values of different types, or of booleans");
  Aligned operands = alignStored(ops, {a, b}, ops.i1());
  return operands.result(
      mt::CompareOp::create(ops.builder, ops.location, operands.type, kind, operands.stored[0], operands.stored[1]));
}

Value select(Ops &ops, const Value &condition, const Value &a, const Value &b) {
  if (a.element() != b.element())
    throw Refused("a choice between values of different types");
  if (a.isBoolean())
    return logicalOr(ops, logicalAnd(ops, condition, a), logicalAnd(ops, logicalNot(ops, condition), b));
  Aligned operands = alignStored(ops, {condition, a, b}, a.element());
  return operands.result(mt::SelectOp::create(ops.builder, ops.location, operands.type, operands.stored[0],
                                              operands.stored[1], operands.stored[2]));
}

Value logicalAnd(Ops &ops, const Value &a, const Value &b) {
  Aligned operands = alignStored(ops, {a, b}, ops.i1());
  return operands.result(
      mt::AndOp::create(ops.builder, ops.location, operands.type, operands.stored[0], operands.stored[1]));
}

Value logicalNot(Ops &ops, const Value &a) {
  return {mt::NotOp::create(ops.builder, ops.location, a.stored.getType(), a.stored), a.axes};
}

Value logicalOr(Ops &ops, const Value &a, const Value &b) {
  return logicalNot(ops, logicalAnd(ops, logicalNot(ops, a), logicalNot(ops, b)));
}
Value logicalXor(Ops &ops, const Value &a, const Value &b) {
  return logicalAnd(ops, logicalOr(ops, a, b), logicalNot(ops, logicalAnd(ops, a, b)));
}

Value cast(Ops &ops, const Value &value, Type element) {
  if (value.element() == element)
    return value;
  if (element.isInteger(1))
    return compare(ops, mt::Compare::ne, value, ops.number(0, value.element()));
  return {mt::CastOp::create(ops.builder, ops.location, value.type().clone(element), value.stored), value.axes};
}

Value rounded(Ops &ops, const Value &value, Type half) {
  Type narrow = value.type().clone(half);
  mlir::Value stored = mt::CastOp::create(ops.builder, ops.location, narrow, value.stored);
  return {mt::CastOp::create(ops.builder, ops.location, value.type(), stored), value.axes};
}

// The multiple of 2^bits that is taken away is found in floats. Of a large number it is off by little, so that what is
// left is small, and exact the second time.
Value wrapped(Ops &ops, const Value &value, int width) {
  int bits = std::abs(width);
  double range = std::ldexp(1.0, bits), least = width < 0 ? 0 : -range / 2;
  Value result = value;
  for (int round = 0; round < 2; ++round) {
    Value number = binary<mt::SubOp>(ops, cast(ops, result, ops.real()), least);
    Value times = unary<mt::FloorOp>(ops, binary<mt::MulOp>(ops, number, 1 / range));
    result = binary<mt::SubOp>(ops, result, binary<mt::MulOp>(ops, cast(ops, times, ops.i32()), range));
  }
  return result;
}

Value saturated(Ops &ops, const Value &value, double least, double most) {
  return binary<mt::MinimumOp>(ops, binary<mt::MaximumOp>(ops, value, least), most);
}

Value integerPower(Ops &ops, const Value &value, int64_t exponent) {
  if (exponent < 0)
    return binary<mt::DivOp>(ops, ops.number(1, value.element(), value.shape()), integerPower(ops, value, -exponent));
  if (exponent == 0)
    return ops.number(1, value.element(), value.shape());
  if (exponent == 1)
    return value;
  Value half = integerPower(ops, value, exponent / 2);
  Value square = value.isFloat() ? unary<mt::SquareOp>(ops, half) : binary<mt::MulOp>(ops, half, half);
  return exponent % 2 ? binary<mt::MulOp>(ops, square, value) : square;
}

} // namespace mtc::logical
