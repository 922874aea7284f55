// SPDX-License-Identifier: Apache-2.0
//
// mt.broadcast, mt.reshape and mt.transpose.
#include "dialects/mt/Expr.h"
#include "dialects/mt/Gradient.h"
#include "dialects/mt/MtDialect.h"
#include "dialects/mt/Types.h"

using namespace mlir;
using namespace mlir::mt;

LogicalResult BroadcastOp::verify() {
  RankedTensorType from = tensorOf(getOperand()), to = tensorOf(getResult());
  if (from.getElementType() != to.getElementType())
    return emitOpError("expected equal element types, found ")
           << from.getElementType() << " and " << to.getElementType();
  if (from.getRank() > to.getRank())
    return emitOpError("expected an operand of rank ") << to.getRank() << " or less, found rank " << from.getRank();
  if (isSplit(from) && from.getRank() != to.getRank())
    return emitOpError("expected a split operand of rank ") << to.getRank() << ", found rank " << from.getRank();
  int64_t lead = to.getRank() - from.getRank();
  for (int64_t axis = 0; axis < from.getRank(); ++axis)
    if (from.getDimSize(axis) != 1 && from.getDimSize(axis) != to.getDimSize(lead + axis))
      return emitOpError("expected equal sizes or 1 on axis ")
             << axis << " of the operand, found " << from << " to " << to;
  return success();
}
int64_t BroadcastOp::getFlops() { return 0; }
SmallVector<utils::IteratorType> BroadcastOp::getLoopIteratorTypes() { return elementwiseLoops(getOperation()); }
SmallVector<shard::ReductionKind> BroadcastOp::getReductionLoopIteratorKinds() { return {}; }
SmallVector<AffineMap> BroadcastOp::getIndexingMaps() { return elementwiseMaps(getOperation()); }

LogicalResult BroadcastOp::interpret(const EvalContext &context, ArrayRef<Tensor> operands,
                                     SmallVectorImpl<Tensor> &results) {
  Tensor result(concreteShape(tensorOf(getResult()), context.rows));
  int64_t i = 0;
  for (Index index(result.shape); !index.done(); index.next())
    result.data[i++] = operands[0].data[index.offsetIn(operands[0].shape)];
  results.push_back(std::move(result));
  return success();
}
void BroadcastOp::buildGradient(OpBuilder &builder, ValueRange resultGradients,
                                SmallVectorImpl<Value> &operandGradients) {
  operandGradients.push_back(sumToShape(builder, getLoc(), resultGradients[0], tensorOf(getOperand())));
}

SmallVector<Move> BroadcastOp::getMoves() {
  // Axes are aligned at the last axis. An axis of size 1 or a missing axis is repeated.
  ArrayRef<int64_t> from = sampleShape(getOperand().getType()), to = sampleShape(getResult().getType());
  SmallVector<int64_t> strides = stridesOf(from);
  Move move{getOperand()};
  for (size_t fromEnd = to.size(); fromEnd > 0; --fromEnd) {
    bool repeated = fromEnd > from.size() || from[from.size() - fromEnd] == 1;
    move.axes.push_back({to[to.size() - fromEnd], repeated ? 0 : strides[from.size() - fromEnd]});
  }
  return {move};
}

LogicalResult ReshapeOp::verify() {
  RankedTensorType from = tensorOf(getOperand()), to = tensorOf(getResult());
  if (from.getElementType() != to.getElementType())
    return emitOpError("expected equal element types, found ")
           << from.getElementType() << " and " << to.getElementType();
  if (isSplit(from) != isSplit(to))
    return emitOpError("expected the batch axis first in both or in none, found ") << from << " and " << to;
  if (elementsPerRow(from) != elementsPerRow(to))
    return emitOpError("expected ") << elementsPerRow(from) << (isSplit(from) ? " elements per row" : " elements")
                                    << " in the result, found " << elementsPerRow(to);
  return success();
}
int64_t ReshapeOp::getFlops() { return 0; }

// One loop for the batch axis, and one loop for every other axis of the operand and of the result.
static int64_t batchLoops(ReshapeOp op) { return isSplit(op.getType()) ? 1 : 0; }
SmallVector<utils::IteratorType> ReshapeOp::getLoopIteratorTypes() {
  int64_t loops = tensorOf(getOperand()).getRank() + tensorOf(getResult()).getRank() - batchLoops(*this);
  return SmallVector<utils::IteratorType>(loops, utils::IteratorType::parallel);
}
SmallVector<shard::ReductionKind> ReshapeOp::getReductionLoopIteratorKinds() { return {}; }
SmallVector<AffineMap> ReshapeOp::getIndexingMaps() {
  int64_t loops = getLoopIteratorTypes().size(), batch = batchLoops(*this);
  SmallVector<AffineExpr> from, to;
  for (int64_t axis = 0; axis < tensorOf(getOperand()).getRank(); ++axis)
    from.push_back(getAffineDimExpr(axis, getContext()));
  for (int64_t axis = 0; axis < tensorOf(getResult()).getRank(); ++axis)
    to.push_back(getAffineDimExpr(axis < batch ? axis : tensorOf(getOperand()).getRank() + axis - batch, getContext()));
  return {AffineMap::get(loops, 0, from, getContext()), AffineMap::get(loops, 0, to, getContext())};
}

