// SPDX-License-Identifier: Apache-2.0
//
// What is found in the registry rather than listed: activations, losses, optimizers. One after the other over the
// seeds, so that none is missed.
#include "test/unit/random/Generator.h"

using namespace mlir;
using namespace mlir::mt;
using namespace mtc::test;

// Sets each float attribute that has a default to another value.
static void changeNumbers(OperationState &state, OpBuilder &builder, double value) {
  NamedAttrList defaults;
  state.name.populateDefaultAttrs(defaults);
  for (NamedAttribute attribute : defaults)
    if (isa<FloatAttr>(attribute.getValue()))
      state.addAttribute(attribute.getName(), builder.getF32FloatAttr(value));
}

// Any element-wise function of one value, from 0.1 to 0.9, where all are defined.
Expr Generator::functionStep(const Expr &x) {
  SmallVector<RegisteredOperationName> functions;
  for (RegisteredOperationName name : builder.getContext()->getRegisteredOperations())
    if (name.hasInterface<ElementwiseOpInterface>() && name.hasInterface<GradientOpInterface>() &&
        name.hasTrait<OpTrait::OneOperand>() && name.hasTrait<OpTrait::SameOperandsAndResultType>())
      functions.push_back(name);
  OperationState state(at, functions[turn++ % functions.size()]);
  changeNumbers(state, builder, between(0.1, 0.9));
  state.addOperands((sigmoid(x) * 0.8 + 0.1).value());
  state.addTypes(x.type());
  return mix(x, e(builder.create(state)->getResult(0)));
}

Expr Generator::noiseStep(const Expr &x) {
  std::string stream = "layer_noise_" + std::to_string(streams++);
  Value step = chance(30) ? IterationOp::create(builder, at, i32({})).getResult() : Value();
  llvm::APFloat amount(float(between(0.1, 0.5)));
  switch (below(5)) {
  case 0:
    return tanh(make<RandomNormalOp>(chance(50) ? x.type() : f32({width(x)}), stream, step) * 0.25 + x);
  case 1:
    return tanh(make<GaussianNoiseOp>(x.type(), x.value(), step, stream, amount));
  case 2:
    return tanh(make<GaussianDropoutOp>(x.type(), x.value(), step, stream, amount));
  case 3:
    return tanh(make<WhileTrainingOp>(x.type(), (x * 1.25).value(), (-x).value(), seed % 2 == 0));
  default:
    SmallVector<int64_t> shared;
    if (chance(50))
      shared.push_back(1);
    return tanh(make<DropoutOp>(x.type(), x.value(), step, stream, amount, shared) + x * 0.25);
  }
}

Expr Generator::normalizationStep(const Expr &x) {
  llvm::APFloat epsilon(float(between(0.05, 0.2)));
  if (chance(40)) {
    SmallVector<int64_t> dims{x.type().getRank() - 1};
    if (x.type().getRank() > 2 && chance(50))
      dims.insert(dims.begin(), x.type().getRank() - 2);
    return mix(x, make<NormalizeOp>(x.value(), dims, epsilon) * 0.5);
  }
  auto statistic = [&](InitKind kind) {
    std::string name = "layer_" + std::to_string(variables++) + "/moving";
    return VariableOp::create(builder, at, f32({width(x)}), name, kind, FloatAttr(), true).getResult();
  };
  Value gamma = chance(30) ? broadcastTo(constant({}), f32({width(x)})).value() : variable({width(x)}).value();
  Value beta = chance(30) ? broadcastTo(constant({}), f32({width(x)})).value() : variable({width(x)}).value();
  Value mean = statistic(InitKind::zeros), variance = statistic(InitKind::ones);
  return mix(x,
             make<BatchNormalizationOp>(x.type(), x.value(), gamma, beta, mean, variance,
                                        llvm::APFloat(float(between(0.5, 0.9))), epsilon, chance(60), seed % 2 == 0) *
                 0.5);
}

