// SPDX-License-Identifier: Apache-2.0
//
// Ops of StableHLO that make constants and other shapes, and take parts.
#include "frontend/stablehlo/Call.h"

using namespace mlir;

namespace mtc::stablehlo {
namespace {

using logical::Indices;
using logical::Shape;
using logical::Value;

// A constant of batches that stand one after the other along an axis, each of whose samples are alike: false for
// others.
bool giveBatches(Call &call, const Known &known, ArrayRef<Size> shape, size_t axis) {
  int64_t times = shape[axis].times, samples = known.shape[axis] / times;
  auto scaled = [&](ArrayRef<int64_t> indices, auto scale) {
    Indices at(indices.begin(), indices.end());
    at[axis] = scale(at[axis]);
    return at;
  };
  Indices parts = known.shape;
  parts[axis] = times;
  Known each = known.remapped(parts, [&](ArrayRef<int64_t> indices) {
    return known.place(scaled(indices, [&](int64_t i) { return i * samples; }));
  });
  Known all = each.remapped(known.shape, [&](ArrayRef<int64_t> indices) {
    return each.place(scaled(indices, [&](int64_t i) { return i / samples; }));
  });
  if (all.numbers != known.numbers)
    return false;
  Shape apart(shape.begin(), shape.end());
  apart[axis] = Size(times);
  apart.insert(apart.begin() + static_cast<int64_t>(axis) + 1, logical::batchSize());
  Shape one = apart;
  one[axis + 1] = Size(1);
  Value value = logical::broadcast(logical::reshape(call.ops, each.lift(call.ops), one), apart);
  call.give(logical::reshape(call.ops, value, shape));
  return true;
}

// A constant whose samples are all alike.
void giveRepeated(Call &call, const Known &known, ArrayRef<Size> shape) {
  logical::checkCount(known.shape.size(), shape.size());
  Indices one = known.shape;
  for (auto [size, to] : llvm::zip(one, shape))
    size = to.batch ? 1 : size;
  Known first = known.remapped(one, [&](ArrayRef<int64_t> indices) { return known.place(indices); });
  // All samples must have the numbers of the first sample.
  Known all = first.expanded(known.shape);
  if (all.numbers != known.numbers) {
    auto batches =
        llvm::make_filter_range(llvm::seq<size_t>(0, shape.size()), [&](size_t i) { return shape[i].batch; });
    if (llvm::hasSingleElement(batches) && giveBatches(call, known, shape, *batches.begin()))
      return;
    throw Refused("a constant with other numbers for each sample");
  }
  call.give(logical::broadcast(first.lift(call.ops), shape));
}

void buildConstant(Call &call) {
  auto elements = dyn_cast_or_null<DenseElementsAttr>(call.attribute("value"));
  if (!elements)
    throw Refused("expected a constant of elements in the text, found another");
  Known known = Known::zeros(elements.getType().getShape(), knownTypeOf(elements.getElementType()));
  if (known.type == Known::Type::Integer)
    known.width = widthOf(elements.getElementType());
  if (isa<FloatType>(elements.getElementType()))
    llvm::transform(elements.getValues<APFloat>(), known.numbers.begin(), [](APFloat value) {
      bool loses;
      value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &loses);
      return value.convertToDouble();
    });
  else
    llvm::transform(elements.getValues<APInt>(), known.numbers.begin(), [&](const APInt &value) {
      bool hasSign = !elements.getElementType().isUnsignedInteger();
      return known.type == Known::Type::Boolean ? !value.isZero()
             : hasSign                          ? static_cast<double>(value.getSExtValue())
                                                : static_cast<double>(value.getZExtValue());
    });
  known.round();
  if (call.batches)
    if (Shape shape = call.resultShape(); llvm::any_of(shape, [](const Size &size) { return size.batch; }))
      return giveRepeated(call, known, shape);
  call.give(known);
}

// The sizes that an operand says, or those of the result's type.
Shape resultShape(Call &call, size_t operand) {
  if (operand < call.operands.size()) {
    Shape shape = call.expectKnown(operand, "a shape").sizes();
    for (const Size &size : shape)
      if (size.times < 1)
        throw Refused("expected sizes of 1 or more, found " + size.text());
    return shape;
  }
  return call.resultShape();
}

bool isStatic(ArrayRef<Size> shape) {
  return llvm::none_of(shape, [](const Size &size) { return size.batch; });
}
Indices numbersOf(ArrayRef<Size> shape) {
  Indices sizes;
  for (const Size &size : shape)
    sizes.push_back(size.times);
  return sizes;
}

void giveIota(Call &call, ArrayRef<Size> shape) {
  auto axis = static_cast<size_t>(call.integer("iota_dimension", 0));
  if (axis >= shape.size())
    throw Refused("expected an axis of the result as iota_dimension");
  Known::Type type = knownTypeOf(call.resultType().getElementType());
  if (isStatic(shape)) {
    Known result = Known::zeros(numbersOf(shape), type);
    int64_t inner = 1;
    for (size_t i = axis + 1; i < shape.size(); ++i)
      inner *= shape[i].times;
    for (int64_t i = 0; i < result.count(); ++i)
      result.numbers[i] = static_cast<double>(i / inner % shape[axis].times);
    return call.give(result);
  }
  SmallVector<int64_t> added;
  for (size_t i = 0; i < shape.size(); ++i)
    if (i != axis)
      added.push_back(static_cast<int64_t>(i));
  Value line;
  if (shape[axis].isBatch()) {
    line = logical::samplePlaces(call.ops);
  } else if (!shape[axis].batch) {
    Known numbers = Known::zeros({shape[axis].times}, Known::Type::Integer);
    for (int64_t i = 0; i < numbers.count(); ++i)
      numbers.numbers[i] = static_cast<double>(i);
    line = numbers.lift(call.ops);
  } else {
    throw Refused("places along a multiple of the batch");
  }
  line = logical::cast(call.ops, line, logical::elementOf(call.ops.builder, type));
  call.give(logical::broadcast(logical::expandDims(line, added), shape));
}
void buildIota(Call &call) { giveIota(call, resultShape(call, SIZE_MAX)); }
void buildDynamicIota(Call &call) { giveIota(call, resultShape(call, 0)); }

// Axis i of the operand is axis dimensions[i] of the result.
void giveBroadcast(Call &call, ArrayRef<Size> shape) {
  SmallVector<int64_t> dimensions = call.integers("broadcast_dimensions");
  Shape from = call.shape(0);
  bool rising = dimensions.size() == from.size() &&
                std::adjacent_find(dimensions.begin(), dimensions.end(), std::greater_equal<>()) == dimensions.end();
  if (!rising || llvm::any_of(dimensions, [&](int64_t to) { return to < 0 || to >= std::ssize(shape); }))
    throw Refused("expected broadcast_dimensions that rise");
  SmallVector<int64_t> added;
  for (int64_t i = 0; i < std::ssize(shape); ++i)
    if (!llvm::is_contained(dimensions, i))
      added.push_back(i);
  const Known *known = call.known(0);
  if (!known || !isStatic(shape))
    return call.give(logical::broadcast(logical::expandDims(call.value(0), added), shape));
  Indices wide = known->shape;
  for (int64_t axis : added)
    wide.insert(wide.begin() + axis, 1);
  for (auto [size, to] : llvm::zip(wide, shape))
    if (size != 1 && size != to.times)
      throw Refused("expected sizes that broadcast");
  call.give(known->reshaped(wide).expanded(numbersOf(shape)));
}
void buildBroadcast(Call &call) { giveBroadcast(call, resultShape(call, SIZE_MAX)); }
void buildDynamicBroadcast(Call &call) { giveBroadcast(call, resultShape(call, 1)); }

void giveReshape(Call &call, ArrayRef<Size> shape) {
  const Known *known = call.known(0);
  if (!known || !isStatic(shape))
    return call.give(logical::reshape(call.ops, call.value(0), shape));
  int64_t count = 1;
  for (const Size &size : shape)
    count = logical::multiply(count, size.times);
  if (count != known->count())
    throw Refused("a reshape to another number of elements");
  call.give(known->reshaped(numbersOf(shape)));
}
void buildDynamicReshape(Call &call) { giveReshape(call, resultShape(call, 1)); }

// The open size of a result is what the other sizes of its type leave, with the batch in it.
void buildReshape(Call &call) {
  if (!call.hasOpenResult())
    return giveReshape(call, resultShape(call, SIZE_MAX));
  Size total, rest;
  for (const Size &size : call.shape(0))
    total = {logical::multiply(total.times, size.times), total.batch || size.batch};
  Shape shape;
  for (int64_t size : call.resultType().getShape()) {
    shape.push_back(ShapedType::isDynamic(size) ? Size(0) : Size(size));
    rest.times = logical::multiply(rest.times, ShapedType::isDynamic(size) ? 1 : size);
  }
  if (llvm::count(shape, Size(0)) != 1 || rest.times < 1 || total.times % rest.times)
    throw Refused("a reshape to sizes that are not known");
  *llvm::find(shape, Size(0)) = {total.times / rest.times, total.batch};
  giveReshape(call, shape);
}

void buildTranspose(Call &call) {
  auto rank = static_cast<int64_t>(call.shape(0).size());
  SmallVector<int64_t> order = call.integers("permutation"), sorted = order;
  llvm::sort(sorted);
  if (!llvm::equal(sorted, llvm::seq<int64_t>(0, rank)))
    throw Refused("expected an order of all axes as permutation");
  if (const Known *known = call.known(0))
    return call.give(known->transposed(order));
  call.give(logical::transpose(call.value(0), order));
}

void buildConcatenate(Call &call) {
  auto axis = static_cast<size_t>(call.integer("dimension", 0));
  if (axis >= call.shape(0).size())
    throw Refused("expected an axis of the operands as dimension");
  bool lines = llvm::all_of(call.operands,
                            [](const Operand &operand) { return operand.known && operand.known->shape.size() == 1; });
  if (lines) { // shapes
    Known result = Known::zeros({}, call.known(0)->type);
    result.numbers.clear();
    for (const Operand &operand : call.operands)
      for (int64_t i = 0; i < operand.known->count(); ++i) {
        result.numbers.push_back(operand.known->numbers[i]);
        result.timesBatch.push_back(operand.known->size(i).batch);
      }
    return call.give(result.reshaped({result.count()}));
  }
  SmallVector<Value> values;
  for (size_t i = 0; i < call.operands.size(); ++i) {
    values.push_back(call.value(i));
    if (values.back().rank() != values[0].rank())
      throw Refused("a concatenation of values of different numbers of axes");
  }
  call.give(logical::concat(call.ops, values, axis));
}

// What a loop wrote at the place that a slice reads; null: the slice reads something else.
const Value *partOf(const Call &call, ArrayRef<int64_t> starts, ArrayRef<Size> sizes, ArrayRef<int64_t> strides) {
  const auto &assembly = call.operands[0].assembly;
  if (!assembly)
    return nullptr;
  for (size_t i = 0; i < starts.size(); ++i)
    if (strides[i] != 1 || (i != assembly->axis && !(sizes[i] == assembly->base.size(i))))
      return nullptr;
  return assembly->find(starts[assembly->axis], sizes[assembly->axis].times);
}

void giveSlice(Call &call, ArrayRef<int64_t> starts, ArrayRef<Size> limits, ArrayRef<int64_t> strides) {
  Shape shape = call.shape(0), sizes;
  if (starts.size() != shape.size() || limits.size() != shape.size() || strides.size() != shape.size())
    throw Refused("expected a start, a limit and a stride for each axis");
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i].batch) {
      if (starts[i] != 0 || strides[i] != 1 || (limits[i].batch && limits[i] != shape[i]))
        throw Refused("a part of the samples of a batch");
      sizes.push_back(shape[i]);
      continue;
    }
    if (starts[i] < 0 || strides[i] < 1 || limits[i].batch || limits[i].times > shape[i].times ||
        limits[i].times <= starts[i])
      throw Refused("expected a part of one element or more");
    sizes.push_back((limits[i].times - starts[i] - 1) / strides[i] + 1);
  }
  const Known *known = call.known(0);
  if (const Value *part = partOf(call, starts, sizes, strides))
    return call.give(*part);
  if (!known)
    return call.give(logical::slice(call.ops, call.value(0), starts, sizes, strides));
  Indices from(shape.size());
  call.give(known->remapped(numbersOf(sizes), [&](ArrayRef<int64_t> indices) {
    for (size_t i = 0; i < from.size(); ++i)
      from[i] = starts[i] + indices[i] * strides[i];
    return known->place(from);
  }));
}

