// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/Rows.h"

using namespace mlir;
using namespace mtc;

Value mtc::resolve(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    bool moves = !isa<mt::ReshapeOp>(op) && !(isa<mt::BroadcastOp>(op) && innerCount(op->getOperand(0)) == innerCount(value));
    if (moves)
      break;
    value = op->getOperand(0);
  }
  return value;
}

static bool isAlias(Operation *op) { return resolve(op->getResult(0)) != op->getResult(0); }

static bool isPointwise(Operation *op) {
  if (isa<mt::BroadcastOp>(op))
    return innerCount(op->getOperand(0)) == 1;
  return isa<mt::ElementwiseOpInterface, mt::IotaOp, mt::RandomUniformOp, mt::BatchSizeOp>(op);
}
static bool isFullReduce(Operation *op) { return isa<mt::ReduceOp>(op) && innerCount(op->getResult(0)) == 1; }

std::vector<RowStep> mtc::planSteps(ArrayRef<Operation *> operations) {
  std::vector<RowStep> steps;
  // The step a value comes from, and whether it is there only after the step.
  DenseMap<Value, std::pair<size_t, bool>> made;
  for (Operation *op : operations) {
    if (isa<mt::ConstantOp>(op) || isAlias(op))
      continue;
    bool fused = isPointwise(op) || isFullReduce(op);
    int64_t count = innerCount(isFullReduce(op) ? op->getOperand(0) : op->getResult(0));
    size_t first = 0;
    for (Value operand : op->getOperands()) {
      auto it = made.find(resolve(operand));
      if (it == made.end())
        continue;
      auto [step, after] = it->second;
      bool together = fused && !after && steps[step].loop && steps[step].count == count;
      first = std::max(first, together ? step : step + 1);
    }
    size_t at = first;
    while (at < steps.size() && !(fused && steps[at].loop && steps[at].count == count))
      ++at;
    if (at == steps.size())
      steps.push_back({fused, count, {}});
    steps[at].operations.push_back(op);
    made[op->getResult(0)] = {at, !isPointwise(op)};
  }
  return steps;
}
