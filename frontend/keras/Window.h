// SPDX-License-Identifier: Apache-2.0
//
// Windows of convolutions and pools: converts Keras' options to attributes of mt ops. Sequences [?, L, C] are images of
// height 1.
#ifndef FRONTEND_KERAS_WINDOW_H
#define FRONTEND_KERAS_WINDOW_H

#include "frontend/keras/LayerTable.h"

namespace mtc::keras {

struct Geometry {
  llvm::SmallVector<int64_t> taps = {1, 1}, strides = {1, 1}, dilation = {1, 1}; // along H, W
  bool same = false, causal = false;
};

// The layer's single input as [?, H, W, C]; null after an error.
template <int64_t axes> mlir::Value imagesOf(LayerBuilder &layer) {
  mlir::Value x = layer.toFloat(layer.input(axes + 2));
  layer.expectChannelsLast();
  if (!x || axes == 2)
    return x;
  return layer.reshape(x, {mlir::ShapedType::kDynamic, 1, layer.shapeOf(x)[1], layer.shapeOf(x)[2]});
}

// Reshapes images to the layer's own axes.
template <int64_t axes> mlir::Value fromImages(LayerBuilder &layer, mlir::Value y) {
  return !y || axes == 2 ? y : layer.reshape(y, {mlir::ShapedType::kDynamic, layer.shapeOf(y)[2], layer.shapeOf(y)[3]});
}

Geometry readGeometry(LayerBuilder &layer, llvm::StringRef window, int64_t axes);
template <int64_t axes> Geometry readGeometry(LayerBuilder &layer, llvm::StringRef window, mlir::Value) {
  return readGeometry(layer, window, axes);
}

// [top, bottom, left, right] for images; emits an error and returns nullopt if the window does not fit.
std::optional<llvm::SmallVector<int64_t>> paddingOf(LayerBuilder &layer, mlir::Value images, const Geometry &geometry);

} // namespace mtc::keras

#endif
