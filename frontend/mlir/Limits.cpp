// SPDX-License-Identifier: Apache-2.0
#include "frontend/mlir/Limits.h"

#include "mlir/IR/BuiltinAttributes.h"

using namespace mlir;

namespace mtc {

static LogicalResult checkType(Operation *op, Type type, int64_t batch) {
  auto tensor = dyn_cast<ShapedType>(type);
  if (!tensor || !tensor.hasRank())
    return success();
  if (tensor.getRank() > maxRank)
    return op->emitError("expected tensors of rank ") << maxRank << " at most, found " << tensor.getRank();
  if (!tensor.getElementType().isIntOrFloat())
    return success();
  int64_t bytes = (tensor.getElementTypeBitWidth() + 7) / 8;
  for (int64_t dimension : tensor.getShape()) {
    int64_t size = ShapedType::isDynamic(dimension) ? batch : dimension;
    if (size >= maxDimension)
      return op->emitError("expected dimensions below 2^40, found ") << size;
    if (__builtin_mul_overflow(bytes, size, &bytes) || bytes > maxTensorBytes)
      return op->emitError("expected tensors of 2^46 bytes at most, found ")
             << type << (tensor.hasStaticShape() ? std::string() : " at batch " + std::to_string(batch));
  }
  return success();
}

LogicalResult checkLimits(ModuleOp module, int64_t batch) {
  int64_t ops = 0;
  WalkResult walked = module.walk([&](Operation *op) {
    if (++ops > maxOps)
      return op->emitError("expected at most ") << maxOps << " ops in a file, found more", WalkResult::interrupt();
    for (Type type : op->getResultTypes())
      if (failed(checkType(op, type, batch)))
        return WalkResult::interrupt();
    for (NamedAttribute attribute : op->getAttrs()) {
      Type type;
      if (auto typed = dyn_cast<TypedAttr>(attribute.getValue()))
        type = typed.getType();
      else if (auto held = dyn_cast<TypeAttr>(attribute.getValue()))
        type = held.getValue();
      if (type && failed(checkType(op, type, batch)))
        return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  return failure(walked.wasInterrupted());
}

} // namespace mtc
