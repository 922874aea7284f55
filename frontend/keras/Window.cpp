// SPDX-License-Identifier: Apache-2.0
#include "frontend/keras/Window.h"

using namespace mlir;

namespace mtc::keras {

Geometry readGeometry(LayerBuilder &layer, llvm::StringRef window, int64_t axes) {
  Geometry g;
  auto read = [&](llvm::StringRef key, SmallVector<int64_t> &values) {
    SmallVector<int64_t> sizes = layer.sizes(key, axes);
    for (size_t i = 0; i < sizes.size() && i < 2; ++i)
      values[2 - sizes.size() + i] = sizes[i];
  };
  read(window, g.taps);
  if (layer.config.find("strides"))
    read("strides", g.strides);
  else if (window == "pool_size")
    g.strides = g.taps;
  if (layer.config.find("dilation_rate"))
    read("dilation_rate", g.dilation);
  std::string padding = layer.config.text("padding", "valid");
  g.same = padding == "same";
  g.causal = padding == "causal" && axes == 1;
  if (!g.same && !g.causal && padding != "valid")
    layer.fail("expected padding same or valid, found " + padding);
  return g;
}

std::optional<SmallVector<int64_t>> paddingOf(LayerBuilder &layer, Value images, const Geometry &g) {
  SmallVector<int64_t> padding;
  for (size_t axis : {0, 1}) {
    // Taps and dilations are at most 2^20.
    int64_t reach = (g.taps[axis] - 1) * g.dilation[axis] + 1, stride = g.strides[axis],
            size = layer.shapeOf(images)[axis + 1];
    int64_t total = 0;
    if (g.same)
      total = std::max<int64_t>(0, ((size + stride - 1) / stride - 1) * stride + reach - size);
    else if (g.causal && axis == 1)
      total = reach - 1;
    else if (reach > size) {
      layer.fail("expected windows of at most " + std::to_string(size) + " elements, the input's size, found " +
                 std::to_string(reach));
      return std::nullopt;
    }
    int64_t low = g.causal ? total : total / 2;
    padding.append({low, total - low});
  }
  return padding;
}

} // namespace mtc::keras
