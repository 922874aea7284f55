// SPDX-License-Identifier: Apache-2.0
#include "frontend/logical/Layout.h"

using namespace mlir;

namespace mtc::logical {
namespace {

// Parts of the old shape and sizes of the new one that have equal products, the fewest.
struct Chunk {
  SmallVector<Axis> parts;
  SmallVector<int> numbers; // of the parts
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

// `numbers`: which parts of `flat` these chunks have.
void addChunks(ArrayRef<Axis> flat, ArrayRef<int> numbers, ArrayRef<Size> sizes, SmallVectorImpl<Chunk> &chunks) {
  size_t i = 0, j = 0;
  while (i < numbers.size() || j < sizes.size()) {
    Chunk chunk;
    auto addPart = [&] {
      chunk.numbers.push_back(numbers[i]);
      chunk.parts.push_back(flat[numbers[i++]]);
    };
    if (i < numbers.size())
      addPart();
    if (j < sizes.size())
      chunk.sizes.push_back(sizes[j++]);
    while (productOf(chunk.parts) != productOf(chunk.sizes)) {
      if (productOf(chunk.parts) < productOf(chunk.sizes) && i < numbers.size())
        addPart();
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

// The value in an order in which chunks of several parts are stored one after the other: those parts are repeated where
// they are not stored, and all parts stand in logical order, the batch first.
Value rearranged(Ops &ops, const Value &value, ArrayRef<Chunk> chunks) {
  SmallVector<Axis> flat = value.flat();
  SmallVector<int> expand, order;
  for (const Chunk &chunk : chunks)
    if ((chunk.parts.size() != 1 || chunk.sizes.size() != 1) &&
        llvm::any_of(chunk.parts, [](const Axis &part) { return part.isStored(); }))
      llvm::append_range(expand, chunk.numbers);
  for (int part : batchFirst(flat))
    if (flat[part].isStored() || llvm::is_contained(expand, part))
      order.push_back(part);
  return replaced(value, arrange(ops, value, order, expand), order);
}

// The chunks of a value and a shape, and the parts that the shape's axes then have.
SmallVector<Chunk> chunksOf(const Value &value, ArrayRef<Size> shape, SmallVector<SmallVector<Size>> &groups) {
  SmallVector<Axis> flat = value.flat();
  SmallVector<int> old;
  for (int part : everyPart(flat.size()))
    if (!flat[part].size.isOne())
      old.push_back(part);
  int *at = llvm::find_if(old, [&](int part) { return flat[part].size.batch; });
  bool batch = at != old.end();
  if (llvm::count_if(old, [&](int part) { return flat[part].size.batch; }) > 1)
    throw Refused("a reshape of " + describe(value.shape()) + ", each sample with every other one");
  ArrayRef<int> front(old.begin(), at), back = ArrayRef<int>(at, old.end()).drop_front(batch);
  int64_t before = batch ? 1 : -1;
  for (int part : batch ? front : ArrayRef<int>())
    before = multiply(before, flat[part].size.times);
  groups = splitBatch(shape, before);
  SmallVector<Size> sizes;
  for (const SmallVector<Size> &group : groups)
    for (const Size &size : group)
      if (!size.isOne())
        sizes.push_back(size);
  Size *there = llvm::find_if(sizes, [](const Size &size) { return size.batch; });
  if (batch != (there != sizes.end()))
    throw Refused("expected as many elements in " + describe(shape) + " as in " + describe(value.shape()));
  SmallVector<Chunk> chunks;
  addChunks(flat, front, ArrayRef<Size>(sizes.begin(), there), chunks);
  if (batch) {
    chunks.push_back({{flat[*at]}, {*at}, {batchSize()}});
    addChunks(flat, back, ArrayRef<Size>(there + 1, sizes.end()), chunks);
  }
  return chunks;
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
  SmallVector<SmallVector<Size>> groups;
  SmallVector<Chunk> chunks = chunksOf(value, shape, groups);
  if (!llvm::all_of(chunks, [](const Chunk &chunk) { return chunk.isSimple(); })) {
    value = rearranged(ops, value, chunks);
    chunks = chunksOf(value, shape, groups);
  }
  return reshapeSimple(ops, value, chunks, groups);
}

} // namespace mtc::logical
