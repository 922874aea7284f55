// SPDX-License-Identifier: Apache-2.0
//
// Layers that act while training only. Their random numbers are ours (Philox), so Keras' bits cannot be met.
#include "frontend/keras/LayerTable.h"

using namespace mlir;

namespace mtc::keras {
namespace {

template <typename Op> Value make(LayerBuilder &layer, Value x, llvm::StringRef amount, double value, ArrayRef<int64_t> shared = {}) {
  SmallVector<NamedAttribute> attributes = {layer.builder.getNamedAttr("stream", layer.builder.getStringAttr(layer.stream())),
                                            layer.number(amount, value)};
  if (!shared.empty())
    attributes.push_back(layer.integers("shared", shared));
  return layer.made<Op>({x}, attributes, x.getType());
}

// A rate from 0 to less than 1.
bool readRate(LayerBuilder &layer, double &rate) {
  rate = layer.config.real("rate");
  layer.config.ignore({"seed"});
  if (rate >= 0 && rate < 1)
    return true;
  layer.fail("expected a rate from 0 to less than 1, found " + std::to_string(rate));
  return false;
}

Value buildDropout(LayerBuilder &layer) {
  Value x = layer.toFloat(layer.input());
  double rate;
  layer.config.expectAbsent({"noise_shape"});
  if (!readRate(layer, rate) || !x || rate == 0)
    return x;
  return make<mt::DropoutOp>(layer, x, "rate", rate);
}

template <int64_t axes> Value buildSpatialDropout(LayerBuilder &layer) {
  Value x = layer.toFloat(layer.input(axes + 2));
  double rate;
  layer.expectChannelsLast();
  layer.config.expectAbsent({"noise_shape"});
  if (!readRate(layer, rate) || !x || rate == 0)
    return x;
  static constexpr int64_t shared[] = {1, 2};
  return make<mt::DropoutOp>(layer, x, "rate", rate, ArrayRef(shared).take_front(axes));
}

Value buildGaussianDropout(LayerBuilder &layer) {
  Value x = layer.toFloat(layer.input());
  double rate;
  if (!readRate(layer, rate) || !x || rate == 0)
    return x;
  return make<mt::GaussianDropoutOp>(layer, x, "rate", rate);
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
                                           {"GaussianDropout", buildGaussianDropout},
                                           {"GaussianNoise", buildGaussianNoise}};
  return entries;
}

} // namespace mtc::keras
