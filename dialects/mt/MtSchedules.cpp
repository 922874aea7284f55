// SPDX-License-Identifier: Apache-2.0
//
// Schedules of the learning rate. Steps above 2^24 are not exact in float32, as in Keras.
#include "dialects/mt/Expr.h"
#include "dialects/mt/MtDialect.h"
#include "dialects/mt/Numbers.h"

using namespace mlir;
using namespace mlir::mt;

static LogicalResult verifyDecay(Operation *op, const llvm::APFloat &rate, const llvm::APFloat &steps) {
  if (!(number(rate) >= 0 && rate.isFinite()))
    return op->emitOpError("expected a finite initial_learning_rate of 0 or more, found ") << number(rate);
  if (!(number(steps) > 0 && steps.isFinite()))
    return op->emitOpError("expected finite decay_steps above 0, found ") << number(steps);
  return success();
}

// A schedule is one template over Expr and double.
#define MT_SCHEDULE(OP)                                                                                                \
  Value OP::decompose(OpBuilder &builder) {                                                                            \
    return rateAt(*this, toFloat(Expr(builder, getLoc(), getStep()))).value();                                         \
  }                                                                                                                    \
  LogicalResult OP::interpret(const EvalContext &, ArrayRef<Tensor> operands, SmallVectorImpl<Tensor> &results) {      \
    results.push_back(Tensor::scalar(rateAt(*this, operands[0].data[0])));                                             \
    return success();                                                                                                  \
  }                                                                                                                    \
  int64_t OP::getFlops() { return 30; }                                                                                \
  SmallVector<utils::IteratorType> OP::getLoopIteratorTypes() { return {}; }                                           \
  SmallVector<shard::ReductionKind> OP::getReductionLoopIteratorKinds() { return {}; }                                 \
  SmallVector<AffineMap> OP::getIndexingMaps() { return elementwiseMaps(getOperation()); }

// Overloads for double of functions that Expr has.
static double select(bool condition, double a, double b) { return condition ? a : b; }
static double minimum(double a, double b) { return std::min(a, b); }
using std::cos, std::floor, std::pow;

LogicalResult ExponentialDecayOp::verify() { return verifyDecay(*this, getInitialLearningRate(), getDecaySteps()); }
template <typename T> static T rateAt(ExponentialDecayOp op, T step) {
  T p = step / number(op.getDecaySteps());
  if (op.getStaircase())
    p = floor(p);
  return pow(T(number(op.getDecayRate())), p) * number(op.getInitialLearningRate());
}
MT_SCHEDULE(ExponentialDecayOp)

LogicalResult InverseTimeDecayOp::verify() { return verifyDecay(*this, getInitialLearningRate(), getDecaySteps()); }
template <typename T> static T rateAt(InverseTimeDecayOp op, T step) {
  T p = step / number(op.getDecaySteps());
  if (op.getStaircase())
    p = floor(p);
  return T(number(op.getInitialLearningRate())) / (p * number(op.getDecayRate()) + 1.0);
}
MT_SCHEDULE(InverseTimeDecayOp)

LogicalResult PiecewiseConstantDecayOp::verify() {
  if (getValues().size() != getBoundaries().size() + 1)
    return emitOpError("expected one value more than boundaries, found ")
           << getValues().size() << " values and " << getBoundaries().size() << " boundaries";
  if (getBoundaries().empty() || !llvm::is_sorted(getBoundaries()))
    return emitOpError("expected increasing boundaries, found [") << getBoundaries() << "]";
  return success();
}
template <typename T> static T rateAt(PiecewiseConstantDecayOp op, T step) {
  size_t count = op.getBoundaries().size();
  bool isDouble = cast<RankedTensorType>(op.getType()).getElementType().isF64();
  auto value = [&](size_t i) { // the attribute has numbers of f32 in f64 too
    float written = op.getValues()[i];
    return isDouble ? decimalOf(llvm::APFloat(written)) : double(written);
  };
  auto last = select(step <= static_cast<double>(op.getBoundaries()[count - 1]), value(count - 1), value(count));
  T rate = last;
  for (size_t i = count - 1; i-- > 0;)
    rate = select(step <= static_cast<double>(op.getBoundaries()[i]), T(value(i)), rate);
  return rate;
}
MT_SCHEDULE(PiecewiseConstantDecayOp)

LogicalResult PolynomialDecayOp::verify() { return verifyDecay(*this, getInitialLearningRate(), getDecaySteps()); }
template <typename T> static T rateAt(PolynomialDecayOp op, T step) {
  double steps = number(op.getDecaySteps()), end = number(op.getEndLearningRate());
  // The ceiling of step / decay_steps, at least 1.
  T whole = -floor(-(step / steps));
  T p = op.getCycle() ? step / (select(step <= 0.0, T(1.0), whole) * steps) : minimum(step, T(steps)) / steps;
  return pow(T(1.0) - p, T(number(op.getPower()))) * (number(op.getInitialLearningRate()) - end) + end;
}
MT_SCHEDULE(PolynomialDecayOp)

LogicalResult CosineDecayOp::verify() {
  if (getWarmupTarget().has_value() != (number(getWarmupSteps()) > 0))
    return emitOpError("expected warmup_target and warmup_steps above 0 together, found warmup_steps = ")
           << number(getWarmupSteps()) << (getWarmupTarget() ? " with" : " without") << " a target";
  return verifyDecay(*this, getInitialLearningRate(), getDecaySteps());
}
template <typename T> static T rateAt(CosineDecayOp op, T step) {
  double first = number(op.getInitialLearningRate()), steps = number(op.getDecaySteps()), alpha = number(op.getAlpha());
  double warmup = number(op.getWarmupSteps()), top = op.getWarmupTarget() ? number(*op.getWarmupTarget()) : first;
  T at = minimum(step, T(steps + warmup));
  T decayed = ((cos((at - warmup) / steps * M_PI) + 1.0) * 0.5 * (1 - alpha) + alpha) * top;
  if (!op.getWarmupTarget())
    return decayed;
  return select(at < warmup, at / warmup * (top - first) + first, decayed);
}
MT_SCHEDULE(CosineDecayOp)
