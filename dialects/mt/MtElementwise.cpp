// SPDX-License-Identifier: Apache-2.0
//
// Element-wise ops with integers, booleans or three operands.
#include "dialects/mt/Expr.h"
#include "dialects/mt/Gradient.h"
#include "dialects/mt/MtDialect.h"
#include "dialects/mt/Types.h"
#include "dialects/mt/VectorExpr.h"

using namespace mlir;
using namespace mlir::mt;

#define MT_ELEMENTWISE(OP)                                                                                             \
  int64_t OP::getFlops() { return elementsPerRow(getType()); }                                                         \
  SmallVector<utils::IteratorType> OP::getLoopIteratorTypes() { return elementwiseLoops(getOperation()); }             \
  SmallVector<shard::ReductionKind> OP::getReductionLoopIteratorKinds() { return {}; }                                 \
  SmallVector<AffineMap> OP::getIndexingMaps() { return elementwiseMaps(getOperation()); }
MT_ELEMENTWISE(CompareOp)
MT_ELEMENTWISE(AndOp)
MT_ELEMENTWISE(NotOp)
MT_ELEMENTWISE(SelectOp)
MT_ELEMENTWISE(CastOp)
#undef MT_ELEMENTWISE

LogicalResult CompareOp::inferReturnTypes(MLIRContext *context, std::optional<Location> location, Adaptor adaptor,
                                          SmallVectorImpl<Type> &types) {
  if (failed(inferBroadcast(location, adaptor.getOperands(), types)))
    return failure();
  types[0] = cast<RankedTensorType>(types[0]).clone(IntegerType::get(context, 1));
  return success();
}

Value CompareOp::lowerElement(OpBuilder &builder, ValueRange operands) {
  VectorExpr a(builder, getLoc(), operands[0]), b(builder, getLoc(), operands[1]);
  switch (getKind()) {
  case Compare::eq:
    return (a == b).value();
  case Compare::ne:
    return (a != b).value();
  case Compare::lt:
    return (a < b).value();
  case Compare::le:
    return (a <= b).value();
  case Compare::gt:
    return (a > b).value();
  case Compare::ge:
    return (a >= b).value();
  }
  llvm_unreachable("a comparison");
}

LogicalResult CompareOp::interpret(const EvalContext &context, ArrayRef<Tensor> operands,
                                   SmallVectorImpl<Tensor> &results) {
  using Function = double (*)(double, double);
  static constexpr Function functions[] = {
      [](double a, double b) -> double { return a == b; }, [](double a, double b) -> double { return a != b; },
      [](double a, double b) -> double { return a < b; },  [](double a, double b) -> double { return a <= b; },
      [](double a, double b) -> double { return a > b; },  [](double a, double b) -> double { return a >= b; }};
  results.push_back(
      interpretBinary(context, getType(), operands[0], operands[1], functions[static_cast<int>(getKind())]));
  return success();
}

LogicalResult AndOp::inferReturnTypes(MLIRContext *context, std::optional<Location> location, Adaptor adaptor,
                                      SmallVectorImpl<Type> &types) {
  auto shape = broadcastShapes(location, tensorOf(adaptor.getLhs()).getShape(), tensorOf(adaptor.getRhs()).getShape());
  if (failed(shape))
    return failure();
  types.push_back(RankedTensorType::get(*shape, IntegerType::get(context, 1)));
  return success();
}

Value AndOp::lowerElement(OpBuilder &builder, ValueRange operands) {
  return (VectorExpr(builder, getLoc(), operands[0]) & VectorExpr(builder, getLoc(), operands[1])).value();
}

LogicalResult AndOp::interpret(const EvalContext &context, ArrayRef<Tensor> operands,
                               SmallVectorImpl<Tensor> &results) {
  results.push_back(interpretBinary(context, getType(), operands[0], operands[1],
                                    [](double a, double b) -> double { return a != 0 && b != 0; }));
  return success();
}

Value NotOp::lowerElement(OpBuilder &builder, ValueRange operands) {
  return (!VectorExpr(builder, getLoc(), operands[0])).value();
}

LogicalResult NotOp::interpret(const EvalContext &context, ArrayRef<Tensor> operands,
                               SmallVectorImpl<Tensor> &results) {
  results.push_back(interpretUnary(context, getType(), operands[0], [](double a) -> double { return a == 0; }));
  return success();
}

LogicalResult SelectOp::inferReturnTypes(MLIRContext *context, std::optional<Location> location, Adaptor adaptor,
                                         SmallVectorImpl<Type> &types) {
  RankedTensorType a = tensorOf(adaptor.getLhs()), b = tensorOf(adaptor.getRhs());
  if (a.getElementType() != b.getElementType())
    return emitOptionalError(location, "expected equal element types, found ", a.getElementType(), " and ",
                             b.getElementType());
  auto shape = broadcastShapes(location, a.getShape(), b.getShape());
  if (succeeded(shape))
    shape = broadcastShapes(location, tensorOf(adaptor.getCondition()).getShape(), *shape);
  if (failed(shape))
    return failure();
  types.push_back(a.clone(*shape));
  return success();
}

