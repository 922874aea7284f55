// SPDX-License-Identifier: Apache-2.0
#include "frontend/logical/Compute.h"

#include "frontend/logical/Constants.h"

using namespace mlir;

namespace mtc::logical {

// The number of the only part of a logical axis, which must not be the batch.
static int movedPart(const Value &value, size_t axis) {
  if (value.size(axis).batch)
    throw Refused("a part of the samples of a batch, or samples beside those of the batch");
  return static_cast<int>(firstPart(value, axis));
}

// A number for each stored axis but the batch; `of` gives that of a part.
static SmallVector<int64_t> listOf(const Value &value, llvm::function_ref<int64_t(int)> of) {
  SmallVector<int64_t> numbers(value.type().getRank());
  for (auto [index, part] : llvm::enumerate(value.flat()))
    if (part.isStored())
      numbers[part.place] = of(static_cast<int>(index));
  if (mt::isSplit(value.type()))
    numbers.erase(numbers.begin());
  return numbers;
}

// The shape of a tensor whose axes but the batch have these sizes.
static RankedTensorType withSizes(RankedTensorType type, ArrayRef<int64_t> sizes) {
  SmallVector<int64_t> shape(sizes);
  if (mt::isSplit(type))
    shape.insert(shape.begin(), ShapedType::kDynamic);
  return type.clone(shape);
}

// The numbers; none where all of them are what an empty list stands for.
static SmallVector<int64_t> unless(ArrayRef<int64_t> numbers, int64_t otherwise) {
  bool all = llvm::all_of(numbers, [&](int64_t number) { return number == otherwise; });
  return all ? SmallVector<int64_t>() : SmallVector<int64_t>(numbers);
}

// The product with a matrix of the columns of a vocabulary that a tensor is, with a bias or without; null: it is none.
static mt::MatmulOp vocabularyProduct(mlir::Value stored) {
  constexpr int64_t vocabulary = 1024;
  if (auto sum = stored.getDefiningOp<mt::AddOp>())
    for (auto [logits, bias] : {std::pair(sum.getLhs(), sum.getRhs()), std::pair(sum.getRhs(), sum.getLhs())})
      if (cast<RankedTensorType>(bias.getType()).getRank() == 1 && logits.getType() == stored.getType() &&
          logits.getDefiningOp<mt::MatmulOp>())
        return vocabularyProduct(logits);
  auto product = stored.getDefiningOp<mt::MatmulOp>();
  auto type = cast<RankedTensorType>(stored.getType());
  bool fits = product && mt::isSplit(type) && type.getShape().back() >= vocabulary && !product.getTransposeA() &&
              cast<RankedTensorType>(product.getRhs().getType()).getRank() == 2;
  return fits ? product : mt::MatmulOp();
}

static mlir::Value sliceStored(Ops &ops, mlir::Value stored, ArrayRef<int64_t> starts, ArrayRef<int64_t> sizes,
                               ArrayRef<int64_t> strides);

// More than half of the logits of a vocabulary, say of all tokens but the last, are the product of a part: a loss of
// them reads the result of the product, as it must for logits that are not stored (docs/ir.md, "Losses over many
// classes"). Null: the tensor is something else.
static mlir::Value sliceProduct(Ops &ops, mlir::Value stored, SmallVector<int64_t> starts, SmallVector<int64_t> sizes,
                                ArrayRef<int64_t> strides) {
  mt::MatmulOp product = vocabularyProduct(stored);
  auto type = cast<RankedTensorType>(stored.getType());
  auto elements = [](ArrayRef<int64_t> shape) {
    int64_t count = 1;
    for (int64_t size : shape)
      count = multiply(count, size);
    return count;
  };
  if (!product || sizes.back() != type.getShape().back() ||
      elements(sizes) <= elements(type.getShape().drop_front()) / 2)
    return {};
  RankedTensorType made = withSizes(type, sizes);
  starts.back() = 0;
  sizes.back() = cast<RankedTensorType>(product.getLhs().getType()).getShape().back();
  mlir::Value lines = sliceStored(ops, product.getLhs(), starts, sizes, strides);
  mlir::Value logits = mt::MatmulOp::create(ops.builder, product.getLoc(), made, lines, product.getRhs(),
                                            /*transpose_a=*/false, product.getTransposeB());
  if (product.getResult() == stored)
    return logits;
  auto sum = stored.getDefiningOp<mt::AddOp>();
  mlir::Value bias = sum.getLhs() == product.getResult() ? sum.getRhs() : sum.getLhs();
  return mt::AddOp::create(ops.builder, sum.getLoc(), made, logits, bias);
}

static mlir::Value sliceStored(Ops &ops, mlir::Value stored, ArrayRef<int64_t> starts, ArrayRef<int64_t> sizes,
                               ArrayRef<int64_t> strides) {
  auto type = cast<RankedTensorType>(stored.getType());
  ArrayRef<int64_t> from = type.getShape().drop_front(mt::isSplit(type));
  IndexMap map{0, rowMajor(from)};
  bool inside = true; // of another slice the verifier reports what is wrong
  for (auto [whole, stride, start, size, step] : llvm::zip(from, map.strides, starts, sizes, strides)) {
    inside &= start >= 0 && start < whole && size >= 1 && step >= 1 && (size - 1) <= (whole - 1 - start) / step;
    map.start += inside ? start * stride : 0;
    stride *= inside ? step : 0;
  }
  if (mlir::Value folded = inside ? foldConstant(ops, stored, sizes, map) : mlir::Value())
    return folded;
  if (mlir::Value product =
          inside ? sliceProduct(ops, stored, to_vector(starts), to_vector(sizes), strides) : mlir::Value())
    return product;
  return mt::SliceOp::create(ops.builder, ops.location, withSizes(type, sizes), stored, starts, sizes,
                             unless(strides, 1));
}

Value slice(Ops &ops, const Value &input, ArrayRef<int64_t> starts, ArrayRef<Size> sizes, ArrayRef<int64_t> strides) {
  Value value = decide(input);
  for (size_t count : {starts.size(), sizes.size(), strides.size()})
    checkCount(count, value.rank());
  SmallVector<int> axisOf(value.flat().size(), -1); // of parts that are cut
  bool cuts = false;
  for (size_t axis = 0; axis < value.rank(); ++axis) {
    if (starts[axis] == 0 && strides[axis] == 1 && sizes[axis] == value.size(axis))
      continue;
    int part = movedPart(value, axis);
    if (sizes[axis].times < 1)
      throw Refused("a value without elements");
    axisOf[part] = static_cast<int>(axis);
    cuts |= value.flat()[part].isStored();
  }
  if (cuts) {
    SmallVector<Axis> flat = value.flat();
    auto list = [&](llvm::function_ref<int64_t(int)> ofAxis, llvm::function_ref<int64_t(int)> otherwise) {
      return listOf(value, [&](int part) { return axisOf[part] < 0 ? otherwise(part) : ofAxis(axisOf[part]); });
    };
    auto whole = [&](int part) { return flat[part].size.times; };
    SmallVector<int64_t> newSizes = list([&](int axis) { return sizes[axis].times; }, whole);
    value.stored = sliceStored(ops, value.stored, list([&](int axis) { return starts[axis]; }, [](int) { return 0; }),
                               newSizes, list([&](int axis) { return strides[axis]; }, [](int) { return 1; }));
  }
  for (int part : axisOf)
    if (part >= 0)
      value.axes[part][0].size = sizes[part];
  return ops.tidy(value);
}

Value sliceAxis(Ops &ops, const Value &value, size_t axis, int64_t start, int64_t size, int64_t stride) {
  SmallVector<int64_t> starts(value.rank(), 0), strides(value.rank(), 1);
  Shape sizes = value.shape();
  checkAxis(static_cast<int64_t>(axis), value.rank());
  starts[axis] = start;
  strides[axis] = stride;
  sizes[axis] = size;
  return slice(ops, value, starts, sizes, strides);
}

Value pad(Ops &ops, const Value &input, double fill, ArrayRef<int64_t> low, ArrayRef<int64_t> high,
          ArrayRef<int64_t> interior) {
  if (input.isBoolean())
    return cast(ops, pad(ops, cast(ops, input, ops.i32()), fill, low, high, interior), input.element());
  Value value = decide(input);
  for (size_t count : {low.size(), high.size(), interior.empty() ? value.rank() : interior.size()})
    checkCount(count, value.rank());
  auto inner = [&](size_t axis) { return interior.empty() ? 0 : interior[axis]; };
  SmallVector<int> moved, axisOf(value.flat().size(), -1);
  for (size_t axis = 0; axis < value.rank(); ++axis)
    if (low[axis] > 0 || high[axis] > 0 || inner(axis) > 0) {
      moved.push_back(movedPart(value, axis));
      axisOf[moved.back()] = static_cast<int>(axis);
    }
  if (!moved.empty()) {
    value = withStored(ops, value, moved);
    SmallVector<Axis> flat = value.flat();
    auto list = [&](llvm::function_ref<int64_t(size_t)> ofAxis) {
      return listOf(value, [&](int part) { return axisOf[part] < 0 ? 0 : ofAxis(axisOf[part]); });
    };
    auto newSize = [&](int part) {
      int64_t size = flat[part].size.times, axis = axisOf[part];
      return axis < 0 ? size
                      : std::max<int64_t>(low[axis], 0) + size + multiply(size - 1, inner(axis)) +
                            std::max<int64_t>(high[axis], 0);
    };
    SmallVector<int64_t> newSizes = listOf(value, newSize);
    auto padded = mt::PadOp::create(ops.builder, ops.location, withSizes(value.type(), newSizes), value.stored,
                                    list([&](size_t axis) { return std::max<int64_t>(low[axis], 0); }),
                                    list([&](size_t axis) { return std::max<int64_t>(high[axis], 0); }),
                                    unless(list(inner), 0), llvm::APFloat(static_cast<float>(fill)));
    if (value.element().isF64())
      padded.setValueAttr(ops.builder.getF64FloatAttr(fill));
    for (int part : moved)
      value.axes[axisOf[part]][0].size = newSize(part);
    value.stored = padded;
    value = ops.tidy(value);
  }
  SmallVector<int64_t> starts, strides(value.rank(), 1);
  Shape sizes = value.shape();
  for (size_t axis = 0; axis < value.rank(); ++axis) {
    starts.push_back(std::max<int64_t>(-low[axis], 0));
    if (!sizes[axis].batch)
      sizes[axis].times -= starts.back() + std::max<int64_t>(-high[axis], 0);
  }
  return slice(ops, value, starts, sizes, strides);
}

Value padFrom(Ops &ops, const Value &given, size_t axis, int64_t low, int64_t high, PadMode mode) {
  if (low == 0 && high == 0)
    return given;
  if (given.size(axis).batch)
    throw Refused("padding of the batch");
  Value value = given;
  if (std::min(low, high) < 0) {
    int64_t start = std::max<int64_t>(-low, 0), end = value.size(axis).times - std::max<int64_t>(-high, 0);
    value = sliceAxis(ops, value, axis, start, end - start);
    low = std::max<int64_t>(low, 0);
    high = std::max<int64_t>(high, 0);
  }
  int64_t size = value.size(axis).times, most = mode == PadMode::Reflect ? size - 1 : size;
  if (mode != PadMode::Edge && std::max(low, high) > most)
    throw Refused("padding by " + std::to_string(std::max(low, high)) + " elements of the value's own on an axis of " +
                  std::to_string(size));
  auto number = static_cast<int64_t>(axis);
  auto repeated = [&](int64_t at, int64_t count) {
    Shape shape = value.shape();
    shape[axis] = count;
    return broadcast(sliceAxis(ops, value, axis, at, 1), shape);
  };
  SmallVector<Value> parts;
  if (low > 0)
    parts.push_back(mode == PadMode::Edge   ? repeated(0, low)
                    : mode == PadMode::Wrap ? sliceAxis(ops, value, axis, size - low, low)
                                            : reverse(ops, sliceAxis(ops, value, axis, 1, low), {number}));
  parts.push_back(value);
  if (high > 0)
    parts.push_back(mode == PadMode::Edge ? repeated(size - 1, high)
                    : mode == PadMode::Wrap
                        ? sliceAxis(ops, value, axis, 0, high)
                        : reverse(ops, sliceAxis(ops, value, axis, size - 1 - high, high), {number}));
  return parts.size() == 1 ? value : concat(ops, parts, axis);
}

// Batches one after the other: an axis in front of that of the samples counts them.
static Value concatBatches(Ops &ops, ArrayRef<Value> values, size_t axis) {
  SmallVector<Value> parts;
  for (const Value &value : values) {
    Shape shape = value.shape();
    if (!shape[axis].batch)
      throw Refused("samples beside those of the batch: a concatenation along the batch axis");
    shape.insert(shape.begin() + static_cast<int64_t>(axis), Size(shape[axis].times));
    shape[axis + 1] = batchSize();
    parts.push_back(reshape(ops, value, shape));
  }
  Value made = concat(ops, parts, axis);
  Shape shape = made.shape();
  shape[axis + 1] = {shape[axis].times, true};
  shape.erase(shape.begin() + static_cast<int64_t>(axis));
  return reshape(ops, made, shape);
}

Value concat(Ops &ops, ArrayRef<Value> values, size_t axis) {
  if (values.size() == 1)
    return values[0];
  if (llvm::any_of(values, [&](const Value &value) { return value.size(axis).batch; }))
    return concatBatches(ops, values, axis);
  Size total(0);
  SmallVector<Value> rest;
  for (const Value &input : values) {
    Value value = decide(input);
    if (value.element() != values[0].element())
      throw Refused("a concatenation of values of different types");
    total.times += value.size(axis).times;
    multiply(total.times, 1);
    value.axes.erase(value.axes.begin() + static_cast<int64_t>(axis));
    rest.push_back(value);
  }
  SmallVector<Value> parts = align(rest);
  for (auto [part, value] : llvm::zip(parts, values))
    part.axes.insert(part.axes.begin() + static_cast<int64_t>(axis), decide(value).axes[axis]);
  auto joined = static_cast<int>(firstPart(parts[0], axis));
  SmallVector<int> order = orderOf(parts);
  SmallVector<Axis> flat = parts[0].flat();
  int batch = batchOf(flat);
  if (!llvm::is_contained(order, joined)) // where it is in logical order, so that what follows it stays together
    order.insert(llvm::find_if(order, [&](int part) { return part > joined && part != batch; }), joined);
  SmallVector<mlir::Value> tensors;
  for (const Value &part : parts)
    tensors.push_back(arrange(ops, part, order, order));
  auto place = llvm::find(order, joined) - order.begin();
  auto type = cast<RankedTensorType>(tensors[0].getType());
  SmallVector<int64_t> shape(type.getShape());
  shape[place] = total.times;
  mlir::Value concatenated = mt::ConcatOp::create(ops.builder, ops.location, type.clone(shape), tensors, place);
  Value result = replaced(parts[0], concatenated, order);
  result.axes[axis][0].size = total;
  return ops.tidy(result);
}

Value reverse(Ops &ops, const Value &input, ArrayRef<int64_t> axes) {
  Value value = decide(input);
  SmallVector<int64_t> places;
  for (int64_t axis : axes)
    if (Axis part = value.flat()[movedPart(value, axis)]; part.isStored())
      places.push_back(part.place);
  llvm::sort(places);
  if (places.empty())
    return value;
  return {mt::ReverseOp::create(ops.builder, ops.location, value.type(), value.stored, places), value.axes};
}

Value samplePlaces(Ops &ops) {
  auto type = RankedTensorType::get({ShapedType::kDynamic}, ops.i32());
  return ops.value(mt::IotaOp::create(ops.builder, ops.location, type, 0));
}

Value oneHot(Ops &ops, const Value &ids, int64_t depth) {
  SmallVector<int64_t> shape(ids.type().getShape());
  shape.push_back(depth);
  auto type = RankedTensorType::get(shape, ops.real());
  Value result{mt::OneHotOp::create(ops.builder, ops.location, type, ids.stored), ids.axes};
  result.axes.push_back({Axis{Size(depth), static_cast<int>(shape.size()) - 1}});
  return ops.tidy(result);
}

Value fromEnd(Ops &ops, const Value &ids, int64_t size) {
  Value isBehind = compare(ops, mt::Compare::lt, ids, ops.number(0, ops.i32()));
  return select(ops, isBehind, binary<mt::AddOp>(ops, ids, static_cast<double>(size)), ids);
}

// Rows of a table that all samples share.
static Value takeRows(Ops &ops, const Value &table, const Value &ids, size_t axis) {
  SmallVector<Axis> flat = table.flat();
  int part = movedPart(table, axis);
  SmallVector<int> order = {part};
  SmallVector<std::pair<int, int>> rest;
  for (auto [index, each] : llvm::enumerate(flat))
    if (each.isStored() && static_cast<int>(index) != part)
      rest.push_back({each.place, static_cast<int>(index)});
  llvm::sort(rest);
  for (auto [place, index] : rest)
    order.push_back(index);
  mlir::Value rows = arrange(ops, table, order, {part});
  auto type = cast<RankedTensorType>(rows.getType());
  SmallVector<int64_t> shape(ids.type().getShape());
  auto idAxes = static_cast<int>(shape.size());
  llvm::append_range(shape, type.getShape().drop_front());
  mlir::Value gathered = mt::GatherOp::create(ops.builder, ops.location, type.clone(shape), rows, ids.stored);
  Value result = replaced(table, gathered, order);
  for (Parts &parts : result.axes)
    for (Axis &each : parts)
      if (each.isStored())
        each.place += idAxes - 1;
  result.axes.erase(result.axes.begin() + static_cast<int64_t>(axis));
  result.axes.insert(result.axes.begin() + static_cast<int64_t>(axis), ids.axes.begin(), ids.axes.end());
  return result;
}

// The number that all ids are, as an index of so many; none where they differ or are not known.
static std::optional<int64_t> onlyId(const Value &ids, int64_t count) {
  DenseElementsAttr elements = elementsOf(ids.stored);
  if (!elements || !elements.isSplat())
    return std::nullopt;
  return std::clamp<int64_t>(elements.getSplatValue<int32_t>(), 0, count - 1);
}

// The same, but without the first axis, along which all elements are equal.
static Value ofOneSample(const Value &value) { return {value.stored, {value.axes.begin() + 1, value.axes.end()}}; }

// Looks up parts of each sample. The ids are the same for all samples, or with `own` [b, ...], those of each sample.
static Value takeInSamples(Ops &ops, Value value, const Value &ids, size_t axis, bool own) {
  Size count;
  for (size_t i = own; i < ids.rank(); ++i)
    count = multiply(count.times, ids.size(i).times);
  Value flat = own ? reshape(ops, ids, {batchSize(), count}) : reshape(ops, ids, {count});
  value = withStored(ops, value, {movedPart(value, axis)});
  int place = value.axes[axis][0].place;
  SmallVector<int64_t> shape(value.type().getShape());
  shape[place] = count.times;
  value.stored =
      mt::TakeOp::create(ops.builder, ops.location, value.type().clone(shape), value.stored, whole(ops, flat), place);
  value.axes[axis] = {Axis{count, place}};
  value = ops.tidy(value);
  Shape full = value.shape(), lead = ids.shape();
  full.erase(full.begin() + static_cast<int64_t>(axis));
  full.insert(full.begin() + static_cast<int64_t>(axis), lead.begin() + own, lead.end());
  return reshape(ops, value, full);
}

Value take(Ops &ops, const Value &input, const Value &places, size_t axis) {
  Value value = decide(input), ids = decide(places);
  int part = movedPart(value, axis);
  bool own = axis > 0 && value.size(0).isBatch() && ids.rank() > 0 && ids.size(0).isBatch();
  if (own && !ids.axes[0][0].isStored()) {
    ids = ofOneSample(ids);
    own = false;
  }
  if (std::optional<int64_t> id = onlyId(ids, value.flat()[part].size.times)) {
    Value result = sliceAxis(ops, value, axis, *id, 1);
    result.axes.erase(result.axes.begin() + static_cast<int64_t>(axis));
    for (const Parts &parts : llvm::reverse(ids.axes)) {
      Parts &same = *result.axes.insert(result.axes.begin() + static_cast<int64_t>(axis), parts);
      for (Axis &each : same)
        each.place = -1;
    }
    return result;
  }
  if (own && !value.axes[0][0].isStored()) { // all samples share the table
    Value rows = takeRows(ops, ofOneSample(value), ids, axis - 1);
    SmallVector<int64_t> batchFirst = llvm::to_vector(llvm::seq<int64_t>(0, static_cast<int64_t>(rows.rank())));
    std::rotate(batchFirst.begin(), batchFirst.begin() + static_cast<int64_t>(axis) - 1,
                batchFirst.begin() + static_cast<int64_t>(axis));
    return transpose(rows, batchFirst);
  }
  if (!mt::isSplit(value.type()))
    return takeRows(ops, value, ids, axis);
  if (!own && mt::isSplit(ids.type()))
    throw Refused("a lookup in values that differ between samples, by places that do too and whose first axis is not "
                  "the batch of the values");
  return takeInSamples(ops, value, ids, axis, own);
}

Value scatterRows(Ops &ops, int64_t rows, const Value &ids, const Value &updates) {
  Value places = decide(ids), values = decide(updates);
  Shape lead = places.shape(), shape = values.shape();
  if (shape.size() < lead.size() || !llvm::equal(lead, ArrayRef<Size>(shape).take_front(lead.size())) ||
      batchOf(places.flat()) < 0)
    throw Refused("an update by ids that are not of the samples: ids " + describe(lead) + ", updates " +
                  describe(shape));
  auto *rest = values.axes.begin() + static_cast<int64_t>(lead.size());
  SmallVector<Value> both = align({places, Value{values.stored, {values.axes.begin(), rest}}});
  both[1].axes.append(rest, values.axes.end());
  places = canonical(ops, both[0]), values = canonical(ops, both[1]);
  auto idAxes = static_cast<int>(places.type().getRank());
  SmallVector<int64_t> made = {rows};
  llvm::append_range(made, values.type().getShape().drop_front(idAxes));
  Value result{mt::ScatterAddOp::create(ops.builder, ops.location, RankedTensorType::get(made, ops.real()),
                                        places.stored, values.stored),
               {Parts{Axis{Size(rows), 0}}}};
  for (Parts parts : ArrayRef<Parts>(values.axes).drop_front(lead.size())) {
    for (Axis &part : parts)
      part.place -= part.isStored() ? idAxes - 1 : 0;
    result.axes.push_back(parts);
  }
  return ops.tidy(result);
}

} // namespace mtc::logical
