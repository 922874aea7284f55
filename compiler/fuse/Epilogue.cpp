// SPDX-License-Identifier: Apache-2.0
//
// Epilogues: element-wise ops on the result of a matmul or a convolution are fused into its kernel, where the result is
// still in registers.
#include "compiler/fuse/FusionGraph.h"
#include "dialects/mt/Blocks.h"
#include "dialects/mt/Types.h"

#include "mlir/Dialect/Shard/IR/ShardOps.h"

namespace mtc {

using namespace mlir;
using mt::KernelKind;

using mt::tensorOf;

// Whether an epilogue can read the operand next to an element of the result: as the same element of another tensor, an
// element of a vector along the last axis, or a scalar. Code for GPUs reads an element of a vector for each image, too.
static bool fitsTile(const FusionGraph &graph, Value operand, RankedTensorType tile, bool gpusAlone) {
  RankedTensorType type = tensorOf(operand);
  if (Operation *op = operand.getDefiningOp();
      graph.isRecomputed(operand) && type.getRank() != 0 && !isa<mt::ConstantOp>(op))
    return false;
  bool ofImage = gpusAlone && tile.getRank() == 4 && mt::isSplit(tile) && mt::isSplit(type) && type.getRank() == 4 &&
                 mt::elementsPerRow(type) == tile.getShape().back() && type.getShape().back() == tile.getShape().back();
  return type.getRank() == 0 || type.getShape() == tile.getShape() || ofImage ||
         (type.getRank() == 1 && !mt::isSplit(type) && type.getDimSize(0) == tile.getShape().back());
}

static bool isEpilogueOp(const FusionGraph &graph, Operation *op, RankedTensorType tile, bool gpusAlone) {
  return isa<mt::ElementwiseOpInterface>(op) && tensorOf(op->getResult(0)).getShape() == tile.getShape() &&
         llvm::all_of(op->getOperands(), [&](Value operand) { return fitsTile(graph, operand, tile, gpusAlone); });
}

// Merges element-wise users of the product into its group, and producers that only the group reads, until nothing
// changes.
void FusionGraph::extendEpilogue(unsigned matmul, bool gpusAlone) {
  RankedTensorType tile = tensorOf((*llvm::find_if(groups[matmul].ops, isProduct))->getResult(0));
  // An operand of the product itself must be complete before the kernel starts.
  auto feedsProduct = [&](Operation *op) {
    return llvm::any_of(users(op), [&](Operation *user) { return isProduct(user) && groupOf(user) == matmul; });
  };
  auto candidate = [&](Operation *op) -> std::optional<unsigned> {
    std::optional<unsigned> group = groupOf(op);
    if (!group || feedsProduct(op) || *group == matmul || groups[*group].ops.size() != 1 ||
        !isEpilogueOp(*this, op, tile, gpusAlone) || !canMerge(matmul, *group))
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

// Whether a kernel may compute two products as one with the k of both: with the same operands' type and result, and, of
// convolutions, of the same images by the same strides.
static bool canBeSummed(Operation *a, Operation *b) {
  auto isMatrix = [](Operation *op) {
    auto matmul = dyn_cast<mt::MatmulOp>(op);
    return matmul && !matmul.getTransposeA() && tensorOf(matmul.getRhs()).getRank() == 2 && !mt::slicedSide(matmul);
  };
  auto typeOf = [](Operation *op) { return tensorOf(op->getOperand(0)).getElementType(); };
  if (a->getName() != b->getName() || a->getResultTypes() != b->getResultTypes() || typeOf(a) != typeOf(b) ||
      !mt::isHalf(typeOf(a)) || !mt::isSplit(a->getResult(0).getType()) || mt::turnOf(a) || mt::turnOf(b))
    return false;
  if (isMatrix(a))
    return isMatrix(b);
  auto ofA = dyn_cast<mt::ConvolutionOpInterface>(a), ofB = dyn_cast<mt::ConvolutionOpInterface>(b);
  if (!ofA || !ofB)
    return false;
  auto suits = [](const mt::Convolution &conv) {
    constexpr int64_t most = int64_t(1) << 24; // elements of images, as products need it
    int64_t pixels = std::max(conv.rows.inputs * conv.columns.inputs, conv.rows.outputs * conv.columns.outputs);
    return conv.groups == 1 && conv.rows.dilation == 1 && conv.columns.dilation == 1 &&
           pixels < most / std::max(conv.channels, conv.filters);
  };
  mt::Convolution first = ofA.getConvolution(), second = ofB.getConvolution();
  return suits(first) && suits(second) && first.rows.stride == second.rows.stride &&
         first.columns.stride == second.columns.stride;
}

// Whether additions of a product's group, which nothing else reads, add up the product and others alone. The others are
// groups of their own, which are appended to `others`.
bool FusionGraph::collectSummed(Value value, unsigned group, SmallVectorImpl<unsigned> &others) const {
  Operation *op = value.getDefiningOp();
  std::optional<unsigned> own = producer(value);
  if (!own || !value.hasOneUse())
    return false;
  if (isProduct(op)) {
    Operation *product = *llvm::find_if(groups[group].ops, isProduct);
    if (own != group && (groups[*own].ops.size() != 1 || groups[*own].kind != groups[group].kind))
      return false;
    if (own != group)
      others.push_back(*own);
    return own == group || canBeSummed(product, op);
  }
  return own == group && isa<mt::AddOp>(op) && llvm::all_of(op->getOperands(), [&](Value operand) {
           return operand.getType() == value.getType() && collectSummed(operand, group, others);
         });
}

void FusionGraph::fuseSummedProducts() {
  for (unsigned group = 0, count = groups.size(); group < count; ++group) {
    if ((groups[group].kind != KernelKind::matmul && groups[group].kind != KernelKind::conv) ||
        groups[group].ops.size() < 2)
      continue;
    // The highest addition of products alone.
    Value sum = (*llvm::find_if(groups[group].ops, isProduct))->getResult(0);
    SmallVector<unsigned> others;
    while (sum.hasOneUse() && isa<mt::AddOp>(*sum.user_begin()) && groupOf(*sum.user_begin()) == group) {
      auto add = cast<mt::AddOp>(*sum.user_begin());
      Value rest = add.getLhs() == sum ? add.getRhs() : add.getLhs();
      SmallVector<unsigned> more;
      if (rest == sum || rest.getType() != sum.getType() || !collectSummed(rest, group, more))
        break;
      others.append(more);
      sum = add.getResult();
    }
    if (llvm::all_of(others, [&](unsigned other) { return canMerge(group, other); }))
      for (unsigned other : others) // which only the group reads, so that no merge prevents another
        merge(group, other);
  }
}

void FusionGraph::fuseEpilogues(bool gpusAlone) {
  for (unsigned group = 0, count = groups.size(); group < count; ++group) {
    bool product = groups[group].kind == KernelKind::matmul || groups[group].kind == KernelKind::conv;
    if (!product || groups[group].ops.empty())
      continue;
    extendEpilogue(group, gpusAlone);
    shrinkEpilogue(group);
  }
}

} // namespace mtc
