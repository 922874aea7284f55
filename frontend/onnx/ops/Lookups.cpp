// SPDX-License-Identifier: Apache-2.0
//
// Parts of values by index.
#include "frontend/logical/Functions.h"
#include "frontend/logical/Sorting.h"
#include "frontend/onnx/ForBatches.h"

#include <limits>
#include <numeric>

using namespace mlir;

namespace mtc::onnx {
namespace {

using logical::Shape;
using logical::Value;

// Negative ones count from the end.
int64_t inRange(int64_t index, int64_t size) {
  if (index < -size || index >= size)
    throw Refused("expected an index of " + std::to_string(size) + ", found " + std::to_string(index));
  return index < 0 ? index + size : index;
}

// Indices of an axis of this size, none of them negative.
Known inRange(Known ids, int64_t size) {
  for (auto [number, index] : llvm::zip_equal(ids.numbers, ids.integers()))
    number = static_cast<double>(inRange(index, size));
  return ids;
}

// Ids that the model computes, or the data has; negative ones of the former count from the end. Those of the data are
// checked when the data is read: one that is not from 0 to below the size is an error that names the sample.
Value placesOf(Call &call, const Value &ids, int64_t size) {
  if (!ids.isInteger())
    throw Refused("expected indices of integers");
  return logical::dataOf(ids.stored).empty() ? logical::fromEnd(call.ops, ids, size) : ids;
}

Known gatherKnown(const Known &data, const Known &ids, size_t axis) {
  SmallVector<int64_t> places = ids.integers();
  for (int64_t &place : places)
    place = inRange(place, data.shape[axis]);
  Indices shape(data.shape.begin(), data.shape.begin() + static_cast<int64_t>(axis)), from;
  llvm::append_range(shape, ids.shape);
  shape.append(data.shape.begin() + static_cast<int64_t>(axis) + 1, data.shape.end());
  return data.remapped(shape, [&](ArrayRef<int64_t> indices) {
    int64_t place = places[ids.place(indices.slice(axis, ids.shape.size()))];
    from.assign(indices.begin(), indices.begin() + static_cast<int64_t>(axis));
    from.push_back(place);
    llvm::append_range(from, indices.drop_front(axis + ids.shape.size()));
    return data.place(from);
  });
}

// Where the numbers of all samples lie in one line, `each` of a sample: indices with which every sample reads its own,
// as exporters write PyTorch's as_strided. What a sample reads of its numbers; none: the indices are others.
std::optional<Known> ownElements(const ForBatches &ids, int64_t each) {
  if (ids.repeats() || ids.known[0].type != Known::Type::Integer || ids.known[0].shape.empty() ||
      ids.known[0].shape[0] != ForBatches::batches[0])
    return std::nullopt;
  Known own = firstOf(ids.known[0], 0);
  int64_t reads = own.count();
  for (auto [known, batch] : llvm::zip_equal(ids.known, ForBatches::batches)) {
    if (known.shape[0] != batch || known.count() != batch * reads)
      return std::nullopt;
    for (int64_t i = 0; i < known.count(); ++i) {
      double index = own.numbers[i % reads];
      if (!(index >= 0 && index < static_cast<double>(each)) ||
          known.numbers[i] != index + static_cast<double>(i / reads) * static_cast<double>(each))
        return std::nullopt;
    }
  }
  return own;
}

Value takeOwn(Call &call, const Known &own, int64_t each) {
  Shape shape(own.shape.begin(), own.shape.end());
  shape[0] = logical::batchSize();
  Value samples = logical::reshape(call.ops, call.value(0), {logical::batchSize(), each});
  bool all = own.count() == each;
  for (int64_t i = 0; i < own.count(); ++i)
    all &= own.numbers[i] == static_cast<double>(i);
  if (!all)
    samples = logical::take(call.ops, samples, own.reshaped({own.count()}).lift(call.ops), 1);
  return logical::reshape(call.ops, samples, shape);
}

void buildGather(Call &call) {
  Shape shape = call.shape(0);
  size_t axis = Call::axisOf(call.integer("axis", 0), shape.size());
  const Known *data = call.known(0), *ids = call.known(1);
  if (data && ids)
    return call.give(gatherKnown(*data, *ids, axis));
  if (shape.size() == 1 && shape[0].batch && call.has(1) && call.inputs[1].forBatches)
    if (std::optional<Known> own = ownElements(*call.inputs[1].forBatches, shape[0].times))
      return call.give(takeOwn(call, *own, shape[0].times));
  Value value = call.value(0);
  if (!ids) {
    return call.give(logical::take(call.ops, value, placesOf(call, call.value(1), shape[axis].times), axis));
  }
  if (shape[axis].batch)
    throw Refused("single samples of a batch");
  Known places = inRange(*ids, shape[axis].times);
  if (places.count() != 1)
    return call.give(logical::take(call.ops, value, places.lift(call.ops), axis));
  Value one = logical::sliceAxis(call.ops, value, axis, static_cast<int64_t>(places.numbers[0]), 1);
  shape.erase(shape.begin() + static_cast<int64_t>(axis));
  shape.insert(shape.begin() + static_cast<int64_t>(axis), places.shape.size(), Size());
  call.give(logical::reshape(call.ops, one, shape));
}

// Each element by the index that stands at its place.
Known gatherElementsKnown(const Known &data, const Known &ids, size_t axis) {
  if (ids.shape.size() != data.shape.size())
    throw Refused("expected indices of " + std::to_string(data.shape.size()) + " axes");
  for (size_t i = 0; i < data.shape.size(); ++i)
    if (i != axis && ids.shape[i] > data.shape[i])
      throw Refused("expected indices for parts of the lines, found more of them than lines");
  SmallVector<int64_t> places = ids.integers();
  Indices from;
  return data.remapped(ids.shape, [&](ArrayRef<int64_t> indices) {
    from.assign(indices.begin(), indices.end());
    from[axis] = inRange(places[ids.place(indices)], data.shape[axis]);
    return data.place(from);
  });
}

// Elements of each line, by indices of its own.
void buildGatherElements(Call &call) {
  size_t axis = Call::axisOf(call.integer("axis", 0), call.rank(0));
  if (const Known *data = call.known(0), *places = call.known(1); data && places)
    return call.give(gatherElementsKnown(*data, *places, axis));
  Value value = call.value(0), ids = call.value(1);
  Shape shape = value.shape(), ofIds = ids.shape();
  logical::checkCount(ofIds.size(), shape.size());
  if (shape[axis].batch)
    throw Refused("a lookup among the samples");
  for (size_t i = 0; i < shape.size(); ++i)
    if (i != axis && shape[i] != ofIds[i]) { // indices for the first lines alone
      if (shape[i].batch || ofIds[i].batch || ofIds[i].times > shape[i].times)
        throw Refused("expected indices for lines of " + logical::describe(shape) + ", found " +
                      logical::describe(ofIds));
      value = logical::sliceAxis(call.ops, value, i, 0, ofIds[i].times);
    }
  int64_t size = shape[axis].times;
  if (!ids.isInteger() || !ids.shape()[axis].isOne())
    return call.give(logical::takeAlong(call.ops, value, placesOf(call, ids, size), axis));
  // One element of each line, as of labels: where it is the one of the index, it is added to zeros, as others may be
  // infinite.
  logical::limitData(ids.stored, size);
  Known line = Known::zeros({size}, Known::Type::Integer);
  std::iota(line.numbers.begin(), line.numbers.end(), 0);
  Indices along(shape.size(), 1);
  along[axis] = size;
  Value isPlace =
      logical::compare(call.ops, mt::Compare::eq, placesOf(call, ids, size), line.reshaped(along).lift(call.ops));
  SmallVector<int64_t> axes = {static_cast<int64_t>(axis)};
  Value chosen = logical::select(call.ops, isPlace, value, call.ops.number(0, value.element()));
  call.give(logical::keepDims(logical::reduce(call.ops, mt::Reduction::sum, chosen, axes), axes));
}

// The number of the value's type that changes no maximum, or no minimum, of ScatterElements.
double neutral(const Value &value, bool maximum) {
  double most = value.isFloat() ? std::numeric_limits<double>::infinity()
                                : static_cast<double>(std::numeric_limits<int32_t>::max());
  return maximum ? (value.isFloat() ? -most : -most - 1) : most;
}

// Elements of each line are replaced by updates, or joined with them. Of updates to one place the last one stays.
Value scatterElements(Call &call, const Value &lines, const Value &ids, const Value &updates, StringRef reduction) {
  logical::Ops &ops = call.ops;
  auto rank = static_cast<int64_t>(lines.rank());
  Value isPlace = logical::isPlace(ops, ids, lines.size(lines.rank() - 1).times);
  auto spread = [&](const Value &of, double otherwise) {
    return logical::select(ops, isPlace, logical::expandDims(of, {rank}), ops.number(otherwise, of.element()));
  };
  if (reduction == "none") {
    Known order = Known::zeros({ids.size(ids.rank() - 1).times}, Known::Type::Float);
    std::iota(order.numbers.begin(), order.numbers.end(), 0);
    Value numbered =
        logical::select(ops, isPlace, logical::expandDims(order.lift(ops), {1}), ops.number(-1, ops.real()));
    Value last = logical::reduce(ops, mt::Reduction::max, numbered, {rank - 1});
    Value number = logical::cast(ops, logical::binary<mt::MaximumOp>(ops, last, 0), ops.i32());
    Value taken = logical::takeAlong(ops, updates, number, lines.rank() - 1);
    return logical::select(ops, logical::compare(ops, mt::Compare::ge, last, ops.number(0, ops.real())), taken, lines);
  }
  if (reduction == "add")
    return logical::binary<mt::AddOp>(ops, lines,
                                      logical::reduce(ops, mt::Reduction::sum, spread(updates, 0), {rank - 1}));
  if (reduction == "mul")
    return logical::binary<mt::MulOp>(ops, lines, logical::productAlong(ops, spread(updates, 1), lines.rank() - 1));
  bool maximum = reduction == "max";
  if (!maximum && reduction != "min")
    throw Refused("expected a reduction of none, add, mul, max or min, found " + reduction.str());
  Value found = logical::reduce(ops, maximum ? mt::Reduction::max : mt::Reduction::min,
                                spread(updates, neutral(updates, maximum)), {rank - 1});
  return maximum ? logical::binary<mt::MaximumOp>(ops, lines, found)
                 : logical::binary<mt::MinimumOp>(ops, lines, found);
}

void buildScatterElements(Call &call) {
  size_t axis = Call::axisOf(call.integer("axis", 0), call.rank(0)), last = call.rank(0) - 1;
  std::string reduction = call.text("reduction", "none");
  Value value = call.value(0), ids = call.value(1), updates = call.value(2);
  Shape shape = value.shape(), wanted = shape;
  logical::checkCount(ids.rank(), shape.size());
  wanted[axis] = ids.size(axis);
  if (shape[axis].batch || wanted[axis].batch)
    throw Refused("updates of other samples");
  if (ids.shape() != wanted || updates.shape() != wanted || !ids.isInteger())
    throw Refused("expected indices and updates for all lines of " + logical::describe(shape) + ", found " +
                  logical::describe(ids.shape()) + " and " + logical::describe(updates.shape()));
  if (value.isBoolean() || value.element() != updates.element())
    throw Refused("expected numbers of one type");
  ids = logical::fromEnd(call.ops, ids, shape[axis].times);
  Value made = scatterElements(call, logical::moveAxis(value, axis, last), logical::moveAxis(ids, axis, last),
                               logical::moveAxis(updates, axis, last), reduction);
  call.give(logical::moveAxis(made, last, axis));
}

// The largest or smallest elements of each line, and their places.
void buildTopK(Call &call) {
  size_t axis = Call::axisOf(call.integer("axis", -1), call.rank(0));
  bool largest = call.integer("largest", 1) != 0;
  call.ignore("sorted"); // they always are
  int64_t count = call.hasAttribute("k") ? call.integer("k", 1) : call.expectInteger(1, "the number of elements");
  Value value = call.value(0);
  Value places = logical::sortedPlaces(call.ops, {value}, count, axis, largest);
  call.give(logical::takeAlong(call.ops, value, places, axis));
  call.give(places);
}

// Lists of `depth` indices along the last axis, which name a part of `data` behind its first axes.
struct Lists {
  int64_t depth;
  SmallVector<int64_t> places;
  Indices outer, inner; // the shapes that the lists have, and the parts

