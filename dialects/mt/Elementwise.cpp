// SPDX-License-Identifier: Apache-2.0
#include "dialects/mt/Elementwise.h"
#include "dialects/mt/Types.h"
#include "mlir/IR/Matchers.h"
#include <cmath>

using namespace mlir;
using namespace mlir::mt;

bool mlir::mt::isSplit(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && tensor.getRank() > 0 && tensor.isDynamicDim(0);
}

int64_t mlir::mt::elementsPerRow(Type type) {
  int64_t elements = 1;
  for (int64_t extent : cast<RankedTensorType>(type).getShape())
    if (!ShapedType::isDynamic(extent))
      elements *= extent;
  return elements;
}

SplatElementsAttr mlir::mt::splatOf(Value value) {
  SplatElementsAttr splat;
  return matchPattern(value, m_Constant(&splat)) ? splat : SplatElementsAttr();
}

double mlir::mt::roundTo(Type element, double x) {
  APFloat rounded(x);
  bool inexact;
  rounded.convert(cast<FloatType>(element).getFloatSemantics(), APFloat::rmNearestTiesToEven, &inexact);
  return rounded.convertToDouble();
}

double mlir::mt::wrapped(Type element, double x) {
  return element.isInteger(32) ? static_cast<int32_t>(static_cast<int64_t>(x)) : x;
}

static std::string extentName(int64_t extent) { return ShapedType::isDynamic(extent) ? "?" : std::to_string(extent); }

FailureOr<SmallVector<int64_t>> mlir::mt::broadcastShapes(std::optional<Location> location, ArrayRef<int64_t> a,
                                                          ArrayRef<int64_t> b) {
  size_t rank = std::max(a.size(), b.size());
  SmallVector<int64_t> shape(rank);
  for (size_t axis = 0; axis < rank; ++axis) {
    auto extentOf = [&](ArrayRef<int64_t> operand) {
      return axis < rank - operand.size() ? 1 : operand[axis - (rank - operand.size())];
    };
    int64_t x = extentOf(a), y = extentOf(b);
    if (x != y && x != 1 && y != 1)
      return emitOptionalError(location, "expected equal sizes or 1 on axis ", axis, " of the result, found ",
                               extentName(x), " and ", extentName(y));
    shape[axis] = x == 1 ? y : x;
    if (axis > 0 && ShapedType::isDynamic(shape[axis]))
      return emitOptionalError(location, "expected the batch axis first, found ranks ", a.size(), " and ", b.size(),
                               " that align it with axis ", axis);
  }
  return shape;
}

LogicalResult mlir::mt::inferBroadcast(std::optional<Location> location, ValueRange operands,
                                       SmallVectorImpl<Type> &types, bool integers) {
  auto a = cast<RankedTensorType>(operands[0].getType()), b = cast<RankedTensorType>(operands[1].getType());
  if (a.getElementType() != b.getElementType())
    return emitOptionalError(location, "expected equal element types, found ", a.getElementType(), " and ",
                             b.getElementType());
  if (a.getElementType().isInteger(1))
    return emitOptionalError(location, "expected f32 or i32 elements, found i1");
  if (!integers && !isReal(a.getElementType()))
    return emitOptionalError(location, "expected f32 elements, found ", a.getElementType());
  FailureOr<SmallVector<int64_t>> shape = broadcastShapes(location, a.getShape(), b.getShape());
  if (failed(shape))
    return failure();
  types.push_back(a.clone(*shape));
  return success();
}

SmallVector<utils::IteratorType> mlir::mt::elementwiseLoops(Operation *op) {
  return SmallVector<utils::IteratorType>(cast<RankedTensorType>(op->getResult(0).getType()).getRank(),
                                          utils::IteratorType::parallel);
}

SmallVector<AffineMap> mlir::mt::elementwiseMaps(Operation *op) {
  auto result = cast<RankedTensorType>(op->getResult(0).getType());
  int64_t rank = result.getRank();
  SmallVector<AffineMap> maps;
  for (Value operand : op->getOperands()) {
    auto type = cast<RankedTensorType>(operand.getType());
    SmallVector<AffineExpr> axes;
    for (int64_t axis = 0; axis < type.getRank(); ++axis) {
      int64_t loop = rank - type.getRank() + axis;
      bool repeated = type.getDimSize(axis) == 1 && result.getDimSize(loop) != 1;
      axes.push_back(repeated ? getAffineConstantExpr(0, op->getContext()) : getAffineDimExpr(loop, op->getContext()));
    }
    maps.push_back(AffineMap::get(rank, 0, axes, op->getContext()));
  }
  maps.push_back(AffineMap::getMultiDimIdentityMap(rank, op->getContext()));
  return maps;
}

Tensor mlir::mt::interpretUnary(const EvalContext &context, Type type, const Tensor &a, double (*evaluate)(double)) {
  Tensor result(a.shape);
  std::transform(a.data.begin(), a.data.end(), result.data.begin(), evaluate);
  return result;
}

Tensor mlir::mt::interpretBinary(const EvalContext &context, Type type, const Tensor &a, const Tensor &b,
                                 double (*evaluate)(double, double), int64_t (*whole)(int64_t, int64_t)) {
  Tensor result(concreteShape(cast<RankedTensorType>(type), context.rows));
  bool integers = whole && cast<RankedTensorType>(type).getElementType().isInteger(32);
  int64_t i = 0;
  for (Index index(result.shape); !index.done(); index.next()) {
    double x = a.data[index.offsetIn(a.shape)], y = b.data[index.offsetIn(b.shape)];
    result.data[i++] =
        integers ? static_cast<int32_t>(whole(static_cast<int64_t>(x), static_cast<int64_t>(y))) : evaluate(x, y);
  }
  return result;
}

// Newton's method on erf from Giles' starting point, accurate to the last bits of a double.
double mlir::mt::evaluateErfInv(double a) {
  if (!(std::fabs(a) < 1))
    return std::fabs(a) == 1 ? std::copysign(INFINITY, a) : NAN;
  double logarithm = std::log1p(-a * a);
  double t = 2 / (M_PI * 0.147) + logarithm / 2;
  double x = std::copysign(std::sqrt(std::sqrt(t * t - logarithm / 0.147) - t), a);
  for (int step = 0; step < 4; ++step)
    x -= (std::erf(x) - a) / (M_2_SQRTPI * std::exp(-x * x));
  return x;
}