void buildSlice(Call &call) {
  size_t rank = call.shape(0).size();
  SmallVector<int64_t> limits = call.integers("limit_indices", rank);
  giveSlice(call, call.integers("start_indices", rank), call.partSizes(0, limits), call.integers("strides", rank, 1));
}

void buildDynamicSlice(Call &call) {
  giveSlice(call, call.expectKnown(1, "a start").integers(), call.expectKnown(2, "a limit").sizes(),
            call.expectKnown(3, "a stride").integers());
}

// Starts, numbers of rank 0, are moved so that the part lies inside.
void buildSliceAt(Call &call) {
  Shape shape = call.shape(0);
  SmallVector<int64_t> sizes = call.integers("slice_sizes", shape.size()), starts;
  SmallVector<Size> limits;
  if (call.operands.size() != shape.size() + 1)
    throw Refused("expected a start for each axis");
  for (size_t i = 0; i < shape.size(); ++i) {
    if (Size whole = call.partSizes(0, sizes)[i]; whole.batch) {
      starts.push_back(0);
      limits.push_back(whole);
      continue;
    }
    SmallVector<int64_t> start = call.expectKnown(i + 1, "a start").integers();
    if (start.size() != 1 || sizes[i] < 1 || sizes[i] > shape[i].times || shape[i].batch)
      throw Refused("expected a part of one element or more, of no more than there are, and not of the batch");
    starts.push_back(std::clamp<int64_t>(start[0], 0, shape[i].times - sizes[i]));
    limits.push_back(starts.back() + sizes[i]);
  }
  giveSlice(call, starts, limits, SmallVector<int64_t>(shape.size(), 1));
}

