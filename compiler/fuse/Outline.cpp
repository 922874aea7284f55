// SPDX-License-Identifier: Apache-2.0
#include "compiler/fuse/Outline.h"
#include "compiler/fuse/KernelName.h"

#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include "mlir/IR/IRMapping.h"

namespace mtc {

using namespace mlir;
using mt::KernelKind;

// Clones a value that kernels recompute into the body of a kernel.
static Value cloneRecomputed(OpBuilder &builder, Value value, IRMapping &mapping) {
  if (Value known = mapping.lookupOrNull(value))
    return known;
  for (Value operand : value.getDefiningOp()->getOperands())
    cloneRecomputed(builder, operand, mapping);
  return builder.clone(*value.getDefiningOp(), mapping)->getResult(0);
}

// Creates a kernel that computes `ops` and yields `yielded`: results of `ops`, values that kernels recompute, or
// operands.
static mt::KernelOp createKernel(OpBuilder &builder, const FusionGraph &graph, Location location, KernelKind kind,
                                 StringRef name, ArrayRef<Operation *> ops, ArrayRef<Value> yielded) {
  llvm::SmallPtrSet<Operation *, 16> inside(ops.begin(), ops.end());
  llvm::SetVector<Value> operands;
  auto use = [&](Value value) {
    if (!graph.isRecomputed(value) && !(value.getDefiningOp() && inside.contains(value.getDefiningOp())))
      operands.insert(value);
  };
  for (Operation *op : ops)
    llvm::for_each(op->getOperands(), use);
  llvm::for_each(yielded, use);

  SmallVector<Type> types;
  for (Value value : yielded)
    types.push_back(value.getType());
  OperationState state(location, mt::KernelOp::getOperationName());
  state.addOperands(operands.getArrayRef());
  state.addTypes(types);
  state.addAttribute("kind", mt::KernelKindAttr::get(builder.getContext(), kind));
  state.addAttribute("name", builder.getStringAttr(name));
  state.addRegion();
  auto kernel = cast<mt::KernelOp>(builder.create(state));
  Block *block = builder.createBlock(&kernel.getBody());
  IRMapping mapping;
  for (Value operand : operands)
    mapping.map(operand, block->addArgument(operand.getType(), operand.getLoc()));
  auto resolve = [&](Value value) {
    return graph.isRecomputed(value) ? cloneRecomputed(builder, value, mapping) : mapping.lookup(value);
  };
  for (Operation *op : ops) {
    for (Value operand : op->getOperands())
      resolve(operand);
    mt::setTurn(builder.clone(*op, mapping), std::nullopt); // the kernel has the turn instead
  }
  SmallVector<Value> results;
  for (Value value : yielded)
    results.push_back(resolve(value));
  mt::YieldOp::create(builder, location, results);
  // Erases ops that are dead because a recomputed op yields their value.
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(*block)))
    if (isOpTriviallyDead(&op))
      op.erase();
  builder.setInsertionPointAfter(kernel);
  return kernel;
}

static void outlineGroup(OpBuilder &builder, const FusionGraph &graph, const KernelNames &names,
                         const FusionGroup &group) {
  llvm::SmallPtrSet<Operation *, 16> inside(group.ops.begin(), group.ops.end());
  auto readOutside = [&](OpOperand &use) { return !inside.contains(use.getOwner()); };
  SmallVector<Value> yielded;
  for (Operation *op : group.ops) {
    if (!llvm::any_of(op->getUses(), readOutside))
      continue;
    // Clones of an op that were made for several readers, but are in the same kernel, are stored once.
    auto first = llvm::find_if(yielded, [&](Value value) { return sameComputation(value.getDefiningOp(), op); });
    if (first == yielded.end())
      yielded.push_back(op->getResult(0));
    else
      op->getResult(0).replaceUsesWithIf(*first, readOutside);
  }
  auto kernel = createKernel(builder, graph, locationOf(group), *group.kind, names.of(group), group.ops, yielded);
  mt::setTurn(kernel, group.turn);
  for (auto [value, result] : llvm::zip(yielded, kernel.getResults()))
    value.replaceUsesWithIf(result, readOutside);
}

static bool isKernelResult(Value value, std::optional<KernelKind> kind = std::nullopt) {
  auto kernel = value.getDefiningOp<mt::KernelOp>();
  return kernel && (!kind || kernel.getKind() == *kind);
}

static Value copyOf(const FusionGraph &graph, Operation *user, Value value, KernelKind kind) {
  OpBuilder builder(user);
  auto copy = createKernel(builder, graph, user->getLoc(), kind, "copy", {}, {value});
  return copy.getResult(0);
}

