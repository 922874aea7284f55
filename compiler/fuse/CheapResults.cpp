// SPDX-License-Identifier: Apache-2.0
//
// Results that a kernel need not store, because their readers compute them from a value that is in memory anyway: a
// reshape, the negative, or a sum, difference or product with a constant, say, of an operand or of another result of
// the kernel. Derivatives of tanh are full of them: 1 - y, its reshape, and negatives. A reader then loads the other
// value instead, often one that it loads anyway. And masks of any size, of a value that all of their readers load
// anyway: the gradient of a relu before a max pool.
#include "compiler/fuse/Computations.h"
#include "compiler/fuse/Outline.h"
#include "dialects/mt/Types.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/BitVector.h"

namespace mtc {

using namespace mlir;
using mt::KernelKind;

namespace {
// How a result is computed: a chain of ops, in order. The first one computes from `root`, a value outside of the
// kernel.
struct Computation {
  Value root;
  SmallVector<Operation *> ops;
  bool isMask = false; // a comparison of the root, or of its extension, with a constant
};
} // namespace

// More ops would cost more than a load. A reader that has no loop with the shape of a value computes it in memory of
// its own, so the value of a sample must be small.
static constexpr size_t maxOps = 3;
static constexpr int64_t maxBytes = 4096;

// Whether the op is a reshape, or a broadcast that repeats nothing.
static bool isReshape(Operation *op) {
  return op->hasTrait<mt::Repeats>() &&
         mt::elementsPerRow(op->getOperand(0).getType()) == mt::elementsPerRow(op->getResult(0).getType());
}

// The operand of a cheap op that is no constant; null if the op is not cheap. A cheap op is one operation an element.
static Value cheapOperand(Operation *op) {
  if (isReshape(op))
    return op->getOperand(0);
  Value result = op->getResult(0), found;
  auto cost = dyn_cast<mt::CostOpInterface>(op);
  if (!isa<mt::ElementwiseOpInterface>(op) || !cost || cost.getFlops() > mt::elementsPerRow(result.getType()))
    return {};
  for (Value operand : op->getOperands()) {
    if (!mt::isSplit(operand.getType())) {
      if (!mt::splatOf(operand) || cast<RankedTensorType>(operand.getType()).getRank() != 0)
        return {};
    } else if (found || getElementTypeOrSelf(operand.getType()) != getElementTypeOrSelf(result.getType())) {
      return {};
    } else {
      found = operand;
    }
  }
  return found;
}

// A value that the kernel reads, or stores as another result than `index`; null for any other one.
static Value storedOf(mt::KernelOp kernel, Value value, unsigned index, const llvm::BitVector &dropped) {
  if (auto argument = dyn_cast<BlockArgument>(value))
    return kernel->getOperand(argument.getArgNumber());
  Operation *yield = kernel.getBody().front().getTerminator();
  auto isStored = [&](unsigned i) { return i != index && !dropped[i] && yield->getOperand(i) == value; };
  auto others = llvm::seq<unsigned>(0, yield->getNumOperands());
  auto other = llvm::find_if(others, isStored);
  return other == others.end() ? Value() : kernel->getResult(*other);
}

static std::optional<Computation> maskOf(mt::KernelOp kernel, unsigned index, const llvm::BitVector &dropped) {
  Value value = kernel.getBody().front().getTerminator()->getOperand(index);
  auto compare = value.getDefiningOp<mt::CompareOp>();
  if (!compare || !mt::isSplit(value.getType()) ||
      compare.getLhs().getType().getShape() != compare.getType().getShape())
    return std::nullopt;
  if (!mt::splatOf(compare.getRhs()) || compare.getRhs().getType().getRank() != 0)
    return std::nullopt;
  Value half = extendedFrom(compare.getLhs()), root = storedOf(kernel, truncated(compare.getLhs()), index, dropped);
  if (!root)
    return std::nullopt;
  Computation found{root, {}, /*isMask=*/true};
  if (half)
    found.ops.push_back(compare.getLhs().getDefiningOp());
  found.ops.push_back(compare);
  return found;
}

static std::optional<Computation> computationOf(mt::KernelOp kernel, unsigned index, const llvm::BitVector &dropped) {
  if (std::optional<Computation> mask = maskOf(kernel, index, dropped))
    return mask;
  Operation *yield = kernel.getBody().front().getTerminator();
  Computation found;
  Value value = yield->getOperand(index);
  if (!mt::isSplit(value.getType()) || bytesPerSample(value) > maxBytes)
    return std::nullopt;
  while (true) {
    found.root = storedOf(kernel, value, index, dropped);
    if (found.root)
      break;
    Operation *op = value.getDefiningOp();
    Value operand = cheapOperand(op);
    if (!operand || !mt::isSplit(operand.getType()) || found.ops.size() == maxOps)
      return std::nullopt;
    found.ops.push_back(op);
    value = operand;
  }
  std::reverse(found.ops.begin(), found.ops.end());
  if (found.root.getType() == yield->getOperand(index).getType() && llvm::all_of(found.ops, isReshape))
    found.ops.clear();
  // A kernel has its own form of a value only if the elements are as many.
  return mt::elementsPerRow(found.root.getType()) == mt::elementsPerRow(yield->getOperand(index).getType())
             ? std::optional(std::move(found))
             : std::nullopt;
}

// Whether the kernel computes element by element, or is a product with an epilogue.
static bool takesMasks(KernelKind kind) {
  return kind == KernelKind::rows || kind == KernelKind::matmul || kind == KernelKind::conv;
}

// Whether a kernel can compute its operand.
static bool computes(OpOperand &use, const Computation &computation) {
  auto reader = dyn_cast<mt::KernelOp>(use.getOwner());
  if (!reader)
    return false;
  if (computation.ops.empty())
    return true;
  Value argument = reader.getBody().front().getArgument(use.getOperandNumber());
  auto isElementwise = [](Operation *op) { return isa<mt::ElementwiseOpInterface>(op); };
  if (computation.isMask)
    return llvm::is_contained(reader->getOperands(), computation.root) && takesMasks(reader.getKind()) &&
           llvm::all_of(argument.getUsers(), isElementwise);
  auto readsReshapes = [&](Operation *op) { return isElementwise(op) || isa<mt::ConcatOp>(op); };
  // The epilogue of a product computes elements at the positions of its own.
  if (reader.getKind() == KernelKind::matmul)
    return llvm::none_of(computation.ops, isReshape) && llvm::all_of(argument.getUsers(), isElementwise);
  if (reader.getKind() != KernelKind::rows)
    return false;
  return llvm::all_of(computation.ops, isReshape) ? llvm::all_of(argument.getUsers(), readsReshapes)
                                                  : llvm::all_of(argument.getUsers(), isElementwise);
}

static void compute(OpOperand &use, const Computation &computation) {
  auto reader = cast<mt::KernelOp>(use.getOwner());
  Block &block = reader.getBody().front();
  unsigned number = use.getOperandNumber();
  BlockArgument argument = block.getArgument(number);
  auto operands = reader->getOperands();
  auto known = llvm::find(operands, computation.root);
  Value value = known == operands.end() ? block.insertArgument(number, computation.root.getType(), argument.getLoc())
                                        : block.getArgument(known - operands.begin());
  // A mask is computed in the loop that reads it.
  Operation *first = &block.front();
  if (computation.isMask)
    first = *llvm::min_element(argument.getUsers(), [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  OpBuilder builder(first);
  for (Operation *op : computation.ops) {
    IRMapping mapping;
    for (Value operand : op->getOperands())
      mapping.map(operand,
                  mt::isSplit(operand.getType()) ? value : builder.clone(*operand.getDefiningOp())->getResult(0));
    value = builder.clone(*op, mapping)->getResult(0);
  }
  argument.replaceAllUsesWith(value);
  block.eraseArgument(argument.getArgNumber());
  if (known == operands.end())
    use.set(computation.root);
  else
    reader->eraseOperand(number);
}

// Removes results without readers.
static void eraseResults(mt::KernelOp kernel, const llvm::BitVector &dropped) {
  Operation *yield = kernel.getBody().front().getTerminator();
  SmallVector<Type> types;
  SmallVector<Value> kept;
  for (auto [i, value] : llvm::enumerate(yield->getOperands()))
    if (!dropped[i]) {
      types.push_back(value.getType());
      kept.push_back(kernel->getResult(i));
    }
  yield->eraseOperands(dropped);
  if (types.empty())
    return kernel.erase();
  Block &body = kernel.getBody().front();
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(body)))
    if (isOpTriviallyDead(&op))
      op.erase();
  for (unsigned i = body.getNumArguments(); i-- > 0;)
    if (body.getArgument(i).use_empty()) {
      body.eraseArgument(i);
      kernel->eraseOperand(i);
    }
  OperationState state(kernel.getLoc(), mt::KernelOp::getOperationName(), kernel->getOperands(), types,
                       kernel->getAttrs());
  state.addRegion()->takeBody(kernel.getBody());
  OpBuilder builder(kernel);
  Operation *made = builder.create(state);
  for (auto [old, result] : llvm::zip_equal(kept, made->getResults()))
    old.replaceAllUsesWith(result);
  kernel.erase();
}

void dropCheapResults(mt::ProgramOp program) {
  for (auto kernel : llvm::make_early_inc_range(program.getBody().front().getOps<mt::KernelOp>())) {
    if (kernel.getKind() != KernelKind::rows && kernel.getKind() != KernelKind::matmul)
      continue;
    llvm::BitVector dropped(kernel->getNumResults());
    for (unsigned i = 0; i < dropped.size(); ++i) {
      std::optional<Computation> computation = computationOf(kernel, i, dropped);
      Value result = kernel->getResult(i);
      if (!computation || result.use_empty() ||
          !llvm::all_of(result.getUses(), [&](OpOperand &use) { return computes(use, *computation); }))
        continue;
      while (!result.use_empty())
        compute(*result.getUses().begin(), *computation);
      dropped.set(i);
    }
    if (dropped.any())
      eraseResults(kernel, dropped);
  }
}

} // namespace mtc
