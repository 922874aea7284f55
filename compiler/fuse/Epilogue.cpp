// SPDX-License-Identifier: Apache-2.0
//
// Epilogues: element-wise ops on the result of a matmul or a convolution are fused into its kernel, where the result is
// still in registers.
#include "compiler/fuse/FusionGraph.h"
#include "dialects/mt/Types.h"

#include "mlir/Dialect/Shard/IR/ShardOps.h"

namespace mtc {

using namespace mlir;
using mt::KernelKind;

using mt::tensorOf;

// Whether an epilogue can read the operand next to an element of the result: as the same element of another tensor, an
// element of a vector along the last axis, or a scalar.
static bool fitsTile(const FusionGraph &graph, Value operand, RankedTensorType tile) {
  RankedTensorType type = tensorOf(operand);
  if (Operation *op = operand.getDefiningOp();
      graph.isRecomputed(operand) && type.getRank() != 0 && !isa<mt::ConstantOp>(op))
    return false;
  return type.getRank() == 0 || type.getShape() == tile.getShape() ||
         (type.getRank() == 1 && !mt::isSplit(type) && type.getDimSize(0) == tile.getShape().back());
}

static bool isEpilogueOp(const FusionGraph &graph, Operation *op, RankedTensorType tile) {
  return isa<mt::ElementwiseOpInterface>(op) && tensorOf(op->getResult(0)).getShape() == tile.getShape() &&
         llvm::all_of(op->getOperands(), [&](Value operand) { return fitsTile(graph, operand, tile); });
}

// Merges element-wise users of the product into its group, and producers that only the group reads, until nothing
// changes.
void FusionGraph::extendEpilogue(unsigned matmul) {
  RankedTensorType tile = tensorOf((*llvm::find_if(groups[matmul].ops, isProduct))->getResult(0));
  // An operand of the product itself must be complete before the kernel starts.
  auto feedsProduct = [&](Operation *op) {
    return llvm::any_of(users(op), [&](Operation *user) { return isProduct(user) && groupOf(user) == matmul; });
  };
  auto candidate = [&](Operation *op) -> std::optional<unsigned> {
    std::optional<unsigned> group = groupOf(op);
    if (!group || feedsProduct(op) || *group == matmul || groups[*group].ops.size() != 1 ||
        !isEpilogueOp(*this, op, tile) || !canMerge(matmul, *group))
      return std::nullopt;
    return groups[*group].kind == KernelKind::rows || groups[*group].kind == KernelKind::elementwise ||
                   groups[*group].kind == KernelKind::single
               ? group
               : std::nullopt;
  };
  auto onlyUsedHere = [&](Operation *op) {
    return llvm::all_of(users(op), [&](Operation *user) { return groupOf(user) == matmul; });
  };
  auto next = [&]() -> std::optional<unsigned> {
    for (Operation *op : groups[matmul].ops) {
      for (Operation *user : users(op))
        if (std::optional<unsigned> group = candidate(user))
          return group;
      for (Value operand : op->getOperands())
        if (Operation *from = operand.getDefiningOp(); from && onlyUsedHere(from) && !isProduct(op))
          if (std::optional<unsigned> group = candidate(from))
            return group;
    }
    return std::nullopt;
  };
  while (std::optional<unsigned> group = next())
    merge(matmul, *group);
}

// Whether the op computes an f32 value from one 16-bit value and values without a batch axis: a derivative of an
// activation, for example. Its reader computes it again from the 16-bit value, which has half of the bytes.
static bool isOfHalf(Operation *op) {
  constexpr size_t most = 64; // the ops of a longer formula are not computed twice
  Value result = op->getResult(0), half;
  llvm::SetVector<Operation *> ops;
  ops.insert(op);
  for (size_t i = 0; i < ops.size() && i < most; ++i) {
    if (!isa<mt::ElementwiseOpInterface>(ops[i]))
      return false;
    for (Value operand : ops[i]->getOperands()) {
      Value narrow = extendedFrom(operand);
      if (!mt::isSplit(operand.getType()))
        continue;
      if (tensorOf(operand).getShape() != tensorOf(result).getShape() || (narrow && half && half != narrow))
        return false;
      if (narrow)
        half = narrow;
      else
        ops.insert(operand.getDefiningOp());
    }
  }
  return half && ops.size() <= most && tensorOf(result).getElementType().isF32() && !extendedFrom(result);
}

// Removes ops from the epilogue that save no memory traffic: their operands are stored in any case, or in 16 bits, and
// only a rows kernel, which can compute the op itself, reads their result.
void FusionGraph::shrinkEpilogue(unsigned matmul) {
  auto outside = [&](Operation *user) { return groupOf(user) != matmul; };
  auto inRows = [&](Operation *user) {
    std::optional<unsigned> group = groupOf(user);
    return group && groups[*group].kind == KernelKind::rows;
  };
  // An operand counts as stored, too, if it is computed from stored values for this op alone: it is removed after the
  // op.
  std::function<bool(Value, Operation *)> storedAnyway = [&](Value operand, Operation *op) {
    if (producer(operand) != matmul)
      return true;
    if (llvm::any_of(operand.getUsers(), [&](Operation *user) { return user != op && outside(user); }))
      return true;
    Operation *from = operand.getDefiningOp();
    return !isProduct(from) && operand.hasOneUse() &&
           llvm::all_of(from->getOperands(), [&](Value value) { return storedAnyway(value, from); });
  };
  // An op whose one reader, or all of whose readers, compute it from a 16-bit value.
  llvm::SmallPtrSet<Operation *, 8> later; // the ops that are removed
  auto isLater = [&](Operation *op) {
    return isOfHalf(op) && (op->hasOneUse() || llvm::all_of(users(op), [&](Operation *user) {
                              return later.contains(user) && isOfHalf(user);
                            }));
  };
  // Removing one op may make others removable, so this repeats until nothing changes. It starts from the end, because
  // operands precede their users.
  for (bool changed = true; changed;) {
    changed = false;
    std::vector<Operation *> ops = groups[matmul].ops;
    for (Operation *op : llvm::reverse(ops)) {
      if (isProduct(op) || !mt::isSplit(op->getResult(0).getType()) ||
          !llvm::all_of(users(op), [&](Operation *user) { return outside(user) && inRows(user); }) ||
          !(extendedFrom(op->getResult(0)) || isLater(op) ||
            llvm::all_of(op->getOperands(), [&](Value operand) { return storedAnyway(operand, op); })))
        continue;
      separate(matmul, op);
      later.insert(op);
      changed = true;
    }
  }
}

// Moves an op, whose result nothing in the product's group reads, from the group to a group of its own.
void FusionGraph::separate(unsigned matmul, Operation *op) {
  unsigned own = edges.addAfter(matmul);
  llvm::erase(groups[matmul].ops, op);
  groupOfOp[op] = own;
  groups.push_back({KernelKind::rows, {op}, groups[matmul].reductionDepth});
  edges.disconnect(matmul);
  connect(matmul);
  connect(own);
}

void FusionGraph::fuseEpilogues() {
  for (unsigned group = 0, count = groups.size(); group < count; ++group) {
    bool product = groups[group].kind == KernelKind::matmul || groups[group].kind == KernelKind::conv;
    if (!product || groups[group].ops.empty())
      continue;
    extendEpilogue(group);
    shrinkEpilogue(group);
  }
}

} // namespace mtc