Value SelectOp::lowerElement(OpBuilder &builder, ValueRange operands) {
  return select(VectorExpr(builder, getLoc(), operands[0]), VectorExpr(builder, getLoc(), operands[1]),
                VectorExpr(builder, getLoc(), operands[2]))
      .value();
}

LogicalResult SelectOp::interpret(const EvalContext &context, ArrayRef<Tensor> operands,
                                  SmallVectorImpl<Tensor> &results) {
  Tensor result(concreteShape(cast<RankedTensorType>(getType()), context.rows));
  int64_t i = 0;
  for (Index index(result.shape); !index.done(); index.next()) {
    const Tensor &chosen = operands[0].data[index.offsetIn(operands[0].shape)] != 0 ? operands[1] : operands[2];
    result.data[i++] = chosen.data[index.offsetIn(chosen.shape)];
  }
  results.push_back(std::move(result));
  return success();
}

void SelectOp::buildGradient(OpBuilder &builder, ValueRange resultGradients, SmallVectorImpl<Value> &operandGradients) {
  operandGradients.push_back({});
  if (!resultGradients[0]) {
    operandGradients.append(2, {});
    return;
  }
  Expr condition(builder, getLoc(), getCondition()), dy(builder, getLoc(), resultGradients[0]);
  operandGradients.push_back(sumToShape(builder, getLoc(), select(condition, dy, 0.0).value(), tensorOf(getLhs())));
  operandGradients.push_back(sumToShape(builder, getLoc(), select(condition, 0.0, dy).value(), tensorOf(getRhs())));
}

LogicalResult CastOp::verify() {
  RankedTensorType from = tensorOf(getOperand()), to = tensorOf(getResult());
  if (from.getShape() != to.getShape())
    return emitOpError("expected equal shapes, found ") << from << " and " << to;
  if (to.getElementType().isInteger(1))
    return emitOpError("expected f32 or i32 as result element type, found i1");
  Type a = from.getElementType(), b = to.getElementType();
  if ((isHalf(a) && !b.isF32()) || (isHalf(b) && !a.isF32()))
    return emitOpError("expected f32 on the other side of bf16 and f16, found ") << from << " to " << to;
  // A constant of f64 says exactly what a number of f32 stands for in a module that will have the precision f64.
  if (a != b && isReal(a) && isReal(b) && !getOperand().getDefiningOp<ConstantOp>())
    return emitOpError("expected no conversion between f32 and f64, found ") << from << " to " << to;
  return success();
}

Value CastOp::lowerElement(OpBuilder &builder, ValueRange operands) {
  Location location = getLoc();
  Value a = operands[0];
  Type from = getElementTypeOrSelf(a.getType()), to = tensorOf(getResult()).getElementType();
  if (isHalf(to))
    return roundTo(VectorExpr(builder, location, a), to).value();
  if (from == to) // includes bf16 and f16, which registers hold as f32
    return a;
  Type type = to;
  if (auto vector = dyn_cast<VectorType>(a.getType()))
    type = vector.clone(to);
  if (from.isInteger(1))
    return isa<FloatType>(to) ? arith::UIToFPOp::create(builder, location, type, a).getResult()
                              : arith::ExtUIOp::create(builder, location, type, a).getResult();
  if (isa<FloatType>(to))
    return arith::SIToFPOp::create(builder, location, type, a);
  // Saturates before the conversion, which is defined only for values in range.
  VectorExpr x(builder, location, a);
  VectorExpr low(-2147483648.0), high(from.isF64() ? 2147483647.0 : 2147483520.0);
  VectorExpr fits = select(x >= low, select(x <= high, x, high), select(x < low, low, VectorExpr(0.0)));
  VectorExpr converted = x.make(arith::FPToSIOp::create(builder, location, type, fits.value()));
  return select(x > high, VectorExpr(2147483647.0), converted).value();
}

LogicalResult CastOp::interpret(const EvalContext &context, ArrayRef<Tensor> operands,
                                SmallVectorImpl<Tensor> &results) {
  Tensor result = operands[0];
  if (tensorOf(getResult()).getElementType().isInteger(32))
    for (double &x : result.data)
      x = x != x ? 0 : std::trunc(std::clamp(x, -2147483648.0, 2147483647.0));
  if (Type to = tensorOf(getResult()).getElementType(); isHalf(to))
    for (double &x : result.data)
      x = roundTo(to, x);
  results.push_back(std::move(result));
  return success();
}

void CastOp::buildGradient(OpBuilder &builder, ValueRange resultGradients, SmallVectorImpl<Value> &operandGradients) {
  bool floats =
      isa<FloatType>(tensorOf(getOperand()).getElementType()) && isa<FloatType>(tensorOf(getResult()).getElementType());
  operandGradients.push_back(floats ? resultGradients[0] : Value());
}

LogicalResult CeluOp::verify() {
  if (getAlpha().isZero())
    return emitOpError("expected an alpha other than 0, found 0");
  return success();
}
