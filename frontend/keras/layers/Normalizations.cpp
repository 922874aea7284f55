// SPDX-License-Identifier: Apache-2.0
#include "frontend/keras/LayerTable.h"

using namespace mlir;

namespace mtc::keras {
namespace {

constexpr llvm::StringRef unsupported[] = {"beta_constraint", "gamma_constraint"};

// The order of axes that moves the axis of the option `axis` to the end; nullopt after an error.
std::optional<SmallVector<int64_t>> channelsLast(LayerBuilder &layer, Value x) {
  std::optional<SmallVector<int64_t>> sorted = sampleAxes(layer, x, readAxes(layer, -1));
  if (!sorted)
    return std::nullopt;
  if (sorted->size() != 1) {
    layer.fail("expected one axis, found " + std::to_string(sorted->size()));
    return std::nullopt;
  }
  SmallVector<int64_t> order;
  for (int64_t axis = 0; axis < layer.typeOf(x).getRank(); ++axis)
    if (axis != sorted->front())
      order.push_back(axis);
  order.push_back(sorted->front());
  return order;
}

Value ordered(LayerBuilder &layer, Value x, ArrayRef<int64_t> order) {
  return !x || llvm::is_sorted(order) ? x
                                      : mt::TransposeOp::create(layer.builder, layer.location, x, order).getResult();
}

// Builds a layer for another axis than the last: moves the axis to the end, and back.
template <Value (*build)(LayerBuilder &, Value)> Value overAxis(LayerBuilder &layer) {
  Value x = layer.toFloat(layer.input());
  std::optional<SmallVector<int64_t>> order = x ? channelsLast(layer, x) : std::nullopt;
  if (!order)
    return {};
  SmallVector<int64_t> back;
  for (size_t axis = 0; axis < order->size(); ++axis)
    back.push_back(llvm::find(*order, static_cast<int64_t>(axis)) - order->begin());
  return ordered(layer, build(layer, ordered(layer, x, *order)), back);
}

// A variable of the layer, or a constant if an option disables the variable.
Value scaleOrConstant(LayerBuilder &layer, llvm::StringRef option, llvm::StringRef name, ArrayRef<int64_t> shape,
                      float value) {
  std::string initializer = name.str() + "_initializer";
  if (layer.config.boolean(option, true))
    return layer.variable(name, shape, initializer);
  layer.config.ignore({initializer});
  auto type = RankedTensorType::get(shape, layer.builder.getF32Type());
  return layer.constant(DenseElementsAttr::get(type, value));
}

Value buildBatchNormalization(LayerBuilder &layer, Value x) {
  layer.config.expectAbsent(unsupported);
  layer.config.expectAbsent({"virtual_batch_size", "renorm_clipping"});
  layer.config.expect("renorm", false);
  // Statistics are always taken over the global batch, as with `synchronized`.
  layer.config.ignore(
      {"synchronized", "fused", "renorm_momentum", "moving_mean_initializer", "moving_variance_initializer"});
  SmallVector<int64_t> shape = {layer.shapeOf(x).back()};
  Value gamma = scaleOrConstant(layer, "scale", "gamma", shape, 1),
        beta = scaleOrConstant(layer, "center", "beta", shape, 0);
  Value mean = layer.constantVariable("moving_mean", shape, 0, false),
        variance = layer.constantVariable("moving_variance", shape, 1, false);
  if (!gamma || !beta || !mean || !variance)
    return {};
  SmallVector<NamedAttribute> attributes = {layer.number("momentum", layer.config.real("momentum", 0.99)),
                                            layer.number("epsilon", layer.config.real("epsilon", 1e-3))};
  if (layer.layer.frozen)
    attributes.push_back(layer.builder.getNamedAttr("frozen", layer.builder.getUnitAttr()));
  return layer.made<mt::BatchNormalizationOp>({x, gamma, beta, mean, variance}, attributes, x.getType());
}

Value normalize(LayerBuilder &layer, Value x, ArrayRef<int64_t> dims) {
  return layer.made<mt::NormalizeOp>(
      {x}, {layer.integers("dims", dims), layer.number("epsilon", layer.config.real("epsilon", 1e-3))}, x.getType());
}

// y gamma + beta, as far as the layer has them.
Value scaled(LayerBuilder &layer, Value y, ArrayRef<int64_t> shape) {
  for (auto [option, name] : {std::pair("scale", "gamma"), std::pair("center", "beta")}) {
    std::string initializer = std::string(name) + "_initializer";
    if (!layer.config.boolean(option, true)) {
      layer.config.ignore({initializer});
      continue;
    }
    Value variable = layer.variable(name, shape, initializer);
    y = option == std::string("scale") ? layer.binary<mt::MulOp>(y, variable) : layer.binary<mt::AddOp>(y, variable);
  }
  return y;
}

// The axes of a normalization and of its variables, sorted. Emits an error and returns nullopt unless they are the last
// axes, because the variables must broadcast to the input.
std::optional<SmallVector<int64_t>> lastAxes(LayerBuilder &layer, Value x) {
  std::optional<SmallVector<int64_t>> dims = sampleAxes(layer, x, readAxes(layer, -1));
  if (!dims)
    return std::nullopt;
  int64_t rank = layer.typeOf(x).getRank();
  for (auto [index, dim] : llvm::enumerate(*dims))
    if (dim != rank - static_cast<int64_t>(dims->size()) + static_cast<int64_t>(index)) {
      layer.fail("expected the last axes, found " + describe(*layer.config.find("axis")) +
                 ": move them there with keras.layers.Permute");
      return std::nullopt;
    }
  return dims;
}

Value buildLayerNormalization(LayerBuilder &layer) {
  Value x = layer.toFloat(layer.input());
  layer.config.expectAbsent(unsupported);
  std::optional<SmallVector<int64_t>> dims = x ? lastAxes(layer, x) : std::nullopt;
  if (!dims)
    return {};
  if (layer.config.boolean("rms_scaling", false)) { // x by its deviation, without a mean taken away
    layer.config.ignore({"scale", "center", "beta_initializer", "beta_regularizer"});
    Value gamma = layer.variable("gamma", layer.shapeOf(x).take_back(dims->size()), "gamma_initializer");
    double count = 1;
    for (int64_t size : layer.shapeOf(x).take_back(dims->size()))
      count *= static_cast<double>(size);
    mt::Expr e = layer.expr(x), apart = e - sumOver(e, *dims) / count;
    mt::Expr variance = sumOver(square(apart), *dims) / count;
    Value y = (e * rsqrt(variance + layer.config.real("epsilon", 1e-3))).value();
    return gamma ? layer.binary<mt::MulOp>(y, gamma) : gamma;
  }
  return scaled(layer, normalize(layer, x, *dims), layer.shapeOf(x).take_back(dims->size()));
}

// x / sqrt(mean of x^2 + epsilon), scaled.
Value buildRmsNormalization(LayerBuilder &layer) {
  Value x = layer.toFloat(layer.input());
  std::optional<SmallVector<int64_t>> dims = x ? lastAxes(layer, x) : std::nullopt;
  double epsilon = layer.config.real("epsilon", 1e-6), count = 1;
  if (!dims)
    return {};
  ArrayRef<int64_t> shape = layer.shapeOf(x).take_back(dims->size());
  for (int64_t size : shape)
    count *= static_cast<double>(size);
  Value scale = layer.constantVariable("scale", shape, 1, true);
  mt::Expr e = layer.expr(x);
  Value y = (e * rsqrt(sumOver(square(e), *dims) / count + epsilon)).value();
  return scale ? layer.binary<mt::MulOp>(y, scale) : scale;
}

Value buildGroupNormalization(LayerBuilder &layer, Value x) {
  layer.config.expectAbsent(unsupported);
  int64_t channels = layer.shapeOf(x).back(), groups = layer.config.integer("groups", 32);
  groups = groups == -1 ? channels : groups;
  if (groups < 1 || channels % groups != 0)
    return layer.fail("expected groups to divide " + std::to_string(channels) + " channels, found " +
                      std::to_string(groups));
  SmallVector<int64_t> shape(layer.shapeOf(x).drop_back()), dims;
  for (int64_t axis = 1; axis < static_cast<int64_t>(shape.size()); ++axis)
    dims.push_back(axis);
  shape.append({groups, channels / groups});
  dims.push_back(static_cast<int64_t>(shape.size()) - 1);
  Value y = normalize(layer, layer.reshape(x, shape), dims);
  return scaled(layer, layer.reshape(y, layer.shapeOf(x)), {channels});
}

// x / |x| along axes.
Value buildUnitNormalization(LayerBuilder &layer) {
  Value x = layer.toFloat(layer.input());
  SmallVector<int64_t> requested = readAxes(layer, -1);
  std::optional<SmallVector<int64_t>> axes = x ? sampleAxes(layer, x, requested) : std::nullopt;
  if (!axes)
    return {};
  constexpr double epsilon = 1e-12;
  mt::Expr e = layer.expr(x);
  return (e / sqrt(maximum(sumOver(square(e), *axes), epsilon))).value();
}

} // namespace

llvm::ArrayRef<LayerEntry> normalizationLayers() {
  static constexpr LayerEntry entries[] = {{"BatchNormalization", overAxis<buildBatchNormalization>},
                                           {"LayerNormalization", buildLayerNormalization},
                                           {"RMSNormalization", buildRmsNormalization},
                                           {"GroupNormalization", overAxis<buildGroupNormalization>},
                                           {"UnitNormalization", buildUnitNormalization}};
  return entries;
}

} // namespace mtc::keras
