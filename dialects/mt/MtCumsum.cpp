// SPDX-License-Identifier: Apache-2.0
//
// mt.cumsum. Its gradient is the cumulative sum in the other direction.
#include "dialects/mt/Expr.h"
#include "dialects/mt/MtDialect.h"

using namespace mlir;
using namespace mlir::mt;
using utils::IteratorType;

LogicalResult CumsumOp::verify() {
  int64_t first = isSplit(getType()), rank = getType().getRank(), dim = getDim();
  if (dim < first || dim >= rank)
    return emitOpError("expected an axis from ")
           << first << " to " << rank - 1 << " of " << getType() << ", found " << dim;
  return success();
}

static int64_t roundsOf(int64_t size) { return size > 1 ? llvm::Log2_64_Ceil(size) : 0; }

int64_t CumsumOp::getFlops() { return roundsOf(getType().getDimSize(getDim())) * elementsPerRow(getType()); }
SmallVector<IteratorType> CumsumOp::getLoopIteratorTypes() {
  SmallVector<IteratorType> loops(getType().getRank(), IteratorType::parallel);
  loops[getDim()] = IteratorType::reduction;
  return loops;
}
SmallVector<shard::ReductionKind> CumsumOp::getReductionLoopIteratorKinds() { return {shard::ReductionKind::Generic}; }
SmallVector<AffineMap> CumsumOp::getIndexingMaps() { return elementwiseMaps(getOperation()); }

LogicalResult CumsumOp::interpret(const EvalContext &, ArrayRef<Tensor> operands, SmallVectorImpl<Tensor> &results) {
  Tensor sum = operands[0];
  int64_t inner = 1, size = sum.shape[getDim()];
  for (int64_t axis = getDim() + 1; axis < sum.rank(); ++axis)
    inner *= sum.shape[axis];
  for (int64_t i = 0; i < sum.size(); ++i) {
    // Forward, or backward with `reverse`.
    int64_t at = getReverse() ? sum.size() - 1 - i : i, position = at / inner % size;
    if (position != (getReverse() ? size - 1 : 0))
      sum.data[at] = wrapped(getType().getElementType(), sum.data[at] + sum.data[at + (getReverse() ? inner : -inner)]);
  }
  results.push_back(std::move(sum));
  return success();
}

void CumsumOp::buildGradient(OpBuilder &builder, ValueRange resultGradients, SmallVectorImpl<Value> &operandGradients) {
  Value dy = resultGradients[0];
  operandGradients.push_back(
      dy ? CumsumOp::create(builder, getLoc(), dy.getType(), dy, getDim(), !getReverse()).getResult() : Value());
}

// In each round k = 1, 2, 4 ..., adds to the sum a copy of itself that is shifted by k elements, with zeros shifted in.
Value CumsumOp::decompose(OpBuilder &builder) {
  RankedTensorType type = getType();
  int64_t first = isSplit(type), size = type.getDimSize(getDim());
  SmallVector<int64_t> none(type.getRank() - first, 0);
  Expr sum(builder, getLoc(), getOperand());
  for (int64_t k = 1; k < size; k *= 2) {
    SmallVector<int64_t> starts(none), sizes(type.getShape().drop_front(first)), zeros(none);
    sizes[getDim() - first] = size - k;
    zeros[getDim() - first] = k;
    if (getReverse())
      starts = zeros;
    Value part = SliceOp::create(builder, getLoc(), sum.value(), starts, sizes);
    Value moved = PadOp::create(builder, getLoc(), part, getReverse() ? none : zeros, getReverse() ? zeros : none,
                                ArrayRef<int64_t>(), APFloat(0.0f));
    sum = sum + sum.make(moved);
  }
  return sum.value();
}
