// SPDX-License-Identifier: Apache-2.0
#include "frontend/keras/Window.h"

using namespace mlir;

namespace mtc::keras {

Geometry readGeometry(LayerBuilder &layer, llvm::StringRef window, int64_t axes) {
  Geometry g;
  size_t count = std::max<size_t>(static_cast<size_t>(axes), 2);
  for (SmallVector<int64_t> *values : {&g.taps, &g.strides, &g.dilation})
    values->assign(count, 1);
  auto read = [&](llvm::StringRef key, SmallVector<int64_t> &values) {
    SmallVector<int64_t> sizes = layer.sizes(key, axes);
    for (size_t i = 0; i < sizes.size() && i < count; ++i)
      values[count - sizes.size() + i] = sizes[i];
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
  for (size_t axis = 0; axis < g.taps.size(); ++axis) {
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

logical::Windows logicalWindows(const Geometry &g, ArrayRef<int64_t> padding) {
  logical::Windows windows;
  windows.taps = g.taps;
  windows.strides = g.strides;
  windows.dilation = g.dilation;
  for (size_t i = 0; i < padding.size(); i += 2) {
    windows.low.push_back(padding[i]);
    windows.high.push_back(padding[i + 1]);
  }
  return windows;
}

std::optional<TransposedSizes> transposedSizes(LayerBuilder &layer, const Geometry &g, ArrayRef<int64_t> images,
                                               int64_t axes) {
  TransposedSizes made;
  SmallVector<int64_t> more;
  if (layer.config.find("output_padding"))
    more = layer.sizes("output_padding", axes, maxFactor, 0);
  more.insert(more.begin(), more.empty() ? 0 : images.size() - more.size(), 0);
  for (size_t axis = 0; axis < images.size(); ++axis) {
    int64_t reach = (g.taps[axis] - 1) * g.dilation[axis] + 1, stride = g.strides[axis], size = images[axis];
    int64_t total = g.same ? std::max<int64_t>(reach - stride, 0) : 0;
    bool own = axis + static_cast<size_t>(axes) >= images.size();
    if (!more.empty() && own) {
      // Keras' base size plus the output padding at the end; "same" pads by half of the kernel.
      int64_t wanted = more[axis], odd = g.same ? reach % 2 : reach;
      if (wanted >= stride) {
        layer.fail("expected output_padding of less than the stride " + std::to_string(stride) + ", found " +
                   std::to_string(wanted));
        return std::nullopt;
      }
      int64_t around = reach + odd - 2 + wanted,
              before = g.same ? std::min(around / 2 + around % 2, reach - 1) : reach - 1;
      made.sizes.push_back((size - 1) * stride + odd + wanted);
      made.low.push_back(reach - 1 - before);
      made.high.push_back(g.same ? std::max<int64_t>(reach - 1 - (around - before), 0) : 0);
      continue;
    }
    // "same" results in size * stride; "valid" adds the part of the kernel that exceeds the stride.
    made.sizes.push_back(g.same ? size * stride : size * stride + std::max<int64_t>(reach - stride, 0));
    made.low.push_back(total / 2);
    made.high.push_back(total - total / 2);
  }
  if (layer.config.failed())
    return std::nullopt;
  return made;
}

} // namespace mtc::keras
