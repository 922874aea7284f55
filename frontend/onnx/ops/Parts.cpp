// SPDX-License-Identifier: Apache-2.0
//
// Parts of values, and values put together.
#include "frontend/onnx/OpTable.h"

using namespace mlir;

namespace mtc::onnx {
namespace {

using logical::Shape;
using logical::Value;

Known concatKnown(ArrayRef<const Known *> operands, size_t axis) {
  Indices shape(operands[0]->shape);
  shape[axis] = 0;
  for (const Known *operand : operands) {
    if (operand->shape.size() != shape.size() || operand->type != operands[0]->type)
      throw Refused("a concatenation of constants of different types or numbers of axes");
    for (size_t i = 0; i < shape.size(); ++i)
      if (i == axis)
        shape[i] += operand->shape[i];
      else if (operand->shape[i] != shape[i])
        throw Refused("expected equal sizes, found others");
  }
  Known result = Known::zeros(shape, operands[0]->type);
  result.timesBatch.resize(result.numbers.size());
  int64_t outer = 1, inner = 1, at = 0;
  for (size_t i = 0; i < shape.size(); ++i)
    (i < axis ? outer : inner) *= i == axis ? 1 : shape[i];
  for (int64_t row = 0; row < outer; ++row)
    for (const Known *operand : operands)
      for (int64_t i = 0, size = operand->shape[axis] * inner; i < size; ++i, ++at) {
        result.numbers[at] = operand->numbers[row * size + i];
        result.timesBatch[at] = operand->size(row * size + i).batch;
      }
  return result;
}

void buildConcat(Call &call) {
  size_t axis = Call::axisOf(call.integer("axis", 0), call.rank(0));
  if (call.allKnown()) {
    SmallVector<const Known *> operands;
    for (size_t i = 0; i < call.count(); ++i)
      operands.push_back(&call.expectKnown(i, "operands"));
    return call.give(concatKnown(operands, axis));
  }
  SmallVector<Value> values;
  Shape common; // of a file with a batch of 1: what has one row for it is repeated
  for (size_t i = 0; i < call.count(); ++i) {
    if (call.known(i) && call.known(i)->numbers.empty())
      continue;
    values.push_back(call.value(i));
    if (values.back().rank() != values[0].rank())
      throw Refused("a concatenation of values of different numbers of axes");
    Shape shape = values.back().shape();
    if (common.empty())
      common = shape;
    for (size_t k = 0; k < shape.size(); ++k)
      if (shape[k].batch)
        common[k] = shape[k];
  }
  for (Value &value : values) {
    Shape shape = value.shape();
    for (size_t k = 0; k < shape.size(); ++k)
      if (k != axis && common[k].batch && shape[k].isOne())
        shape[k] = common[k];
    value = logical::broadcast(value, shape);
  }
  call.give(logical::concat(call.ops, values, axis));
}

// `count` elements from `start` along an axis, `step` apart, which may be negative.
void givePart(Call &call, Operand &operand, size_t axis, int64_t start, int64_t count, int64_t step) {
  operand.forBatches = nullptr; // of the whole
  if (operand.known) {
    const Known &known = *operand.known;
    Indices shape(known.shape), from;
    shape[axis] = count;
    operand.known = std::make_shared<const Known>(known.remapped(shape, [&](ArrayRef<int64_t> indices) {
      from.assign(indices.begin(), indices.end());
      from[axis] = start + indices[axis] * step;
      // A size of 1 has one place, which is 0 here too.
      return known.place(from);
    }));
    return;
  }
  if (count < 1)
    throw Refused("a value without elements");
  int64_t first = step < 0 ? start + (count - 1) * step : start;
  operand.value = logical::sliceAxis(call.ops, operand.value, axis, first, count, std::abs(step));
  if (step < 0)
    operand.value = logical::reverse(call.ops, operand.value, {static_cast<int64_t>(axis)});
}

void buildSlice(Call &call) {
  bool asAttributes = call.opset < 10;
  auto read = [&](size_t index, const char *name) {
    return asAttributes ? Known::list(call.integers(name)) : call.expectKnown(index, name);
  };
  SmallVector<int64_t> starts = read(1, "starts").integers(), steps(starts.size(), 1);
  auto axes = llvm::to_vector(llvm::seq<int64_t>(0, static_cast<int64_t>(starts.size())));
  const Known limits = read(2, "ends");
  Shape shape = call.shape(0);
  if (asAttributes ? call.hasAttribute("axes") : call.has(3))
    axes = read(3, "axes").integers();
  if (call.has(4))
    steps = call.expectKnown(4, "steps").integers();
  if (limits.count() != static_cast<int64_t>(starts.size()) || axes.size() != starts.size() ||
      steps.size() != starts.size())
    throw Refused("expected starts, ends, axes and steps of one number");
  Operand operand = call.inputs[0];
  for (size_t i = 0; i < starts.size(); ++i) {
    size_t axis = Call::axisOf(axes[i], shape.size());
    Size end = limits.size(static_cast<int64_t>(i));
    if (shape[axis].batch) {
      if (starts[i] == 0 && steps[i] == 1 && (end == shape[axis] || (!end.batch && end.times >= int64_t{1} << 31)))
        continue;
      throw Refused("a part of the samples of a batch");
    }
    int64_t size = shape[axis].times, step = steps[i];
    if (end.batch || step == 0 || step == INT64_MIN)
      throw Refused("a part that the number of samples ends, or a step of 0");
    auto clamp = [&](int64_t at) {
      at = at < 0 ? std::max<int64_t>(at, -size - 1) + size : at;
      return step > 0 ? std::clamp<int64_t>(at, 0, size) : std::clamp<int64_t>(at, -1, size - 1);
    };
    int64_t start = clamp(starts[i]), stop = clamp(end.times);
    // Behind a negative step -1 stands for the last element, and less than -size for all.
    int64_t distance = step > 0 ? stop - start : start - stop;
    uint64_t stride = step > 0 ? static_cast<uint64_t>(step) : -static_cast<uint64_t>(step);
    auto count = distance <= 0 ? 0 : static_cast<int64_t>((static_cast<uint64_t>(distance) - 1) / stride) + 1;
    if (start == 0 && count == size && step == 1)
      continue;
    givePart(call, operand, axis, start, count, count == 1 ? 1 : step);
    shape[axis] = count;
  }
  call.results.push_back(operand);
}

void buildSplit(Call &call) {
  Shape shape = call.shape(0);
  size_t axis = Call::axisOf(call.integer("axis", 0), shape.size());
  std::optional<SmallVector<int64_t>> sizes = call.operandOrAttribute(1, "split");
  auto outputs = static_cast<int64_t>(call.node.outputs.size());
  int64_t count = call.integer("num_outputs", outputs);
  if (shape[axis].batch)
    throw Refused("parts of the samples of a batch");
  int64_t size = shape[axis].times, begin = 0;
  if (count != outputs || count < 1)
    throw Refused("expected as many outputs as num_outputs says, found " + std::to_string(outputs));
  if (!sizes) {
    int64_t part = (size + count - 1) / count; // the last one may be smaller
    sizes.emplace(count - 1, part);
    sizes->push_back(size - (count - 1) * part);
  }
  for (int64_t part : *sizes) {
    if (part < 0 || part > size - begin)
      throw Refused("expected parts of " + std::to_string(size) + " elements together");
    Operand operand = call.inputs[0];
    givePart(call, operand, axis, begin, part, 1);
    begin += part;
    call.results.push_back(operand);
  }
}

void buildPad(Call &call) {
  std::string mode = call.text("mode", "constant");
  if (!llvm::is_contained({"constant", "reflect", "edge", "wrap"}, mode))
    throw Refused("expected padding of the mode constant, reflect, edge or wrap, found " + mode);
  bool asAttributes = call.opset < 11;
  SmallVector<int64_t> pads = asAttributes ? call.integers("pads") : call.expectKnown(1, "pads").integers();
  double fill = asAttributes ? call.number("value", 0) : call.has(2) ? call.expectNumber(2, "a value to pad with") : 0;
  size_t rank = call.rank(0);
  auto axes = llvm::to_vector(llvm::seq<int64_t>(0, static_cast<int64_t>(rank)));
  if (call.has(3))
    axes = call.expectKnown(3, "axes").integers();
  if (pads.size() != 2 * axes.size())
    throw Refused("expected two numbers of pads for each axis, found " + std::to_string(pads.size()));
  constexpr int64_t most = int64_t{1} << 31;
  SmallVector<int64_t> low(rank, 0), high(rank, 0);
  for (size_t i = 0; i < axes.size(); ++i) {
    size_t axis = Call::axisOf(axes[i], rank);
    low[axis] = pads[i];
    high[axis] = pads[i + axes.size()];
    if (std::abs(low[axis] % most) != std::abs(low[axis]) || std::abs(high[axis] % most) != std::abs(high[axis]))
      throw Refused("expected pads below 2^31");
  }
  if (mode == "constant")
    return call.give(logical::pad(call.ops, call.value(0), fill, low, high));
  logical::PadMode from = mode == "reflect" ? logical::PadMode::Reflect
                          : mode == "edge"  ? logical::PadMode::Edge
                                            : logical::PadMode::Wrap;
  Value value = call.value(0);
  for (size_t axis = 0; axis < rank; ++axis)
    value = logical::padFrom(call.ops, value, axis, low[axis], high[axis], from);
  call.give(value);
}

void buildOneHot(Call &call) {
  Value ids = logical::cast(call.ops, call.value(0), call.ops.i32());
  int64_t depth = call.expectInteger(1, "a depth");
  const Known &values = call.expectKnown(2, "two values");
  constexpr int64_t most = int64_t{1} << 31;
  if (values.count() != 2 || depth < 1 || depth > most)
    throw Refused("expected a depth of 1 or more, and two values");
  size_t rank = ids.rank() + 1, axis = Call::axisOf(call.integer("axis", -1), rank);
  ids = logical::fromEnd(call.ops, ids, depth); // any others are of no class
  Value result = logical::oneHot(call.ops, ids, depth);
  double off = values.numbers[0], on = values.numbers[1];
  mlir::Type element = elementOf(call.ops.builder, values.type);
  bool plain = off == 0 && on == 1;
  if (!plain && values.type != Known::Type::Boolean) {
    constexpr double half = 0.5;
    Value isClass = logical::compare(call.ops, mt::Compare::gt, result, call.ops.number(half, call.ops.real()));
    result = logical::select(call.ops, isClass, call.ops.number(on, element), call.ops.number(off, element));
  } else if (!plain) {
    throw Refused("expected booleans false and true as values, found others");
  }
  call.give(logical::cast(call.ops, logical::moveAxis(result, rank - 1, axis), element));
}

// The upper or lower triangle of the last two axes; the rest is 0.
void buildTrilu(Call &call) {
  bool upper = call.integer("upper", 1) != 0;
  int64_t diagonal = call.has(1) ? call.expectInteger(1, "a diagonal") : 0;
  Shape shape = call.shape(0);
  if (shape.size() < 2 || shape.back().batch || shape[shape.size() - 2].batch)
    throw Refused("expected matrices in the last two axes, found " + logical::describe(shape));
  Known seen = Known::zeros({shape[shape.size() - 2].times, shape.back().times}, Known::Type::Boolean);
  for (int64_t i = 0; i < seen.count(); ++i) {
    int64_t above = i % seen.shape[1] - i / seen.shape[1];
    seen.numbers[i] = upper ? above >= diagonal : above <= diagonal;
  }
  if (const Known *known = call.known(0))
    return call.give(
        computed({known, &seen}, known->type, [](ArrayRef<double> values) { return values[1] != 0 ? values[0] : 0; }));
  Value value = call.value(0);
  call.give(logical::select(call.ops, seen.lift(call.ops), value, call.ops.number(0, value.element())));
}

// Each axis cut or padded with zeros to a size, as much on both sides; an odd element more at the end.
void buildCenterCropPad(Call &call) {
  Value value = call.value(0);
  SmallVector<int64_t> sizes = call.expectKnown(1, "a shape").integers(), axes = call.integers("axes");
  if (axes.empty())
    llvm::append_range(axes, llvm::seq<int64_t>(0, static_cast<int64_t>(value.rank())));
  if (axes.size() != sizes.size())
    throw Refused("expected a size for each axis, found " + std::to_string(sizes.size()) + " for " +
                  std::to_string(axes.size()));
  SmallVector<int64_t> low(value.rank(), 0), high(value.rank(), 0);
  for (auto [named, size] : llvm::zip_equal(axes, sizes)) {
    size_t axis = Call::axisOf(named, value.rank());
    int64_t more = size - value.size(axis).times;
    if (value.size(axis).batch || size < 1 || size > (int64_t{1} << 31))
      throw Refused("expected sizes from 1 to 2^31 of axes that are not the batch, found " + std::to_string(size));
    low[axis] = more / 2;
    high[axis] = more - more / 2;
  }
  call.give(logical::pad(call.ops, value, 0, low, high));
}

} // namespace

llvm::ArrayRef<OpEntry> partOps() {
  static constexpr OpEntry entries[] = {{"Concat", buildConcat},
                                        {"Slice", buildSlice},
                                        {"Split", buildSplit},
                                        {"Pad", buildPad},
                                        {"OneHot", buildOneHot},
                                        {"Trilu", buildTrilu},
                                        {"CenterCropPad", buildCenterCropPad}};
  return entries;
}

} // namespace mtc::onnx
