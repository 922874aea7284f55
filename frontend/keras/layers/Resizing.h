// SPDX-License-Identifier: Apache-2.0
//
// Images in other sizes, and at other positions.
#ifndef FRONTEND_KERAS_LAYERS_RESIZING_H
#define FRONTEND_KERAS_LAYERS_RESIZING_H

#include "frontend/keras/LayerBuilder.h"

namespace mtc::keras {

// Images [?, H, W, C] as [?, height, width, C], pixels being areas: Keras' ops.image.resize by the interpolation
// nearest, bilinear, bicubic, lanczos3 or lanczos5. Null and an error for another.
mlir::Value resizeImages(LayerBuilder &layer, mlir::Value images, int64_t height, int64_t width,
                         const std::string &interpolation, bool antialias = false);

// A box of the images.
mlir::Value cropImages(LayerBuilder &layer, mlir::Value images, int64_t top, int64_t left, int64_t height,
                       int64_t width);
// The largest box of the images with these proportions, from their middle.
mlir::Value cropToAspect(LayerBuilder &layer, mlir::Value images, int64_t height, int64_t width);

} // namespace mtc::keras

#endif
