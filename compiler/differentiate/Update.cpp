// SPDX-License-Identifier: Apache-2.0
#include "compiler/differentiate/Update.h"
#include "dialects/mt/Compilation.h"
#include "dialects/mt/Decay.h"
#include "dialects/mt/Expr.h"
#include "dialects/mt/Numbers.h"

using namespace mlir;
using mt::Expr;

namespace mtc {

// Loss scale for f16, as in Keras' LossScaleOptimizer, with bounds so that the scale never becomes 0 or infinite.
static constexpr llvm::StringLiteral scaleName = "loss_scale", stepsName = "finite_steps";
static constexpr double firstScale = 1 << 15, minScale = 1, maxScale = double(1ll << 40), growthSteps = 2000;

Optimizer::Optimizer(mt::ModelOp model) : op(*model.getOps<mt::OptimizerOpInterface>().begin()) {
  prefix = op.getOptimizerName().str() + "/";
  Builder builder(model.getContext());
  scaled = mt::Compilation(model).getPrecision() == "f16";
  auto add = [&](std::string name, Type type, mt::VariableKind kind, double start,
                 std::optional<mt::VariableRole> role = std::nullopt, StringRef of = {}) {
    owned.push_back({std::move(name), cast<RankedTensorType>(type), kind, start, role, of.str()});
  };
  auto scalar = [&](Type element) { return RankedTensorType::get({}, element); };
  add(iterationName(), scalar(builder.getI32Type()), mt::VariableKind::non_trainable, 0, mt::VariableRole::iteration);
  if (!getSchedule())
    add(prefix + "learning_rate", scalar(builder.getF32Type()), mt::VariableKind::non_trainable,
        *option("learning_rate"), mt::VariableRole::learning_rate);
  for (auto [name, start] : op.getState())
    add(prefix + name.str(), scalar(builder.getF32Type()), mt::VariableKind::non_trainable, start);
  if (scaled) {
    add(prefix + scaleName.str(), scalar(builder.getF32Type()), mt::VariableKind::non_trainable, firstScale);
    add(prefix + stepsName.str(), scalar(builder.getI32Type()), mt::VariableKind::non_trainable, 0);
  }
  for (mt::VariableOp variable : model.getOps<mt::VariableOp>()) {
    if (variable.getFrozen())
      continue;
    for (StringRef slot : op.getSlotNames())
      add(slotName(variable, slot), variable.getType(), mt::VariableKind::slot, op.getSlotStart());
    if (option("ema_momentum"))
      add(slotName(variable, "average"), variable.getType(), mt::VariableKind::slot, 0, mt::VariableRole::average,
          variable.getName());
  }
}

std::string Optimizer::slotName(mt::VariableOp variable, StringRef slot) const {
  std::string name = variable.getName().str();
  std::replace(name.begin(), name.end(), '/', '_');
  return prefix + name + "_" + slot.str();
}

std::optional<double> Optimizer::option(StringRef name) {
  std::optional<Attribute> attribute = op->getInherentAttr(name);
  auto number = attribute ? dyn_cast_or_null<FloatAttr>(*attribute) : FloatAttr();
  return number ? std::optional(number.getValueAsDouble()) : std::nullopt;
}

Value Optimizer::getSchedule() { return op->getNumOperands() ? op->getOperand(0) : Value(); }

static Value read(OpBuilder &builder, Location location, StringRef name, Type type) {
  return mt::ReadOp::create(builder, location, type, name);
}
void Optimizer::assign(OpBuilder &builder, Location location, StringRef name, Value value) {
  mt::AssignOp::create(builder, location, name, value, apply);
}

Value Optimizer::readIteration(OpBuilder &builder) { return read(builder, getLoc(), owned[0].name, owned[0].type); }

Value Optimizer::readLossScale(OpBuilder &builder) {
  return scaled ? read(builder, getLoc(), prefix + scaleName.str(), RankedTensorType::get({}, builder.getF32Type()))
                : Value();
}

void Optimizer::unscale(OpBuilder &builder, SmallVectorImpl<Value> &gradients) {
  Value scale = readLossScale(builder);
  if (!scale || gradients.empty())
    return;
  auto e = [&](Value value) { return Expr(builder, getLoc(), value); };
  // If any element is not finite, the sum is not finite, and the sum minus itself is NaN.
  Expr sum = sumAll(e(gradients[0]));
  for (Value gradient : llvm::drop_begin(gradients))
    sum = sum + sumAll(e(gradient));
  Expr finite = sum - sum == 0.0;
  Expr steps =
      e(read(builder, getLoc(), prefix + stepsName.str(), RankedTensorType::get({}, builder.getI32Type()))) + 1.0;
  Expr grows = steps == growthSteps;
  Expr grown = select(grows, minimum(e(scale) * 2.0, maxScale), e(scale));
  Expr next = select(finite, grown, maximum(e(scale) * 0.5, minScale));
  Expr counted = select(finite, select(grows, 0.0, steps), 0.0);
  assign(builder, getLoc(), prefix + scaleName.str(), next.value());
  assign(builder, getLoc(), prefix + stepsName.str(), counted.value());
  apply = finite.value();
  // The scale is a power of two, so the division is exact.
  for (Value &gradient : gradients)
    gradient = (e(gradient) * (1.0 / e(scale))).value();
}

void Optimizer::clip(OpBuilder &builder, SmallVectorImpl<Value> &gradients) {
  auto e = [&](Value value) { return Expr(builder, getLoc(), value); };
  if (std::optional<double> bound = option("clipvalue"))
    for (Value &gradient : gradients)
      gradient = minimum(maximum(e(gradient), -*bound), *bound).value();
  if (std::optional<double> bound = option("clipnorm"))
    for (Value &gradient : gradients) {
      Expr norm = sqrt(sumAll(square(e(gradient))));
      gradient = (e(gradient) * *bound / maximum(norm, *bound)).value();
    }
  std::optional<double> bound = option("global_clipnorm");
  if (!bound || gradients.empty())
    return;
  Expr squares = sumAll(square(e(gradients[0])));
  for (Value gradient : llvm::drop_begin(gradients))
    squares = squares + sumAll(square(e(gradient)));
  Expr norm = sqrt(squares);
  // norm - norm is 0, or NaN if the norm is not finite.
  Expr factor = minimum(1.0 / norm, 1 / *bound) * *bound + (norm - norm);
  for (Value &gradient : gradients)
    gradient = (e(gradient) * factor).value();
}

// Adds the variable's mt.gradient_decay to a clipped gradient.
static Value decayed(OpBuilder &builder, Location location, mt::VariableOp variable, Value value, Value gradient) {
  double decay = mt::gradientDecayOf(variable);
  if (decay == 0)
    return gradient;
  Expr g(builder, location, gradient), w(builder, location, value);
  return (g + w * decay).value();
}

// Updates the average of a variable; the first step copies. Every ema_overwrite_frequency steps the variable becomes
// its average.
void Optimizer::average(OpBuilder &builder, mt::VariableOp variable, Value iteration, Value &value) {
  auto e = [&](Value value) { return Expr(builder, getLoc(), value); };
  std::string name = slotName(variable, "average");
  Expr momentum = select(e(iteration) == 0.0, Expr(0.0), Expr(*option("ema_momentum")));
  Expr old = e(read(builder, getLoc(), name, variable.getType()));
  Expr averaged = old * momentum + e(value) * (1.0 - momentum);
  assign(builder, getLoc(), name, averaged.value());
  std::optional<Attribute> frequency = op->getInherentAttr("ema_overwrite_frequency");
  if (!frequency || !*frequency)
    return;
  double every = static_cast<double>(cast<IntegerAttr>(*frequency).getInt());
  Expr t = toFloat(e(iteration) + 1);
  value = select(floor(t / every) * every == t, averaged, e(value)).value();
}

void Optimizer::buildStep(OpBuilder &builder, MutableArrayRef<mt::VariableOp> trainable, ArrayRef<Value> values,
                          SmallVector<Value> gradients, Value rate) {
  auto e = [&](Value value) { return Expr(builder, getLoc(), value); };
  Value iteration = readIteration(builder);
  if (rate)
    mt::RateOp::create(builder, getLoc(), rate);
  else
    rate = read(builder, getLoc(), owned[1].name, owned[1].type);
  clip(builder, gradients);
  SmallVector<Value> state;
  auto names = op.getState();
  for (auto [name, start] : names)
    state.push_back(read(builder, getLoc(), prefix + name.str(), rate.getType()));
  SmallVector<Value> scalars = op.buildScalars(builder, rate, iteration, state);
  for (auto [i, name] : llvm::enumerate(names))
    assign(builder, getLoc(), prefix + name.first.str(), scalars[i]);
  double decay = option("weight_decay").value_or(0);
  for (auto [variable, old, gradient] : llvm::zip_equal(trainable, values, gradients)) {
    SmallVector<Value> slots;
    SmallVector<std::string> slotNames;
    for (StringRef slot : op.getSlotNames()) {
      slotNames.push_back(slotName(variable, slot));
      slots.push_back(read(builder, getLoc(), slotNames.back(), variable.getType()));
    }
    bool decays = decay != 0 && !variable.getNoWeightDecay();
    Value value = decays ? (e(old) - e(old) * decay * e(rate)).value() : old;
    Value total = decayed(builder, getLoc(), variable, old, gradient);
    SmallVector<Value> updated = op.buildUpdate(builder, scalars, value, total, slots);
    if (option("ema_momentum"))
      average(builder, variable, iteration, updated[0]);
    assign(builder, getLoc(), variable.getName(), updated[0]);
    for (auto [name, slot] : llvm::zip_equal(slotNames, llvm::drop_begin(updated)))
      assign(builder, getLoc(), name, slot);
  }
  assign(builder, getLoc(), owned[0].name, (e(iteration) + 1).value());
}

} // namespace mtc
