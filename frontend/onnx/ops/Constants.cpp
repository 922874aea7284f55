// SPDX-License-Identifier: Apache-2.0
//
// Values out of nothing, and of other types.
#include "frontend/onnx/OpTable.h"

#include "llvm/ADT/APFloat.h"

#include <cmath>
#include <numbers>

using namespace mlir;

namespace mtc::onnx {
namespace {

using logical::Value;

void buildConstant(Call &call) {
  if (const Attribute *value = call.attribute("value")) {
    if (value->kind != Attribute::Kind::Tensor)
      throw Refused("expected a tensor as value");
    call.give(knownOf(value->tensor));
    call.results.back().type = value->tensor.type;
    return;
  }
  if (call.hasAttribute("value_float"))
    return call.give(Known::scalar(call.number("value_float", 0), Known::Type::Float));
  if (call.hasAttribute("value_int"))
    return call.give(Known::scalar(static_cast<double>(call.integer("value_int", 0)), Known::Type::Integer));
  if (call.hasAttribute("value_ints"))
    return call.give(Known::list(call.integers("value_ints")));
  if (!call.hasAttribute("value_floats"))
    throw Refused("expected a constant of numbers, found another");
  std::vector<double> numbers = call.numbers("value_floats");
  Known known = Known::zeros({static_cast<int64_t>(numbers.size())}, Known::Type::Float);
  known.numbers = numbers;
  call.give(known);
}

void buildConstantOfShape(Call &call) {
  const Known &shape = call.expectKnown(0, "a shape");
  Known fill = Known::scalar(0, Known::Type::Float);
  if (const Attribute *value = call.attribute("value"); value && value->kind == Attribute::Kind::Tensor)
    fill = knownOf(value->tensor);
  if (fill.count() != 1)
    throw Refused("expected one number as value, found " + std::to_string(fill.count()));
  if (!shape.hasBatch())
    return call.give(fill.reshaped({}).expanded(shape.integers()));
  call.give(call.ops.number(fill.numbers[0], elementOf(call.ops.builder, fill.type), shape.sizes()));
}

void buildRange(Call &call) {
  call.ignore("stash_type"); // numbers are known in double precision
  double start = call.expectNumber(0, "a start"), step = call.expectNumber(2, "a step");
  const Known &end = call.expectKnown(1, "a limit");
  if (end.count() == 1 && end.size(0).isBatch() && start == 0 && step == 1)
    return call.give(logical::samplePlaces(call.ops)); // the samples' places in the batch
  double count = std::ceil((call.expectNumber(1, "a limit") - start) / step);
  constexpr double most = 0x1p24;
  if (!(count <= most))
    throw Refused("expected a range of at most 2^24 numbers");
  Known range = Known::zeros({static_cast<int64_t>(std::fmax(count, 0))}, end.type);
  for (size_t i = 0; i < range.numbers.size(); ++i)
    range.numbers[i] = start + static_cast<double>(i) * step;
  range.round();
  call.give(range);
}

double toHalf(double number, const llvm::fltSemantics &semantics) {
  llvm::APFloat value(number);
  bool loses;
  value.convert(semantics, llvm::APFloat::rmNearestTiesToEven, &loses);
  return value.convertToDouble();
}

// Casts a value that the model computes: floats of 16 bits are rounded, and integers of few bits wrap around.
Value castValue(Call &call, const Value &value, ElementType to) {
  Value result = logical::cast(call.ops, value, elementOf(call.ops.builder, knownTypeOf(to)));
  if (to == ElementType::Float16)
    return logical::rounded(call.ops, result, call.ops.builder.getF16Type());
  if (to == ElementType::Bfloat16)
    return logical::rounded(call.ops, result, call.ops.builder.getBF16Type());
  return fewBits(to) && !value.isBoolean() ? logical::wrapped(call.ops, result, fewBits(to)) : result;
}

void castTo(Call &call, ElementType to) {
  const Known *known = call.known(0);
  Known::Type type = knownTypeOf(to);
  if (!known || (known->hasBatch() && type == Known::Type::Float)) {
    if (call.has(0) && call.inputs[0].type == to) // the same numbers
      call.results.push_back(call.inputs[0]);
    else
      call.give(castValue(call, call.value(0), to));
  } else if (known->hasBatch() && type == Known::Type::Boolean) {
    throw Refused("a computation with the number of samples");
  } else {
    Known result = *known;
    result.type = type;
    result.width = widthOf(to);
    if (to == ElementType::Float16 || to == ElementType::Bfloat16)
      for (double &number : result.numbers)
        number = toHalf(static_cast<float>(number),
                        to == ElementType::Float16 ? llvm::APFloat::IEEEhalf() : llvm::APFloat::BFloat());
    result.round();
    call.give(result);
  }
  call.results.back().type = to;
}

void buildCast(Call &call) {
  auto type = static_cast<ElementType>(call.integer("to", 0));
  call.ignore("saturate");
  if (bytesOf(type) == 0)
    throw Refused("a cast to " + nameOf(type));
  castTo(call, type);
}

void buildCastLike(Call &call) {
  call.ignore("saturate");
  if (call.has(1) && call.inputs[1].type != ElementType::None)
    return castTo(call, call.inputs[1].type);
  Value like = call.value(1);
  castTo(call, like.isFloat() ? ElementType::Float : like.isInteger() ? ElementType::Int64 : ElementType::Bool);
}

void buildIdentity(Call &call) {
  if (!call.has(0))
    throw Refused("expected an operand, found none");
  call.results.push_back(call.inputs[0]);
}

void buildShape(Call &call) {
  logical::Shape shape = call.shape(0);
  auto rank = static_cast<int64_t>(shape.size());
  auto clamp = [&](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank); };
  int64_t start = clamp(call.integer("start", 0)), end = clamp(call.integer("end", rank));
  call.give(Known::shapeOf(ArrayRef<Size>(shape).slice(start, std::max<int64_t>(end - start, 0))));
}

void buildSize(Call &call) {
  Size total;
  for (const Size &size : call.shape(0))
    total = {logical::multiply(total.times, size.times), total.batch || size.batch};
  call.give(Known::shapeOf({total}).reshaped({}));
}

void buildEyeLike(Call &call) {
  logical::Shape shape = call.shape(0);
  auto type = static_cast<ElementType>(call.integer("dtype", static_cast<int64_t>(ElementType::Float)));
  int64_t diagonal = call.integer("k", 0);
  if (shape.size() != 2 || shape[0].batch || shape[1].batch)
    throw Refused("expected a matrix without the batch, found " + logical::describe(shape));
  Known eye = Known::zeros({shape[0].times, shape[1].times}, knownTypeOf(type));
  for (int64_t i = 0; i < eye.count(); ++i)
    eye.numbers[i] = i % eye.shape[1] - i / eye.shape[1] == diagonal;
  call.give(eye);
}

// a - b cos(2 pi n / N) + c cos(4 pi n / N), with N of the periodic form or one less.
void giveWindow(Call &call, double a, double b, double c) {
  constexpr int64_t most = int64_t{1} << 24;
  int64_t size = call.expectInteger(0, "a size");
  call.ignore("output_datatype");
  if (size < 1 || size > most)
    throw Refused("expected a window of 1 to 2^24 numbers, found " + std::to_string(size));
  auto turns = static_cast<double>(call.integer("periodic", 1) ? size : size - 1);
  Known window = Known::zeros({size}, Known::Type::Float);
  for (int64_t n = 0; n < size; ++n) {
    double angle = 2 * std::numbers::pi * static_cast<double>(n) / turns;
    window.numbers[static_cast<size_t>(n)] = a - b * std::cos(angle) + c * std::cos(2 * angle);
  }
  window.round();
  call.give(window);
}
void buildHannWindow(Call &call) { giveWindow(call, 0.5, 0.5, 0); }
void buildHammingWindow(Call &call) { giveWindow(call, 25.0 / 46, 21.0 / 46, 0); }
void buildBlackmanWindow(Call &call) { giveWindow(call, 0.42, 0.5, 0.08); }

} // namespace

llvm::ArrayRef<OpEntry> constantOps() {
  static constexpr OpEntry entries[] = {{"Constant", buildConstant},
                                        {"ConstantOfShape", buildConstantOfShape},
                                        {"Range", buildRange},
                                        {"Cast", buildCast},
                                        {"CastLike", buildCastLike},
                                        {"Identity", buildIdentity},
                                        {"Shape", buildShape},
                                        {"Size", buildSize},
                                        {"EyeLike", buildEyeLike},
                                        {"HannWindow", buildHannWindow},
                                        {"HammingWindow", buildHammingWindow},
                                        {"BlackmanWindow", buildBlackmanWindow}};
  return entries;
}

} // namespace mtc::onnx
