// SPDX-License-Identifier: Apache-2.0
//
// mt.reduce and mt.argmax.
#include "dialects/mt/Expr.h"
#include "dialects/mt/MtDialect.h"
#include "dialects/mt/Numbers.h"
#include "dialects/mt/Types.h"
#include "dialects/mt/VectorExpr.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace mlir::mt;

float mlir::mt::startOf(Reduction kind) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  return kind == Reduction::sum ? 0.0f : kind == Reduction::max ? -infinity : infinity;
}

TypedAttr mlir::mt::startOf(Reduction kind, Type element) {
  if (!element.isInteger())
    return FloatAttr::get(computedType(element), startOf(kind));
  using Limits = std::numeric_limits<int32_t>;
  return IntegerAttr::get(element, kind == Reduction::sum ? 0 : kind == Reduction::max ? Limits::min() : Limits::max());
}

Value mlir::mt::combine(OpBuilder &builder, Location location, Reduction kind, Value running, Value next) {
  VectorExpr a(builder, location, running), b(builder, location, next);
  return (kind == Reduction::sum ? a + b : kind == Reduction::max ? maximum(a, b) : minimum(a, b)).value();
}

LogicalResult ReduceOp::inferReturnTypes(MLIRContext *, std::optional<Location> location, Adaptor adaptor,
                                         SmallVectorImpl<Type> &types) {
  RankedTensorType from = tensorOf(adaptor.getOperand());
  ArrayRef<int64_t> dims = adaptor.getDims();
  if (dims.empty())
    return emitOptionalError(location, "expected one axis or more to reduce, found none");
  for (auto [i, dim] : llvm::enumerate(dims)) {
    if (dim < 0 || dim >= from.getRank())
      return emitOptionalError(location, "expected axes from 0 to ", from.getRank() - 1, ", found ", dim);
    if (i > 0 && dim <= dims[i - 1])
      return emitOptionalError(location, "expected axes in increasing order, found ", dim, " after ", dims[i - 1]);
  }
  bool integers = from.getElementType().isInteger();
  if (isSplit(from) && dims[0] == 0) {
    if (integers)
      return emitOptionalError(location, "expected floats to sum over the batch axis, found ", from);
    if (dims.size() != 1)
      return emitOptionalError(location, "expected the batch axis to be reduced alone, found ", dims.size(), " axes");
    if (adaptor.getKind() != Reduction::sum)
      return emitOptionalError(location, "expected sum over the batch axis, found ",
                               stringifyReduction(adaptor.getKind()));
  }
  SmallVector<int64_t> shape;
  for (int64_t axis = 0; axis < from.getRank(); ++axis)
    if (!llvm::is_contained(dims, axis))
      shape.push_back(from.getDimSize(axis));
  Type element = from.getElementType();
  types.push_back(RankedTensorType::get(shape, integers ? element : computedType(element)));
  return success();
}

bool ReduceOp::readsBuffers() { return false; }
std::string ReduceOp::getWord() { return stringifyReduction(getKind()).str(); }

int64_t ReduceOp::getFlops() { return elementsPerRow(getOperand().getType()); }

SmallVector<utils::IteratorType> ReduceOp::getLoopIteratorTypes() {
  SmallVector<utils::IteratorType> loops(tensorOf(getOperand()).getRank(), utils::IteratorType::parallel);
  for (int64_t dim : getDims())
    loops[dim] = utils::IteratorType::reduction;
  return loops;
}
SmallVector<shard::ReductionKind> ReduceOp::getReductionLoopIteratorKinds() {
  shard::ReductionKind kind = getKind() == Reduction::sum   ? shard::ReductionKind::Sum
                              : getKind() == Reduction::max ? shard::ReductionKind::Max
                                                            : shard::ReductionKind::Min;
  return SmallVector<shard::ReductionKind>(getDims().size(), kind);
}
SmallVector<AffineMap> ReduceOp::getIndexingMaps() {
  int64_t rank = tensorOf(getOperand()).getRank();
  SmallVector<AffineExpr> kept;
  for (int64_t axis = 0; axis < rank; ++axis)
    if (!llvm::is_contained(getDims(), axis))
      kept.push_back(getAffineDimExpr(axis, getContext()));
  return {AffineMap::getMultiDimIdentityMap(rank, getContext()), AffineMap::get(rank, 0, kept, getContext())};
}

