// SPDX-License-Identifier: Apache-2.0
#include "frontend/logical/Values.h"

#include "dialects/mt/Compilation.h"
#include "frontend/mlir/Limits.h"

#include "llvm/Support/FormatVariadic.h"

#include <cmath>

using namespace mlir;

namespace mtc::logical {

int64_t multiply(int64_t a, int64_t b) {
  int64_t product;
  if (__builtin_mul_overflow(a, b, &product) || product > maxTensorBytes || product < 0)
    throw Refused("a tensor of more than 2^46 elements");
  return product;
}

size_t checkAxis(int64_t axis, size_t rank) {
  if (axis < 0 || axis >= static_cast<int64_t>(rank))
    throw Refused("expected an axis of " + std::to_string(rank) + ", found " + std::to_string(axis));
  return static_cast<size_t>(axis);
}

void checkAxes(ArrayRef<int64_t> axes, size_t rank) {
  for (auto [index, axis] : llvm::enumerate(axes)) {
    checkAxis(axis, rank);
    if (llvm::is_contained(axes.take_front(index), axis))
      throw Refused("expected different axes, found " + std::to_string(axis) + " twice");
  }
}

void checkCount(size_t numbers, size_t rank) {
  if (numbers != rank)
    throw Refused("expected " + std::to_string(rank) + " numbers, one for each axis, found " + std::to_string(numbers));
}

void Ops::charge(int64_t elements) const {
  if (!affords(elements))
    throw Refused("constants and parts of more than 2^27 elements together");
}

bool Ops::affords(int64_t elements) const {
  if (!budget)
    return true;
  bool affords = *budget >= elements;
  *budget -= affords ? elements : 0;
  return affords;
}

std::string Size::text() const {
  return !batch ? std::to_string(times) : (isBatch() ? "" : std::to_string(times) + "*") + "b";
}

std::string describe(ArrayRef<Size> shape) {
  std::string text;
  for (const Size &size : shape)
    text += (text.empty() ? "" : ", ") + size.text();
  return "[" + text + "]";
}

Size sizeOf(ArrayRef<Axis> parts) {
  Size total;
  for (const Axis &part : parts)
    total = {multiply(total.times, part.size.times), total.batch || part.size.batch};
  return total;
}

Shape Value::shape() const {
  Shape shape;
  for (const Parts &parts : axes)
    shape.push_back(sizeOf(parts));
  return shape;
}

SmallVector<Axis> Value::flat() const {
  SmallVector<Axis> all;
  for (const Parts &parts : axes)
    llvm::append_range(all, parts);
  return all;
}

int batchOf(ArrayRef<Axis> flat) {
  for (auto [index, part] : llvm::enumerate(flat))
    if (part.size.batch)
      return static_cast<int>(index);
  return -1;
}

DenseElementsAttr elementsOf(mlir::Value stored) {
  auto constant = stored.getDefiningOp<mt::ConstantOp>();
  return constant ? dyn_cast<DenseElementsAttr>(constant.getValue()) : DenseElementsAttr();
}

mlir::Type Ops::real() const {
  Operation *parent = builder.getInsertionBlock()->getParentOp();
  if (!parent) // ops of a block that is thrown away, made to see what is known of them
    return builder.getF32Type();
  return mt::Compilation(parent).realType();
}

Value Ops::value(mlir::Value stored) {
  Value value{stored, {}};
  for (auto [place, size] : llvm::enumerate(value.type().getShape()))
    value.axes.push_back({Axis{ShapedType::isDynamic(size) ? batchSize() : Size(size), static_cast<int>(place)}});
  DenseElementsAttr elements = elementsOf(stored);
  if (!elements || !elements.isSplat() || value.rank() == 0)
    return tidy(value);
  for (Parts &parts : value.axes) // all elements are equal
    parts[0].place = -1;
  value.stored =
      mt::ConstantOp::create(builder, location, elements.resizeSplat(RankedTensorType::get({}, value.element())));
  return value;
}

Value Ops::tidy(Value value) {
  ArrayRef<int64_t> shape = value.type().getShape();
  if (!llvm::is_contained(shape, 1))
    return value;
  SmallVector<int64_t> remaining;
  SmallVector<int> places;
  for (int64_t size : shape) {
    places.push_back(size == 1 ? -1 : static_cast<int>(remaining.size()));
    if (size != 1)
      remaining.push_back(size);
  }
  value.stored = reshapeStored(value.stored, remaining);
  for (Parts &parts : value.axes)
    for (Axis &part : parts)
      if (part.isStored())
        part.place = places[part.place];
  return value;
}

// The whole number that an element of `bits` bits holds, 1 for a truth value.
static int64_t whole(double number, unsigned bits) {
  double most = std::ldexp(1, bits == 1 ? 1 : static_cast<int>(bits) - 1);
  if (!(number >= (bits == 1 ? 0 : -most) && number < most))
    throw Refused(llvm::formatv("expected a number that {0} bits hold, found {1}", bits, number).str());
  return static_cast<int64_t>(number);
}

Value Ops::number(double number, Type element, ArrayRef<Size> shape) {
  Attribute attribute = mt::isReal(element)
                            ? Attribute(builder.getFloatAttr(element, number))
                            : builder.getIntegerAttr(element, whole(number, element.getIntOrFloatBitWidth()));
  auto constant = DenseElementsAttr::get(RankedTensorType::get({}, element), attribute);
  Value value{mt::ConstantOp::create(builder, location, constant), {}};
  for (const Size &size : shape)
    value.axes.push_back({Axis{size}});
  return value;
}

Value Ops::constant(DenseElementsAttr elements) {
  charge(elements.getNumElements());
  return value(mt::ConstantOp::create(builder, location, elements));
}

Value Ops::count(Size size) {
  mlir::Value samples = mt::BatchSizeOp::create(builder, location, RankedTensorType::get({}, real()));
  if (size.times != 1)
    samples = mt::MulOp::create(builder, location, samples.getType(), samples,
                                number(static_cast<double>(size.times), real()).stored);
  return {samples, {}};
}

mlir::Value Ops::reshapeStored(mlir::Value stored, ArrayRef<int64_t> shape) {
  auto type = cast<RankedTensorType>(stored.getType());
  if (type.getShape() == shape)
    return stored;
  if (auto inner = stored.getDefiningOp<mt::ReshapeOp>())
    return reshapeStored(inner.getOperand(), shape);
  DenseElementsAttr elements = elementsOf(stored);
  int64_t count = 1;
  for (int64_t size : elements ? shape : ArrayRef<int64_t>())
    count = multiply(count, size);
  if (elements && count == elements.getNumElements() && affords(elements.isSplat() ? 1 : count))
    return mt::ConstantOp::create(builder, location, elements.reshape(type.clone(shape)));
  return mt::ReshapeOp::create(builder, location, type.clone(shape), stored);
}

} // namespace mtc::logical
