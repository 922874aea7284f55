// SPDX-License-Identifier: Apache-2.0
//
// Parts of values by index.
#include "frontend/onnx/ForBatches.h"

#include "llvm/ADT/SetVector.h"

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

// The inputs from which moves and casts alone bring a value here; none: it is computed. Such ids are checked when the
// data is read: one that is not from 0 to below the size is an error that names the sample.
SmallVector<mt::InputOp> dataOf(mlir::Value value) {
  llvm::SetVector<mlir::Value> seen;
  SmallVector<mt::InputOp> inputs;
  seen.insert(value);
  for (size_t i = 0; i < seen.size(); ++i) {
    Operation *op = seen[i].getDefiningOp();
    if (auto input = dyn_cast_or_null<mt::InputOp>(op))
      inputs.push_back(input);
    else if (op && op->getNumOperands() &&
             ((op->hasTrait<mt::Moves>() && !isa<mt::SliceOp>(op)) || isa<mt::CastOp>(op)))
      seen.insert(op->operand_begin(), op->operand_end());
    else
      return {};
  }
  return inputs;
}

// Ids that the model computes, or the data has; negative ones of the former count from the end.
Value placesOf(Call &call, const Value &ids, int64_t size) {
  if (!ids.isInteger())
    throw Refused("expected indices of integers");
  return dataOf(ids.stored).empty() ? logical::fromEnd(call.ops, ids, size) : ids;
}

// The same of ids that no op of `mt` looks up: the input itself says their limit.
void limitData(mlir::Value value, int64_t size) {
  for (mt::InputOp input : dataOf(value))
    input.setLimit(std::min<uint64_t>(static_cast<uint64_t>(size), input.getLimit().value_or(size)));
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

// One element of each line, by an index of its own.
void buildGatherElements(Call &call) {
  size_t axis = Call::axisOf(call.integer("axis", 0), call.rank(0));
  if (const Known *data = call.known(0), *places = call.known(1); data && places)
    return call.give(gatherElementsKnown(*data, *places, axis));
  Value value = call.value(0), ids = call.value(1);
  Shape shape = value.shape(), wanted = shape;
  wanted[axis] = Size();
  if (ids.shape() != wanted || shape[axis].batch || !ids.isInteger())
    throw Refused("a lookup of more than one element of each line, or in parts of the lines");
  int64_t size = shape[axis].times;
  limitData(ids.stored, size);
  // Where an element is the one of the index, it is added to zeros: others may be infinite.
  Known line = Known::zeros({size}, Known::Type::Integer);
  for (int64_t i = 0; i < size; ++i)
    line.numbers[i] = static_cast<double>(i);
  Indices along(shape.size(), 1);
  along[axis] = size;
  Value isPlace =
      logical::compare(call.ops, mt::Compare::eq, placesOf(call, ids, size), line.reshaped(along).lift(call.ops));
  SmallVector<int64_t> axes = {static_cast<int64_t>(axis)};
  Value chosen = logical::select(call.ops, isPlace, value, call.ops.number(0, value.element()));
  call.give(logical::keepDims(logical::reduce(call.ops, mt::Reduction::sum, chosen, axes), axes));
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

// Rows of a table, or anything of constants.
void buildGatherNd(Call &call) {
  int64_t batchAxes = call.integer("batch_dims", 0);
  const Known *data = call.known(0), *ids = call.known(1);
  if (batchAxes < 0 || batchAxes > static_cast<int64_t>(call.rank(1)))
    throw Refused("expected batch_dims of 0 to " + std::to_string(call.rank(1)) + ", found " +
                  std::to_string(batchAxes));
  if (data && ids)
    return call.give(gatherNdKnown(*data, *ids, static_cast<size_t>(batchAxes)));
  Shape shape = call.shape(1);
  if (call.rank(0) == 0)
    throw Refused("expected data of one axis or more, found a number");
  if (batchAxes != 0 || shape.empty() || !shape.back().isOne())
    throw Refused("a lookup by several indices in what the model computes");
  Value places = ids ? inRange(*ids, call.shape(0)[0].times).lift(call.ops)
                     : placesOf(call, call.value(1), call.shape(0)[0].times);
  places = logical::squeeze(places, {static_cast<int64_t>(shape.size()) - 1});
  call.give(logical::take(call.ops, call.value(0), places, 0));
}

// Of constants: parts of the first operand are replaced.
void buildScatterNd(Call &call) {
  std::string reduction = call.text("reduction", "none");
  if (reduction != "none")
    throw Refused("a ScatterND with the reduction " + reduction);
  Known result = call.expectKnown(0, "data to replace parts of");
  const Known &ids = call.expectKnown(1, "indices"), &parts = call.expectKnown(2, "parts");
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
  call.give(std::move(result));
}

} // namespace

llvm::ArrayRef<OpEntry> lookupOps() {
  static constexpr OpEntry entries[] = {{"Gather", buildGather},
                                        {"GatherElements", buildGatherElements},
                                        {"GatherND", buildGatherNd},
                                        {"ScatterND", buildScatterNd}};
  return entries;
}

} // namespace mtc::onnx
