// SPDX-License-Identifier: Apache-2.0
#include "test/unit/random/RandomModel.h"
#include "dialects/mt/Expr.h"
#include <functional>
#include <random>

using namespace mlir;
using namespace mlir::mt;
using mtc::test::RandomModel;

namespace {

class Generator {
public:
  Generator(MLIRContext &context, uint32_t seed) : random(seed), builder(&context), at(builder.getUnknownLoc()) {}
  RandomModel make();

private:
  // ---- choices
  int64_t below(int64_t n) { return random() % n; }
  bool chance(int percent) { return below(100) < percent; }
  template <typename T> T oneOf(std::initializer_list<T> list) { return list.begin()[below(list.size())]; }
  double between(double low, double high) { return static_cast<float>(low + (high - low) * (random() % 10007) / 10007.0); }

  // ---- parts
  Expr e(Value value) { return Expr(builder, at, value); }
  RankedTensorType f32(ArrayRef<int64_t> shape) { return RankedTensorType::get(shape, builder.getF32Type()); }
  int64_t width(const Expr &x) { return x.type().getShape().back(); }
  Expr variable(ArrayRef<int64_t> shape);
  Expr constant(ArrayRef<int64_t> shape);
  Expr reduce(Reduction kind, const Expr &x, ArrayRef<int64_t> dims) { return e(ReduceOp::create(builder, at, kind, x.value(), dims)); }
  Expr reshape(const Expr &x, ArrayRef<int64_t> shape) { return e(ReshapeOp::create(builder, at, x.type().clone(shape), x.value())); }
  Expr compare(Compare kind, const Expr &a, const Expr &b) { return e(CompareOp::create(builder, at, kind, a.value(), b.value())); }
  template <typename Op> Expr unary(const Expr &x) { return e(Op::create(builder, at, x.value())); }
  Expr tanh(const Expr &x) { return unary<TanhOp>(x); }
  // Keeps a differentiable path from x, and values small.
  Expr mix(const Expr &x, const Expr &other) { return tanh(x * 0.75 + other * 0.5); }

  // ---- steps: x is [?, C] with elements of at most about 1
  Expr unaryStep(const Expr &x);
  Expr binaryStep(const Expr &x);
  Expr layerStep(const Expr &x);
  Expr maskStep(const Expr &x);
  Expr shapeStep(const Expr &x);
  Expr reductionStep(const Expr &x);
  Expr compositeStep(const Expr &x);
  Expr sourceStep(const Expr &x);
  Expr batchStep(const Expr &x);

  void buildLoss(const Expr &x);
  void buildOptimizer();
  template <typename Op> Value criterion(const Expr &p, Value target) { return Op::create(builder, at, p.value(), target); }
  template <typename Op> Value crossEntropy(const Expr &p, Value target, bool logits) {
    return Op::create(builder, at, p.value(), target, logits);
  }
  Value target(StringRef name, RankedTensorType type, std::function<double()> element);

