// SPDX-License-Identifier: Apache-2.0
//
// Activations by name, and layers that are activations.
#include "frontend/keras/LayerTable.h"

using namespace mlir;
using mlir::mt::Expr;

namespace mtc::keras {
namespace {

template <typename Op> Value unary(LayerBuilder &layer, Value x) {
  return Op::create(layer.builder, layer.location, x.getType(), x);
}

Value linear(LayerBuilder &, Value x) { return x; }
Value squareplus(LayerBuilder &layer, Value x) {
  mt::Expr e = layer.expr(x);
  return ((e + sqrt(square(e) + 4.0)) * 0.5).value();
}
Value tanhShrink(LayerBuilder &layer, Value x) {
  Expr e = layer.expr(x);
  return (e - tanh(e)).value();
}
constexpr double shrinkThreshold = 0.5;
Value hardShrink(LayerBuilder &layer, Value x) {
  Expr e = layer.expr(x);
  return select(abs(e) > shrinkThreshold, e, e * 0.0).value();
}
Value softShrink(LayerBuilder &layer, Value x) {
  Expr e = layer.expr(x);
  return select(e > shrinkThreshold, e - shrinkThreshold, select(e < -shrinkThreshold, e + shrinkThreshold, e * 0.0))
      .value();
}
template <typename Op> Value slope(LayerBuilder &layer, Value x, llvm::StringRef name, double value) {
  return layer.made<Op>({x}, {layer.number(name, value)}, x.getType());
}
Value elu(LayerBuilder &layer, Value x) { return slope<mt::EluOp>(layer, x, "alpha", 1); }
Value celu(LayerBuilder &layer, Value x) { return slope<mt::CeluOp>(layer, x, "alpha", 1); }
// The function; the layer has another default slope.
Value leakyRelu(LayerBuilder &layer, Value x) { return slope<mt::LeakyReluOp>(layer, x, "negative_slope", 0.2); }

struct Activation {
  const char *name;
  Value (*build)(LayerBuilder &, Value);
};
constexpr Activation activations[] = {
    {"linear", linear},
    {"relu", unary<mt::ReluOp>},
    {"relu6", unary<mt::Relu6Op>},
    {"elu", elu},
    {"celu", celu},
    {"selu", unary<mt::SeluOp>},
    {"gelu", unary<mt::GeluOp>},
    {"silu", unary<mt::SiluOp>},
    {"swish", unary<mt::SiluOp>},
    {"softplus", unary<mt::SoftplusOp>},
    {"softsign", unary<mt::SoftsignOp>},
    {"log_sigmoid", unary<mt::LogSigmoidOp>},
    {"hard_sigmoid", unary<mt::HardSigmoidOp>},
    {"hard_silu", unary<mt::HardSiluOp>},
    {"hard_swish", unary<mt::HardSiluOp>},
    {"hard_tanh", unary<mt::HardTanhOp>},
    {"mish", unary<mt::MishOp>},
    {"squareplus", squareplus},
    {"tanh_shrink", tanhShrink},
    {"hard_shrink", hardShrink},
    {"soft_shrink", softShrink},
    {"leaky_relu", leakyRelu},
    {"sigmoid", unary<mt::SigmoidOp>},
    {"tanh", unary<mt::TanhOp>},
    {"exponential", unary<mt::ExpOp>},
    {"softmax", unary<mt::SoftmaxOp>},
    {"log_softmax", unary<mt::LogSoftmaxOp>},
};

Value buildActivationLayer(LayerBuilder &layer) { return activate(layer, layer.toFloat(layer.input())); }

// f(x) = max_value above max_value, slope (x - threshold) up to the threshold, x between. Built of the same parts as in
// Keras, to get the same gradients at kinks.
Value buildRelu(LayerBuilder &layer) {
  Value x = layer.toFloat(layer.input());
  double below = layer.config.real("negative_slope", 0), threshold = layer.config.real("threshold", 0);
  const Json *most = layer.config.find("max_value");
  double limit = most ? layer.config.real("max_value") : 0;
  if (!x)
    return {};
  if (below != 0 && threshold == 0 && !most)
    return slope<mt::LeakyReluOp>(layer, x, "negative_slope", below);
  Expr e = layer.expr(x);
  bool six = most && limit == 6 && threshold == 0;
  Value above = threshold != 0 ? select(e > threshold, e, 0.0).value()
                : six          ? unary<mt::Relu6Op>(layer, x)
                               : unary<mt::ReluOp>(layer, x);
  if (most && !six)
    above = minimum(layer.expr(above), limit).value();
  if (below == 0)
    return above;
  Expr distance = threshold != 0 ? threshold - e : -e;
  return (layer.expr(above) - layer.expr(unary<mt::ReluOp>(layer, distance.value())) * below).value();
}

Value buildLeakyRelu(LayerBuilder &layer) {
  Value x = layer.toFloat(layer.input());
  // The older name of the option is alpha.
  double most = layer.config.find("alpha") ? layer.config.real("alpha") : layer.config.real("negative_slope", 0.3);
  return x ? slope<mt::LeakyReluOp>(layer, x, "negative_slope", most) : x;
}

Value buildElu(LayerBuilder &layer) {
  Value x = layer.toFloat(layer.input());
  double alpha = layer.config.real("alpha", 1);
  return x ? slope<mt::EluOp>(layer, x, "alpha", alpha) : x;
}

Value buildSoftmax(LayerBuilder &layer) {
  Value x = layer.toFloat(layer.input());
  SmallVector<int64_t> axes = {-1};
  if (const Json *axis = layer.config.find("axis"))
    axes = layer.config.integers("axis", axis->is_array() ? -1 : 1);
  return x && !layer.config.failed() ? softmaxOver(layer, x, axes) : Value();
}

Value buildIdentity(LayerBuilder &layer) { return layer.input(); }

// Returns its input, and adds a regularizer to the loss.
Value buildActivityRegularization(LayerBuilder &layer) {
  Value x = layer.toFloat(layer.input());
  NamedAttribute amounts[] = {layer.number("l1", layer.config.real("l1", 0)),
                              layer.number("l2", layer.config.real("l2", 0))};
  layer.config.ignore({"activity_regularizer"}); // the same regularizer again
  if (x)
    mt::RegularizerOp::create(layer.builder, layer.location, TypeRange(), ValueRange(x), amounts);
  return x;
}

// One slope per element, or per index of the axes that are not shared.
Value buildPRelu(LayerBuilder &layer) {
  Value x = layer.toFloat(layer.input());
  if (!x)
    return {};
  SmallVector<int64_t> shape(layer.shapeOf(x).drop_front());
  if (layer.config.find("shared_axes"))
    for (int64_t axis : layer.config.integers("shared_axes")) {
      if (axis < 1 || axis > static_cast<int64_t>(shape.size()))
        return layer.fail("expected shared_axes from 1 to " + std::to_string(shape.size()) + ", found " +
                          std::to_string(axis));
      shape[static_cast<size_t>(axis - 1)] = 1;
    }
  layer.config.expectAbsent({"alpha_constraint"});
  Value alpha = layer.variable("alpha", shape, "alpha_initializer");
  if (!alpha)
    return {};
  // Keras' formula: at 0 the gradient is that of both relus, 0.
  Value above = unary<mt::ReluOp>(layer, x), below = unary<mt::ReluOp>(layer, (-layer.expr(x)).value());
  return (layer.expr(above) - layer.expr(alpha) * layer.expr(below)).value();
}

} // namespace

static Value applyByName(LayerBuilder &layer, Value value, const std::string &name) {
  std::string names;
  for (const Activation &activation : activations) {
    if (name == activation.name)
      return activation.build(layer, value);
    names += (names.empty() ? "" : ", ") + std::string(activation.name);
  }
  return layer.fail("expected an activation of " + names + ", found '" + name + "'");
}

// Applies a layer without variables that is used as an activation.
static Value applyLayer(LayerBuilder &layer, Value value, const Json &object) {
  Layer inner;
  inner.name = layer.layer.name;
  inner.className = textMember(object, "class_name");
  inner.module = textMember(object, "module");
  inner.config = member(object, "config");
  BuildLayer build = inner.config ? findLayer(inner) : nullptr;
  if (!build)
    return layer.fail("expected an activation, found " + describe(object));
  LayerBuilder built(layer.builder, inner, {Operand{value, {}, nullptr}}, {}, layer.hasWeights);
  Value result = build(built);
  return built.finish(result) ? result
                              : layer.fail("expected an activation that is supported, found " + describe(object));
}

Value activate(LayerBuilder &layer, Value value, llvm::StringRef key) {
  const Json *activation = layer.config.find(key);
  if (!activation || !value)
    return value;
  // A name, or the object of a function or a layer.
  std::string name = activation->is_string() ? activation->get<std::string>() : textMember(*activation, "class_name");
  if (name == "function")
    name = textMember(*activation, "config");
  for (const char *known : {"Activation", "ELU", "LeakyReLU", "ReLU", "Softmax"})
    if (name == known && activation->is_object())
      return applyLayer(layer, value, *activation);
  return applyByName(layer, value, name);
}

Value softmaxOver(LayerBuilder &layer, Value x, SmallVector<int64_t> axes) {
  std::optional<SmallVector<int64_t>> sorted = sampleAxes(layer, x, axes);
  if (!sorted)
    return {};
  // Moves these axes to the end and joins them.
  SmallVector<int64_t> order, back, shape;
  int64_t rank = layer.typeOf(x).getRank(), count = 1;
  for (int64_t axis = 0; axis < rank; ++axis)
    if (!llvm::is_contained(*sorted, axis)) {
      order.push_back(axis);
      shape.push_back(layer.shapeOf(x)[axis]);
    }
  for (int64_t axis : *sorted) {
    order.push_back(axis);
    count *= layer.shapeOf(x)[axis];
  }
  shape.push_back(count);
  for (int64_t axis = 0; axis < rank; ++axis)
    back.push_back(llvm::find(order, axis) - order.begin());
  auto transposed = [&](Value value, ArrayRef<int64_t> by) {
    return llvm::is_sorted(by) ? value : mt::TransposeOp::create(layer.builder, layer.location, value, by).getResult();
  };
  Value last = transposed(x, order), flat = unary<mt::SoftmaxOp>(layer, layer.reshape(last, shape));
  return transposed(layer.reshape(flat, layer.shapeOf(last)), back);
}

llvm::ArrayRef<LayerEntry> activationLayers() {
  static constexpr LayerEntry entries[] = {{"Activation", buildActivationLayer},
                                           {"ReLU", buildRelu},
                                           {"LeakyReLU", buildLeakyRelu},
                                           {"ELU", buildElu},
                                           {"PReLU", buildPRelu},
                                           {"Softmax", buildSoftmax},
                                           {"Identity", buildIdentity},
                                           {"ActivityRegularization", buildActivityRegularization}};
  return entries;
}

} // namespace mtc::keras