// A loss and a metric of predictions and targets like them.
std::pair<Value, Value> Generator::anyCriteria(const Expr &p, Value target) {
  SmallVector<RegisteredOperationName> losses, metrics;
  for (RegisteredOperationName op : builder.getContext()->getRegisteredOperations())
    if (op.hasInterface<DecomposeOpInterface>() && op.hasInterface<InferTypeOpInterface>() &&
        !op.hasInterface<TrainingOpInterface>() && op.hasTrait<OpTrait::NOperands<2>::Impl>() &&
        !op.getStringRef().starts_with("mt.sparse_")) {
      metrics.push_back(op);
      if (op.hasInterface<GradientOpInterface>())
        losses.push_back(op);
    }
  auto build = [&](RegisteredOperationName op) {
    OperationState state(at, op);
    changeNumbers(state, builder, between(0.1, 0.4));
    if (llvm::is_contained(op.getAttributeNames(), "k"))
      state.addAttribute("k", builder.getI64IntegerAttr(1 + below(std::min<int64_t>(width(p), 4))));
    state.addOperands({p.value(), target});
    state.addTypes(p.type().clone(p.type().getShape().drop_back()));
    return builder.create(state)->getResult(0);
  };
  return {build(losses[seed / 2 % losses.size()]), build(metrics[seed / 2 % metrics.size()])};
}

Value Generator::anySchedule() {
  Value step = IterationOp::create(builder, at, i32({}));
  bool whole = seed / 5 % 2;
  llvm::APFloat initial(float(between(0.01, 0.05))), steps(float(between(1.5, 4))), rate(float(between(0.3, 0.9)));
  switch (seed % 5) {
  case 0:
    return ExponentialDecayOp::create(builder, at, f32({}), step, initial, steps, rate, whole);
  case 1:
    return InverseTimeDecayOp::create(builder, at, f32({}), step, initial, steps, rate, whole);
  case 2:
    return PiecewiseConstantDecayOp::create(builder, at, f32({}), step, ArrayRef<int64_t>{0, 2},
                                            ArrayRef<float>{0.03f, 0.02f, 0.01f});
  case 3:
    return PolynomialDecayOp::create(builder, at, f32({}), step, initial, steps, llvm::APFloat(0.001f),
                                     llvm::APFloat(1.5f), whole);
  default:
    return CosineDecayOp::create(builder, at, f32({}), step, initial, steps, llvm::APFloat(0.1f),
                                 builder.getF32FloatAttr(0.06f), llvm::APFloat(2.0f));
  }
}

void Generator::buildOptimizer() {
  SmallVector<RegisteredOperationName> optimizers;
  for (RegisteredOperationName name : builder.getContext()->getRegisteredOperations())
    if (name.hasInterface<OptimizerOpInterface>())
      optimizers.push_back(name);
  // Every option of every optimizer within four rounds.
  OperationState state(at, optimizers[seed % optimizers.size()]);
  int64_t variant = seed / optimizers.size() % 4;
  auto f = [&](double low, double high) { return builder.getF32FloatAttr(between(low, high)); };
  auto set = [&](bool when, StringRef attribute, Attribute value) {
    if (when && llvm::is_contained(state.name.getAttributeNames(), attribute))
      state.addAttribute(attribute, value);
  };
  // Where the direction of noise is a step, steps are small. Large epsilons: g / sqrt(v) must not make noise a step.
  StringRef name = state.name.getStringRef();
  bool normalised = name == "mt.lion" || name == "mt.lamb";
  set(true, "learning_rate", normalised ? f(1e-5, 2e-5) : f(0.01, 0.1));
  set(true, "epsilon", f(0.01, 0.02));
  set(true, "beta_1", f(0.5, 0.95));
  set(true, "beta_2", f(0.9, 0.999));
  set(true, "rho", f(0.5, 0.95));
  set(true, "initial_accumulator_value", f(0.1, 0.3));
  set(variant > 0, "momentum", f(0.1, 0.9));
  set(variant > 1, "nesterov", builder.getUnitAttr());
  set(variant % 2, "rate_after_momentum", builder.getUnitAttr());
  set(variant > 1, "epsilon_after_root", builder.getUnitAttr());
  set(variant > 1, "epsilon_after_correction", builder.getUnitAttr());
  set(variant % 2, "centered", builder.getUnitAttr());
  set(variant % 2, "amsgrad", builder.getUnitAttr());
  set(variant > 0, "weight_decay", f(0.001, 0.1));
  set(variant == 1, "clipnorm", f(0.01, 1));
  set(variant == 2, "clipvalue", f(0.01, 0.1));
  set(variant == 3, "global_clipnorm", f(0.01, 1));
  set(variant % 2, "ema_momentum", f(0.5, 0.95));
  set(variant == 3, "ema_overwrite_frequency", builder.getI64IntegerAttr(1 + below(3)));
  if (variant % 3 == 0 && !normalised)
    state.addOperands(anySchedule());
  builder.create(state);
}
