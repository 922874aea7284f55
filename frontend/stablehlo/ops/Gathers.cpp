// SPDX-License-Identifier: Apache-2.0
//
// Lookups of StableHLO: parts of a value at places that the file says, and slices by index.
#include "frontend/stablehlo/Call.h"

using namespace mlir;

namespace mtc::stablehlo {
namespace {

using logical::Shape;
using logical::Value;

// Parts of any size at places that the file says: each is a slice, whose start is moved so that it lies inside.
void giveSlices(Call &call, const Known &places, ArrayRef<Size> sizes) {
  std::string text = call.text("dimension_numbers");
  SmallVector<int64_t> offsets = listIn(text, "offset_dims"), collapsed = listIn(text, "collapsed_slice_dims"),
                       map = listIn(text, "start_index_map");
  int64_t vector = numberIn(text, "index_vector_dim").value_or(0);
  Value value = call.value(0);
  Shape shape = value.shape(), lead(places.shape.begin(), places.shape.end()), part;
  if (vector < std::ssize(lead)) // the numbers of a place, behind one another
    lead.erase(lead.begin() + vector);
  int64_t count = 1;
  for (const Size &size : lead)
    count = logical::multiply(count, size.times);
  constexpr int64_t manyParts = 256;
  bool last = vector == std::ssize(places.shape) || vector + 1 == std::ssize(places.shape);
  if (!last || count < 1 || count > manyParts || count * std::ssize(map) != places.count() ||
      sizes.size() != shape.size())
    throw Refused("a gather of more than 256 parts, or by indices in another order");
  logical::checkAxes(map, shape.size());
  logical::checkAxes(collapsed, shape.size());
  SmallVector<int64_t> numbers = places.integers();
  SmallVector<Value> parts;
  for (int64_t i = 0; i < count; ++i) {
    SmallVector<int64_t> starts(shape.size(), 0), strides(shape.size(), 1);
    for (auto [index, axis] : llvm::enumerate(map)) {
      bool batch = shape[axis].batch || sizes[axis].batch;
      if (batch ? sizes[axis] != shape[axis] : sizes[axis].times > shape[axis].times)
        throw Refused("a gather of a part of the samples of a batch, or of more than there is");
      int64_t most = batch ? 0 : shape[axis].times - sizes[axis].times;
      starts[axis] = std::clamp<int64_t>(numbers[i * std::ssize(map) + static_cast<int64_t>(index)], 0, most);
    }
    for (size_t axis = 0; axis < shape.size(); ++axis)
      if (!llvm::is_contained(map, static_cast<int64_t>(axis)) && sizes[axis] != shape[axis] && shape[axis].batch)
        throw Refused("a gather of a part of the samples of a batch");
    Value slice = logical::slice(call.ops, value, starts, sizes, strides);
    parts.push_back(logical::expandDims(logical::squeeze(slice, collapsed), {0}));
  }
  part = parts[0].shape();
  Value all = count == 1 ? parts[0] : logical::concat(call.ops, parts, 0);
  Shape full = lead;
  full.append(part.begin() + 1, part.end());
  all = lead.size() == 1 && !lead[0].isOne() ? all : logical::reshape(call.ops, all, full);
  // The result has the parts' axes at offset_dims, and those of the places in between.
  SmallVector<int64_t> permutation;
  auto next = static_cast<int64_t>(lead.size());
  int64_t place = 0;
  for (int64_t i = 0; i < static_cast<int64_t>(all.rank()); ++i)
    permutation.push_back(llvm::is_contained(offsets, i) ? next++ : place++);
  call.give(logical::transpose(all, permutation));
}

// Whole slices by one index: rows of a table, or elements of each sample.
void giveGather(Call &call, ArrayRef<Size> sizes) {
  std::string text = call.text("dimension_numbers");
  SmallVector<int64_t> offsets = listIn(text, "offset_dims"), collapsed = listIn(text, "collapsed_slice_dims"),
                       map = listIn(text, "start_index_map"), batching = listIn(text, "operand_batching_dims");
  int64_t vector = numberIn(text, "index_vector_dim").value_or(0);
  Shape shape = call.shape(0), ids = call.shape(1);
  const Known *known = call.known(0), *places = call.known(1);
  bool whole = map.size() == 1 && collapsed == map && map[0] >= 0 && map[0] < std::ssize(shape);
  for (int64_t i = 0; whole && i < std::ssize(shape) && sizes.size() == shape.size(); ++i)
    whole = i == map[0] ? sizes[i].isOne() : sizes[i] == shape[i];
  if (!whole && batching.empty() && places && !places->hasBatch())
    return giveSlices(call, *places, sizes);
  auto last = static_cast<int64_t>(shape.size()) - 1;
  if (batching.size() > 1 && llvm::equal(batching, llvm::seq<int64_t>(0, last)) && offsets.empty() &&
      listIn(text, "start_indices_batching_dims") == batching && map == ArrayRef<int64_t>{last} && collapsed == map &&
      !shape[last].batch && vector == std::ssize(ids) - 1 && ids.back().isOne() && sizes.size() == shape.size() &&
      llvm::all_of(sizes, [](const Size &size) { return size.isOne(); })) {
    ids.pop_back();
    return call.give(takeOwn(call.ops, call.value(0), logical::reshape(call.ops, call.value(1), ids)));
  }
  bool own = batching == ArrayRef<int64_t>{0} && listIn(text, "start_indices_batching_dims") == ArrayRef<int64_t>{0};
  if (map.size() != 1 || collapsed != map || (!own && !batching.empty()) || sizes.size() != shape.size() ||
      map[0] < 0 || map[0] >= std::ssize(shape))
    throw Refused("a gather of other parts than whole slices by one index");
  int64_t axis = map[0];
  for (int64_t i = 0; i < std::ssize(shape); ++i)
    if (i != axis && !(own && i == 0) && sizes[i] != shape[i])
      throw Refused("a gather of other parts than whole slices by one index");
  // Without the axis of the index, which has one number.
  if (vector < std::ssize(ids)) {
    if (!ids[vector].isOne())
      throw Refused("a gather by several indices");
    ids.erase(ids.begin() + vector);
  }
  if (known && places && known->shape.size() == 1 && !places->hasBatch()) {
    logical::Indices to;
    for (const Size &size : ids)
      to.push_back(size.times);
    return call.give(known->remapped(to, [&, at = size_t{0}](ArrayRef<int64_t>) mutable {
      return std::clamp<int64_t>(static_cast<int64_t>(places->numbers[at++]), 0, known->count() - 1);
    }));
  }
  Value value = call.value(0), at = logical::reshape(call.ops, call.value(1), ids);
  size_t lead = own ? 1 : 0; // axes of the value that stand before the indices' own
  if (own && axis != 1)
    throw Refused("a gather within each sample along another axis than the first");
  // The result has the axes of the indices first, the others at offset_dims.
  Value gathered = logical::take(call.ops, value, at, static_cast<size_t>(axis));
  SmallVector<int64_t> order;
  int64_t before = own ? 1 : axis, count = std::ssize(ids) - static_cast<int64_t>(lead), next = 0;
  SmallVector<int64_t> others;
  for (int64_t i = static_cast<int64_t>(lead); i < static_cast<int64_t>(gathered.rank()); ++i)
    if (i < before || i >= before + count)
      others.push_back(i);
  int64_t index = 0;
  for (int64_t i = 0; i < static_cast<int64_t>(gathered.rank()); ++i)
    if (llvm::is_contained(offsets, i)) {
      if (next >= std::ssize(others))
        throw Refused("expected offset_dims of the slices' axes");
      order.push_back(others[next++]);
    } else {
      order.push_back(own && index == 0 ? 0 : before + index - static_cast<int64_t>(lead));
      ++index;
    }
  SmallVector<int64_t> sorted = order;
  llvm::sort(sorted);
  if (!llvm::equal(sorted, llvm::seq<int64_t>(0, static_cast<int64_t>(gathered.rank()))))
    throw Refused("expected offset_dims of the slices' axes");
  call.give(logical::transpose(gathered, order));
}

void buildGather(Call &call) {
  SmallVector<int64_t> sizes = call.integers("slice_sizes");
  giveGather(call, call.partSizes(0, sizes));
}
void buildDynamicGather(Call &call) { giveGather(call, call.expectKnown(2, "sizes of slices").sizes()); }

} // namespace

llvm::ArrayRef<OpEntry> gatherOps() {
  static constexpr OpEntry entries[] = {{"gather", buildGather, 2}, {"dynamic_gather", buildDynamicGather, 3}};
  return entries;
}

} // namespace mtc::stablehlo
