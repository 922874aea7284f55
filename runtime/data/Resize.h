// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace mtrun {

// Bilinear, pixel centres at halves, no anti-aliasing, in f32: what tf.image.resize and Keras' loader of folders
// compute. `from`: height x width x channels bytes; `to`: toHeight x toWidth x channels. The same size: the bytes as
// they are.
void resizeBilinear(const uint8_t *from, uint32_t height, uint32_t width, uint32_t channels, float *to,
                    uint32_t toHeight, uint32_t toWidth);

} // namespace mtrun
