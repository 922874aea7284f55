// SPDX-License-Identifier: Apache-2.0
#include "frontend/logical/Layout.h"

using namespace mlir;

namespace mtc::logical {
namespace {

// Parts of the old shape and sizes of the new one that have equal products, the fewest.
struct Chunk {
  SmallVector<Axis> parts;
  SmallVector<Size> sizes;
  // Whether the parts are the sizes, or are not stored, or are stored one after the other.
  bool isSimple() const {
    if ((parts.size() == 1 && sizes.size() == 1) || llvm::none_of(parts, [](const Axis &p) { return p.isStored(); }))
      return true;
    for (auto [index, part] : llvm::enumerate(parts))
      if (!part.isStored() || part.place != parts[0].place + static_cast<int>(index))
        return false;
    return true;
  }
};

int64_t productOf(ArrayRef<Axis> parts) {
  int64_t product = 1;
  for (const Axis &part : parts)
    product = multiply(product, part.size.times);
  return product;
}
int64_t productOf(ArrayRef<Size> sizes) {
  int64_t product = 1;
  for (const Size &size : sizes)
    product = multiply(product, size.times);
  return product;
}

// The parts of each axis of a new shape. `before`: the elements in front of the batch, -1: there is no batch.
SmallVector<SmallVector<Size>> splitBatch(ArrayRef<Size> shape, int64_t before) {
  SmallVector<SmallVector<Size>> groups;
  for (const Size &size : shape) {
    if (!size.batch) {
      groups.push_back({size});
      if (before > 0)
        before = size.times && before % size.times == 0 ? before / size.times : -1;
      continue;
    }
    if (before < 1 || size.times % before != 0)
      throw Refused("a reshape to " + describe(shape) +
                    " that mixes samples: it folds a part of another axis with the batch");
    SmallVector<Size> group;
    for (Size part : {Size(before), batchSize(), Size(size.times / before)})
      if (!part.isOne())
        group.push_back(part);
    groups.push_back(group);
    before = 0;
  }
  return groups;
}

void addChunks(ArrayRef<Axis> old, ArrayRef<Size> sizes, SmallVectorImpl<Chunk> &chunks) {
  size_t i = 0, j = 0;
  while (i < old.size() || j < sizes.size()) {
    Chunk chunk;
    if (i < old.size())
      chunk.parts.push_back(old[i++]);
    if (j < sizes.size())
      chunk.sizes.push_back(sizes[j++]);
    while (productOf(chunk.parts) != productOf(chunk.sizes)) {
      if (productOf(chunk.parts) < productOf(chunk.sizes) && i < old.size())
        chunk.parts.push_back(old[i++]);
      else if (j < sizes.size())
        chunk.sizes.push_back(sizes[j++]);
      else
        throw Refused("a reshape that mixes samples, or one to another number of elements");
    }
    chunks.push_back(std::move(chunk));
  }
}

// The result where all chunks are simple. Tensor axes stand in the order of the chunks' first ones.
Value reshapeSimple(Ops &ops, const Value &value, ArrayRef<Chunk> chunks, ArrayRef<SmallVector<Size>> groups) {
  SmallVector<const Chunk *> runs;
  for (const Chunk &chunk : chunks)
    if (!chunk.parts.empty() && chunk.parts[0].isStored())
      runs.push_back(&chunk);
  llvm::sort(runs, [](const Chunk *a, const Chunk *b) { return a->parts[0].place < b->parts[0].place; });
  SmallVector<int64_t> stored;
  SmallVector<std::pair<const Chunk *, int>> starts;
  for (const Chunk *chunk : runs) {
    starts.push_back({chunk, static_cast<int>(stored.size())});
    for (const Size &size : chunk->sizes)
      stored.push_back(storedSize(size));
  }
  SmallVector<Axis> newAxes;
  for (const Chunk &chunk : chunks) {
    auto found = llvm::find_if(starts, [&](const auto &start) { return start.first == &chunk; });
    for (auto [index, size] : llvm::enumerate(chunk.sizes))
      newAxes.push_back({size, found == starts.end() ? -1 : found->second + static_cast<int>(index)});
  }
  Value result{ops.reshapeStored(value.stored, stored), {}};
  const Axis *next = newAxes.begin();
  for (const SmallVector<Size> &group : groups) {
    Parts parts;
    for (const Size &size : group)
      parts.push_back(size.isOne() ? Axis{} : *next++);
    result.axes.push_back(parts);
  }
  return result;
}

} // namespace

Value reshape(Ops &ops, const Value &input, ArrayRef<Size> shape) {
  if (ArrayRef<Size>(input.shape()) == shape)
    return input;
  if (input.type().getRank() == 0) { // all elements are equal
    Value result{input.stored, {}};
    for (const Size &size : shape)
      result.axes.push_back({Axis{size}});
    if (!(sizeOf(input.flat()) == sizeOf(result.flat())))
      throw Refused("expected as many elements in " + describe(shape) + " as in " + describe(input.shape()));
    return result;
  }
  Value value = decide(input);
  for (bool again = false;; again = true) {
    SmallVector<Axis> old;
    for (const Axis &part : value.flat())
      if (!part.size.isOne())
        old.push_back(part);
    int at = batchOf(old);
    SmallVector<SmallVector<Size>> groups =
        splitBatch(shape, at < 0 ? -1 : productOf(ArrayRef<Axis>(old).take_front(at)));
    SmallVector<Size> sizes;
    for (const SmallVector<Size> &group : groups)
      for (const Size &size : group)
        if (!size.isOne())
          sizes.push_back(size);
    const Size *there = llvm::find_if(sizes, [](const Size &size) { return size.batch; });
    if ((at < 0) != (there == sizes.end()))
      throw Refused("expected as many elements in " + describe(shape) + " as in " + describe(value.shape()));
    auto before = static_cast<size_t>(there - sizes.begin());
    SmallVector<Chunk> chunks;
    if (at < 0) {
      addChunks(old, sizes, chunks);
    } else {
      addChunks(ArrayRef<Axis>(old).take_front(at), ArrayRef<Size>(sizes).take_front(before), chunks);
      chunks.push_back({{old[at]}, {batchSize()}});
      addChunks(ArrayRef<Axis>(old).drop_front(at + 1), ArrayRef<Size>(sizes).drop_front(before + 1), chunks);
    }
    if (again || llvm::all_of(chunks, [](const Chunk &chunk) { return chunk.isSimple(); }))
      return reshapeSimple(ops, value, chunks, groups);
    value = canonical(ops, value);
  }
}

} // namespace mtc::logical