  Lists(const Known &data, const Known &ids, size_t batchAxes) : places(ids.integers()) {
    size_t rank = data.shape.size();
    depth = ids.shape.empty() ? 0 : ids.shape.back();
    if (depth < 1 || batchAxes + static_cast<size_t>(depth) > rank || batchAxes >= ids.shape.size())
      throw Refused("expected lists of 1 to " + std::to_string(rank) + " indices, found some of " +
                    std::to_string(depth));
    outer.assign(ids.shape.begin(), ids.shape.end() - 1);
    inner.assign(data.shape.begin() + static_cast<int64_t>(batchAxes) + depth, data.shape.end());
    for (size_t i = 0; i < places.size(); ++i)
      places[i] = inRange(places[i], data.shape[batchAxes + i % static_cast<size_t>(depth)]);
  }
  ArrayRef<int64_t> list(size_t number) const {
    return ArrayRef(places).slice(number * static_cast<size_t>(depth), static_cast<size_t>(depth));
  }
};

Known gatherNdKnown(const Known &data, const Known &ids, size_t batchAxes) {
  Lists lists(data, ids, batchAxes);
  for (size_t i = 0; i < batchAxes; ++i)
    if (data.shape[i] != ids.shape[i])
      throw Refused("expected equal sizes of the axes that are in both, found others");
  Indices shape(lists.outer), from;
  llvm::append_range(shape, lists.inner);
  return data.remapped(shape, [&](ArrayRef<int64_t> indices) {
    int64_t number = 0;
    for (size_t i = 0; i < lists.outer.size(); ++i)
      number = number * lists.outer[i] + indices[i];
    from.assign(indices.begin(), indices.begin() + static_cast<int64_t>(batchAxes));
    llvm::append_range(from, lists.list(static_cast<size_t>(number)));
    llvm::append_range(from, indices.drop_front(lists.outer.size()));
    return data.place(from);
  });
}

// Slices by lists of `depth` indices, each of an axis behind the first ones, which both operands have.
Value gatherNd(Call &call, const Value &data, const Value &ids, size_t batchAxes) {
  logical::Ops &ops = call.ops;
  Shape shape = data.shape();
  size_t last = ids.rank() - 1;
  int64_t depth = ids.size(last).times, total = 1;
  if (ids.size(last).batch || batchAxes + static_cast<size_t>(depth) > shape.size() || batchAxes > last)
    throw Refused("expected lists of 1 to " + std::to_string(shape.size() - batchAxes) + " indices, found some of " +
                  std::to_string(depth));
  if (batchAxes > 1 || (batchAxes == 1 && !(shape[0].isBatch() && ids.size(0).isBatch())))
    throw Refused("a lookup with batch_dims other than 0, and 1 for the batch");
  std::optional<Value> place;
  for (int64_t i = 0; i < depth; ++i) {
    Size size = shape[batchAxes + static_cast<size_t>(i)];
    if (size.batch)
      throw Refused("a lookup among the samples");
    Value index = logical::squeeze(logical::sliceAxis(ops, ids, last, i, 1), {static_cast<int64_t>(last)});
    if (depth == 1) {
      place = placesOf(call, index, size.times);
    } else {
      index = logical::fromEnd(ops, index, size.times);
      index = logical::binary<mt::MinimumOp>(ops, logical::binary<mt::MaximumOp>(ops, index, 0),
                                             static_cast<double>(size.times - 1));
      place = place ? logical::binary<mt::AddOp>(
                          ops, logical::binary<mt::MulOp>(ops, *place, static_cast<double>(size.times)), index)
                    : index;
    }
    total = logical::multiply(total, size.times);
  }
  if (total > std::numeric_limits<int32_t>::max())
    throw Refused("a lookup in more than 2^31 slices");
  Shape flat(shape.begin(), shape.begin() + static_cast<int64_t>(batchAxes));
  flat.push_back(total);
  flat.append(shape.begin() + static_cast<int64_t>(batchAxes) + depth, shape.end());
  return logical::take(ops, logical::reshape(ops, data, flat), *place, batchAxes);
}

void buildGatherNd(Call &call) {
  int64_t batchAxes = call.integer("batch_dims", 0);
  const Known *data = call.known(0), *ids = call.known(1);
  if (batchAxes < 0 || batchAxes > static_cast<int64_t>(call.rank(1)))
    throw Refused("expected batch_dims of 0 to " + std::to_string(call.rank(1)) + ", found " +
                  std::to_string(batchAxes));
  if (data && ids)
    return call.give(gatherNdKnown(*data, *ids, static_cast<size_t>(batchAxes)));
  if (call.rank(0) == 0 || call.rank(1) == 0)
    throw Refused("expected data and indices of one axis or more, found a number");
  Value places = call.value(1);
  if (!places.isInteger())
    throw Refused("expected indices of integers");
  call.give(gatherNd(call, call.value(0), places, static_cast<size_t>(batchAxes)));
}

Known scatterNdKnown(Known result, const Known &ids, const Known &parts) {
  Lists lists(result, ids, 0);
  Indices shape(lists.outer);
  llvm::append_range(shape, lists.inner);
  if (parts.shape != shape || parts.type != result.type || result.hasBatch() || parts.hasBatch())
    throw Refused("expected a part for each list of indices, found others");
  Indices from(result.shape.size());
  int64_t inner = 1;
  for (int64_t size : lists.inner)
    inner *= size;
  for (int64_t i = 0; i < parts.count(); ++i) {
    llvm::copy(lists.list(static_cast<size_t>(i / inner)), from.begin());
    for (int64_t axis = static_cast<int64_t>(from.size()) - 1, rest = i % inner; axis >= lists.depth; --axis) {
      from[axis] = rest % result.shape[axis];
      rest /= result.shape[axis];
    }
    result.numbers[result.place(from)] = parts.numbers[i];
  }
  return result;
}

// Parts of the first operand, by lists of indices, are replaced or joined with updates.
void buildScatterNd(Call &call) {
  std::string reduction = call.text("reduction", "none");
  if (reduction == "none" && call.known(0) && call.known(1) && call.known(2))
    return call.give(scatterNdKnown(*call.known(0), *call.known(1), *call.known(2)));
  const Known &ids = call.expectKnown(1, "indices");
  Value data = call.value(0), updates = call.value(2);
  Known places = Known::zeros(Known::shapeOf(data.shape()).integers(), Known::Type::Integer);
  std::iota(places.numbers.begin(), places.numbers.end(), 0);
  Lists lists(places, ids, 0);
  int64_t slices = 1, inner = 1, count = static_cast<int64_t>(lists.places.size()) / lists.depth;
  for (auto [i, size] : llvm::enumerate(places.shape))
    (static_cast<int64_t>(i) < lists.depth ? slices : inner) *= size;
  if (data.isBoolean() || data.element() != updates.element() || updates.rank() < lists.outer.size())
    throw Refused("expected numbers of one type, a slice for each list of indices");
  call.ops.charge(logical::multiply(logical::multiply(slices, inner), count));
  Known chosen = Known::zeros({1, count}, Known::Type::Integer);
  for (int64_t i = 0; i < count; ++i)
    for (int64_t axis = 0; axis < lists.depth; ++axis)
      chosen.numbers[i] = chosen.numbers[i] * static_cast<double>(places.shape[axis]) +
                          static_cast<double>(lists.list(static_cast<size_t>(i))[axis]);
  logical::Ops &ops = call.ops;
  Value lines = logical::moveAxis(logical::reshape(ops, data, {slices, inner}), 0, 1);
  Value parts = logical::moveAxis(logical::reshape(ops, updates, {count, inner}), 0, 1);
  Value made = scatterElements(call, lines, logical::broadcast(chosen.lift(ops), parts.shape()), parts, reduction);
  call.give(logical::reshape(ops, logical::moveAxis(made, 1, 0), data.shape()));
}

} // namespace

llvm::ArrayRef<OpEntry> lookupOps() {
  static constexpr OpEntry entries[] = {{"Gather", buildGather},
                                        {"GatherElements", buildGatherElements},
                                        {"GatherND", buildGatherNd},
                                        {"Scatter", buildScatterElements}, // its name before opset 11
                                        {"ScatterElements", buildScatterElements},
                                        {"ScatterND", buildScatterNd},
                                        {"TopK", buildTopK}};
  return entries;
}

} // namespace mtc::onnx
