// SPDX-License-Identifier: Apache-2.0
//
// Values of StableHLO some part of which is replaced.
#include "frontend/stablehlo/Call.h"

using namespace mlir;

namespace mtc::stablehlo {

logical::Value Assembly::whole(logical::Ops &ops) const {
  SmallVector<logical::Value> pieces;
  int64_t next = 0, end = base.size(axis).times;
  auto fill = [&](int64_t to) {
    if (next < to)
      pieces.push_back(logical::sliceAxis(ops, base, axis, next, to - next));
  };
  for (const auto &[start, part] : parts) {
    fill(start);
    pieces.push_back(part);
    next = start + part.size(axis).times;
  }
  fill(end);
  return pieces.size() == 1 ? pieces[0] : logical::concat(ops, pieces, axis);
}

const logical::Value *Assembly::find(int64_t start, int64_t size) const {
  auto found = parts.find(start);
  return found != parts.end() && found->second.size(axis).times == size ? &found->second : nullptr;
}

namespace {

using logical::Shape;
using logical::Value;

// Where an update begins on each axis, moved so that it lies inside.
SmallVector<int64_t> startsOf(Call &call, const Shape &shape, const Shape &update) {
  SmallVector<int64_t> starts;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i].batch || update[i].batch) {
      if (!(shape[i] == update[i]))
        throw Refused("an update of a part of the samples of a batch");
      starts.push_back(0);
      continue;
    }
    SmallVector<int64_t> start = call.expectKnown(i + 2, "a start").integers();
    if (start.size() != 1 || update[i].times < 1 || update[i].times > shape[i].times)
      throw Refused("expected an update of one element or more, and of no more than there are");
    starts.push_back(std::clamp<int64_t>(start[0], 0, shape[i].times - update[i].times));
  }
  return starts;
}

// Elements of constants.
void updateKnown(Call &call, ArrayRef<int64_t> starts) {
  const Known &old = *call.known(0), &update = *call.known(1);
  Known result = old;
  logical::Indices at(starts.size());
  int64_t next = 0;
  update.remapped(update.shape, [&](ArrayRef<int64_t> indices) {
    for (size_t i = 0; i < at.size(); ++i)
      at[i] = starts[i] + indices[i];
    result.numbers[old.place(at)] = update.numbers[next];
    return next++;
  });
  call.give(result);
}

void buildUpdate(Call &call) {
  Shape shape = call.shape(0), update = call.shape(1);
  if (shape.size() != update.size() || call.operands.size() != shape.size() + 2)
    throw Refused("expected an update with the axes of the operand, and a start for each");
  SmallVector<int64_t> starts = startsOf(call, shape, update);
  const Known *old = call.known(0), *part = call.known(1);
  if (old && part && !old->hasBatch() && !part->hasBatch())
    return updateKnown(call, starts);
  SmallVector<size_t> moved;
  for (size_t i = 0; i < shape.size(); ++i)
    if (!(shape[i] == update[i]))
      moved.push_back(i);
  if (moved.empty())
    return call.give(call.value(1));
  if (moved.size() > 1) { // of several axes: the update with zeros around it, where it is not 0 of itself
    SmallVector<int64_t> high;
    for (size_t i = 0; i < shape.size(); ++i)
      high.push_back(shape[i].batch ? 0 : shape[i].times - update[i].times - starts[i]);
    Value inside = call.ops.number(1, call.ops.real(), update), value = call.value(1), base = call.value(0);
    inside = logical::pad(call.ops, inside, 0, starts, high);
    Value there = logical::compare(call.ops, mt::Compare::ne, inside, call.ops.number(0, call.ops.real()));
    return call.give(logical::select(call.ops, there, logical::pad(call.ops, value, 0, starts, high), base));
  }
  size_t axis = moved[0];
  int64_t start = starts[axis], size = update[axis].times;
  auto assembly = std::make_shared<Assembly>();
  const std::shared_ptr<const Assembly> &before = call.operands[0].assembly;
  if (before && before->axis == axis)
    *assembly = *before;
  else
    *assembly = {call.value(0), axis, {}};
  auto overlaps = [&](const auto &entry) {
    return entry.first < start + size && start < entry.first + entry.second.size(axis).times;
  };
  if (!assembly->find(start, size) && llvm::any_of(assembly->parts, overlaps))
    *assembly = {assembly->whole(call.ops), axis, {}};
  call.ops.charge(static_cast<int64_t>(assembly->parts.size())); // of the copy
  assembly->parts[start] = call.value(1);
  call.results.push_back({nullptr, assembly->base, {}, assembly});
}

} // namespace

llvm::ArrayRef<OpEntry> updateOps() {
  static constexpr OpEntry entries[] = {{"dynamic_update_slice", buildUpdate, anyNumber}};
  return entries;
}

} // namespace mtc::stablehlo
