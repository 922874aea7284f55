// SPDX-License-Identifier: Apache-2.0
#include "compiler/differentiate/LossScale.h"
#include "dialects/mt/Compilation.h"
#include "dialects/mt/Expr.h"

using namespace mlir;
using mt::Expr;

namespace mtc {

// As in Keras' LossScaleOptimizer, with bounds so that the scale never becomes 0 or infinite.
static constexpr double firstScale = 1 << 15, minScale = 1, maxScale = double(1ll << 40), growthSteps = 2000;

LossScale::LossScale(mt::ModelOp model, std::string prefix) {
  Builder builder(model.getContext());
  if (mt::Compilation(model).getPrecision() == "f16")
    owned = {{prefix + "loss_scale", RankedTensorType::get({}, builder.getF32Type()), firstScale},
             {prefix + "finite_steps", RankedTensorType::get({}, builder.getI32Type()), 0}};
}

static Value readOf(OpBuilder &builder, Location location, const LossScale::Variable &variable) {
  return mt::ReadOp::create(builder, location, variable.type, variable.name);
}

Value LossScale::read(OpBuilder &builder, Location location) const {
  return owned.empty() ? Value() : readOf(builder, location, owned[0]);
}

Value LossScale::unscale(OpBuilder &builder, Location location, SmallVectorImpl<Value> &gradients) const {
  if (owned.empty() || gradients.empty())
    return {};
  auto e = [&](Value value) { return Expr(builder, location, value); };
  auto assign = [&](const Variable &variable, const Expr &value) {
    mt::AssignOp::create(builder, location, variable.name, value.value(), Value());
  };
  Value scale = read(builder, location);
  // If any element is not finite, the sum is not finite, and the sum minus itself is NaN.
  Expr sum = sumAll(e(gradients[0]));
  for (Value gradient : llvm::drop_begin(gradients))
    sum = sum + sumAll(e(gradient));
  Expr finite = sum - sum == 0.0;
  Expr steps = e(readOf(builder, location, owned[1])) + 1.0;
  Expr grows = steps == growthSteps;
  Expr grown = select(grows, minimum(e(scale) * 2.0, maxScale), e(scale));
  Expr next = select(finite, grown, maximum(e(scale) * 0.5, minScale));
  Expr counted = select(finite, select(grows, 0.0, steps), 0.0);
  assign(owned[0], next);
  assign(owned[1], counted);
  // The scale is a power of two, so the division is exact.
  for (Value &gradient : gradients)
    gradient = (e(gradient) * (1.0 / e(scale))).value();
  return finite.value();
}

} // namespace mtc