// An assignment or an output determines the buffer of its operand, so two of them must not have the same operand.
static void addCopies(const FusionGraph &graph, Block &body) {
  llvm::DenseSet<Value> assigned;
  for (Operation &op : llvm::make_early_inc_range(body)) {
    if (auto assign = dyn_cast<mt::AssignOp>(op)) {
      if (!isKernelResult(assign.getValue(), KernelKind::elementwise) || !assigned.insert(assign.getValue()).second)
        assign.getValueMutable().assign(copyOf(graph, assign, assign.getValue(), KernelKind::elementwise));
      assigned.insert(assign.getValue());
    } else if (auto output = dyn_cast<mt::OutputOp>(op)) {
      if (!isKernelResult(output.getValue()) || !assigned.insert(output.getValue()).second)
        output.getValueMutable().assign(copyOf(graph, output, output.getValue(), KernelKind::rows));
      assigned.insert(output.getValue());
    }
  }
  // Reported scalars may share a buffer with each other, but not with a variable.
  for (Operation &op : llvm::make_early_inc_range(body)) {
    if (!op.hasTrait<mt::Reports>())
      continue;
    for (OpOperand &operand : op.getOpOperands()) {
      Value value = operand.get();
      bool placed = isKernelResult(value) || value.getDefiningOp<shard::AllReduceOp>();
      if (!placed || assigned.contains(value))
        operand.set(copyOf(graph, &op, value, KernelKind::single));
    }
  }
}

// Makes an operand of a kernel of a value, and a result of that operand, the last one.
static mt::KernelOp yieldOperand(mt::KernelOp kernel, Value operand) {
  OperationState state(kernel.getLoc(), mt::KernelOp::getOperationName(), kernel->getOperands(),
                       kernel->getResultTypes(), kernel->getAttrs());
  state.addOperands(operand);
  state.addTypes(operand.getType());
  state.addRegion()->takeBody(kernel.getBody());
  OpBuilder builder(kernel);
  auto made = cast<mt::KernelOp>(builder.create(state));
  Block &block = made.getBody().front();
  Operation *yield = block.getTerminator();
  yield->insertOperands(yield->getNumOperands(), block.addArgument(operand.getType(), operand.getLoc()));
  kernel->replaceAllUsesWith(made->getResults().drop_back());
  kernel.erase();
  return made;
}

// A kernel of scalars that only reports read: the kernel of the losses; or null.
static mt::KernelOp findReportedKernel(Block &body) {
  auto isReported = [](Value result) {
    return cast<RankedTensorType>(result.getType()).getRank() == 0 &&
           llvm::all_of(result.getUsers(), [](Operation *user) { return user->hasTrait<mt::Reports>(); });
  };
  for (auto kernel : body.getOps<mt::KernelOp>())
    if (kernel.getKind() == KernelKind::single && !mt::turnOf(kernel) && llvm::all_of(kernel->getResults(), isReported))
      return kernel;
  return {};
}

// A number that a variable takes, such as the count of steps, is copied by the kernel of the losses, without a launch
// of its own. It is not written in place, because other kernels of scalars read it.
static void moveCopies(Block &body) {
  mt::KernelOp losses = findReportedKernel(body);
  for (auto assign : llvm::make_early_inc_range(body.getOps<mt::AssignOp>())) {
    auto copy = assign.getValue().getDefiningOp<mt::KernelOp>();
    if (!losses || !copy || copy->getNumOperands() != 1 || copy->getNumResults() != 1 ||
        !copy->getResult(0).hasOneUse() || !isa<BlockArgument>(copy.getBody().front().getTerminator()->getOperand(0)))
      continue;
    Value number = copy->getOperand(0);
    if (!isKernelResult(number, KernelKind::single) || cast<RankedTensorType>(number.getType()).getRank() != 0 ||
        number.getDefiningOp() == losses || llvm::is_contained(losses->getOperands(), number))
      continue;
    // The ops that report the losses stay where they are.
    auto standsBefore = [&](Operation *user) { return user->isBeforeInBlock(number.getDefiningOp()); };
    if (losses->isBeforeInBlock(number.getDefiningOp())) {
      if (llvm::any_of(losses->getUsers(), standsBefore))
        continue;
      losses->moveAfter(number.getDefiningOp());
    }
    losses = yieldOperand(losses, number);
    assign.getValueMutable().assign(losses->getResults().back());
    copy.erase();
  }
}

void outlineKernels(mt::ProgramOp program, const FusionGraph &graph, bool gpus) {
  Block &body = program.getBody().front();
  KernelNames names(program);
  auto builder = OpBuilder::atBlockEnd(&body);
  for (const FusionGroup *group : graph.ordered()) {
    if (!group->kind) {
      group->ops.front()->moveBefore(&body, body.end());
      continue;
    }
    builder.setInsertionPointToEnd(&body);
    outlineGroup(builder, graph, names, *group);
  }
  addCopies(graph, body);
  if (gpus)
    moveCopies(body);
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(body)))
    if (op.use_empty() && isa<mt::CostOpInterface>(op))
      op.erase();
}

} // namespace mtc
