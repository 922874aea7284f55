// SPDX-License-Identifier: Apache-2.0
#include "frontend/logical/Layout.h"

#include "frontend/logical/Constants.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallBitVector.h"

using namespace mlir;

namespace mtc::logical {

Value transpose(const Value &value, ArrayRef<int64_t> permutation) {
  Value result{value.stored, {}};
  checkCount(permutation.size(), value.rank());
  checkAxes(permutation, value.rank());
  for (int64_t axis : permutation)
    result.axes.push_back(value.axes[axis]);
  return result;
}

Value moveAxis(const Value &value, size_t from, size_t to) {
  if (std::max(from, to) >= value.rank())
    throw Refused("expected a value of more axes than " + describe(value.shape()));
  auto order = llvm::to_vector(llvm::seq<int64_t>(0, static_cast<int64_t>(value.rank())));
  order.erase(order.begin() + static_cast<int64_t>(from));
  order.insert(order.begin() + static_cast<int64_t>(to), static_cast<int64_t>(from));
  return transpose(value, order);
}

Value expandDims(const Value &value, ArrayRef<int64_t> axes) {
  Value result{value.stored, {}};
  checkAxes(axes, value.rank() + axes.size());
  size_t next = 0;
  for (size_t i = 0; i < value.rank() + axes.size(); ++i)
    result.axes.push_back(llvm::is_contained(axes, static_cast<int64_t>(i)) ? Parts{Axis{}} : value.axes[next++]);
  return result;
}

Value squeeze(const Value &value, ArrayRef<int64_t> axes) {
  Value result{value.stored, {}};
  checkAxes(axes, value.rank());
  for (auto [index, parts] : llvm::enumerate(value.axes)) {
    if (!llvm::is_contained(axes, static_cast<int64_t>(index)))
      result.axes.push_back(parts);
    else if (!sizeOf(parts).isOne())
      throw Refused("expected an axis of size 1 to leave out, found " + sizeOf(parts).text());
  }
  return result;
}

Value broadcast(const Value &value, ArrayRef<Size> shape) {
  if (value.rank() > shape.size())
    throw Refused("expected at most " + std::to_string(shape.size()) + " axes, found " + describe(value.shape()));
  Value result{value.stored, {}};
  size_t missing = shape.size() - value.rank();
  for (auto [index, size] : llvm::enumerate(shape)) {
    if (index >= missing && value.size(index - missing) == size)
      result.axes.push_back(value.axes[index - missing]);
    else if (index < missing || value.size(index - missing).isOne())
      result.axes.push_back({Axis{size}});
    else
      throw Refused("expected the size " + size.text() + " or 1, found " + value.size(index - missing).text());
  }
  return result;
}

Shape commonShape(ArrayRef<Value> values) {
  Shape common;
  for (const Value &value : values) {
    Shape shape = value.shape();
    if (shape.size() > common.size())
      common.insert(common.begin(), shape.size() - common.size(), Size());
    for (size_t i = 0; i < shape.size(); ++i) {
      Size &to = common[common.size() - shape.size() + i];
      if (to.isOne())
        to = shape[i];
      else if (!shape[i].isOne() && !(shape[i] == to))
        throw Refused("expected sizes that broadcast, found " + to.text() + " and " + shape[i].text());
    }
  }
  return common;
}

// Whether it is a batch axis of which it is open how the batch lies in it.
static bool isOpen(ArrayRef<Axis> parts) {
  return parts.size() == 1 && parts[0].size.batch && parts[0].size.times != 1;
}

static bool haveSameSizes(ArrayRef<Axis> a, ArrayRef<Axis> b) {
  return a.size() == b.size() &&
         llvm::all_of(llvm::zip(a, b), [](auto pair) { return std::get<0>(pair).size == std::get<1>(pair).size; });
}

SmallVector<Value> align(ArrayRef<Value> values) {
  SmallVector<Value> result(values);
  for (size_t axis = 0; axis < values[0].rank(); ++axis) {
    const Parts *wanted = nullptr;
    for (const Value &value : values) {
      if (!(value.size(axis) == values[0].size(axis)))
        throw Refused("expected equal sizes, found " + values[0].size(axis).text() + " and " + value.size(axis).text());
      bool stored = llvm::any_of(value.axes[axis], [](const Axis &part) { return part.isStored(); });
      if (isOpen(value.axes[axis]) || (wanted && !stored))
        continue;
      bool wantedStored = wanted && llvm::any_of(*wanted, [](const Axis &part) { return part.isStored(); });
      if (wanted && wantedStored && !haveSameSizes(*wanted, value.axes[axis]))
        throw Refused("an operation on two values whose axis of " + value.size(axis).text() +
                      " has the batch at different places: it mixes samples");
      if (!wantedStored)
        wanted = &value.axes[axis];
    }
    if (!wanted)
      wanted = &values[0].axes[axis];
    Parts sizes(*wanted);
    for (Axis &part : sizes)
      part.place = -1;
    for (Value &value : result)
      if (!haveSameSizes(value.axes[axis], sizes))
        value.axes[axis] = sizes;
  }
  return result;
}

Value decide(const Value &value) {
  Value result = value;
  for (Parts &parts : result.axes)
    if (isOpen(parts))
      parts = {Axis{batchSize()}, Axis{Size(parts[0].size.times)}};
  return result;
}

static SmallVector<int> storedInOrder(ArrayRef<Axis> flat) {
  SmallVector<int> parts;
  for (auto [index, part] : llvm::enumerate(flat))
    if (part.isStored())
      parts.push_back(static_cast<int>(index));
  llvm::sort(parts, [&](int a, int b) { return flat[a].place < flat[b].place; });
  return parts;
}

SmallVector<int> orderOf(ArrayRef<Value> values) {
  size_t count = values[0].flat().size();
  llvm::SmallBitVector stored(count);
  for (const Value &value : values)
    for (int part : storedInOrder(value.flat()))
      stored.set(part);
  for (const Value &value : values)
    if (SmallVector<int> mine = storedInOrder(value.flat()); mine.size() == stored.count())
      return mine;
  SmallVector<Axis> flat = values[0].flat();
  SmallVector<int> best(stored.set_bits());
  llvm::stable_sort(best, [&](int a, int b) { return flat[a].size.batch > flat[b].size.batch; });
  return best;
}

int64_t storedSize(const Size &size) {
  if (size.batch && size.times != 1)
    throw Refused("a batch axis whose parts are not known");
  return size.batch ? ShapedType::kDynamic : size.times;
}

mlir::Value broadcastStored(Ops &ops, mlir::Value stored, ArrayRef<int64_t> shape) {
  auto type = cast<RankedTensorType>(stored.getType());
  if (type.getShape() == shape)
    return stored;
  if (!mt::isSplit(type)) { // axes that are missing in front are repeated
    ArrayRef<int64_t> sizes = type.getShape();
    stored = ops.reshapeStored(stored, sizes.drop_while([](int64_t size) { return size == 1; }));
    sizes = cast<RankedTensorType>(stored.getType()).getShape();
    IndexMap map{0, SmallVector<int64_t>(shape.size() - sizes.size(), 0)};
    for (auto [size, stride] : llvm::zip(sizes, rowMajor(sizes)))
      map.strides.push_back(size == 1 ? 0 : stride);
    if (mlir::Value folded = foldConstant(ops, stored, shape, map))
      return folded;
  }
  return mt::BroadcastOp::create(ops.builder, ops.location, type.clone(shape), stored);
}

static mlir::Value transposeStored(Ops &ops, mlir::Value stored, SmallVector<int64_t> permutation) {
  auto isIdentity = [&] {
    return llvm::equal(permutation, llvm::seq<int64_t>(0, static_cast<int64_t>(permutation.size())));
  };
  if (isIdentity())
    return stored;
  if (mt::isSplit(cast<RankedTensorType>(stored.getType())) && permutation[0] != 0)
    throw Refused("a batch axis that is not stored first");
  if (auto inner = stored.getDefiningOp<mt::TransposeOp>()) {
    for (int64_t &axis : permutation)
      axis = inner.getPermutation()[axis];
    stored = inner.getOperand();
    if (isIdentity())
      return stored;
  }
  auto type = cast<RankedTensorType>(stored.getType());
  SmallVector<int64_t> shape, strides = rowMajor(type.getShape());
  IndexMap map;
  for (int64_t axis : permutation) {
    shape.push_back(type.getDimSize(axis));
    map.strides.push_back(strides[axis]);
  }
  if (mlir::Value folded = foldConstant(ops, stored, shape, map))
    return folded;
  return mt::TransposeOp::create(ops.builder, ops.location, type.clone(shape), stored, permutation);
}

mlir::Value arrange(Ops &ops, const Value &value, ArrayRef<int> order, ArrayRef<int> expand) {
  SmallVector<Axis> flat = value.flat();
  SmallVector<int64_t> permutation, narrow, full;
  if (llvm::count_if(order, [&](int part) { return flat[part].size.batch; }) > 1)
    throw Refused("a value that has the batch as two axes, " + describe(value.shape()) +
                  ": each sample with every other one");
  for (int part : order) {
    bool stored = flat[part].isStored();
    if (stored)
      permutation.push_back(flat[part].place);
    narrow.push_back(stored ? storedSize(flat[part].size) : 1);
    full.push_back(stored || llvm::is_contained(expand, part) ? storedSize(flat[part].size) : 1);
  }
  return broadcastStored(ops, ops.reshapeStored(transposeStored(ops, value.stored, permutation), narrow), full);
}

Value replaced(const Value &value, mlir::Value stored, ArrayRef<int> order) {
  Value result{stored, value.axes};
  int number = 0;
  for (Parts &parts : result.axes)
    for (Axis &part : parts) {
      const int *found = llvm::find(order, number++);
      part.place = found == order.end() ? -1 : static_cast<int>(found - order.begin());
    }
  return result;
}

SmallVector<int> everyPart(size_t count) { return llvm::to_vector(llvm::seq<int>(0, static_cast<int>(count))); }

size_t firstPart(const Value &value, size_t axis) {
  size_t count = 0;
  for (size_t i = 0; i < axis; ++i)
    count += value.axes[i].size();
  return count;
}

SmallVector<int> batchFirst(ArrayRef<Axis> flat) {
  SmallVector<int> parts;
  for (auto [index, part] : llvm::enumerate(flat))
    if (!part.size.isOne())
      parts.push_back(static_cast<int>(index));
  int *batch = llvm::find(parts, batchOf(flat));
  if (batch != parts.end())
    std::rotate(parts.begin(), batch, batch + 1);
  return parts;
}

Value withStored(Ops &ops, const Value &value, ArrayRef<int> parts) {
  SmallVector<Axis> flat = value.flat();
  SmallVector<int> order = storedInOrder(flat), missing;
  for (int part : parts)
    if (!flat[part].isStored())
      missing.push_back(part);
  if (missing.empty())
    return value;
  llvm::append_range(order, missing);
  return replaced(value, arrange(ops, value, order, missing), order);
}

Value canonical(Ops &ops, const Value &input) {
  Value value = decide(input);
  SmallVector<int> wanted = batchFirst(value.flat());
  return replaced(value, arrange(ops, value, wanted, wanted), wanted);
}

Value storedLast(Ops &ops, const Value &input, size_t axis) {
  Value value = decide(input);
  if (value.size(axis).batch)
    throw Refused("an operation along the batch");
  auto last = static_cast<int>(firstPart(value, axis)); // of several parts there is always the batch
  SmallVector<int> order;
  for (int part : storedInOrder(value.flat()))
    if (part != last)
      order.push_back(part);
  order.push_back(last);
  return replaced(value, arrange(ops, value, order, {last}), order);
}

mlir::Value whole(Ops &ops, const Value &input) {
  Value value = decide(input);
  SmallVector<int> every = everyPart(value.flat().size());
  mlir::Value stored = arrange(ops, value, every, every);
  SmallVector<int64_t> shape;
  for (const Size &size : value.shape())
    shape.push_back(storedSize(size));
  return ops.reshapeStored(stored, shape);
}

} // namespace mtc::logical
