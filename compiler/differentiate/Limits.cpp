// SPDX-License-Identifier: Apache-2.0
#include "compiler/differentiate/Limits.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace mtc {

template <typename Op> static void lower(Op op, int64_t limit) {
  op.setLimit(std::min<uint64_t>(limit, op.getLimit().value_or(limit)));
}

// Limits the inputs and targets from which moves and casts bring values to `index`. A slice is not followed, because
// the columns of an input may be ids of different things.
static void limitSources(Value index, int64_t limit) {
  llvm::SetVector<Value> seen;
  seen.insert(index);
  for (size_t i = 0; i < seen.size(); ++i) {
    Operation *op = seen[i].getDefiningOp();
    if (auto input = dyn_cast<mt::InputOp>(op))
      lower(input, limit);
    else if (auto target = dyn_cast<mt::TargetOp>(op))
      lower(target, limit);
    else if ((op->hasTrait<mt::Moves>() && !isa<mt::SliceOp>(op)) || isa<mt::CastOp>(op))
      seen.insert(op->operand_begin(), op->operand_end());
  }
}

void setLimits(mt::ModelOp model) {
  model.walk([](mt::IndexOpInterface lookup) { limitSources(lookup.getIndex(), lookup.getIndexLimit()); });
}

} // namespace mtc
