// SPDX-License-Identifier: Apache-2.0
#include "compiler/differentiate/Derivatives.h"

#include "compiler/differentiate/Gradient.h"
#include "compiler/differentiate/Initializers.h"

using namespace mlir;

namespace mtc {

// Each derivative of a derivative has several times the ops. So a short text can ask for a program of any size.
static constexpr size_t maxOps = 1 << 20;

Derivatives::Derivatives(mt::ModelOp model) {
  model.walk([&](mt::DerivativeOp op) { ofLoss[op.getLoss()].push_back(op); });
}

LogicalResult Derivatives::build(OpBuilder &builder, mt::DerivativeOp op, IRMapping &values) const {
  if (values.contains(op.getResult()))
    return success();
  ArrayRef<mt::DerivativeOp> ops = ofLoss.find(op.getLoss())->second;
  SmallVector<Value> arguments;
  for (mt::DerivativeOp each : ops)
    // The loss does not depend on an argument that comes after its first derivative.
    if (Value argument = values.lookupOrNull(each.getArgument()))
      arguments.push_back(argument);
  FailureOr<SmallVector<Value>> gradients = buildGradients(builder, values.lookup(op.getLoss()), Value(), arguments);
  if (failed(gradients))
    return failure();
  llvm::DenseMap<Value, Value> ofArgument;
  for (auto [argument, gradient] : llvm::zip_equal(arguments, *gradients))
    ofArgument[argument] = gradient;
  for (mt::DerivativeOp each : ops) {
    Value argument = values.lookupOrNull(each.getArgument());
    Value gradient = argument ? ofArgument.lookup(argument) : Value();
    if (!gradient)
      gradient = buildFilled(builder, each.getLoc(), cast<RankedTensorType>(each.getType()), 0);
    values.map(each.getResult(), gradient);
  }
  if (size_t found = builder.getInsertionBlock()->getOperations().size(); found > maxOps)
    return op.emitOpError("expected at most ")
           << maxOps << " ops in a program with all its derivatives, found " << found;
  return success();
}

void Derivatives::removeArguments(Block &block) {
  for (auto argument : llvm::make_early_inc_range(block.getOps<mt::ArgumentOp>())) {
    argument.replaceAllUsesWith(argument.getValue());
    argument.erase();
  }
}

} // namespace mtc