// Pads a few known numbers; none if the result would have too many.
std::optional<Known> paddedNumbers(const Known &known, double fill, ArrayRef<int64_t> low, ArrayRef<int64_t> high,
                                   ArrayRef<int64_t> interior) {
  constexpr int64_t most = int64_t{1} << 16;
  logical::Indices shape, from(known.shape.size());
  int64_t count = 1;
  for (auto [size, before, after, inner] : llvm::zip(known.shape, low, high, interior)) {
    shape.push_back(size < 1 ? 0 : before + size + logical::multiply(size - 1, inner) + after);
    if (shape.back() < 1)
      return std::nullopt;
    count = logical::multiply(count, shape.back());
  }
  if (count > most)
    return std::nullopt;
  Known result = Known::zeros(shape, known.type), places = result;
  llvm::fill(result.numbers, fill);
  int64_t next = 0;
  places.remapped(shape, [&](ArrayRef<int64_t> indices) {
    bool inside = true;
    for (size_t i = 0; i < from.size(); ++i) {
      int64_t offset = indices[i] - low[i], step = interior[i] + 1;
      from[i] = offset / step;
      inside &= offset >= 0 && offset % step == 0 && from[i] < known.shape[i];
    }
    if (inside)
      result.numbers[next] = known.numbers[known.place(from)];
    return next++;
  });
  return result;
}