LogicalResult ReshapeOp::interpret(const EvalContext &context, ArrayRef<Tensor> operands,
                                   SmallVectorImpl<Tensor> &results) {
  Tensor result = operands[0];
  result.shape = concreteShape(tensorOf(getResult()), context.rows);
  results.push_back(std::move(result));
  return success();
}
void ReshapeOp::buildGradient(OpBuilder &builder, ValueRange resultGradients,
                              SmallVectorImpl<Value> &operandGradients) {
  Value dy = resultGradients[0];
  operandGradients.push_back(dy ? ReshapeOp::create(builder, getLoc(), getOperand().getType(), dy).getResult()
                                : Value());
}

LogicalResult TransposeOp::inferReturnTypes(MLIRContext *, std::optional<Location> location, Adaptor adaptor,
                                            SmallVectorImpl<Type> &types) {
  RankedTensorType from = tensorOf(adaptor.getOperand());
  ArrayRef<int64_t> permutation = adaptor.getPermutation();
  SmallVector<int64_t> sorted(permutation), shape;
  llvm::sort(sorted);
  for (auto [expected, found] : llvm::enumerate(sorted))
    if (static_cast<int64_t>(expected) != found || sorted.size() != static_cast<size_t>(from.getRank()))
      return emitOptionalError(location, "expected a permutation of ", from.getRank(), " axes, found [", permutation,
                               "]");
  if (sorted.size() != static_cast<size_t>(from.getRank()))
    return emitOptionalError(location, "expected a permutation of ", from.getRank(), " axes, found [", permutation,
                             "]");
  if (isSplit(from) && permutation[0] != 0)
    return emitOptionalError(location, "expected the batch axis to stay first, found axis ", permutation[0], " first");
  for (int64_t axis : permutation)
    shape.push_back(from.getDimSize(axis));
  types.push_back(from.clone(shape));
  return success();
}
bool TransposeOp::readsBuffers() { return tensorOf(getOperand()).getRank() == 2; }
int64_t TransposeOp::getFlops() { return 0; }
SmallVector<utils::IteratorType> TransposeOp::getLoopIteratorTypes() { return elementwiseLoops(getOperation()); }
SmallVector<shard::ReductionKind> TransposeOp::getReductionLoopIteratorKinds() { return {}; }
SmallVector<AffineMap> TransposeOp::getIndexingMaps() {
  int64_t rank = getPermutation().size();
  SmallVector<AffineExpr> from(rank);
  for (auto [axis, source] : llvm::enumerate(getPermutation()))
    from[source] = getAffineDimExpr(axis, getContext());
  return {AffineMap::get(rank, 0, from, getContext()), AffineMap::getMultiDimIdentityMap(rank, getContext())};
}

SmallVector<Move> TransposeOp::getMoves() {
  int64_t batch = isSplit(tensorOf(getResult()));
  ArrayRef<int64_t> shape = sampleShape(getOperand().getType());
  SmallVector<int64_t> strides = stridesOf(shape);
  Move move{getOperand()};
  for (int64_t from : getPermutation().drop_front(batch))
    move.axes.push_back({shape[from - batch], strides[from - batch]});
  return {move};
}
bool TransposeOp::keepsFirstAxes(int64_t axes) {
  for (int64_t axis = 0; axis <= axes; ++axis)
    if (getPermutation()[axis] != axis)
      return false;
  return true;
}
void TransposeOp::dropFirstAxes(int64_t axes) {
  SmallVector<int64_t> permutation{0};
  for (int64_t from : getPermutation().drop_front(axes + 1))
    permutation.push_back(from - axes);
  setPermutation(permutation);
}

LogicalResult TransposeOp::interpret(const EvalContext &context, ArrayRef<Tensor> operands,
                                     SmallVectorImpl<Tensor> &results) {
  Tensor result(concreteShape(tensorOf(getResult()), context.rows));
  int64_t i = 0;
  for (Index index(result.shape); !index.done(); index.next()) {
    SmallVector<int64_t> source(result.shape.size());
    for (auto [axis, from] : llvm::enumerate(getPermutation()))
      source[from] = index[axis];
    int64_t offset = 0;
    for (auto [axis, at] : llvm::enumerate(source))
      offset = offset * operands[0].shape[axis] + at;
    result.data[i++] = operands[0].data[offset];
  }
  results.push_back(std::move(result));
  return success();
}
void TransposeOp::buildGradient(OpBuilder &builder, ValueRange resultGradients,
                                SmallVectorImpl<Value> &operandGradients) {
  SmallVector<int64_t> inverse(getPermutation().size());
  for (auto [axis, from] : llvm::enumerate(getPermutation()))
    inverse[from] = axis;
  Value dy = resultGradients[0];
  operandGradients.push_back(dy ? TransposeOp::create(builder, getLoc(), dy, inverse).getResult() : Value());
}
