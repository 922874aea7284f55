// SPDX-License-Identifier: Apache-2.0
//
// Loops and branches of StableHLO. A loop runs while it is read: its counter is known, and so is each condition. A
// branch that the data decides computes both sides.
#include "frontend/stablehlo/Importer.h"

using namespace mlir;

namespace mtc::stablehlo {

bool isLoop(Operation &op) { return op.getName().getStringRef() == "stablehlo.while"; }
bool isBranch(Operation &op) {
  return llvm::is_contained({"stablehlo.if", "stablehlo.case"}, op.getName().getStringRef());
}

LogicalResult Importer::loop(Operation &op, Values &values, std::vector<Operand> state, std::vector<Operand> &results) {
  if (op.getNumRegions() != 2 ||
      llvm::any_of(op.getRegions(), [&](Region &region) { return region.front().getNumArguments() != state.size(); }))
    return op.emitError("expected a condition and a body with an argument for each operand");
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

// The result of the branch with this number where the index is it, else the other.
static Operand chosen(logical::Ops &ops, const logical::Value &index, int64_t number, const Operand &here,
                      const Operand &there) {
  auto valueOf = [&](const Operand &operand) {
    if (!operand.isThere() || !operand.means.empty())
      throw Refused("a branch whose result is a mean over the samples");
    return operand.lift(ops);
  };
  logical::Value condition =
      index.isBoolean()
          ? index
          : logical::compare(ops, mt::Compare::eq, index, ops.number(static_cast<double>(number), index.element()));
  return {nullptr, logical::select(ops, condition, valueOf(here), valueOf(there)), {}, nullptr};
}

LogicalResult Importer::branch(Operation &op, Values &values, const Operand &index, std::vector<Operand> &results) {
  bool isIf = op.getName().getStringRef() == "stablehlo.if";
  auto count = static_cast<int64_t>(op.getNumRegions());
  if (!index.isThere() || !index.means.empty() || count < 1 || (isIf && count != 2) ||
      llvm::any_of(op.getRegions(), [](Region &region) { return region.front().getNumArguments() != 0; }))
    return op.emitError("expected an index and branches without arguments");
  if (index.known) {
    if (index.known->count() != 1 || index.known->hasBatch())
      return op.emitError("expected a number as the index of a branch");
    auto number = static_cast<int64_t>(index.known->numbers[0]);
    // The first region of an `if` is for true. A number out of range is the last branch of a `case`.
    int64_t taken = isIf ? number == 0 : number < 0 || number >= count ? count - 1 : number;
    return evaluateBlock(op.getRegion(static_cast<unsigned>(taken)).front(), {}, values, results);
  }
  if (failed(evaluateBlock(op.getRegion(static_cast<unsigned>(count - 1)).front(), {}, values, results)))
    return failure();
  logical::Ops ops{builder, locationOf(op), &budget};
  for (int64_t number = count - 2; number >= 0; --number) {
    std::vector<Operand> here;
    if (failed(evaluateBlock(op.getRegion(static_cast<unsigned>(number)).front(), {}, values, here)))
      return failure();
    if (here.size() != results.size())
      return op.emitError("expected branches with the same number of results");
    try {
      for (auto [mine, other] : llvm::zip_equal(here, results))
        other = chosen(ops, index.value, number, mine, other);
    } catch (const Refused &refused) {
      return op.emitError() << "op " << op.getName() << ": " << refused.what();
    }
  }
  return success();
}

} // namespace mtc::stablehlo
