// SPDX-License-Identifier: Apache-2.0
//
// Branches of StableHLO. One that the data decides computes both sides.
#include "frontend/stablehlo/Importer.h"

using namespace mlir;

namespace mtc::stablehlo {

bool isBranch(Operation &op) {
  return llvm::is_contained({"stablehlo.if", "stablehlo.case"}, op.getName().getStringRef());
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
  if (followsKnown && !index.known) {
    results.resize(op.getNumResults());
    return success();
  }
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
