// SPDX-License-Identifier: Apache-2.0
//
// Classification: the kind of the kernel that each op would be by itself. These kernels are the initial groups.
#include "compiler/fuse/FusionGraph.h"
#include "dialects/mt/Compilation.h"

#include "mlir/Dialect/Shard/IR/ShardOps.h"

namespace mtc {

using namespace mlir;
using mt::KernelKind;

// Whether the op is element-wise over one replicated shape; its operands may be scalars.
bool FusionGraph::isElementwise(Operation *op) const {
  if (!isa<mt::ElementwiseOpInterface>(op))
    return false;
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  // A single scalar is an elementwise kernel only if it can be updated in place.
  if (type.getRank() == 0 && !llvm::all_of(op->getUsers(), [](Operation *user) { return isa<mt::AssignOp>(user); }))
    return false;
  return llvm::all_of(op->getOperands(), [&](Value operand) {
    auto operandType = cast<RankedTensorType>(operand.getType());
    if (recomputed.contains(operand) && !recomputed.isUniform(operand))
      return false;
    return operandType.getRank() == 0 || operandType.getShape() == type.getShape();
  });
}

// Whether an op rounds to 16 bits the result of a move that has no other reader: one kernel then makes the copy in 16
// bits.
static bool roundsCopy(Operation *op) {
  Operation *copy = op->getOperand(0).getDefiningOp();
  return mt::isHalf(cast<RankedTensorType>(op->getResult(0).getType()).getElementType()) && copy &&
         copy->hasTrait<mt::Moves>() && !isa<mt::KernelOpInterface>(copy) && copy->hasOneUse();
}

// Whether only sums read the result: the kernel of the sum computes it, as the squares of a norm, and does not store
// it.
static bool isOnlySummed(Operation *op) {
  return !op->use_empty() && llvm::all_of(op->getUsers(), [](Operation *user) { return isa<mt::ReduceOp>(user); });
}

static bool staysBetweenKernels(Operation *op) {
  return op->hasTrait<mt::Reports>() || op->hasTrait<mt::Boundary>() || isa<shard::AllReduceOp>(op);
}

FailureOr<std::optional<KernelKind>> FusionGraph::kindOf(Operation *op) const {
  if (staysBetweenKernels(op))
    return std::optional<KernelKind>();
  if (op->getNumResults() != 1 || op->getNumRegions() || !isa<mt::CostOpInterface>(op))
    return op->emitOpError("expected a computation, found an op that no kernel can hold");
  bool split = mt::isSplit(op->getResult(0).getType());
  if (auto own = dyn_cast<mt::KernelOpInterface>(op))
    if (std::optional<KernelKind> kind = own.getKernelKind())
      return kind;
  if (split)
    return std::optional(KernelKind::rows);
  if (llvm::any_of(op->getOperandTypes(), mt::isSplit))
    return op->emitOpError("expected a result with a batch axis or a sum over it, found ")
           << op->getResult(0).getType();
  bool alone = isElementwise(op) && !isOnlySummed(op) && !roundsCopy(op);
  return std::optional(alone ? KernelKind::elementwise : KernelKind::single);
}

// The per-sample product that a sum over the batch adds, if it has no other reader: the gradient of a matrix that is
// multiplied by several rows of each sample. Null for any other sum.
static mt::MatmulOp summedProduct(mt::ReduceOp op) {
  auto sumOf = [](mt::ReduceOp reduce, int64_t first) {
    SmallVector<int64_t> dims(reduce.getDims());
    llvm::sort(dims);
    return reduce.getKind() == mt::Reduction::sum &&
           dims == llvm::to_vector(llvm::seq<int64_t>(first, first + dims.size()));
  };
  auto rankOf = [](Value value) { return cast<RankedTensorType>(value.getType()).getRank(); };
  if (!sumOf(op, 0) || op.getDims().size() != 1 || rankOf(op.getResult()) != 2 || !op.getOperand().hasOneUse())
    return {};
  Value each = op.getOperand();
  if (auto inner = each.getDefiningOp<mt::ReduceOp>()) {
    if (!sumOf(inner, 1) || !inner.getOperand().hasOneUse())
      return {};
    each = inner.getOperand();
  }
  auto product = each.getDefiningOp<mt::MatmulOp>();
  bool found = product && mt::isSplit(each.getType()) && product.getTransposeA() && !product.getTransposeB() &&
               rankOf(product.getLhs()) > 2 && mt::isSplit(product.getLhs().getType()) &&
               mt::isSplit(product.getRhs().getType());
  return found ? product : mt::MatmulOp();
}

FailureOr<FusionGraph> FusionGraph::classify(Block &body) {
  FusionGraph graph(body);
  graph.numberOps();
  for (Operation &op : body) {
    if (op.getNumResults() == 1 && graph.isRecomputed(op.getResult(0)))
      continue;
    FailureOr<std::optional<KernelKind>> kind = graph.kindOf(&op);
    if (failed(kind))
      return failure();
    graph.groupOfOp[&op] = graph.groups.size();
    graph.groups.push_back({*kind, {&op}, 0});
    graph.groups.back().turn = mt::turnOf(&op);
    if (auto reduce = dyn_cast<mt::ReduceOp>(op); reduce && kind == KernelKind::reduce)
      if (mt::MatmulOp product = summedProduct(reduce))
        graph.mergeProduct(reduce, product);
    if (std::optional<int64_t> bucket = mt::bucketOf(&op))
      graph.completions.try_emplace(*bucket);
  }
  for (auto &[bucket, group] : graph.completions) {
    group = graph.groups.size();
    graph.groups.emplace_back();
  }
  graph.mergeBlocks();
  graph.connectAll();
  graph.computeDepths();
  graph.findEarly();
  return graph;
}

// The kernel's only result is the sum: the products of single samples are not stored.
void FusionGraph::mergeProduct(mt::ReduceOp sum, mt::MatmulOp product) {
  unsigned group = *groupOf(sum);
  groups[group].kind = KernelKind::matmul_wgrad;
  for (Operation *op = sum; op != product;) {
    op = op->getOperand(0).getDefiningOp();
    join(group, *groupOf(op));
  }
}

void FusionGraph::numberOps() {
  for (Operation &op : *body) {
    position[&op] = readers.size();
    readers.emplace_back();
    for (Value operand : op.getOperands())
      if (Operation *from = operand.getDefiningOp())
        if (auto &of = readers[position.at(from)]; of.empty() || of.back() != &op)
          of.push_back(&op);
  }
}

void FusionGraph::computeDepths() {
  for (FusionGroup &group : groups)
    for (Operation *op : group.ops)
      for (Value operand : op->getOperands())
        if (std::optional<unsigned> from = producer(operand)) {
          bool reduced = isa<shard::AllReduceOp>(operand.getDefiningOp());
          group.reductionDepth = std::max(group.reductionDepth, groups[*from].reductionDepth + reduced);
        }
}

// Marks groups as early. An example is the number of tokens that divides a loss: in a kernel of its own it does not
// wait for the forward pass, and micro-batches can compute it before they start.
void FusionGraph::findEarly() {
  llvm::DenseSet<Operation *> afterProduct, waiting, early; // waiting: ops on which an all-reduce depends
  for (Operation &op : *body)
    for (Value operand : op.getOperands())
      if (Operation *from = operand.getDefiningOp())
        if (isProduct(from) || afterProduct.contains(from))
          afterProduct.insert(&op);
  for (Operation &op : llvm::reverse(*body))
    for (Operation *user : users(&op)) {
      bool reduces = isa<shard::AllReduceOp>(user);
      if (reduces || waiting.contains(user))
        waiting.insert(&op);
      if (reduces ? waiting.contains(user) : early.contains(user))
        early.insert(&op);
    }
  for (FusionGroup &group : groups)
    for (Operation *op : group.ops) {
      group.afterProduct |= afterProduct.contains(op);
      group.early |= early.contains(op) && !afterProduct.contains(op);
    }
}

} // namespace mtc
