// SPDX-License-Identifier: Apache-2.0
//
// Resizing and cropping of images.
#ifndef FRONTEND_KERAS_LAYERS_RESIZING_H
#define FRONTEND_KERAS_LAYERS_RESIZING_H

#include "frontend/keras/LayerBuilder.h"

namespace mtc::keras {

// Resizes images [?, H, W, C] to [?, height, width, C], with pixels as areas: Keras' ops.image.resize with the
// interpolation nearest, bilinear, bicubic, lanczos3 or lanczos5. Emits an error and returns null for another
// interpolation.
mlir::Value resizeImages(LayerBuilder &layer, mlir::Value images, int64_t height, int64_t width,
                         const std::string &interpolation, bool antialias = false);

// A box of the images.
mlir::Value cropImages(LayerBuilder &layer, mlir::Value images, int64_t top, int64_t left, int64_t height,
                       int64_t width);
// The largest centered box of the images with the aspect ratio height / width.
mlir::Value cropToAspect(LayerBuilder &layer, mlir::Value images, int64_t height, int64_t width);

} // namespace mtc::keras

#endif
