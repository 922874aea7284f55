// SPDX-License-Identifier: Apache-2.0
#include "compiler/differentiate/Gradient.h"

using namespace mlir;

namespace mtc {

static bool isFloat(Value value) { return isa<FloatType>(cast<RankedTensorType>(value.getType()).getElementType()); }

// The floating-point values that depend on a variable.
static DenseSet<Value> dependents(Block &block, ArrayRef<Value> variables) {
  DenseSet<Value> active(variables.begin(), variables.end());
  for (Operation &op : block)
    if (llvm::any_of(op.getOperands(), [&](Value operand) { return active.contains(operand); }))
      for (Value result : op.getResults())
        if (isFloat(result))
          active.insert(result);
  return active;
}

FailureOr<SmallVector<Value>> buildGradients(OpBuilder &builder, Value loss, ArrayRef<Value> variables) {
  DenseSet<Value> active = dependents(*loss.getParentBlock(), variables);
  SmallVector<Operation *> forward;
  for (Operation &op : *loss.getParentBlock())
    forward.push_back(&op);

  DenseMap<Value, Value> gradients;
  gradients[loss] = mt::ConstantOp::create(builder, loss.getLoc(), 1.0f);
  for (Operation *op : llvm::reverse(forward)) {
    SmallVector<Value> results;
    for (Value result : op->getResults())
      results.push_back(gradients.lookup(result));
    bool reached = llvm::any_of(results, [](Value gradient) { return bool(gradient); });
    bool needed = llvm::any_of(op->getOperands(), [&](Value operand) { return active.contains(operand); });
    if (!reached || !needed)
      continue;
    auto differentiable = dyn_cast<mt::GradientOpInterface>(op);
    if (!differentiable)
      return op->emitOpError(
          "expected an op with a gradient between a trainable variable and a loss, found one without");
    SmallVector<Value> operandGradients;
    differentiable.buildGradient(builder, results, operandGradients);
    for (auto [operand, gradient] : llvm::zip_equal(op->getOperands(), operandGradients)) {
      if (!gradient || !active.contains(operand))
        continue;
      Value &sum = gradients[operand];
      sum = sum ? mt::AddOp::create(builder, op->getLoc(), sum, gradient).getResult() : gradient;
    }
  }
  return llvm::map_to_vector(variables, [&](Value variable) { return gradients.lookup(variable); });
}

} // namespace mtc
