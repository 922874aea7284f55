// SPDX-License-Identifier: Apache-2.0
#include "compiler/differentiate/Gradient.h"
#include "dialects/mt/Gradient.h"

using namespace mlir;

namespace mtc {

FailureOr<SmallVector<Value>> buildGradients(OpBuilder &builder, Value loss, Value scale, ArrayRef<Value> variables) {
  SmallVector<Operation *> forward;
  for (Operation &op : *loss.getParentBlock())
    forward.push_back(&op);
  DenseSet<Value> active(variables.begin(), variables.end());
  mt::addDependents(forward, active);
  DenseMap<Value, Value> gradients;
  gradients[loss] = scale ? scale : mt::ConstantOp::create(builder, loss.getLoc(), 1.0f).getResult();
  if (failed(mt::backpropagate(builder, forward, active, gradients)))
    return failure();
  return llvm::map_to_vector(variables, [&](Value variable) { return gradients.lookup(variable); });
}

} // namespace mtc
