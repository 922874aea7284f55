// SPDX-License-Identifier: Apache-2.0
//
// Windows of convolutions and pools: converts Keras' options to attributes of mt ops. Sequences [?, L, C] are images of
// height 1.
#ifndef FRONTEND_KERAS_WINDOW_H
#define FRONTEND_KERAS_WINDOW_H

#include "frontend/keras/LayerTable.h"
#include "frontend/logical/Compute.h"

namespace mtc::keras {

struct Geometry {
  llvm::SmallVector<int64_t> taps = {1, 1}, strides = {1, 1}, dilation = {1, 1}; // along H, W
  bool same = false, causal = false;
};

// The layer's single input as [?, H, W, C]; null after an error.
template <int64_t axes> mlir::Value imagesOf(LayerBuilder &layer) {
  mlir::Value x = layer.channelsLast(layer.toFloat(layer.input(axes + 2)));
  if (!x || axes != 1)
    return x;
  return layer.reshape(x, {mlir::ShapedType::kDynamic, 1, layer.shapeOf(x)[1], layer.shapeOf(x)[2]});
}

// Reshapes images to the layer's own axes.
template <int64_t axes> mlir::Value fromImages(LayerBuilder &layer, mlir::Value y) {
  bool wide = y && axes == 1;
  return layer.ownOrder(wide ? layer.reshape(y, {mlir::ShapedType::kDynamic, layer.shapeOf(y)[2], layer.shapeOf(y)[3]})
                             : y);
}

// The geometry of one or two axes lies along H and W, that of three axes along each of them.
Geometry readGeometry(LayerBuilder &layer, llvm::StringRef window, int64_t axes);
// The same with this padding, [low, high] of each axis, for values with logical shapes.
logical::Windows logicalWindows(const Geometry &geometry, llvm::ArrayRef<int64_t> padding);
template <int64_t axes> Geometry readGeometry(LayerBuilder &layer, llvm::StringRef window, mlir::Value) {
  return readGeometry(layer, window, axes);
}

// Sizes of the result of a transposed convolution, and the padding of the convolution whose gradient it is, along each
// axis.
struct TransposedSizes {
  llvm::SmallVector<int64_t> sizes, low, high;
};
// The last `axes` of the geometry's are the layer's own. None after an error.
std::optional<TransposedSizes> transposedSizes(LayerBuilder &layer, const Geometry &geometry,
                                               llvm::ArrayRef<int64_t> images, int64_t axes);

// [low, high] of each axis, such as [top, bottom, left, right]; emits an error and returns nullopt if the window does
// not fit.
std::optional<llvm::SmallVector<int64_t>> paddingOf(LayerBuilder &layer, mlir::Value images, const Geometry &geometry);

// Convolution of images with this geometry; the kernel is [KH, KW, C / groups, F]. Null after an error.
mlir::Value convolve(LayerBuilder &layer, mlir::Value images, mlir::Value kernel, const Geometry &geometry,
                     int64_t groups);

} // namespace mtc::keras

#endif
