// SPDX-License-Identifier: Apache-2.0
//
// Other shapes of the same elements, or of repeated ones.
#include "frontend/onnx/OpTable.h"

using namespace mlir;

namespace mtc::onnx {
namespace {

using logical::Shape;
using logical::Value;

Size sizeOf(ArrayRef<Size> shape) {
  Size total;
  for (const Size &size : shape)
    total = {logical::multiply(total.times, size.times), total.batch || size.batch};
  return total;
}

// What is known stays known, where its new shape does not hold the batch.
void giveReshaped(Call &call, ArrayRef<Size> shape) {
  const Known *known = call.known(0);
  if (!known || llvm::any_of(shape, [](const Size &size) { return size.batch; }))
    return call.give(logical::reshape(call.ops, call.value(0), shape));
  Indices sizes;
  for (const Size &size : shape)
    sizes.push_back(size.times);
  if (sizeOf(shape).times != known->count())
    throw Refused("expected as many elements in " + logical::describe(shape) + " as in " +
                  logical::describe(call.shape(0)));
  call.give(known->reshaped(sizes));
}

// 0 copies a size, -1 is what is left. A file with a batch of a fixed size says it in the first axis.
Shape resolve(Call &call, const Shape &from, Shape to) {
  Size total = sizeOf(from), rest;
  Size *open = nullptr;
  bool copies = call.integer("allowzero", 0) == 0;
  for (auto [index, size] : llvm::enumerate(to)) {
    if (size.times == 0 && copies) {
      if (index >= from.size())
        throw Refused("expected a size to copy, found none");
      size = from[index];
    }
    if (size.times == -1 && !size.batch) {
      if (open)
        throw Refused("expected one size of -1, found two");
      open = &size;
    } else if (size.times < 1) {
      throw Refused("expected sizes of 1 or more, found " + size.text());
    } else {
      if (rest.batch && size.batch)
        throw Refused("the square of the number of samples");
      rest = {logical::multiply(rest.times, size.times), rest.batch || size.batch};
    }
  }
  int64_t all = total.times;
  bool fixed = total.batch && !rest.batch && call.fixedBatch > 0 && !to.empty() && &to[0] != open &&
               to[0].times % call.fixedBatch == 0;
  if (fixed && (open ? all % (rest.times / call.fixedBatch) == 0 : all == rest.times / call.fixedBatch)) {
    to[0] = {to[0].times / call.fixedBatch, true};
    rest = {rest.times / call.fixedBatch, true};
  }
  if (open) {
    if (all % rest.times)
      throw Refused("a reshape of " + logical::describe(from) + " to another number of elements");
    *open = {all / rest.times, total.batch && !rest.batch};
  }
  return to;
}

void buildReshape(Call &call) {
  const Known &shape = call.expectKnown(1, "a shape");
  if (shape.type != Known::Type::Integer || shape.shape.size() != 1)
    throw Refused("expected a shape of integers");
  giveReshaped(call, resolve(call, call.shape(0), shape.sizes()));
}

void buildFlatten(Call &call) {
  Shape shape = call.shape(0);
  int64_t requested = call.integer("axis", 1);
  size_t axis = requested == static_cast<int64_t>(shape.size()) ? shape.size() : Call::axisOf(requested, shape.size());
  giveReshaped(call, {sizeOf(ArrayRef(shape).take_front(axis)), sizeOf(ArrayRef(shape).drop_front(axis))});
}

void buildSqueeze(Call &call) {
  Shape shape = call.shape(0), remaining;
  std::optional<SmallVector<int64_t>> requested = call.operandOrAttribute(1, "axes");
  SmallVector<int64_t> axes = Call::axesOf(requested.value_or(SmallVector<int64_t>()), shape.size());
  for (auto [index, size] : llvm::enumerate(shape)) {
    bool goes = requested ? llvm::is_contained(axes, static_cast<int64_t>(index)) : size.isOne();
    if (goes && !size.isOne())
      throw Refused("expected an axis of size 1 to leave out, found " + size.text());
    if (!goes)
      remaining.push_back(size);
  }
  giveReshaped(call, remaining);
}

void buildUnsqueeze(Call &call) {
  std::optional<SmallVector<int64_t>> requested = call.operandOrAttribute(1, "axes");
  if (!requested)
    throw Refused("expected axes, found none");
  Shape shape = call.shape(0);
  for (int64_t axis : Call::axesOf(*requested, shape.size() + requested->size()))
    shape.insert(shape.begin() + axis, Size());
  giveReshaped(call, shape);
}

void buildTranspose(Call &call) {
  auto rank = static_cast<int64_t>(call.rank(0));
  SmallVector<int64_t> reversed;
  for (int64_t i = rank; i-- > 0;)
    reversed.push_back(i);
  SmallVector<int64_t> order = call.integers("perm", reversed), sorted = order;
  llvm::sort(sorted);
  if (!llvm::equal(sorted, llvm::seq<int64_t>(0, rank)))
    throw Refused("expected an order of " + std::to_string(rank) + " axes as perm");
  if (const Known *known = call.known(0))
    return call.give(known->transposed(order));
  call.give(logical::transpose(call.value(0), order));
}

// The common shape of both.
void buildExpand(Call &call) {
  const Known &to = call.expectKnown(1, "a shape");
  Shape wanted = to.sizes(), have = call.shape(0);
  if (wanted.size() > have.size())
    have.insert(have.begin(), wanted.size() - have.size(), Size());
  wanted.insert(wanted.begin(), have.size() - wanted.size(), Size());
  for (auto [size, old] : llvm::zip(wanted, have)) {
    if (size.times < 1)
      throw Refused("expected sizes of 1 or more, found " + size.text());
    if (size.isOne() || (old.isBatch() && size == Size(call.fixedBatch)))
      size = old;
    else if (!old.isOne() && old != size)
      throw Refused("expected sizes that broadcast, found " + old.text() + " and " + size.text());
  }
  const Known *known = call.known(0);
  if (!known || llvm::any_of(wanted, [](const Size &size) { return size.batch; }))
    return call.give(logical::broadcast(call.value(0), wanted));
  Indices sizes;
  for (const Size &size : wanted)
    sizes.push_back(size.times);
  call.give(known->expanded(sizes));
}

// Repeats each axis: adds an axis in front of it, broadcasts along that axis, and joins the two.
void buildTile(Call &call) {
  const Known &times = call.expectKnown(1, "numbers of repetitions");
  Shape shape = call.shape(0), repeats = times.sizes(), full, result;
  if (repeats.size() != shape.size())
    throw Refused("expected " + std::to_string(shape.size()) + " numbers of repetitions, found " +
                  std::to_string(repeats.size()));
  SmallVector<int64_t> added;
  for (auto [index, pair] : llvm::enumerate(llvm::zip(repeats, shape))) {
    auto [repeat, size] = pair;
    if (repeat.times < 1 || (repeat.batch && size.batch))
      throw Refused("expected 1 repetition or more, found " + repeat.text());
    added.push_back(2 * static_cast<int64_t>(index));
    full.append({repeat, size});
    result.push_back({logical::multiply(repeat.times, size.times), repeat.batch || size.batch});
  }
  const Known *known = call.known(0);
  if (!known || times.hasBatch()) {
    Value spread = logical::broadcast(logical::expandDims(call.value(0), added), full);
    return call.give(logical::reshape(call.ops, spread, result));
  }
  Indices sizes, from(shape.size());
  for (const Size &size : result)
    sizes.push_back(size.times);
  call.give(known->remapped(sizes, [&](ArrayRef<int64_t> indices) {
    for (size_t i = 0; i < from.size(); ++i)
      from[i] = indices[i] % known->shape[i];
    return known->place(from);
  }));
}

// [N, C, H, W] to [N, C / k^2, H k, W k], and back.
void buildDepthToSpace(Call &call) {
  int64_t k = call.integer("blocksize", 1);
  std::string mode = call.text("mode", "DCR");
  Value x = call.value(0);
  constexpr int64_t most = 1 << 10;
  if (x.rank() != 4 || k < 1 || k > most || x.size(1).times % (k * k) || (mode != "DCR" && mode != "CRD"))
    throw Refused("expected images whose channels the square of blocksize divides, found " +
                  logical::describe(x.shape()));
  Shape shape = x.shape();
  int64_t channels = shape[1].times / (k * k);
  bool first = mode == "DCR";
  Shape parts =
      first ? Shape{shape[0], k, k, channels, shape[2], shape[3]} : Shape{shape[0], channels, k, k, shape[2], shape[3]};
  SmallVector<int64_t> order = first ? SmallVector<int64_t>{0, 3, 4, 1, 5, 2} : SmallVector<int64_t>{0, 1, 4, 2, 5, 3};
  Value moved = logical::transpose(logical::reshape(call.ops, x, parts), order);
  call.give(logical::reshape(
      call.ops, moved,
      {shape[0], channels, logical::multiply(shape[2].times, k), logical::multiply(shape[3].times, k)}));
}

void buildSpaceToDepth(Call &call) {
  int64_t k = call.integer("blocksize", 1);
  Value x = call.value(0);
  if (x.rank() != 4 || k < 1 || x.size(2).times % k || x.size(3).times % k)
    throw Refused("expected images whose sizes blocksize divides, found " + logical::describe(x.shape()));
  Shape shape = x.shape();
  Value parts = logical::reshape(call.ops, x, {shape[0], shape[1], shape[2].times / k, k, shape[3].times / k, k});
  std::string mode = call.text("mode", "DCR");
  if (mode != "DCR" && mode != "CRD")
    throw Refused("expected a mode of DCR or CRD, found " + mode);
  Value moved = logical::transpose(parts, mode == "DCR" ? ArrayRef<int64_t>{0, 3, 5, 1, 2, 4}
                                                        : ArrayRef<int64_t>{0, 1, 3, 5, 2, 4});
  call.give(logical::reshape(
      call.ops, moved, {shape[0], logical::multiply(shape[1].times, k * k), shape[2].times / k, shape[3].times / k}));
}

} // namespace

llvm::ArrayRef<OpEntry> shapeOps() {
  static constexpr OpEntry entries[] = {
      {"Reshape", buildReshape},     {"Flatten", buildFlatten},           {"Squeeze", buildSqueeze},
      {"Unsqueeze", buildUnsqueeze}, {"Transpose", buildTranspose},       {"Expand", buildExpand},
      {"Tile", buildTile},           {"DepthToSpace", buildDepthToSpace}, {"SpaceToDepth", buildSpaceToDepth}};
  return entries;
}

} // namespace mtc::onnx
