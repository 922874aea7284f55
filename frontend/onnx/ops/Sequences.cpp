// SPDX-License-Identifier: Apache-2.0
//
// Lists of values, which exporters make where a function returns several.
#include "frontend/onnx/OpTable.h"

using namespace mlir;

namespace mtc::onnx {
namespace {

const std::vector<Operand> &expectSequence(const Call &call) {
  if (call.count() == 0 || !call.inputs[0].sequence)
    throw Refused("expected a list of values, found another operand");
  return *call.inputs[0].sequence;
}

void giveSequence(Call &call, std::vector<Operand> parts) {
  Operand operand;
  operand.sequence = std::make_shared<const std::vector<Operand>>(std::move(parts));
  call.results.push_back(std::move(operand));
}

// One number is the size of all parts but the last; without numbers parts have one element, and lose the axis.
void buildSplitToSequence(Call &call) {
  logical::Shape shape = call.shape(0);
  size_t axis = Call::axisOf(call.integer("axis", 0), shape.size());
  bool keeps = call.integer("keepdims", 1) != 0 || call.has(1);
  if (shape[axis].batch)
    throw Refused("parts of the samples of a batch");
  int64_t size = shape[axis].times;
  SmallVector<int64_t> sizes = {1};
  bool equal = true;
  if (call.has(1)) {
    const Known &requested = call.expectKnown(1, "sizes");
    sizes = requested.integers();
    equal = requested.shape.empty();
  }
  constexpr int64_t most = 10000;
  if (sizes.empty() || llvm::any_of(sizes, [](int64_t part) { return part < 1; }) || (equal && size / sizes[0] > most))
    throw Refused("expected parts of 1 element or more, at most 10000 of them");
  std::vector<Operand> parts;
  for (int64_t begin = 0, index = 0; begin < size; ++index) {
    int64_t part = equal ? std::min(sizes[0], size - begin) : index < std::ssize(sizes) ? sizes[index] : size;
    if (part > size - begin)
      throw Refused("expected parts of " + std::to_string(size) + " elements together");
    constexpr int64_t cost = 1024; // in elements of constants
    call.ops.charge(cost);
    logical::Value value = logical::sliceAxis(call.ops, call.value(0), axis, begin, part);
    parts.push_back({nullptr, keeps ? value : logical::squeeze(value, {static_cast<int64_t>(axis)}), nullptr});
    begin += part;
  }
  giveSequence(call, std::move(parts));
}

void buildSequenceConstruct(Call &call) { giveSequence(call, call.inputs); }

void buildSequenceAt(Call &call) {
  const std::vector<Operand> &parts = expectSequence(call);
  auto size = static_cast<int64_t>(parts.size()), index = call.expectInteger(1, "an index");
  if (index < -size || index >= size)
    throw Refused("expected an index of " + std::to_string(size) + " values, found " + std::to_string(index));
  call.results.push_back(parts[static_cast<size_t>(index < 0 ? index + size : index)]);
}

} // namespace

llvm::ArrayRef<OpEntry> sequenceOps() {
  static constexpr OpEntry entries[] = {{"SplitToSequence", buildSplitToSequence},
                                        {"SequenceConstruct", buildSequenceConstruct},
                                        {"SequenceAt", buildSequenceAt}};
  return entries;
}

} // namespace mtc::onnx
