// SPDX-License-Identifier: Apache-2.0
//
// Types, loops and costs of composites. Their decompositions define what they compute.
#include "dialects/mt/Expr.h"
#include "dialects/mt/MtDialect.h"
#include "dialects/mt/Types.h"

using namespace mlir;
using namespace mlir::mt;

// Predictions [?, ..., C] and targets -> [?, ...].
static LogicalResult inferCriterion(std::optional<Location> location, Value predictions, Value targets, bool labels,
                                    SmallVectorImpl<Type> &types) {
  RankedTensorType p = tensorOf(predictions), t = tensorOf(targets);
  if (p.getRank() - isSplit(p) < 1)
    return emitOptionalError(location, "expected predictions with a last axis of classes, found ", p);
  RankedTensorType expected =
      labels ? RankedTensorType::get(p.getShape().drop_back(), IntegerType::get(p.getContext(), 32)) : p;
  if (t != expected)
    return emitOptionalError(location, "expected targets of type ", expected, ", found ", t);
  types.push_back(p.clone(p.getShape().drop_back()));
  return success();
}

static SmallVector<utils::IteratorType> lastAxisLoops(RankedTensorType type, bool reduced) {
  SmallVector<utils::IteratorType> loops(type.getRank(), utils::IteratorType::parallel);
  if (reduced)
    loops.back() = utils::IteratorType::reduction;
  return loops;
}
// Maps from the loops over the axes of the predictions.
static SmallVector<AffineMap> criterionMaps(Value predictions, Value targets) {
  AffineMap identity = AffineMap::getMultiDimIdentityMap(tensorOf(predictions).getRank(), predictions.getContext());
  AffineMap result = identity.dropResult(identity.getNumResults() - 1);
  return {identity, tensorOf(targets).getRank() < tensorOf(predictions).getRank() ? result : identity, result};
}

#define MT_CRITERION(OP, LABELS, FLOPS)                                                                                \
  LogicalResult OP::inferReturnTypes(MLIRContext *, std::optional<Location> location, Adaptor adaptor,                 \
                                     SmallVectorImpl<Type> &types) {                                                   \
    return inferCriterion(location, adaptor.getPredictions(), adaptor.getTargets(), LABELS, types);                    \
  }                                                                                                                    \
  int64_t OP::getFlops() { return FLOPS * elementsPerRow(getPredictions().getType()); }                                \
  SmallVector<utils::IteratorType> OP::getLoopIteratorTypes() {                                                        \
    return lastAxisLoops(tensorOf(getPredictions()), true);                                                            \
  }                                                                                                                    \
  SmallVector<shard::ReductionKind> OP::getReductionLoopIteratorKinds() { return {shard::ReductionKind::Generic}; }    \
  SmallVector<AffineMap> OP::getIndexingMaps() { return criterionMaps(getPredictions(), getTargets()); }
// A label is one of the classes along the predictions' last axis.
#define MT_LABELS(OP)                                                                                                  \
  Value OP::getIndex() { return getTargets(); }                                                                        \
  int64_t OP::getIndexLimit() { return tensorOf(getPredictions()).getShape().back(); }
