// SPDX-License-Identifier: Apache-2.0
//
// Element-wise work on the result of a matmul or a convolution goes into its kernel: the result is in registers there.
#include "compiler/fuse/Groups.h"

#include "mlir/Dialect/Shard/IR/ShardOps.h"

namespace mtc {

using namespace mlir;
using mt::KernelKind;

static RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

// Operands that an epilogue can read beside an element of the result: their own element, that of a vector along the
// last axis, a scalar.
static bool fitsTile(const Groups &groups, Value operand, RankedTensorType tile) {
  RankedTensorType type = typeOf(operand);
  if (Operation *op = operand.getDefiningOp();
      groups.isCheap(operand) && type.getRank() != 0 && !isa<mt::ConstantOp>(op))
    return false;
  return type.getRank() == 0 || type.getShape() == tile.getShape() ||
         (type.getRank() == 1 && !mt::isSplit(type) && type.getDimSize(0) == tile.getShape().back());
}

static bool isEpilogueOp(const Groups &groups, Operation *op, RankedTensorType tile) {
  return isa<mt::ElementwiseOpInterface>(op) && typeOf(op->getResult(0)).getShape() == tile.getShape() &&
         llvm::all_of(op->getOperands(), [&](Value operand) { return fitsTile(groups, operand, tile); });
}

// Takes in users, and producers that only this unit uses, until there are none.
void Groups::absorb(unsigned matmul) {
  RankedTensorType tile = typeOf((*llvm::find_if(units[matmul].ops, isProduct))->getResult(0));
  // What the product itself reads must be there before the kernel.
  auto feedsProduct = [&](Operation *op) {
    return llvm::any_of(users(op), [&](Operation *user) { return isProduct(user) && unitOf(user) == matmul; });
  };
  auto candidate = [&](Operation *op) -> std::optional<unsigned> {
    std::optional<unsigned> unit = unitOf(op);
    if (!unit || feedsProduct(op) || *unit == matmul || units[*unit].ops.size() != 1 ||
        !isEpilogueOp(*this, op, tile) || !canMerge(matmul, *unit))
      return std::nullopt;
    return units[*unit].kind == KernelKind::rows || units[*unit].kind == KernelKind::elementwise ||
                   units[*unit].kind == KernelKind::single
               ? unit
               : std::nullopt;
  };
  auto onlyUsedHere = [&](Operation *op) {
    return llvm::all_of(users(op), [&](Operation *user) { return unitOf(user) == matmul; });
  };
  auto next = [&]() -> std::optional<unsigned> {
    for (Operation *op : units[matmul].ops) {
      for (Operation *user : users(op))
        if (std::optional<unsigned> unit = candidate(user))
          return unit;
      for (Value operand : op->getOperands())
        if (Operation *from = operand.getDefiningOp(); from && onlyUsedHere(from) && !isProduct(op))
          if (std::optional<unsigned> unit = candidate(from))
            return unit;
    }
    return std::nullopt;
  };
  while (std::optional<unsigned> unit = next())
    merge(matmul, *unit);
}

// Gives back ops that save no traffic here: their operands are stored anyway, and a rows kernel follows that can do
// them.
void Groups::release(unsigned matmul) {
  auto outside = [&](Operation *user) { return unitOf(user) != matmul; };
  auto inRows = [&](Operation *user) {
    std::optional<unsigned> unit = unitOf(user);
    return unit && units[*unit].kind == KernelKind::rows;
  };
  // Or computed from such values for this op alone: released after it.
  std::function<bool(Value, Operation *)> storedAnyway = [&](Value operand, Operation *op) {
    if (producer(operand) != matmul)
      return true;
    if (llvm::any_of(operand.getUsers(), [&](Operation *user) { return user != op && outside(user); }))
      return true;
    Operation *from = operand.getDefiningOp();
    return !isProduct(from) && operand.hasOneUse() &&
           llvm::all_of(from->getOperands(), [&](Value value) { return storedAnyway(value, from); });
  };
  // What is released may make up for another op's operands, so again until there is nothing more; what an op reads
  // stands before it, so from the end.
  for (bool changed = true; changed;) {
    changed = false;
    std::vector<Operation *> ops = units[matmul].ops;
    for (Operation *op : llvm::reverse(ops)) {
      if (isProduct(op) || !mt::isSplit(op->getResult(0).getType()) ||
          !llvm::all_of(users(op), [&](Operation *user) { return outside(user) && inRows(user); }) ||
          !(extendedFrom(op->getResult(0)) ||
            llvm::all_of(op->getOperands(), [&](Value operand) { return storedAnyway(operand, op); })))
        continue;
      llvm::erase(units[matmul].ops, op);
      unitOfOp[op] = units.size();
      units.push_back({KernelKind::rows, {op}, units[matmul].reductionDepth});
      forgetGraph();
      changed = true;
    }
  }
}

void Groups::fuseEpilogues() {
  for (unsigned unit = 0, count = units.size(); unit < count; ++unit) {
    bool product = units[unit].kind == KernelKind::matmul || units[unit].kind == KernelKind::conv;
    if (!product || units[unit].ops.empty())
      continue;
    absorb(unit);
    release(unit);
  }
}

} // namespace mtc
