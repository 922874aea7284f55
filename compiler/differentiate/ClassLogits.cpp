// SPDX-License-Identifier: Apache-2.0
#include "compiler/differentiate/ClassLogits.h"
#include "dialects/mt/Types.h"

using namespace mlir;

namespace mtc {

using mt::tensorOf;

// Whether the value is a variable (maybe as an argument of derivatives), a variable with padded classes, or the padded
// zeros that stand for a missing bias.
static bool isOfModel(Value value) {
  while (auto argument = value.getDefiningOp<mt::ArgumentOp>())
    value = argument.getValue();
  auto pad = value.getDefiningOp<mt::PadOp>();
  Operation *source = pad ? pad.getOperand().getDefiningOp() : value.getDefiningOp();
  return isa_and_nonnull<mt::VariableOp>(source) || (pad && isa_and_nonnull<mt::ConstantOp>(source));
}

Value logitsOf(mt::MatmulOp product) {
  RankedTensorType type = tensorOf(product.getResult());
  if (product.getTransposeA() || !mt::isSplit(type) || tensorOf(product.getRhs()).getRank() != 2 ||
      !isOfModel(product.getRhs()))
    return {};
  auto add = product->hasOneUse() ? dyn_cast<mt::AddOp>(*product->user_begin()) : mt::AddOp();
  if (!add || add.getType() != type)
    return product.getResult();
  Value bias = add.getLhs() == product.getResult() ? add.getRhs() : add.getLhs();
  bool fits = tensorOf(bias).getShape() == ArrayRef<int64_t>{type.getShape().back()} && isOfModel(bias);
  return fits ? add.getResult() : Value();
}

// Whether the targets are inputs of the model or one-hot labels, so that no gradient passes through them.
static bool areGiven(Value targets) { return isa_and_nonnull<mt::TargetOp, mt::OneHotOp>(targets.getDefiningOp()); }

static bool isLossOf(Operation *op, Value logits) {
  if (auto sparse = dyn_cast<mt::SparseCategoricalCrossentropyOp>(op))
    return sparse.getFromLogits() && sparse.getPredictions() == logits;
  auto dense = dyn_cast<mt::CategoricalCrossentropyOp>(op);
  return dense && dense.getFromLogits() && dense.getPredictions() == logits && areGiven(dense.getTargets());
}

static bool isMetricOf(Operation *op, Value logits) {
  if (auto top = dyn_cast<mt::TopKCategoricalAccuracyOp>(op))
    return top.getPredictions() == logits && top.getTargets() != logits;
  return isa<mt::SparseCategoricalAccuracyOp, mt::SparseTopKCategoricalAccuracyOp>(op);
}

SmallVector<Operation *> criteriaOf(Value logits) {
  SmallVector<Operation *> criteria;
  bool loss = false;
  for (Operation *user : logits.getUsers()) {
    if (isa<mt::OutputOp>(user)) // predict alone computes outputs
      continue;
    bool isLoss = isLossOf(user, logits);
    if (user->getBlock() != logits.getParentBlock() || (!isLoss && !isMetricOf(user, logits)))
      return {};
    loss |= isLoss;
    criteria.push_back(user);
  }
  llvm::sort(criteria, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  return loss ? criteria : SmallVector<Operation *>();
}

} // namespace mtc
