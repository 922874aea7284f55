// SPDX-License-Identifier: Apache-2.0
//
// mt-recognize-softmax: mt.softmax and mt.log_softmax in place of their formulas. The largest element, which a formula
// subtracts against overflow, has no part in the gradient of the operation; of a formula its gradients cancel, but for
// rounding.
#include "compiler/Passes.h"
#include "compiler/recognize/Match.h"

using namespace mlir;

namespace mtc {
#define GEN_PASS_DEF_RECOGNIZESOFTMAX
#include "compiler/Passes.h.inc"

namespace {

// Whether a value is the largest element of each line of x: as it is; without a gradient; where it is finite, and a
// number elsewhere; or not below a number.
bool isMaximumOf(Value value, Value x) {
  Value maximum = value;
  while (Operation *op = maximum.getDefiningOp()) {
    if (auto larger = dyn_cast<mt::MaximumOp>(op); larger && numberOf(larger.getLhs()))
      maximum = larger.getRhs();
    else if (larger && numberOf(larger.getRhs()))
      maximum = larger.getLhs();
    else if (auto select = dyn_cast<mt::SelectOp>(op); select && numberOf(select->getOperand(2)))
      maximum = select->getOperand(1);
    else if (isa<mt::ReshapeOp, mt::StopGradientOp>(op))
      maximum = op->getOperand(0);
    else
      break;
  }
  std::optional<Reduced> reduced = reducedBy(maximum, mt::Reduction::max);
  return reduced && reduced->operand == x && reduced->isOverLastAxis() && reduced->broadcasts(value);
}

// x, of x minus the largest element of each of its lines.
Value shiftedBy(Value value) {
  auto subtract = value.getDefiningOp<mt::SubOp>();
  if (!subtract || subtract.getLhs().getType() != value.getType())
    return {};
  return isMaximumOf(subtract.getRhs(), subtract.getLhs()) ? subtract.getLhs() : Value();
}

// e^y, where `sum` is the sum of its lines; null: it is not. `outer` is the form of the sum that broadcasts to the
// lines.
mt::ExpOp exponentialOf(Value sum, Value outer) {
  std::optional<Reduced> reduced = reducedBy(sum, mt::Reduction::sum);
  bool lines = reduced && reduced->isOverLastAxis() && reduced->broadcasts(outer);
  return lines ? reduced->operand.getDefiningOp<mt::ExpOp>() : mt::ExpOp();
}

// e^(x - max) / sum of it.
void matchSoftmax(mt::DivOp divide) {
  auto exponential = divide.getLhs().getDefiningOp<mt::ExpOp>();
  if (!exponential || exponentialOf(divide.getRhs(), divide.getRhs()) != exponential)
    return;
  OpBuilder builder(divide);
  if (Value x = shiftedBy(exponential.getOperand()))
    replaceMatched(divide, mt::SoftmaxOp::create(builder, divide.getLoc(), x.getType(), x));
}

// (x - max) - log(sum of e^(x - max)).
void matchLogSoftmax(mt::SubOp subtract) {
  Value shifted = subtract.getLhs();
  auto logarithm = withoutReshapes(subtract.getRhs()).getDefiningOp<mt::LogOp>();
  Value x = logarithm ? shiftedBy(shifted) : Value();
  if (!x)
    return;
  Value sum = withoutReshapes(logarithm.getOperand());
  if (auto absolute = sum.getDefiningOp<mt::AbsOp>())
    sum = absolute.getOperand();
  mt::ExpOp exponential = exponentialOf(sum, subtract.getRhs());
  if (!exponential || exponential.getOperand() != shifted)
    return;
  OpBuilder builder(subtract);
  replaceMatched(subtract, mt::LogSoftmaxOp::create(builder, subtract.getLoc(), x.getType(), x));
}

struct RecognizeSoftmax : impl::RecognizeSoftmaxBase<RecognizeSoftmax> {
  void runOnOperation() override {
    forEach<mt::DivOp>(getOperation(), matchSoftmax);
    forEach<mt::SubOp>(getOperation(), matchLogSoftmax);
  }
};

} // namespace
} // namespace mtc
