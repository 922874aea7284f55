// SPDX-License-Identifier: Apache-2.0
//
// Verifiers of the ops that give a module its shape.
#include "dialects/mt/MtDialect.h"

using namespace mlir;
using namespace mlir::mt;

static RankedTensorType tensorOf(Value value) { return cast<RankedTensorType>(value.getType()); }

static LogicalResult verifyBatchAxis(Operation *op, Type type) {
  if (!isSplit(type))
    return op->emitOpError("expected a batch axis `?` first, found ") << type;
  return success();
}

LogicalResult InputOp::verify() { return verifyBatchAxis(*this, getType()); }
LogicalResult TargetOp::verify() { return verifyBatchAxis(*this, getType()); }
LogicalResult SampleWeightOp::verify() {
  auto type = cast<RankedTensorType>(getType());
  if (type.getRank() != 1 || !isSplit(type) || !type.getElementType().isF32())
    return emitOpError("expected tensor<?xf32>, found ") << type;
  return success();
}
LogicalResult OutputOp::verify() { return verifyBatchAxis(*this, getValue().getType()); }

LogicalResult VariableOp::verify() {
  auto type = cast<RankedTensorType>(getType());
  if (!type.hasStaticShape())
    return emitOpError("expected a static shape, found ") << type;
  if (getInit() == InitKind::constant && !getValue())
    return emitOpError("expected a value: init(constant = 0.5)");
  if (getInit() != InitKind::constant && getValue())
    return emitOpError("expected a value with init(constant) only, found one with ") << stringifyInitKind(getInit());
  return success();
}

static LogicalResult verifyWeighted(Operation *op, Value values, Value weights) {
  if (failed(verifyBatchAxis(op, values.getType())))
    return failure();
  if (!weights)
    return success();
  ArrayRef<int64_t> valueShape = tensorOf(values).getShape(), weightShape = tensorOf(weights).getShape();
  if (weightShape.size() > valueShape.size() || weightShape != valueShape.take_front(weightShape.size()))
    return op->emitOpError("expected weights of the shape of the values or of its first axes, found ")
           << weights.getType() << " for " << values.getType();
  return success();
}
LogicalResult LossOp::verify() { return verifyWeighted(*this, getValues(), getWeights()); }
LogicalResult MetricOp::verify() { return verifyWeighted(*this, getValues(), getWeights()); }

LogicalResult ModelOp::verify() { return success(); }
