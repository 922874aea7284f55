// SPDX-License-Identifier: Apache-2.0
#include "compiler/differentiate/Gradient.h"
#include "compiler/differentiate/Initializers.h"
#include "dialects/mt/Compilation.h"
#include "dialects/mt/Gradient.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace mtc {

// The ops of the block on which a value depends, in program order.
static SmallVector<Operation *> opsOf(Value value) {
  llvm::SmallSetVector<Operation *, 32> reached;
  reached.insert(value.getDefiningOp());
  for (size_t i = 0; i < reached.size(); ++i)
    for (Value operand : reached[i]->getOperands())
      reached.insert(operand.getDefiningOp());
  SmallVector<Operation *> ops = reached.takeVector();
  llvm::sort(ops, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  return ops;
}

// States which value is the complete gradient of which, for mt-precision.
static void stateCompleteGradients(OpBuilder &builder, ArrayRef<Operation *> forward,
                                   const DenseMap<Value, Value> &gradients) {
  for (Operation *op : forward)
    for (Value value : op->getResults())
      if (Value gradient = gradients.lookup(value);
          gradient && gradient.getType() == value.getType() && mt::isSplit(value.getType()))
        mt::CompleteGradientOp::create(builder, gradient.getLoc(), gradient, value);
}

FailureOr<SmallVector<Value>> buildGradients(OpBuilder &builder, Value loss, Value scale, ArrayRef<Value> variables) {
  SmallVector<Operation *> forward = opsOf(loss);
  DenseSet<Value> active(variables.begin(), variables.end());
  mt::addDependents(forward, active);
  DenseMap<Value, Value> gradients;
  gradients[loss] = scale ? scale : buildFilled(builder, loss.getLoc(), cast<RankedTensorType>(loss.getType()), 1);
  if (failed(mt::backpropagate(builder, forward, active, gradients)))
    return failure();
  if (auto module = loss.getDefiningOp()->getParentOfType<ModuleOp>(); module && mt::Compilation(module).isHalf())
    stateCompleteGradients(builder, forward, gradients);
  return llvm::map_to_vector(variables, [&](Value variable) { return gradients.lookup(variable); });
}

} // namespace mtc