void buildPad(Call &call) {
  size_t rank = call.shape(0).size();
  SmallVector<int64_t> low = call.integers("edge_padding_low", rank), high = call.integers("edge_padding_high", rank),
                       interior = call.integers("interior_padding", rank);
  const Known &fill = call.expectKnown(1, "a value to pad with");
  constexpr int64_t most = int64_t{1} << 31;
  for (const auto *list : {&low, &high, &interior})
    if (llvm::any_of(*list, [](int64_t n) { return n <= -most || n >= most; }))
      throw Refused("expected paddings below 2^31");
  if (fill.count() != 1 || fill.hasBatch() || llvm::any_of(interior, [](int64_t n) { return n < 0; }))
    throw Refused("expected one number to pad with, and interior_padding of 0 or more");
  const Known *known = call.known(0);
  if (std::optional<Known> made =
          known && !known->hasBatch() ? paddedNumbers(*known, fill.numbers[0], low, high, interior) : std::nullopt)
    return call.give(*made);
  call.give(logical::pad(call.ops, call.value(0), fill.numbers[0], low, high, interior));
}

void buildReverse(Call &call) {
  SmallVector<int64_t> axes = call.integers("dimensions");
  auto rank = static_cast<int64_t>(call.shape(0).size());
  if (llvm::any_of(axes, [&](int64_t axis) { return axis < 0 || axis >= rank; }))
    throw Refused("expected axes of the operand as dimensions");
  call.give(logical::reverse(call.ops, call.value(0), axes));
}

