// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/Resize.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace mtrun {
namespace {

// The two input rows (or columns) between which an output row lies.
struct Between {
  uint32_t lower, upper;
  float share; // weight of the upper row
};

Between between(uint32_t index, uint32_t from, float scale) {
  float at = (static_cast<float>(index) + 0.5f) * scale - 0.5f, below = std::floor(at);
  auto clamp = [&](float value) {
    return static_cast<uint32_t>(std::clamp(value, 0.0f, static_cast<float>(from - 1)));
  };
  return {clamp(below), clamp(std::ceil(at)), at - below};
}

} // namespace

void resizeBilinear(const uint8_t *from, uint32_t height, uint32_t width, uint32_t channels, float *to,
                    uint32_t toHeight, uint32_t toWidth) {
  uint64_t stride = uint64_t(width) * channels;
  if (height == toHeight && width == toWidth) {
    for (uint64_t i = 0; i < stride * height; ++i)
      to[i] = from[i];
    return;
  }
  static thread_local std::vector<Between> columns;
  columns.resize(toWidth);
  float down = static_cast<float>(height) / static_cast<float>(toHeight);
  float across = static_cast<float>(width) / static_cast<float>(toWidth);
  for (uint32_t x = 0; x < toWidth; ++x) {
    columns[x] = between(x, width, across);
    columns[x].lower *= channels;
    columns[x].upper *= channels;
  }
  for (uint32_t y = 0; y < toHeight; ++y) {
    Between rows = between(y, height, down);
    const uint8_t *above = from + rows.lower * stride, *below = from + rows.upper * stride;
    for (const Between &column : columns)
      for (uint32_t c = 0; c < channels; ++c) {
        float topLeft = above[column.lower + c], topRight = above[column.upper + c];
        float bottomLeft = below[column.lower + c], bottomRight = below[column.upper + c];
        float top = topLeft + (topRight - topLeft) * column.share;
        float bottom = bottomLeft + (bottomRight - bottomLeft) * column.share;
        *to++ = top + (bottom - top) * rows.share;
      }
  }
}

} // namespace mtrun
