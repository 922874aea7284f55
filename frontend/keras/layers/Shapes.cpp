// SPDX-License-Identifier: Apache-2.0
//
// Layers that only move elements.
#include "frontend/keras/LayerTable.h"

using namespace mlir;

namespace mtc::keras {

// Number of elements of a sample, at most 2^40 for an existing tensor.
static int64_t sampleSize(Value value) {
  int64_t size = 1;
  for (int64_t extent : LayerBuilder::shapeOf(value).drop_front())
    size *= extent;
  return size;
}

static Value buildFlatten(LayerBuilder &layer) {
  Value x = layer.channelsLast(layer.input());
  return x ? layer.reshape(x, {ShapedType::kDynamic, sampleSize(x)}) : x;
}

static Value buildReshape(LayerBuilder &layer) {
  Value x = layer.input();
  if (!x)
    return {};
  SmallVector<int64_t> shape = {ShapedType::kDynamic};
  int64_t known = 1, size = sampleSize(x), open = -1;
  for (int64_t extent : layer.config.integers("target_shape")) {
    if (extent == -1 && open < 0)
      open = static_cast<int64_t>(shape.size());
    else if (extent < 1 || __builtin_mul_overflow(known, extent, &known))
      return layer.fail("expected a target_shape of sizes, one of them -1 at most, found " + std::to_string(extent));
    shape.push_back(extent);
  }
  if (open >= 0 && size % known == 0)
    shape[static_cast<size_t>(open)] = size / known;
  if (open >= 0 ? size % known != 0 : size != known)
    return layer.fail("expected a target_shape of " + std::to_string(size) + " elements, found " +
                      std::to_string(known));
  if (shape.size() > 8)
    return layer.fail("expected at most 8 axes, found " + std::to_string(shape.size()));
  return layer.reshape(x, shape);
}

static Value buildPermute(LayerBuilder &layer) {
  Value x = layer.input();
  if (!x)
    return {};
  int64_t rank = layer.typeOf(x).getRank();
  SmallVector<int64_t> permutation = {0};
  SmallVector<bool> used(static_cast<size_t>(rank));
  for (int64_t axis : layer.config.integers("dims", rank - 1)) {
    if (axis < 1 || axis >= rank || used[static_cast<size_t>(axis)])
      return layer.fail("expected dims to be a permutation of 1 to " + std::to_string(rank - 1));
    used[static_cast<size_t>(axis)] = true;
    permutation.push_back(axis);
  }
  if (layer.config.failed())
    return {};
  return mt::TransposeOp::create(layer.builder, layer.location, x, permutation);
}

static Value buildRepeatVector(LayerBuilder &layer) {
  Value x = layer.input(2);
  if (!x)
    return {};
  int64_t times = layer.size("n"), width = layer.shapeOf(x)[1];
  Value one = layer.reshape(x, {ShapedType::kDynamic, 1, width});
  auto type = RankedTensorType::get({ShapedType::kDynamic, times, width}, layer.typeOf(x).getElementType());
  return times == 1 ? one : mt::BroadcastOp::create(layer.builder, layer.location, type, one).getResult();
}

llvm::ArrayRef<LayerEntry> shapeLayers() {
  static constexpr LayerEntry entries[] = {{"Flatten", buildFlatten},
                                           {"Reshape", buildReshape},
                                           {"Permute", buildPermute},
                                           {"RepeatVector", buildRepeatVector}};
  return entries;
}

} // namespace mtc::keras