void buildDimensionSize(Call &call) {
  Shape shape = call.shape(0);
  auto axis = static_cast<size_t>(call.integer("dimension", 0));
  if (axis >= shape.size())
    throw Refused("expected an axis of the operand as dimension");
  call.give(Known::shapeOf({shape[axis]}).reshaped({}));
}

// What an exporter asserts of shapes, mtc checks itself. Marks of sharding change nothing.
void buildCustomCall(Call &call) {
  auto name = dyn_cast_or_null<StringAttr>(call.attribute("call_target_name"));
  std::string target = name ? name.getValue().str() : "";
  if (target == "shape_assertion" && call.op.getNumResults() == 0)
    return;
  if (target == "mhlo.erf" && call.operands.size() == 1) // as torch-xla writes it
    return call.give(logical::unary<mt::ErfOp>(call.ops, call.value(0)));
  if (target != "Sharding" || call.operands.size() != 1)
    throw Refused("a call of '" + target + "', which is code outside of the file");
  call.results.push_back(call.operands[0]);
}

void buildBarrier(Call &call) { call.results = call.operands; }

} // namespace

llvm::ArrayRef<OpEntry> shapeOps() {
  static constexpr OpEntry entries[] = {{"constant", buildConstant, 0},
                                        {"iota", buildIota, 0},
                                        {"dynamic_iota", buildDynamicIota, 1},
                                        {"broadcast_in_dim", buildBroadcast, 1},
                                        {"dynamic_broadcast_in_dim", buildDynamicBroadcast, 2},
                                        {"reshape", buildReshape, 1},
                                        {"dynamic_reshape", buildDynamicReshape, 2},
                                        {"transpose", buildTranspose, 1},
                                        {"concatenate", buildConcatenate, anyNumber},
                                        {"slice", buildSlice, 1},
                                        {"dynamic_slice", buildSliceAt, anyNumber},
                                        {"real_dynamic_slice", buildDynamicSlice, 4},
                                        {"pad", buildPad, 2},
                                        {"reverse", buildReverse, 1},
                                        {"get_dimension_size", buildDimensionSize, 1},
                                        {"custom_call", buildCustomCall, anyNumber},
                                        {"copy", buildBarrier, 1},
                                        {"optimization_barrier", buildBarrier, anyNumber}};
  return entries;
}

} // namespace mtc::stablehlo
