// SPDX-License-Identifier: Apache-2.0
//
// mt.gather and mt.scatter_add: rows of a table by id, and sums of rows by id.
#include "dialects/mt/MtDialect.h"
#include "dialects/mt/Types.h"

using namespace mlir;
using namespace mlir::mt;
using utils::IteratorType;

// Type [I..., D...] of the rows that ids [I...] select from a table [V, D...].
static FailureOr<RankedTensorType> rowsType(std::optional<Location> location, RankedTensorType ids,
                                            RankedTensorType table) {
  if (table.getRank() < 1 || !table.hasStaticShape() || table.getDimSize(0) < 1)
    return emitOptionalError(location, "expected a table of static shape with a row or more, found ", table);
  SmallVector<int64_t> shape(ids.getShape());
  llvm::append_range(shape, table.getShape().drop_front());
  return table.clone(shape);
}

// Maps of the table, the ids and the rows, from loops over I..., D.... No loop goes over the table's first axis.
static SmallVector<AffineMap> maps(RankedTensorType ids, RankedTensorType table, MLIRContext *context) {
  int64_t inner = table.getRank() - 1, loops = ids.getRank() + inner;
  AffineMap identity = AffineMap::getMultiDimIdentityMap(loops, context);
  SmallVector<AffineExpr> entry = {getAffineConstantExpr(0, context)};
  llvm::append_range(entry, identity.getResults().take_back(inner));
  return {AffineMap::get(loops, 0, entry, context),
          AffineMap::get(loops, 0, identity.getResults().take_front(ids.getRank()), context), identity};
}

static int64_t clamped(double id, int64_t entries) {
  return std::clamp<int64_t>(static_cast<int64_t>(id), 0, entries - 1);
}

LogicalResult GatherOp::inferReturnTypes(MLIRContext *, std::optional<Location> location, Adaptor adaptor,
                                         SmallVectorImpl<Type> &types) {
  FailureOr<RankedTensorType> rows = rowsType(location, tensorOf(adaptor.getIds()), tensorOf(adaptor.getTable()));
  if (failed(rows))
    return failure();
  types.push_back(*rows);
  return success();
}
Value GatherOp::getIndex() { return getIds(); }
int64_t GatherOp::getIndexLimit() { return tensorOf(getTable()).getDimSize(0); }
int64_t GatherOp::getFlops() { return 0; }
SmallVector<IteratorType> GatherOp::getLoopIteratorTypes() {
  return SmallVector<IteratorType>(getType().getRank(), IteratorType::parallel);
}
SmallVector<shard::ReductionKind> GatherOp::getReductionLoopIteratorKinds() { return {}; }
SmallVector<AffineMap> GatherOp::getIndexingMaps() {
  return maps(tensorOf(getIds()), tensorOf(getTable()), getContext());
}

static Lookup lookupOf(Value source, Value ids, RankedTensorType table, bool adds) {
  int64_t count = ShapedType::getNumElements(sampleShape(ids.getType()));
  int64_t width = ShapedType::getNumElements(table.getShape().drop_front());
  return {source, ids, /*outer=*/1, table.getDimSize(0), count, width, adds};
}
Lookup GatherOp::getLookup() { return lookupOf(getTable(), getIds(), tensorOf(getTable()), /*adds=*/false); }

LogicalResult GatherOp::interpret(const EvalContext &context, ArrayRef<Tensor> operands,
                                  SmallVectorImpl<Tensor> &results) {
  const Tensor &table = operands[0], &ids = operands[1];
  Tensor result(concreteShape(getType(), context.rows));
  int64_t width = table.size() / table.shape[0];
  for (int64_t i = 0; i < result.size(); ++i)
    result.data[i] = table.data[clamped(ids.data[i / width], table.shape[0]) * width + i % width];
  results.push_back(std::move(result));
  return success();
}
void GatherOp::buildGradient(OpBuilder &builder, ValueRange resultGradients, SmallVectorImpl<Value> &operandGradients) {
  Value dy = resultGradients[0];
  bool differentiable = dy && isReal(getType().getElementType());
  operandGradients.push_back(
      differentiable ? ScatterAddOp::create(builder, getLoc(), getTable().getType(), getIds(), dy).getResult()
                     : Value());
  operandGradients.push_back({});
}

LogicalResult ScatterAddOp::verify() {
  FailureOr<RankedTensorType> rows = rowsType(getLoc(), tensorOf(getIds()), getType());
  if (failed(rows))
    return failure();
  if (getUpdates().getType() != *rows)
    return emitOpError("expected updates ")
           << *rows << " of " << getIds().getType() << " and " << getType() << ", found " << getUpdates().getType();
  return success();
}
int64_t ScatterAddOp::getFlops() { return elementsPerRow(getUpdates().getType()); }
SmallVector<IteratorType> ScatterAddOp::getLoopIteratorTypes() {
  SmallVector<IteratorType> loops(tensorOf(getUpdates()).getRank(), IteratorType::parallel);
  std::fill_n(loops.begin(), tensorOf(getIds()).getRank(), IteratorType::reduction);
  return loops;
}
SmallVector<shard::ReductionKind> ScatterAddOp::getReductionLoopIteratorKinds() {
  return SmallVector<shard::ReductionKind>(tensorOf(getIds()).getRank(), shard::ReductionKind::Sum);
}
SmallVector<AffineMap> ScatterAddOp::getIndexingMaps() {
  SmallVector<AffineMap> all = maps(tensorOf(getIds()), getType(), getContext());
  return {all[1], all[2], all[0]};
}

Lookup ScatterAddOp::getLookup() { return lookupOf(getUpdates(), getIds(), getType(), /*adds=*/true); }

LogicalResult ScatterAddOp::interpret(const EvalContext &context, ArrayRef<Tensor> operands,
                                      SmallVectorImpl<Tensor> &results) {
  const Tensor &ids = operands[0], &updates = operands[1];
  Tensor result(concreteShape(getType(), context.rows));
  int64_t width = result.size() / result.shape[0];
  for (int64_t i = 0; i < updates.size(); ++i)
    result.data[clamped(ids.data[i / width], result.shape[0]) * width + i % width] += updates.data[i];
  results.push_back(std::move(result));
  return success();
}
void ScatterAddOp::buildGradient(OpBuilder &builder, ValueRange resultGradients,
                                 SmallVectorImpl<Value> &operandGradients) {
  Value ddr = resultGradients[0];
  operandGradients.push_back({});
  operandGradients.push_back(ddr ? GatherOp::create(builder, getLoc(), ddr, getIds()).getResult() : Value());
}
