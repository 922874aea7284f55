// SPDX-License-Identifier: Apache-2.0
#include "frontend/logical/Known.h"

#include "frontend/logical/Compute.h"

#include <climits>
#include <cmath>
#include <cstring>
#include <numeric>

using namespace mlir;

namespace mtc::logical {
namespace {

constexpr int64_t maxElements = int64_t{1} << 24;

// The next indices of a shape; false behind the last ones.
bool advance(MutableArrayRef<int64_t> indices, ArrayRef<int64_t> shape) {
  for (size_t axis = shape.size(); axis-- > 0;) {
    if (++indices[axis] < shape[axis])
      return true;
    indices[axis] = 0;
  }
  return false;
}

} // namespace

bool holds(mt::Compare kind, double a, double b) {
  bool isLess = kind == mt::Compare::lt || kind == mt::Compare::le,
       isMore = kind == mt::Compare::gt || kind == mt::Compare::ge;
  bool isEqual = kind == mt::Compare::eq || kind == mt::Compare::le || kind == mt::Compare::ge;
  return kind == mt::Compare::ne ? a != b : (isLess && a < b) || (isMore && a > b) || (isEqual && a == b);
}

double wrapped(double number, int width) {
  int bits = std::abs(width);
  double range = std::ldexp(1.0, bits), least = width < 0 ? 0 : -range / 2;
  if (number >= least && number < least + range)
    return number;
  // A double has 53 bits, so the last bits of larger numbers are not known. The largest int64, which is 2^63 here,
  // stands for "to the end".
  if (std::fabs(number) > 0x1p53) {
    if (bits == 64 && std::fabs(number) <= 0x1p63)
      return number;
    throw Refused("whole numbers of more than 53 bits");
  }
  return number - std::floor((number - least) / range) * range;
}

Type elementOf(Builder &builder, Known::Type type) {
  return type == Known::Type::Float     ? Type(builder.getF32Type())
         : type == Known::Type::Integer ? builder.getI32Type()
                                        : builder.getI1Type();
}

Known Known::zeros(ArrayRef<int64_t> shape, Type type) {
  int64_t count = 1;
  for (int64_t size : shape)
    if (size < 0 || __builtin_mul_overflow(count, size, &count) || count > maxElements)
      throw Refused("expected a constant of at most 2^24 elements, found a larger one");
  Known known;
  known.type = type;
  known.shape.assign(shape.begin(), shape.end());
  known.numbers.resize(static_cast<size_t>(count));
  return known;
}

Known Known::scalar(double number, Type type) {
  Known known = zeros({}, type);
  known.numbers[0] = number;
  return known;
}

Known Known::list(ArrayRef<int64_t> integers) {
  Known known = zeros({static_cast<int64_t>(integers.size())}, Type::Integer);
  llvm::copy(integers, known.numbers.begin());
  return known;
}

Known Known::shapeOf(ArrayRef<Size> shape) {
  Known known = zeros({static_cast<int64_t>(shape.size())}, Type::Integer);
  for (const Size &size : shape)
    known.timesBatch.push_back(size.batch);
  llvm::transform(shape, known.numbers.begin(), [](const Size &size) { return static_cast<double>(size.times); });
  return known;
}

bool Known::hasBatch() const { return llvm::is_contained(timesBatch, true); }

Size Known::size(int64_t index) const {
  double number = numbers[index];
  constexpr double least = -0x1p63, behind = 0x1p63;
  int64_t whole = number >= behind ? INT64_MAX : !(number > least) ? INT64_MIN : static_cast<int64_t>(number);
  return {whole, !timesBatch.empty() && timesBatch[index]};
}

Shape Known::sizes() const {
  Shape sizes;
  for (int64_t i = 0; i < count(); ++i)
    sizes.push_back(size(i));
  return sizes;
}

SmallVector<int64_t> Known::integers() const {
  if (type == Type::Float)
    throw Refused("expected whole numbers, found floats");
  SmallVector<int64_t> integers;
  for (const Size &size : sizes()) {
    if (size.batch)
      throw Refused("expected numbers, found " + size.text() + ", which the batch decides");
    integers.push_back(size.times);
  }
  return integers;
}

int64_t Known::place(ArrayRef<int64_t> indices) const {
  int64_t place = 0;
  size_t extra = indices.size() - shape.size();
  for (size_t axis = 0; axis < shape.size(); ++axis)
    place = place * shape[axis] + (shape[axis] == 1 ? 0 : indices[axis + extra]);
  return place;
}

Known Known::remapped(ArrayRef<int64_t> to, llvm::function_ref<int64_t(ArrayRef<int64_t>)> from) const {
  Known result = zeros(to, type);
  result.width = width;
  bool batch = hasBatch();
  if (batch)
    result.timesBatch.resize(result.numbers.size());
  Indices indices(to.size(), 0);
  for (size_t i = 0; i < result.numbers.size(); ++i, advance(indices, to)) {
    int64_t place = from(indices);
    if (place < 0 || place >= count())
      throw Refused("expected an element of " + std::to_string(count()) + ", found number " + std::to_string(place));
    result.numbers[i] = numbers[place];
    if (batch)
      result.timesBatch[i] = timesBatch[place];
  }
  return result;
}

Known Known::reshaped(ArrayRef<int64_t> to) const {
  Known result = *this;
  if (std::accumulate(to.begin(), to.end(), int64_t{1}, multiply) != count())
    throw Refused("expected a shape of " + std::to_string(count()) + " elements, found another");
  result.shape.assign(to.begin(), to.end());
  return result;
}

Known Known::transposed(ArrayRef<int64_t> order) const {
  Indices to, from(order.size());
  checkCount(order.size(), shape.size());
  checkAxes(order, shape.size());
  for (int64_t axis : order)
    to.push_back(shape[axis]);
  return remapped(to, [&](ArrayRef<int64_t> indices) {
    for (auto [axis, index] : llvm::zip_equal(order, indices))
      from[axis] = index;
    return place(from);
  });
}

Known Known::expanded(ArrayRef<int64_t> to) const {
  if (to.size() < shape.size() || llvm::any_of(llvm::zip(shape, to.take_back(shape.size())), [](auto pair) {
        return std::get<0>(pair) != 1 && std::get<0>(pair) != std::get<1>(pair);
      }))
    throw Refused("expected a shape that a constant of " + std::to_string(shape.size()) + " axes broadcasts to");
  return remapped(to, [&](ArrayRef<int64_t> indices) { return place(indices); });
}

void Known::round() {
  for (size_t i = 0; i < numbers.size(); ++i)
    if (double &number = numbers[i]; type == Type::Float)
      number = static_cast<float>(number);
    else if (type == Type::Boolean)
      number = number != 0;
    else if (!std::isfinite(number))
      throw Refused("expected whole numbers, found one that is not finite: a quotient by 0, or a cast of such");
    else
      number = wrapped(std::trunc(number), width);
}

Value Known::lift(Ops &ops) const {
  mlir::Type element = type == Type::Float ? ops.real() : elementOf(ops.builder, type);
  if (hasBatch() && count() >= 1 && type != Type::Boolean && llvm::all_equal(numbers) && llvm::all_equal(timesBatch)) {
    Value samples = ops.count(batchSize());
    if (numbers[0] != 1)
      samples = binary<mt::MulOp>(ops, samples, numbers[0]);
    Shape full(shape.begin(), shape.end());
    SmallVector<int64_t> added = llvm::to_vector(llvm::seq<int64_t>(0, static_cast<int64_t>(full.size())));
    return broadcast(expandDims(cast(ops, samples, element), added), full);
  }
  if (hasBatch())
    throw Refused("a computation with the number of samples and other numbers");
  if (numbers.empty())
    throw Refused("a value without elements");
  constexpr double range = 0x1p31;
  if (type == Type::Integer && llvm::any_of(numbers, [&](double n) { return n < -range || n >= range; }))
    throw Refused("integers of more than 32 bits");
  if (llvm::all_of(numbers, [&](double n) { return std::memcmp(&n, numbers.data(), sizeof n) == 0; })) {
    Shape full(shape.begin(), shape.end());
    return ops.number(numbers[0], element, full);
  }
  auto tensor = RankedTensorType::get(shape, element);
  if (element.isF64())
    return ops.constant(DenseElementsAttr::get(tensor, ArrayRef<double>(numbers)));
  if (type == Type::Float) {
    std::vector<float> floats(numbers.begin(), numbers.end());
    return ops.constant(DenseElementsAttr::get(tensor, ArrayRef<float>(floats)));
  }
  if (type == Type::Integer) {
    std::vector<int32_t> whole(numbers.begin(), numbers.end());
    return ops.constant(DenseElementsAttr::get(tensor, ArrayRef<int32_t>(whole)));
  }
  SmallVector<bool> flags;
  for (double number : numbers)
    flags.push_back(number != 0);
  return ops.constant(DenseElementsAttr::get(tensor, ArrayRef<bool>(flags)));
}

Indices commonSizes(ArrayRef<const Known *> operands) {
  Indices common;
  for (const Known *operand : operands) {
    if (operand->shape.size() > common.size())
      common.insert(common.begin(), operand->shape.size() - common.size(), 1);
    for (size_t i = 0; i < operand->shape.size(); ++i) {
      int64_t &to = common[common.size() - operand->shape.size() + i], size = operand->shape[i];
      if (to == 1)
        to = size;
      else if (size != 1 && size != to)
        throw Refused("expected sizes that broadcast, found " + std::to_string(to) + " and " + std::to_string(size));
    }
  }
  return common;
}

Known computed(ArrayRef<const Known *> operands, Known::Type type,
               llvm::function_ref<double(ArrayRef<double>)> function) {
  for (const Known *operand : operands)
    if (operand->hasBatch())
      throw Refused("a computation with the number of samples");
  Indices shape = commonSizes(operands);
  Known result = Known::zeros(shape, type);
  for (const Known *operand : llvm::reverse(operands))
    if (operand->type == type)
      result.width = operand->width;
  Indices indices(shape.size(), 0);
  SmallVector<double> values(operands.size());
  for (double &number : result.numbers) {
    for (auto [value, operand] : llvm::zip(values, operands))
      value = operand->numbers[operand->place(indices)];
    number = function(values);
    advance(indices, shape);
  }
  result.round();
  return result;
}

} // namespace mtc::logical