  std::mt19937 random;
  OpBuilder builder;
  Location at;
  int64_t variables = 0, streams = 0;
  mtc::Step step;
};

Expr Generator::variable(ArrayRef<int64_t> shape) {
  static constexpr InitKind kinds[] = {InitKind::ones,         InitKind::constant,       InitKind::glorot_uniform,
                                       InitKind::glorot_normal, InitKind::he_uniform,     InitKind::he_normal,
                                       InitKind::lecun_uniform, InitKind::lecun_normal,   InitKind::glorot_uniform};
  InitKind kind = kinds[below(std::size(kinds))];
  FloatAttr value = kind == InitKind::constant ? builder.getF32FloatAttr(between(-0.5, 0.5)) : FloatAttr();
  std::string name = "layer_" + std::to_string(variables++) + "/w";
  return e(VariableOp::create(builder, at, f32(shape), builder.getStringAttr(name), InitKindAttr::get(builder.getContext(), kind), value,
                              chance(10) ? builder.getUnitAttr() : UnitAttr()));
}

Expr Generator::constant(ArrayRef<int64_t> shape) {
  RankedTensorType type = f32(shape);
  SmallVector<float> elements;
  for (int64_t i = 0; i < type.getNumElements(); ++i)
    elements.push_back(between(-1, 1));
  return e(ConstantOp::create(builder, at, type, DenseElementsAttr::get(type, ArrayRef<float>(elements))));
}

Expr Generator::unaryStep(const Expr &x) {
  switch (below(15)) {
  case 0:
    return mix(x, -x);
  case 1:
    return mix(x, abs(x));
  case 2:
    return mix(x, sign(x + 0.0123));
  case 3:
    return mix(x, square(x));
  case 4:
    return mix(x, exp(x));
  case 5:
    return mix(x, log(abs(x) + 0.5));
  case 6:
    return mix(x, log1p(square(x)));
  case 7:
    return mix(x, sqrt(square(x) + 0.25));
  case 8:
    return mix(x, unary<RsqrtOp>(square(x) + 0.5));
  case 9:
    return tanh(x);
  case 10:
    return mix(x, sigmoid(x));
  case 11:
    return mix(x, unary<ReluOp>(x));
  case 12:
    return mix(x, unary<ErfOp>(x));
  case 13:
    return mix(x, erfInv(x * 0.6));
  default:
    return mix(x, unary<FloorOp>(x * 3.7 + 0.123));
  }
}

Expr Generator::binaryStep(const Expr &x) {
  Expr v = chance(30) ? variable({}) : chance(50) ? variable({width(x)}) : variable({1, width(x)});
  switch (below(7)) {
  case 0:
    return tanh(x + v);
  case 1:
    return tanh(v - x);
  case 2:
    return mix(x, x * v);
  case 3:
    return mix(x, x / (abs(v) + 0.5));
  case 4:
    return tanh(maximum(x, v) + x + v * 0.25);
  case 5:
    return tanh(minimum(x, v) + x + v * 0.25);
  default:
    return mix(x, pow(sigmoid(x) + 0.5, v));
  }
}

Expr Generator::layerStep(const Expr &x) {
  int64_t from = width(x), to = oneOf<int64_t>({3, 5, 7, 9, 11, 15, 17, 21});
  Expr w = chance(50) ? variable({from, to}) : variable({to, from});
  bool swapped = w.type().getDimSize(0) == to && from != to;
  if (swapped && chance(50)) {
    w = e(TransposeOp::create(builder, at, w.value(), ArrayRef<int64_t>{1, 0}));
    swapped = false;
  }
  return tanh(e(MatmulOp::create(builder, at, x.value(), w.value(), false, swapped)) + variable({to}));
}

Expr Generator::maskStep(const Expr &x) {
  Compare kind = static_cast<Compare>(below(6));
  Expr mask = compare(kind, x, constant({width(x)}));
  if (chance(50))
    mask = e(AndOp::create(builder, at, mask.value(), compare(Compare::gt, x, constant({})).value()));
  if (chance(50))
    mask = !mask;
  if (chance(30))
    return mix(x, toFloat(mask));
  if (chance(30)) {
    Expr integers = e(CastOp::create(builder, at, x.type().clone(builder.getI32Type()), (x * 2.9 + 0.0317).value()));
    return mix(x, toFloat(integers + 1));
  }
  return tanh(select(mask, x, x * between(0.1, 0.9)));
}

Expr Generator::shapeStep(const Expr &x) {
  int64_t c = width(x), a = c % 3 == 0 ? 3 : c % 5 == 0 ? 5 : 1, b = c / a;
  Expr cube = reshape(x, {ShapedType::kDynamic, a, b});
  if (chance(40)) {
    Expr turned = e(TransposeOp::create(builder, at, cube.value(), ArrayRef<int64_t>{0, 2, 1}));
    return mix(x, reshape(turned, x.type().getShape()));
  }
  if (chance(60)) {
    // [?, a, b] . [?, b, a] . [?, a, b]
    Expr square = e(MatmulOp::create(builder, at, cube.value(), cube.value(), false, true));
    bool swap = chance(50);
    return mix(x, reshape(e(MatmulOp::create(builder, at, square.value(), cube.value(), swap, false)), x.type().getShape()) * 0.3);
  }
  Expr shared = e(MatmulOp::create(builder, at, cube.value(), variable({b, b}).value(), false, chance(50)));
  return mix(x, reshape(shared, x.type().getShape()));
}

Expr Generator::reductionStep(const Expr &x) {
  Reduction kind = static_cast<Reduction>(below(3));
  Expr reduced = unsqueezeLast(reduce(kind, x, {1}));
  double scale = kind == Reduction::sum ? 1.0 / width(x) : 1.0;
  if (chance(50))
    reduced = broadcastTo(reduced, x.type());
  return mix(x, reduced * scale);
}

Expr Generator::compositeStep(const Expr &x) {
  switch (below(4)) {
  case 0:
    return mix(x, unary<SoftmaxOp>(x * 2.0));
  case 1:
    return mix(x, unary<LogSoftmaxOp>(x) * 0.3);
  default:
    Value label = ArgmaxOp::create(builder, at, x.value());
    if (chance(50))
      return mix(x, e(OneHotOp::create(builder, at, x.type(), label)));
    return mix(x, unsqueezeLast(toFloat(e(label))) * 0.1);
  }
}

Expr Generator::sourceStep(const Expr &x) {
  switch (below(4)) {
  case 0:
    return mix(x, e(IotaOp::create(builder, at, f32({width(x)}), 0)) * 0.05);
  case 1:
    return mix(x, constant({width(x)}));
  case 2: {
    Expr u = e(RandomUniformOp::create(builder, at, f32({width(x)}), "noise_" + std::to_string(streams++), Value()));
    return mix(x, u);
  }
  default: {
    Expr u = e(RandomUniformOp::create(builder, at, x.type(), "drop_" + std::to_string(streams++), Value()));
    return tanh(select(u >= 0.25, x * (1 / 0.75), 0.0) + x * 0.25);
  }
  }
}

// A sum over the batch in the middle of the forward pass, as batch statistics are.
Expr Generator::batchStep(const Expr &x) {
  Expr n = e(BatchSizeOp::create(builder, at, f32({})));
  return mix(x, x - reduce(Reduction::sum, x, {0}) / n);
}

Value Generator::target(StringRef name, RankedTensorType type, std::function<double()> element) {
  Tensor data(concreteShape(type, step.samples));
  for (double &x : data.data)
    x = element();
  step.inputs[name.str()] = std::move(data);
  return TargetOp::create(builder, at, type, name);
}

void Generator::buildLoss(const Expr &x) {
  int64_t c = width(x);
  auto labels = RankedTensorType::get({ShapedType::kDynamic}, builder.getI32Type());
  bool logits = chance(50);
  Expr logit = x * 3.0, p = logits ? logit : unary<SoftmaxOp>(logit), q = logits ? logit : sigmoid(logit);
  Value values, hits;
  switch (below(5)) {
  case 0: {
    Value t = target("t", labels, [&] { return below(c); });
    values = crossEntropy<SparseCategoricalCrossentropyOp>(p, t, logits);
    hits = criterion<SparseCategoricalAccuracyOp>(p, t);
    break;
  }
  case 1: {
    Value t = target("t", x.type(), [&] { return between(0, 1); });
    values = crossEntropy<CategoricalCrossentropyOp>(p, t, logits);
    hits = criterion<CategoricalAccuracyOp>(p, t);
    break;
  }
  case 2: {
    Value t = target("t", x.type(), [&] { return below(2); });
    values = crossEntropy<BinaryCrossentropyOp>(q, t, logits);
    hits = criterion<BinaryAccuracyOp>(sigmoid(logit), t);
    break;
  }
  default:
    Value t = target("t", x.type(), [&] { return between(-1, 1); });
    values = chance(50) ? criterion<MeanSquaredErrorOp>(x, t) : criterion<MeanAbsoluteErrorOp>(x, t);
    hits = criterion<MeanAbsoluteErrorOp>(x, t);
  }
  Value weights;
  if (chance(40)) {
    weights = SampleWeightOp::create(builder, at, f32({ShapedType::kDynamic}), "sample_weight");
    Tensor data(ArrayRef<int64_t>{step.samples});
    for (double &w : data.data)
      w = between(0.1, 2);
    step.inputs["sample_weight"] = std::move(data);
  }
  Divisor divisor = weights ? oneOf({Divisor::samples, Divisor::elements, Divisor::weights}) : oneOf({Divisor::samples, Divisor::elements});
  LossOp::create(builder, at, "loss", values, weights, divisor, llvm::APFloat(float(oneOf({1.0, 0.5, 2.0}))));
  MetricOp::create(builder, at, "metric", hits, weights);
}

void Generator::buildOptimizer() {
  auto f = [&](double x) { return builder.getF32FloatAttr(x); };
  static constexpr const char *names[] = {"mt.sgd", "mt.adam", "mt.adamw", "mt.rmsprop", "mt.lion"};
  OperationState state(at, names[below(std::size(names))]);
  StringRef name = state.name.getStringRef();
  // Large epsilons: where a gradient is noise, g / sqrt(v) must not make it a step.
  state.addAttribute("learning_rate", f(name == "mt.lion" ? 1e-5 : between(0.01, 0.1)));
  if (name == "mt.sgd" || name == "mt.rmsprop") {
    bool momentum = chance(60);
    if (momentum)
      state.addAttribute("momentum", f(between(0.1, 0.9)));
    if (momentum && name == "mt.sgd" && chance(50))
      state.addAttribute("nesterov", builder.getUnitAttr());
  }
  if (name == "mt.rmsprop") {
    state.addAttribute("rho", f(between(0.5, 0.95)));
    if (chance(50))
      state.addAttribute("centered", builder.getUnitAttr());
  }
  if (name == "mt.adam" || name == "mt.adamw" || name == "mt.lion") {
    state.addAttribute("beta_1", f(between(0.5, 0.95)));
    state.addAttribute("beta_2", f(between(0.9, 0.999)));
  }
  if (name == "mt.adamw")
    state.addAttribute("weight_decay", f(between(0.001, 0.1)));
  if (name != "mt.sgd" && name != "mt.lion")
    state.addAttribute("epsilon", f(0.01));
  builder.create(state);
}

RandomModel Generator::make() {
  OwningOpRef<ModuleOp> module = ModuleOp::create(at);
  builder.setInsertionPointToEnd(module->getBody());
  auto model = ModelOp::create(builder, at, "random");
  Block &body = model.getBody().emplaceBlock();
  builder.setInsertionPointToEnd(&body);
  step.batch = oneOf<int64_t>({1, 5, 8, 13, 19, 32});
  step.samples = 1 + below(step.batch);
  step.replicas = 1;
  while (step.replicas * 2 <= std::min<int64_t>(step.batch, 8))
    step.replicas *= 2;

  int64_t c = oneOf<int64_t>({3, 5, 9, 15});
  Value input = InputOp::create(builder, at, f32({ShapedType::kDynamic, c}), "x");
  Tensor data({step.samples, c}, 0.0);
  for (double &x : data.data)
    x = between(-1, 1);
  step.inputs["x"] = std::move(data);

  Expr x = layerStep(e(input));
  using Method = Expr (Generator::*)(const Expr &);
  static constexpr Method steps[] = {&Generator::unaryStep, &Generator::unaryStep,     &Generator::unaryStep,     &Generator::binaryStep,
                                     &Generator::binaryStep, &Generator::layerStep,     &Generator::maskStep,      &Generator::shapeStep,
                                     &Generator::reductionStep, &Generator::compositeStep, &Generator::sourceStep, &Generator::batchStep};
  while (body.getOperations().size() < 24 || chance(60))
    x = (this->*steps[below(std::size(steps))])(x);
  OutputOp::create(builder, at, "y", x.value());
  // A variable that learns, whatever the others are.
  x = x + e(VariableOp::create(builder, at, f32({width(x)}), "bias", InitKind::zeros, FloatAttr(), false));
  buildLoss(x);
  buildOptimizer();
  return {std::move(module), std::move(step)};
}
} // namespace

RandomModel mtc::test::makeRandomModel(MLIRContext &context, uint32_t seed) { return Generator(context, seed).make(); }