// The operand's shape with 1 for the reduced axes.
static SmallVector<int64_t> keptShape(ArrayRef<int64_t> shape, ArrayRef<int64_t> dims) {
  SmallVector<int64_t> kept(shape);
  for (int64_t dim : dims)
    kept[dim] = 1;
  return kept;
}

LogicalResult ReduceOp::interpret(const EvalContext &context, ArrayRef<Tensor> operands,
                                  SmallVectorImpl<Tensor> &results) {
  Type element = tensorOf(getResult()).getElementType();
  TypedAttr begin = startOf(getKind(), element);
  double start = isa<IntegerAttr>(begin) ? static_cast<double>(cast<IntegerAttr>(begin).getInt()) : startOf(getKind());
  SmallVector<int64_t> kept = keptShape(operands[0].shape, getDims());
  Tensor result(kept, start);
  int64_t i = 0;
  for (Index index(operands[0].shape); !index.done(); index.next()) {
    double x = operands[0].data[i++];
    double &y = result.data[index.offsetIn(kept)];
    y = getKind() == Reduction::sum   ? wrapped(element, y + x)
        : getKind() == Reduction::max ? larger(y, x)
                                      : smaller(y, x);
  }
  result.shape = concreteShape(tensorOf(getResult()), context.rows);
  results.push_back(std::move(result));
  return success();
}

void ReduceOp::buildGradient(OpBuilder &builder, ValueRange resultGradients, SmallVectorImpl<Value> &operandGradients) {
  if (!resultGradients[0] || tensorOf(getOperand()).getElementType().isInteger()) {
    operandGradients.push_back({});
    return;
  }
  RankedTensorType type = tensorOf(getOperand());
  auto spread = [&](Value value) {
    RankedTensorType kept = type.clone(keptShape(type.getShape(), getDims()));
    value = ReshapeOp::create(builder, getLoc(), kept, value);
    return Expr(builder, getLoc(), BroadcastOp::create(builder, getLoc(), type, value));
  };
  Expr dy = spread(resultGradients[0]);
  if (getKind() == Reduction::sum) {
    operandGradients.push_back(dy.value());
    return;
  }
  Expr ties = toFloat(Expr(builder, getLoc(), getOperand()) == spread(getResult()));
  Expr count = spread(ReduceOp::create(builder, getLoc(), Reduction::sum, ties.value(), getDims()));
  operandGradients.push_back((dy * ties / count).value());
}

LogicalResult ArgmaxOp::inferReturnTypes(MLIRContext *context, std::optional<Location> location, Adaptor adaptor,
                                         SmallVectorImpl<Type> &types) {
  RankedTensorType from = tensorOf(adaptor.getOperand());
  if (from.getRank() - isSplit(from) < 1)
    return emitOptionalError(location, "expected a last axis other than the batch axis, found ", from);
  types.push_back(RankedTensorType::get(from.getShape().drop_back(), IntegerType::get(context, 32)));
  return success();
}
int64_t ArgmaxOp::getFlops() { return elementsPerRow(getOperand().getType()); }
SmallVector<utils::IteratorType> ArgmaxOp::getLoopIteratorTypes() {
  SmallVector<utils::IteratorType> loops(tensorOf(getOperand()).getRank(), utils::IteratorType::parallel);
  loops.back() = utils::IteratorType::reduction;
  return loops;
}
SmallVector<shard::ReductionKind> ArgmaxOp::getReductionLoopIteratorKinds() { return {shard::ReductionKind::Generic}; }
SmallVector<AffineMap> ArgmaxOp::getIndexingMaps() {
  AffineMap identity = AffineMap::getMultiDimIdentityMap(tensorOf(getOperand()).getRank(), getContext());
  return {identity, identity.dropResult(identity.getNumResults() - 1)};
}
LogicalResult ArgmaxOp::interpret(const EvalContext &context, ArrayRef<Tensor> operands,
                                  SmallVectorImpl<Tensor> &results) {
  Tensor result(concreteShape(tensorOf(getResult()), context.rows));
  int64_t extent = operands[0].shape.back();
  for (int64_t i = 0; i < result.size(); ++i)
    result.data[i] = firstLargest(ArrayRef(operands[0].data).slice(i * extent, extent));
  results.push_back(std::move(result));
  return success();
}
