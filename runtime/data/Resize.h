// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace mtrun {

// Bilinear interpolation in f32 with pixel centres at 0.5 and without anti-aliasing, as tf.image.resize and Keras'
// image_dataset_from_directory compute it. `from`: height x width x channels bytes; `to`: toHeight x toWidth x
// channels. If the sizes are equal, the bytes are copied.
void resizeBilinear(const uint8_t *from, uint32_t height, uint32_t width, uint32_t channels, float *to,
                    uint32_t toHeight, uint32_t toWidth);

} // namespace mtrun
