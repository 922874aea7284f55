// SPDX-License-Identifier: Apache-2.0
//
// Ops over axes.
#include "frontend/graph/Lower.h"

using namespace mlir;

namespace mtc::lower {
namespace {

Value lowerReduce(Call &call, graph::ReduceOp op) {
  const Value &value = call.operands[0];
  return op.getWithinSamples() ? logical::reduceWithinSamples(call.ops, op.getKind(), value, op.getDims())
                               : logical::reduce(call.ops, op.getKind(), value, op.getDims());
}

Value lowerCumsum(Call &call, graph::CumsumOp op) {
  return logical::cumsum(call.ops, call.operands[0], logical::checkAxis(op.getDim(), call.operands[0].rank()),
                         op.getReverse());
}

Value lowerNormalize(Call &call, graph::NormalizeOp op) {
  return logical::normalize(call.ops, call.operands[0], op.getDims(), op.getEpsilon().convertToDouble());
}

Value lowerCrossEntropy(Call &call, graph::CrossEntropyOp) {
  return logical::crossEntropy(call.ops, call.operands[0], call.operands[1]);
}

} // namespace

llvm::ArrayRef<Entry> reductionOps() {
  static constexpr Entry entries[] = {entry<graph::ReduceOp, lowerReduce>(), entry<graph::CumsumOp, lowerCumsum>(),
                                      entry<graph::NormalizeOp, lowerNormalize>(),
                                      entry<graph::CrossEntropyOp, lowerCrossEntropy>()};
  return entries;
}

} // namespace mtc::lower
