// SPDX-License-Identifier: Apache-2.0
//
// Ops without tensor operands: constants, iota, the batch size, random numbers.
#include "dialects/mt/MtDialect.h"
#include "dialects/mt/Random.h"

using namespace mlir;
using namespace mlir::mt;

// One parallel loop per axis of the result; the operand of a random number op (the step) is a scalar.
#define MT_SOURCE(OP)                                                                                                  \
  SmallVector<utils::IteratorType> OP::getLoopIteratorTypes() { return elementwiseLoops(getOperation()); }             \
  SmallVector<shard::ReductionKind> OP::getReductionLoopIteratorKinds() { return {}; }                                 \
  SmallVector<AffineMap> OP::getIndexingMaps() { return elementwiseMaps(getOperation()); }
MT_SOURCE(ConstantOp)
MT_SOURCE(IotaOp)
MT_SOURCE(BatchSizeOp)
MT_SOURCE(RandomUniformOp)
#undef MT_SOURCE

LogicalResult ConstantOp::inferReturnTypes(MLIRContext *, std::optional<Location>, Adaptor adaptor,
                                           SmallVectorImpl<Type> &types) {
  types.push_back(adaptor.getValue().getShapedType());
  return success();
}
LogicalResult ConstantOp::verify() {
  if (isSplit(getType()))
    return emitOpError("expected a static shape, found ") << getType();
  return success();
}
OpFoldResult ConstantOp::fold(FoldAdaptor) { return getValue(); }
int64_t ConstantOp::getFlops() { return 0; }
LogicalResult ConstantOp::interpret(const EvalContext &, ArrayRef<Tensor>, SmallVectorImpl<Tensor> &results) {
  results.push_back(Tensor::of(getValue()));
  return success();
}

LogicalResult IotaOp::verify() {
  auto type = cast<RankedTensorType>(getType());
  if (isSplit(type) && type.getRank() != 1)
    return emitOpError("expected a static shape, or the batch axis alone, found ") << type;
  if (static_cast<int64_t>(getDim()) < 0 || static_cast<int64_t>(getDim()) >= type.getRank())
    return emitOpError("expected a dim from 0 to ") << type.getRank() - 1 << ", found " << getDim();
  if (type.getElementType().isInteger(1))
    return emitOpError("expected f32 or i32 elements, found i1");
  return success();
}
int64_t IotaOp::getFlops() { return 0; }
LogicalResult IotaOp::interpret(const EvalContext &context, ArrayRef<Tensor>, SmallVectorImpl<Tensor> &results) {
  Tensor result(concreteShape(cast<RankedTensorType>(getType()), context.rows));
  int64_t i = 0, first = isSplit(getType()) ? context.firstRow : 0;
  for (Index index(result.shape); !index.done(); index.next())
    result.data[i++] = first + index[getDim()];
  results.push_back(std::move(result));
  return success();
}

int64_t BatchSizeOp::getFlops() { return 0; }
LogicalResult BatchSizeOp::interpret(const EvalContext &context, ArrayRef<Tensor>, SmallVectorImpl<Tensor> &results) {
  results.push_back(Tensor::scalar(context.samples));
  return success();
}

LogicalResult RandomUniformOp::verify() {
  if (getStream().has_value() == static_cast<bool>(getHash()))
    return emitOpError("expected the name of a stream or its hash, found ") << (getHash() ? "both" : "none");
  return success();
}
int64_t RandomUniformOp::getFlops() { return 12 * elementsPerRow(getType()); }
LogicalResult RandomUniformOp::interpret(const EvalContext &context, ArrayRef<Tensor> operands,
                                         SmallVectorImpl<Tensor> &results) {
  Tensor result(concreteShape(cast<RankedTensorType>(getType()), context.rows));
  auto word = [](const Tensor &number) { return static_cast<uint32_t>(static_cast<int64_t>(number.data[0])); };
  uint32_t stream = getHash() ? word(operands.front()) : hashStream(*getStream());
  uint32_t step = getStep() ? word(operands.back()) : 0;
  int64_t first = isSplit(getType()) ? context.firstRow * elementsPerRow(getType()) : 0;
  for (int64_t i = 0; i < result.size(); ++i)
    result.data[i] = uniformElement(context.seed, stream, step, first + i);
  results.push_back(std::move(result));
  return success();
}
