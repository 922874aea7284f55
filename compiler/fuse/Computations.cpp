// SPDX-License-Identifier: Apache-2.0
#include "compiler/fuse/Computations.h"

namespace mtc {

using namespace mlir;

// Whether a kernel that recomputes the operands of `op` may recompute `op` too.
static bool mayBeRecomputed(Operation *op) {
  bool repeated = isa<mt::ConstantOp>(op) && mt::splatOf(op->getResult(0));
  if (repeated || isa<mt::IotaOp, mt::BatchSizeOp>(op))
    return !mt::isSplit(op->getResult(0).getType());
  if (op->getNumOperands() == 0 || op->getNumResults() != 1 || mt::isSplit(op->getResult(0).getType()))
    return false;
  // A reshape to the same shape is a copy, which exists because a value needs a buffer.
  bool shapes = op->hasTrait<mt::Repeats>() && op->getOperand(0).getType() != op->getResult(0).getType();
  return shapes || (isa<mt::ElementwiseOpInterface>(op) && mt::elementsPerRow(op->getResult(0).getType()) == 1);
}

RecomputedValues::RecomputedValues(Block &body) {
  // largest length of a chain; the result of a longer chain is computed once and stored
  constexpr unsigned longest = 100;
  for (Operation &op : body) {
    if (!mayBeRecomputed(&op) || !llvm::all_of(op.getOperands(), [&](Value operand) { return contains(operand); }))
      continue;
    unsigned length = 0;
    for (Value operand : op.getOperands())
      length = std::max(length, ops.lookup(operand.getDefiningOp()));
    if (length >= longest)
      continue;
    ops[&op] = length + 1;
    if (!isa<mt::IotaOp>(op) && llvm::all_of(op.getOperands(), [&](Value operand) { return isUniform(operand); }))
      uniform.insert(&op);
  }
}

Value extendedFrom(Value value) {
  auto wide = value.getDefiningOp<mt::CastOp>();
  if (!wide || !mt::isHalf(cast<RankedTensorType>(wide.getOperand().getType()).getElementType()))
    return {};
  return wide.getOperand();
}

bool isProduct(Operation *op) {
  auto own = dyn_cast<mt::KernelOpInterface>(op);
  return own && own.takesEpilogue();
}

Value truncated(Value value) {
  Value half = extendedFrom(value);
  return half ? half : value;
}

bool sameComputation(Operation *a, Operation *b) {
  auto same = [](Value x, Value y) { return truncated(x) == truncated(y) && x.getType() == y.getType(); };
  return a->getName() == b->getName() && a->getResultTypes() == b->getResultTypes() &&
         a->getAttrDictionary() == b->getAttrDictionary() && a->getNumOperands() == b->getNumOperands() &&
         llvm::all_of_zip(a->getOperands(), b->getOperands(), same);
}

int64_t bytesPerSample(Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  return mt::isSplit(type) ? mt::elementsPerRow(type) * llvm::divideCeil(type.getElementTypeBitWidth(), 8) : 0;
}

} // namespace mtc
