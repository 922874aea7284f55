// SPDX-License-Identifier: Apache-2.0
//
// Preprocessing with constants.
#include "frontend/keras/LayerTable.h"

using namespace mlir;

namespace mtc::keras {

// Reads a number, or flattens a nested list of numbers.
static bool readNumbers(const Json &value, SmallVector<float> &numbers) {
  if (value.is_number()) {
    numbers.push_back(value.get<float>());
    return true;
  }
  return value.is_array() && llvm::all_of(value, [&](const Json &item) { return readNumbers(item, numbers); });
}

// Reads an option that is a scalar, or a vector over the last axis.
static Value readVector(LayerBuilder &layer, llvm::StringRef key, double fallback, int64_t channels) {
  SmallVector<float> numbers;
  const Json *value = layer.config.find(key);
  if (!value)
    numbers.push_back(static_cast<float>(fallback));
  else if (!readNumbers(*value, numbers) || (numbers.size() != 1 && numbers.size() != static_cast<size_t>(channels)))
    return layer.fail("expected " + key.str() + " to be a number or " + std::to_string(channels) + " numbers, found " +
                      describe(*value));
  SmallVector<int64_t> shape;
  if (numbers.size() > 1)
    shape.push_back(channels);
  return layer.constant(
      DenseElementsAttr::get(RankedTensorType::get(shape, layer.builder.getF32Type()), ArrayRef<float>(numbers)));
}

static Value buildRescaling(LayerBuilder &layer) {
  Value x = layer.toFloat(layer.input());
  if (!x)
    return {};
  int64_t channels = layer.shapeOf(x).back();
  Value scale = readVector(layer, "scale", 1, channels), offset = readVector(layer, "offset", 0, channels);
  return layer.binary<mt::AddOp>(layer.binary<mt::MulOp>(x, scale), offset);
}

// (x - mean) / max(sqrt(variance), epsilon), per element of the axes; numbers in the config are per element of the last
// axis.
static Value buildNormalization(LayerBuilder &layer) {
  Value x = layer.toFloat(layer.input());
  if (!x)
    return {};
  int64_t rank = layer.typeOf(x).getRank(), channels = layer.shapeOf(x).back();
  SmallVector<int64_t> axes;
  if (const Json *axis = layer.config.find("axis"))
    axes = layer.config.integers("axis", axis->is_array() ? -1 : 1);
  std::optional<SmallVector<int64_t>> ownAxes = axes.empty() ? SmallVector<int64_t>() : sampleAxes(layer, x, axes);
  if (!ownAxes)
    return {};
  Value mean, variance;
  if (layer.config.find("mean")) {
    if (ownAxes->size() > 1 || (ownAxes->size() == 1 && ownAxes->front() != rank - 1))
      return layer.fail("expected mean and variance for the last axis or for all, found another axis: adapt() the "
                        "layer to data instead");
    mean = readVector(layer, "mean", 0, channels);
    variance = readVector(layer, "variance", 1, channels);
  } else {
    SmallVector<int64_t> shape, broadcastShape;
    for (int64_t axis : *ownAxes)
      shape.push_back(layer.shapeOf(x)[axis]);
    // Shape that broadcasts to a sample: sizes from the first of the axes on.
    for (int64_t axis = ownAxes->empty() ? rank : ownAxes->front(); axis < rank; ++axis)
      broadcastShape.push_back(llvm::is_contained(*ownAxes, axis) ? layer.shapeOf(x)[axis] : 1);
    mean = layer.variable("mean", shape, "", false);
    variance = layer.constantVariable("variance", shape, 1, false);
    if (!mean || !variance)
      return {};
    mean = layer.reshape(mean, broadcastShape);
    variance = layer.reshape(variance, broadcastShape);
    layer.skipVariable(); // the number of samples of the statistics
    layer.config.ignore({"variance"});
  }
  bool invert = layer.config.boolean("invert", false);
  if (!mean || !variance)
    return {};
  constexpr double epsilon = 1e-7;
  mt::Expr deviation = maximum(sqrt(layer.expr(variance)), epsilon);
  return (invert ? layer.expr(mean) + layer.expr(x) * deviation : (layer.expr(x) - layer.expr(mean)) / deviation)
      .value();
}

llvm::ArrayRef<LayerEntry> scalingLayers() {
  static constexpr LayerEntry entries[] = {{"Rescaling", buildRescaling}, {"Normalization", buildNormalization}};
  return entries;
}

} // namespace mtc::keras
