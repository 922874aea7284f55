// SPDX-License-Identifier: Apache-2.0
#include "compiler/differentiate/Initializers.h"
#include "dialects/mt/Expr.h"
#include <cmath>

using namespace mlir;
using mt::Expr;
using mt::InitKind;

namespace mtc {

Value buildFilled(OpBuilder &builder, Location location, RankedTensorType type, double value) {
  auto scalar = RankedTensorType::get({}, type.getElementType());
  Attribute element = isa<FloatType>(type.getElementType())
                          ? Attribute(builder.getFloatAttr(type.getElementType(), value))
                          : builder.getIntegerAttr(type.getElementType(), value);
  Value constant = mt::ConstantOp::create(builder, location, scalar, DenseElementsAttr::get(scalar, element));
  return type.getRank() == 0 ? constant : mt::BroadcastOp::create(builder, location, type, constant).getResult();
}

namespace {
struct Fans {
  double in, out;
};
} // namespace

static Fans fansOf(ArrayRef<int64_t> shape) {
  if (shape.empty())
    return {1, 1};
  if (shape.size() == 1)
    return {double(shape[0]), double(shape[0])};
  double field = 1;
  for (int64_t extent : shape.drop_back(2))
    field *= extent;
  return {field * shape[shape.size() - 2], field * shape.back()};
}

// Variance of Keras' VarianceScaling initializers.
static double varianceOf(InitKind kind, Fans fans) {
  switch (kind) {
  case InitKind::glorot_uniform:
  case InitKind::glorot_normal:
    return 2 / (fans.in + fans.out);
  case InitKind::he_uniform:
  case InitKind::he_normal:
    return 2 / fans.in;
  default:
    return 1 / fans.in;
  }
}

Value buildInitialValue(OpBuilder &builder, mt::VariableOp variable) {
  auto type = cast<RankedTensorType>(variable.getType());
  Location location = variable.getLoc();
  InitKind kind = variable.getInit();
  switch (kind) {
  case InitKind::zeros:
  case InitKind::ones:
    return buildFilled(builder, location, type, kind == InitKind::ones);
  case InitKind::constant:
    return buildFilled(builder, location, type, variable.getValue()->convertToDouble());
  default:
    break;
  }
  Expr u(builder, location, mt::RandomUniformOp::create(builder, location, type, variable.getName(), Value()));
  if (kind == InitKind::uniform || kind == InitKind::normal) {
    double value = variable.getValue()->convertToDouble();
    // As in mt.random_normal: u has 24 bits, so the argument of erf_inv is never -1 or 1.
    return (kind == InitKind::uniform ? u * (2 * value) - value
                                      : erfInv(u * 2.0 - (1 - 0x1p-24)) * (std::sqrt(2.0) * value))
        .value();
  }
  double variance = varianceOf(kind, fansOf(type.getShape()));
  if (kind == InitKind::glorot_uniform || kind == InitKind::he_uniform || kind == InitKind::lecun_uniform) {
    double limit = std::sqrt(3 * variance);
    return (u * (2 * limit) - limit).value();
  }
  // A normal distribution truncated at two standard deviations, by the inverse of its distribution function. The
  // constant is the standard deviation of the truncated standard normal distribution.
  double edge = std::erf(std::sqrt(2.0)), deviation = std::sqrt(variance) / 0.87962566103423978;
  return (erfInv(u * (2 * edge) - edge) * (std::sqrt(2.0) * deviation)).value();
}

} // namespace mtc
