// SPDX-License-Identifier: Apache-2.0
//
// Layers that change values only during training. Random numbers are drawn with Philox, so they differ from Keras'.
#include "frontend/keras/LayerTable.h"

#include <cmath>

using namespace mlir;

namespace mtc::keras {
namespace {

template <typename Op>
Value make(LayerBuilder &layer, Value x, llvm::StringRef amount, double value, ArrayRef<int64_t> shared = {}) {
  SmallVector<NamedAttribute> attributes = {
      layer.builder.getNamedAttr("stream", layer.builder.getStringAttr(layer.stream())), layer.number(amount, value)};
  if (!shared.empty())
    attributes.push_back(layer.integers("shared", shared));
  return layer.made<Op>({x}, attributes, x.getType());
}

// Reads a rate in [0, 1).
bool readRate(LayerBuilder &layer, double &rate) {
  rate = layer.config.real("rate");
  layer.config.ignore({"seed"});
  if (rate >= 0 && rate < 1)
    return true;
  layer.fail("expected a rate from 0 to less than 1, found " + std::to_string(rate));
  return false;
}

// Reads the axes of size 1 in `noise_shape`, along which elements are dropped or kept as a whole: [null, 1, 1, 1] drops
// whole samples. False after an error.
bool readShared(LayerBuilder &layer, Value x, SmallVectorImpl<int64_t> &shared) {
  const Json *noise = layer.config.find("noise_shape");
  if (!noise)
    return true;
  ArrayRef<int64_t> shape = layer.shapeOf(x);
  bool fits = noise->is_array() && noise->size() == shape.size() && (*noise)[0].is_null();
  for (size_t axis = 1; fits && axis < shape.size(); ++axis) {
    const Json &size = (*noise)[axis];
    fits = size.is_null() || size == 1 || size == shape[axis];
    if (size == 1)
      shared.push_back(static_cast<int64_t>(axis));
  }
  if (!fits)
    layer.fail("expected a noise_shape of null for the batch and of 1, null or its size for each other axis, found " +
               describe(*noise));
  return fits;
}

// Reads the rate and the shared axes. Returns whether elements are dropped.
bool readDropped(LayerBuilder &layer, Value x, double &rate, SmallVectorImpl<int64_t> &shared) {
  bool shares = x && readShared(layer, x, shared), rated = readRate(layer, rate);
  return shares && rated && rate != 0;
}

Value buildDropout(LayerBuilder &layer) {
  Value x = layer.toFloat(layer.input());
  double rate;
  SmallVector<int64_t> shared;
  if (!readDropped(layer, x, rate, shared))
    return x;
  return make<mt::DropoutOp>(layer, x, "rate", rate, shared);
}

template <int64_t axes> Value buildSpatialDropout(LayerBuilder &layer) {
  Value x = layer.channelsLast(layer.toFloat(layer.input(axes + 2)));
  double rate;
  layer.config.expectAbsent({"noise_shape"});
  if (!readRate(layer, rate) || !x || rate == 0)
    return layer.ownOrder(x);
  static constexpr int64_t shared[] = {1, 2, 3};
  return layer.ownOrder(make<mt::DropoutOp>(layer, x, "rate", rate, ArrayRef(shared).take_front(axes)));
}

Value buildGaussianDropout(LayerBuilder &layer) {
  Value x = layer.toFloat(layer.input());
  double rate;
  if (!readRate(layer, rate) || !x || rate == 0)
    return x;
  return make<mt::GaussianDropoutOp>(layer, x, "rate", rate);
}

// Elements that are dropped become the least value of SELU; then mean and variance become the same as before.
Value buildAlphaDropout(LayerBuilder &layer) {
  Value x = layer.toFloat(layer.input());
  double rate;
  SmallVector<int64_t> shared;
  if (!readDropped(layer, x, rate, shared))
    return x;
  constexpr double least = -1.6732632423543772848170429916717 * 1.0507009873554804934193349852946;
  double a = 1 / std::sqrt((1 - rate) * (1 + rate * least * least)), b = -a * least * rate;
  Value one = mt::ConstantOp::create(layer.builder, layer.location, 1.0f);
  Value ones = mt::BroadcastOp::create(layer.builder, layer.location, layer.typeOf(x), one);
  mt::Expr kept = layer.expr(make<mt::DropoutOp>(layer, ones, "rate", rate, shared)) > 0.0;
  Value changed = (select(kept, layer.expr(x), least) * a + b).value();
  return layer.made<mt::WhileTrainingOp>({changed, x}, {}, x.getType());
}

Value buildGaussianNoise(LayerBuilder &layer) {
  Value x = layer.toFloat(layer.input());
  double deviation = layer.config.real("stddev");
  layer.config.ignore({"seed"});
  if (deviation < 0)
    return layer.fail("expected a stddev of 0 or more, found " + std::to_string(deviation));
  return x && deviation > 0 ? make<mt::GaussianNoiseOp>(layer, x, "stddev", deviation) : x;
}

} // namespace

llvm::ArrayRef<LayerEntry> noiseLayers() {
  static constexpr LayerEntry entries[] = {{"Dropout", buildDropout},
                                           {"SpatialDropout1D", buildSpatialDropout<1>},
                                           {"SpatialDropout2D", buildSpatialDropout<2>},
                                           {"SpatialDropout3D", buildSpatialDropout<3>},
                                           {"AlphaDropout", buildAlphaDropout},
                                           {"GaussianDropout", buildGaussianDropout},
                                           {"GaussianNoise", buildGaussianNoise}};
  return entries;
}

} // namespace mtc::keras
