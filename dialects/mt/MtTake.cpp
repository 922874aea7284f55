// SPDX-License-Identifier: Apache-2.0
//
// mt.take and mt.index_add: slices of each sample by id along an axis, and sums of slices by id.
#include "dialects/mt/MtDialect.h"
#include "dialects/mt/Types.h"

using namespace mlir;
using namespace mlir::mt;
using utils::IteratorType;

// Type of the slices that `ids` select along axis `dim` of `whole`.
static FailureOr<RankedTensorType> takenType(std::optional<Location> location, RankedTensorType whole,
                                             RankedTensorType ids, int64_t dim) {
  if (!isSplit(whole) || dim < 1 || dim >= whole.getRank() || whole.getDimSize(dim) < 1)
    return emitOptionalError(location, "expected samples with one element or more along axis ", dim, ", found ", whole);
  if (ids.getRank() != 1 + isSplit(ids))
    return emitOptionalError(location, "expected ids of one axis, or of the batch axis and one, found ", ids);
  SmallVector<int64_t> shape(whole.getShape());
  shape[dim] = ids.getShape().back();
  return whole.clone(shape);
}

// Maps of the whole, of the ids and of the slices, from loops over the axes of the slices. No loop goes over axis `dim`
// of the whole.
static SmallVector<AffineMap> maps(RankedTensorType taken, RankedTensorType ids, int64_t dim) {
  MLIRContext *context = taken.getContext();
  AffineMap identity = AffineMap::getMultiDimIdentityMap(taken.getRank(), context);
  SmallVector<AffineExpr> whole(identity.getResults()), of;
  whole[dim] = getAffineConstantExpr(0, context);
  if (isSplit(ids))
    of.push_back(identity.getResult(0));
  of.push_back(identity.getResult(dim));
  return {AffineMap::get(taken.getRank(), 0, whole, context), AffineMap::get(taken.getRank(), 0, of, context),
          identity};
}

// Calls use(offset in the slices, offset in the whole) for each element of the slices.
static void forEach(const Tensor &ids, ArrayRef<int64_t> taken, ArrayRef<int64_t> whole, int64_t dim,
                    llvm::function_ref<void(int64_t, int64_t)> use) {
  int64_t here = 0, entries = whole[dim];
  SmallVector<int64_t> strides(whole.size(), 1);
  for (size_t axis = whole.size() - 1; axis > 0; --axis)
    strides[axis - 1] = strides[axis] * whole[axis];
  for (Index index(taken); !index.done(); index.next()) {
    int64_t first = ids.rank() == 2 ? index[0] * ids.shape[1] : 0, there = 0;
    int64_t id = std::clamp<int64_t>(static_cast<int64_t>(ids.data[first + index[dim]]), 0, entries - 1);
    for (size_t axis = 0; axis < whole.size(); ++axis)
      there += (static_cast<int64_t>(axis) == dim ? id : index[axis]) * strides[axis];
    use(here++, there);
  }
}

LogicalResult TakeOp::inferReturnTypes(MLIRContext *, std::optional<Location> location, Adaptor adaptor,
                                       SmallVectorImpl<Type> &types) {
  FailureOr<RankedTensorType> type =
      takenType(location, tensorOf(adaptor.getOperand()), tensorOf(adaptor.getIds()), adaptor.getDim());
  if (failed(type))
    return failure();
  types.push_back(*type);
  return success();
}
Value TakeOp::getIndex() { return getIds(); }
int64_t TakeOp::getIndexLimit() { return tensorOf(getOperand()).getDimSize(getDim()); }
int64_t TakeOp::getFlops() { return 0; }
SmallVector<IteratorType> TakeOp::getLoopIteratorTypes() {
  return SmallVector<IteratorType>(getType().getRank(), IteratorType::parallel);
}
SmallVector<shard::ReductionKind> TakeOp::getReductionLoopIteratorKinds() { return {}; }
SmallVector<AffineMap> TakeOp::getIndexingMaps() { return maps(getType(), tensorOf(getIds()), getDim()); }
static Lookup lookupOf(Value source, Value ids, RankedTensorType whole, int64_t dim, bool adds) {
  ArrayRef<int64_t> shape = whole.getShape();
  int64_t outer = ShapedType::getNumElements(shape.slice(1, dim - 1));
  int64_t width = ShapedType::getNumElements(shape.drop_front(dim + 1));
  return {source, ids, outer, shape[dim], tensorOf(ids).getShape().back(), width, adds};
}
Lookup TakeOp::getLookup() {
  return lookupOf(getOperand(), getIds(), tensorOf(getOperand()), getDim(), /*adds=*/false);
}

LogicalResult TakeOp::interpret(const EvalContext &context, ArrayRef<Tensor> operands,
                                SmallVectorImpl<Tensor> &results) {
  Tensor result(concreteShape(getType(), context.rows));
  forEach(operands[1], result.shape, operands[0].shape, getDim(),
          [&](int64_t taken, int64_t whole) { result.data[taken] = operands[0].data[whole]; });
  results.push_back(std::move(result));
  return success();
}
void TakeOp::buildGradient(OpBuilder &builder, ValueRange resultGradients, SmallVectorImpl<Value> &operandGradients) {
  Value dy = resultGradients[0];
  bool differentiable = dy && isReal(getType().getElementType());
  operandGradients.push_back(
      differentiable ? IndexAddOp::create(builder, getLoc(), getOperand().getType(), getIds(), dy, getDim()).getResult()
                     : Value());
  operandGradients.push_back({});
}

LogicalResult IndexAddOp::verify() {
  FailureOr<RankedTensorType> type = takenType(getLoc(), getType(), tensorOf(getIds()), getDim());
  if (failed(type))
    return failure();
  if (getUpdates().getType() != *type)
    return emitOpError("expected updates ")
           << *type << " of " << getIds().getType() << " and " << getType() << ", found " << getUpdates().getType();
  return success();
}
int64_t IndexAddOp::getFlops() { return elementsPerRow(getUpdates().getType()); }
SmallVector<IteratorType> IndexAddOp::getLoopIteratorTypes() {
  SmallVector<IteratorType> loops(getType().getRank(), IteratorType::parallel);
  loops[getDim()] = IteratorType::reduction;
  return loops;
}
SmallVector<shard::ReductionKind> IndexAddOp::getReductionLoopIteratorKinds() { return {shard::ReductionKind::Sum}; }
SmallVector<AffineMap> IndexAddOp::getIndexingMaps() {
  SmallVector<AffineMap> all = maps(tensorOf(getUpdates()), tensorOf(getIds()), getDim());
  return {all[1], all[2], all[0]};
}
Lookup IndexAddOp::getLookup() { return lookupOf(getUpdates(), getIds(), getType(), getDim(), /*adds=*/true); }

LogicalResult IndexAddOp::interpret(const EvalContext &context, ArrayRef<Tensor> operands,
                                    SmallVectorImpl<Tensor> &results) {
  Tensor result(concreteShape(getType(), context.rows));
  forEach(operands[0], operands[1].shape, result.shape, getDim(),
          [&](int64_t taken, int64_t whole) { result.data[whole] += operands[1].data[taken]; });
  results.push_back(std::move(result));
  return success();
}
void IndexAddOp::buildGradient(OpBuilder &builder, ValueRange resultGradients,
                               SmallVectorImpl<Value> &operandGradients) {
  Value ddx = resultGradients[0];
  operandGradients.push_back({});
  operandGradients.push_back(ddx ? TakeOp::create(builder, getLoc(), ddx, getIds(), getDim()).getResult() : Value());
}
