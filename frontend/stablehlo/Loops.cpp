// SPDX-License-Identifier: Apache-2.0
//
// Loops of StableHLO. What is known decides when a loop ends, so the number of steps is found first: the loop is
// followed with what is known alone. Then its body is made once, as that of an mt.scan. There a counter is a number of
// each step: a slice that begins at it is an input of the loop, an update that begins at it is an output. Where mt.scan
// cannot have the body, the ops of all steps are made one after the other.
#include "frontend/stablehlo/Importer.h"

#include "llvm/ADT/ScopeExit.h"

using namespace mlir;

namespace mtc::stablehlo {

bool isLoop(Operation &op) { return op.getName().getStringRef() == "stablehlo.while"; }

namespace {

// A value of the body that is known in all steps.
Operand knownInSteps(const logical::Loop &loop, std::vector<std::shared_ptr<const Known>> ofStep) {
  logical::KnownInSteps known = loop.known(std::move(ofStep));
  Operand operand{known.same};
  operand.steps = known.steps;
  return operand;
}

bool isSlice(Operation &op) {
  return llvm::is_contained({"dynamic_slice", "real_dynamic_slice", "gather", "dynamic_gather"},
                            op.getName().stripDialect());
}

// What an update of a carry writes; null: its parts do not follow one another.
std::shared_ptr<const StepWrite> writeOf(logical::Ops &ops, logical::Loop &loop, llvm::ArrayRef<Operand> operands) {
  using Order = logical::Loop::Order;
  const logical::Value &old = operands[0].value;
  std::optional<size_t> carry = old ? loop.numberOf(old) : std::nullopt;
  if (!carry || !operands[1].isThere() || !operands[1].means.empty())
    return nullptr;
  logical::Value part = operands[1].lift(ops);
  logical::Shape shape = old.shape(), sizes = part.shape();
  SmallVector<size_t> moved;
  for (size_t i = 0; i < shape.size() && shape.size() == sizes.size(); ++i)
    if (!(shape[i] == sizes[i]))
      moved.push_back(i);
  if (moved.size() != 1 || operands.size() != shape.size() + 2 || shape[moved[0]].batch || sizes[moved[0]].batch ||
      !operands[moved[0] + 2].steps || operands[moved[0] + 2].steps->loop != &loop)
    return nullptr;
  size_t axis = moved[0];
  int64_t size = sizes[axis].times;
  SmallVector<int64_t> starts;
  for (const auto &known : operands[axis + 2].steps->ofStep) {
    SmallVector<int64_t> start = known->integers();
    if (start.size() != 1 || size > shape[axis].times)
      return nullptr;
    starts.push_back(std::clamp<int64_t>(start[0], 0, shape[axis].times - size));
  }
  Order order = starts[0] < starts[1] ? Order::Forward : Order::Backward;
  for (size_t i = 1; i < starts.size(); ++i)
    if (starts[i] != starts[i - 1] + (order == Order::Forward ? size : -size))
      return nullptr;
  return std::make_shared<const StepWrite>(
      StepWrite{*carry, axis, std::min(starts.front(), starts.back()), {part, order}});
}

} // namespace

LogicalResult Importer::buildOfSteps(Operation &op, std::vector<Operand> operands, std::vector<Operand> &results) {
  logical::Ops ops{builder, locationOf(op), &budget};
  auto make = [&](std::vector<Operand> here, std::vector<Operand> &made) {
    return ++evaluated <= maxEvaluated && succeeded(buildOnce(op, std::move(here), made));
  };
  try {
    if (!built || llvm::any_of(operands, [](const Operand &operand) { return !operand.means.empty(); }))
      throw Refused("a mean over the samples beside numbers of the steps");
    if (op.getName().stripDialect() == "dynamic_update_slice" && operands.size() > 2)
      if (std::shared_ptr<const StepWrite> write = writeOf(ops, *built, operands)) {
        results.emplace_back().write = write;
        return success();
      }
    return success(logical::makeOfSteps(ops, *built, std::move(operands), isSlice(op), make, results));
  } catch (const Refused &refused) {
    return op.emitError() << refused.what();
  }
}

// Finds the number of steps and what is known of the state in each; false: it does not follow from what is known.
bool Importer::followLoop(Operation &op, Values &values, llvm::ArrayRef<Operand> start, States &states) {
  Block scratch; // of ops that are made on the way, for nothing
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToEnd(&scratch);
  auto before = llvm::make_scope_exit([&, was = followsKnown] { followsKnown = was; });
  followsKnown = true;
  std::vector<bool> changes(start.size()); // to something that is not known
  for (bool again = true; again;) {
    again = false;
    states.clear();
    std::vector<Operand> state(start.size());
    for (size_t i = 0; i < state.size(); ++i)
      if (!changes[i])
        state[i].known = start[i].known;
    while (!again) {
      std::vector<Operand> verdict, next;
      states.push_back(state);
      if (failed(evaluateBlock(op.getRegion(0).front(), state, values, verdict)) || verdict.size() != 1 ||
          !verdict[0].known || verdict[0].known->count() != 1)
        return false;
      if (verdict[0].known->numbers[0] == 0)
        break;
      if (failed(evaluateBlock(op.getRegion(1).front(), state, values, next)) || next.size() != state.size())
        return false;
      for (size_t i = 0; i < state.size(); ++i) {
        bool lost = state[i].known && !next[i].known;
        changes[i] = changes[i] || lost;
        again |= lost;
        state[i].known = state[i].known ? next[i].known : nullptr;
      }
    }
  }
  return true;
}

// False: mt.scan cannot have it.
bool Importer::buildLoop(Operation &op, Values &values, llvm::ArrayRef<Operand> state, std::vector<Operand> &results) {
  ScopedDiagnosticHandler silent(builder.getContext(), [](Diagnostic &) { return success(); });
  States states;
  if (!followLoop(op, values, state, states) || states.size() < 3)
    return false;
  Block &body = op.getRegion(1).front();
  auto outer = llvm::make_scope_exit([&, was = built] { built = was; });
  try {
    logical::Ops ops{builder, locationOf(op), &budget};
    logical::Loop loop(ops, std::ssize(states) - 1);
    built = &loop;
    std::vector<Operand> arguments(state), next;
    std::vector<size_t> carried; // the numbers of the values that go from step to step
    for (size_t i = 0; i < state.size(); ++i) {
      if (body.back().getOperand(i) == body.getArgument(i))
        continue;
      if (states.back()[i].known) {
        std::vector<std::shared_ptr<const Known>> ofStep;
        for (size_t step = 0; step + 1 < states.size(); ++step)
          ofStep.push_back(states[step][i].known);
        arguments[i] = knownInSteps(loop, std::move(ofStep));
        continue;
      }
      if (!state[i].isThere() || !state[i].means.empty())
        return false;
      logical::Value start;
      loop.outside([&] { start = state[i].lift(ops); });
      arguments[i] = {nullptr, loop.carry(start)};
      carried.push_back(i);
    }
    if (failed(evaluateBlock(body, arguments, values, next)) || next.size() != state.size())
      return false;
    SmallVector<logical::Value> after(carried.size());
    SmallVector<logical::Loop::Output> outputs;
    for (auto [number, i] : llvm::enumerate(carried)) {
      if (next[i].write && next[i].write->carry == number)
        outputs.push_back(next[i].write->part);
      else if (next[i].steps && next[i].steps->loop == &loop)
        after[number] = loop.part(next[i].steps);
      else if (next[i].isThere() && next[i].means.empty())
        after[number] = next[i].lift(ops);
      else
        return false;
    }
    SmallVector<logical::Value> made = loop.finish(after, outputs);
    results.assign(state.begin(), state.end());
    for (size_t i = 0; i < state.size(); ++i)
      if (states.back()[i].known)
        results[i] = states.back()[i];
    const logical::Value *value = made.begin();
    for (auto [number, i] : llvm::enumerate(carried))
      if (after[number])
        results[i] = {nullptr, *value++};
    for (size_t i : carried) {
      if (!next[i].write)
        continue;
      size_t axis = next[i].write->axis;
      logical::Value base = state[i].lift(ops), all = logical::moveAxis(*value++, 0, axis);
      logical::Shape shape = base.shape();
      shape[axis] = Size(logical::multiply(all.size(axis).times, all.size(axis + 1).times));
      all = logical::reshape(ops, all, shape);
      if (shape == base.shape()) {
        results[i] = {nullptr, all};
        continue;
      }
      auto assembly = std::make_shared<Assembly>(Assembly{base, axis, {{next[i].write->first, all}}});
      results[i] = {nullptr, base, {}, assembly};
    }
    return true;
  } catch (const Refused &) {
    return false;
  }
}

LogicalResult Importer::loop(Operation &op, Values &values, std::vector<Operand> state, std::vector<Operand> &results) {
  if (op.getNumRegions() != 2 ||
      llvm::any_of(op.getRegions(), [&](Region &region) { return region.front().getNumArguments() != state.size(); }))
    return op.emitError("expected a condition and a body with an argument for each operand");
  if (followsKnown) {
    results.resize(op.getNumResults());
    return success();
  }
  auto isOfSteps = [](const Operand &operand) { return operand.steps || operand.write; };
  if (llvm::any_of(state, isOfSteps))
    return op.emitError("expected a state that does not depend on the number of the step");
  if (buildLoop(op, values, state, results))
    return success();
  results.clear();
  return unrollLoop(op, values, std::move(state), results);
}

LogicalResult Importer::unrollLoop(Operation &op, Values &values, std::vector<Operand> state,
                                   std::vector<Operand> &results) {
  Block &condition = op.getRegion(0).front(), &body = op.getRegion(1).front();
  while (true) {
    std::vector<Operand> verdict, next;
    if (failed(evaluateBlock(condition, state, values, verdict)))
      return failure();
    if (verdict.size() != 1 || !verdict[0].known || verdict[0].known->count() != 1)
      return op.emitError("op stablehlo.while: a loop whose number of steps the data decides; a number that the file "
                          "says is supported");
    if (verdict[0].known->numbers[0] == 0)
      break;
    if (failed(evaluateBlock(body, state, values, next)))
      return failure();
    if (next.size() != state.size())
      return op.emitError("expected a body with a result for each operand, found ") << next.size();
    state = std::move(next);
  }
  results = std::move(state);
  return success();
}

} // namespace mtc::stablehlo