MT_LABELS(SparseCategoricalCrossentropyOp)
MT_LABELS(SparseCategoricalAccuracyOp)
MT_LABELS(SparseTopKCategoricalAccuracyOp)
MT_CRITERION(SparseCategoricalCrossentropyOp, true, 15)
MT_CRITERION(CategoricalCrossentropyOp, false, 17)
MT_CRITERION(BinaryCrossentropyOp, false, 30)
MT_CRITERION(MeanSquaredErrorOp, false, 3)
MT_CRITERION(MeanAbsoluteErrorOp, false, 3)
MT_CRITERION(SparseCategoricalAccuracyOp, true, 1)
MT_CRITERION(CategoricalAccuracyOp, false, 2)
MT_CRITERION(BinaryAccuracyOp, false, 3)
MT_CRITERION(HuberOp, false, 7)
MT_CRITERION(HingeOp, false, 5)
MT_CRITERION(SquaredHingeOp, false, 6)
MT_CRITERION(CategoricalHingeOp, false, 5)
MT_CRITERION(KlDivergenceOp, false, 20)
MT_CRITERION(PoissonOp, false, 16)
MT_CRITERION(LogCoshOp, false, 31)
MT_CRITERION(CosineSimilarityOp, false, 6)
MT_CRITERION(MeanAbsolutePercentageErrorOp, false, 6)
MT_CRITERION(MeanSquaredLogarithmicErrorOp, false, 31)
MT_CRITERION(SparseTopKCategoricalAccuracyOp, true, 3)
MT_CRITERION(TopKCategoricalAccuracyOp, false, 4)
#undef MT_CRITERION

static LogicalResult verifySmoothing(Operation *op, float smoothing) {
  if (!(smoothing >= 0 && smoothing <= 1))
    return op->emitOpError("expected label_smoothing from 0 to 1, found ") << smoothing;
  return success();
}
LogicalResult CategoricalCrossentropyOp::verify() {
  return verifySmoothing(*this, getLabelSmoothing().convertToDouble());
}
LogicalResult BinaryCrossentropyOp::verify() { return verifySmoothing(*this, getLabelSmoothing().convertToDouble()); }

static LogicalResult verifyK(Operation *op, int64_t k) {
  if (k < 1)
    return op->emitOpError("expected k of 1 or more, found ") << k;
  return success();
}
LogicalResult SparseTopKCategoricalAccuracyOp::verify() { return verifyK(*this, getK()); }
LogicalResult TopKCategoricalAccuracyOp::verify() { return verifyK(*this, getK()); }

// The op reads the last axis as a whole: the axis must exist and must not be the batch axis.
static LogicalResult verifyLastAxis(Operation *op, Value operand) {
  RankedTensorType type = tensorOf(operand);
  if (type.getRank() == 0 || type.isDynamicDim(type.getRank() - 1))
    return op->emitOpError("expected a last axis other than the batch axis, found ") << type;
  return success();
}

#define MT_LAST_AXIS(OP, FLOPS)                                                                                        \
  LogicalResult OP::verify() { return verifyLastAxis(getOperation(), getOperand()); }                                  \
  int64_t OP::getFlops() { return FLOPS * elementsPerRow(getType()); }                                                 \
  SmallVector<utils::IteratorType> OP::getLoopIteratorTypes() { return lastAxisLoops(getType(), true); }               \
  SmallVector<shard::ReductionKind> OP::getReductionLoopIteratorKinds() { return {shard::ReductionKind::Generic}; }    \
  SmallVector<AffineMap> OP::getIndexingMaps() { return elementwiseMaps(getOperation()); }
MT_LAST_AXIS(SoftmaxOp, 14)
MT_LAST_AXIS(LogSoftmaxOp, 15)
#undef MT_LAST_AXIS

LogicalResult OneHotOp::verify() {
  RankedTensorType labels = tensorOf(getLabels()), result = tensorOf(getResult());
  if (result.getRank() != labels.getRank() + 1 || result.getShape().drop_back() != labels.getShape())
    return emitOpError("expected the labels' shape and one more axis, found ") << labels << " to " << result;
  return success();
}
int64_t OneHotOp::getFlops() { return elementsPerRow(getType()); }
SmallVector<utils::IteratorType> OneHotOp::getLoopIteratorTypes() { return elementwiseLoops(getOperation()); }
SmallVector<shard::ReductionKind> OneHotOp::getReductionLoopIteratorKinds() { return {}; }
SmallVector<AffineMap> OneHotOp::getIndexingMaps() {
  AffineMap identity = AffineMap::getMultiDimIdentityMap(tensorOf(getResult()).getRank(), getContext());
  return {identity.dropResult(identity.getNumResults() - 1), identity};
}
