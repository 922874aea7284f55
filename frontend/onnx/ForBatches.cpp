// SPDX-License-Identifier: Apache-2.0
#include "frontend/onnx/ForBatches.h"

using namespace mlir;

namespace mtc::onnx {

using logical::Shape;
using logical::Size;

int64_t ForBatches::count() const {
  int64_t count = 0;
  for (const Known &each : known)
    count += each.count();
  return count;
}

Known ForBatches::at(size_t index) const {
  if (!repeats())
    return known[index];
  Indices shape(known[0].shape);
  shape[batch] = batches[index];
  return known[0].expanded(shape);
}

logical::Value ForBatches::value(logical::Ops &ops) const {
  if (!repeats())
    throw Refused("a value that depends on the place of a sample in the batch");
  Shape shape(known[0].shape.begin(), known[0].shape.end());
  shape[batch] = logical::batchSize();
  return logical::broadcast(known[0].lift(ops), shape);
}

Known firstOf(const Known &known, size_t axis) {
  Indices shape(known.shape);
  shape[axis] = 1;
  return known.remapped(shape, [&](ArrayRef<int64_t> indices) { return known.place(indices); });
}

namespace {

bool isForBatches(const Operand &operand) { return operand.known || operand.forBatches || !operand.isThere(); }

// On the place of a sample, or on the number of them.
bool depends(const Operand &operand) {
  return operand.forBatches ? !operand.forBatches->repeats() : operand.known && operand.known->hasBatch();
}

std::shared_ptr<const Known> knownFor(const Operand &operand, size_t index) {
  if (operand.forBatches)
    return std::make_shared<const Known>(operand.forBatches->at(index));
  if (!operand.known || !operand.known->hasBatch())
    return operand.known;
  Known known = *operand.known;
  for (int64_t i = 0; i < known.count(); ++i)
    if (known.size(i).batch)
      known.numbers[i] *= static_cast<double>(ForBatches::batches[index]);
  known.timesBatch.clear();
  return std::make_shared<const Known>(std::move(known));
}

// The results for one of the batches; null: one that is not known.
std::vector<std::shared_ptr<const Known>> resultsFor(Call &call, BuildOp build, size_t index) {
  Block scratch; // of ops that are made on the way
  OpBuilder builder(call.ops.builder.getContext());
  builder.setInsertionPointToEnd(&scratch);
  logical::Ops ops{builder, call.ops.location, call.ops.budget};
  std::vector<Operand> inputs;
  for (const Operand &input : call.inputs)
    inputs.push_back({knownFor(input, index), {}, nullptr, nullptr, input.type});
  Call trial(ops, call.node, std::move(inputs), call.stream, /*fixedBatch=*/0, call.opset);
  std::vector<std::shared_ptr<const Known>> results;
  try {
    build(trial);
    for (const Operand &result : trial.unread().empty() ? ArrayRef(trial.results) : ArrayRef<Operand>())
      results.push_back(result.known && !result.known->hasBatch() ? result.known : nullptr);
  } catch (const Refused &) { // what the model itself does is said
    results.clear();
  }
  return results;
}

// The axis of 2 and of 3; -1: there is none, or more than one, or sizes depend on the batch in another way.
int batchAxis(const Known &two, const Known &three) {
  int differing = -1;
  if (two.shape.size() != three.shape.size())
    return -1;
  for (size_t axis = 0; axis < two.shape.size(); ++axis) {
    if (two.shape[axis] == three.shape[axis])
      continue;
    if (differing >= 0 || two.shape[axis] != ForBatches::batches[0] || three.shape[axis] != ForBatches::batches[1])
      return -1;
    differing = static_cast<int>(axis);
  }
  return differing;
}

ForBatches joined(const Known &two, const Known &three) {
  int axis = batchAxis(two, three);
  if (axis >= 0) {
    Known first = firstOf(two, static_cast<size_t>(axis));
    if (first.expanded(two.shape).numbers == two.numbers && first.expanded(three.shape).numbers == three.numbers)
      return {{std::move(first)}, static_cast<size_t>(axis)};
  }
  return {{two, three}, 0};
}

// Indices that differ between samples by the sample's place alone, along the batch axis of what they pick from.
bool picksOwnSample(const ForBatches &data, const ForBatches &ids) {
  std::vector<Known> rest = ids.known;
  for (Known &each : rest) {
    int64_t depth = each.shape.empty() ? 0 : each.shape.back();
    if (static_cast<int64_t>(data.batch) >= depth)
      return false;
    for (int64_t i = static_cast<int64_t>(data.batch); i < each.count(); i += depth)
      each.numbers[i] = 0;
  }
  return joined(rest[0], rest[1]).repeats();
}

// Whether what the node gives for two batches holds for all.
bool speaksForAll(const Call &call, bool refused) {
  llvm::StringRef op = call.node.op;
  bool isOurs = op == "GatherND" || op == "GatherElements" || op == "ScatterND"; // `mt` has them for some operands
  if (refused && !isOurs)
    return false;
  int64_t dependent = llvm::count_if(call.inputs, depends);
  if (dependent == 0)
    return true;
  if (op == "GatherND") {
    const ForBatches *data = call.inputs[0].forBatches.get(), *ids = call.inputs[1].forBatches.get();
    return dependent == 1 && data && ids && !ids->repeats() && picksOwnSample(*data, *ids);
  }
  static constexpr llvm::StringLiteral moving[] = {"Add",    "Cast",      "CastLike", "Concat",  "ConstantOfShape",
                                                   "Expand", "Identity",  "Range",    "Reshape", "Squeeze",
                                                   "Sub",    "Transpose", "Unsqueeze"};
  return llvm::is_contained(moving, op) || (op == "Mul" && dependent == 1);
}

// The result, by what is known of it.
void settle(Call &call, Operand &result, const Known &two, const Known &three) {
  if (two.shape == three.shape && two.numbers == three.numbers && two.type == three.type) {
    result = {std::make_shared<const Known>(two), {}, nullptr};
    return;
  }
  result.forBatches = std::make_shared<const ForBatches>(joined(two, three));
  try {
    result.value = result.forBatches->value(call.ops);
  } catch (const Refused &) { // what the node made, if it did
  }
}

} // namespace

bool computeForBatches(Call &call, BuildOp build, bool refused, int64_t most) {
  if (refused)
    call.results.clear();
  bool all = !refused && llvm::all_of(call.results, [](const Operand &result) { // or an operand that is passed on
    return (result.known && !result.known->hasBatch()) || result.sequence || result.forBatches;
  });
  if (all || call.inputs.empty() || !llvm::all_of(call.inputs, isForBatches) || !speaksForAll(call, refused))
    return !refused;
  auto two = resultsFor(call, build, 0), three = resultsFor(call, build, 1);
  size_t count = std::min(two.size(), three.size());
  int64_t elements = 0;
  for (size_t i = 0; i < count; ++i)
    elements += two[i] && three[i] ? two[i]->count() + three[i]->count() : 0;
  if (elements > most)
    return !refused;
  if (refused)
    call.results.resize(count);
  for (size_t i = 0; i < std::min(count, call.results.size()); ++i)
    if (two[i] && three[i] && !call.results[i].known && !call.results[i].forBatches)
      settle(call, call.results[i], *two[i], *three[i]);
  return !refused || (count > 0 && llvm::all_of(call.results, [](const Operand &each) { return each.isThere(); }));
}

} // namespace mtc::onnx
