// SPDX-License-Identifier: Apache-2.0
//
// Convolutions over one or two axes, channels last.
#include "frontend/keras/Window.h"

using namespace mlir;

namespace mtc::keras {
namespace {

// Convolution of images with this geometry; the kernel is [KH, KW, C / groups, F].
Value convolve(LayerBuilder &layer, Value x, Value kernel, const Geometry &g, int64_t groups) {
  std::optional<SmallVector<int64_t>> padding = paddingOf(layer, x, g);
  if (!padding || !kernel)
    return {};
  Builder &b = layer.builder;
  SmallVector<NamedAttribute> attributes = {b.getNamedAttr("strides", b.getDenseI64ArrayAttr(g.strides)),
                                            b.getNamedAttr("padding", b.getDenseI64ArrayAttr(*padding)),
                                            b.getNamedAttr("dilation", b.getDenseI64ArrayAttr(g.dilation)),
                                            b.getNamedAttr("groups", b.getI64IntegerAttr(groups))};
  return layer.inferred<mt::Conv2DOp>({x, kernel}, attributes);
}

int64_t readGroups(LayerBuilder &layer, int64_t channels, int64_t filters) {
  int64_t groups = layer.config.find("groups") ? layer.size("groups") : 1;
  if (channels % groups == 0 && filters % groups == 0)
    return groups;
  layer.fail("expected groups to divide " + std::to_string(channels) + " channels and " + std::to_string(filters) +
             " filters, found " + std::to_string(groups));
  return 0;
}

template <int64_t axes> Value buildConv(LayerBuilder &layer) {
  Value x = imagesOf<axes>(layer);
  if (!x)
    return {};
  int64_t filters = layer.size("filters"), channels = layer.shapeOf(x).back(),
          groups = readGroups(layer, channels, filters);
  Geometry g = readGeometry<axes>(layer, "kernel_size", x);
  if (!groups || layer.config.failed())
    return {};
  SmallVector<int64_t> shape(g.taps.end() - axes, g.taps.end());
  shape.append({channels / groups, filters});
  Value kernel = layer.variable("kernel", shape, "kernel_initializer");
  if (!kernel)
    return {};
  kernel = layer.reshape(kernel, {g.taps[0], g.taps[1], channels / groups, filters});
  return activate(layer, fromImages<axes>(layer, layer.addBias(convolve(layer, x, kernel, g, groups), filters)));
}

// Depthwise convolution with a kernel [KH, KW, C, m]: m results for each channel.
template <int64_t axes>
Value depthwise(LayerBuilder &layer, Value x, const Geometry &g, llvm::StringRef name, llvm::StringRef initializer) {
  int64_t channels = layer.shapeOf(x).back(),
          multiplier = layer.config.find("depth_multiplier") ? layer.size("depth_multiplier", maxFactor) : 1;
  SmallVector<int64_t> shape(g.taps.end() - axes, g.taps.end());
  shape.append({channels, multiplier});
  Value kernel = layer.variable(name, shape, initializer);
  return kernel
             ? convolve(layer, x, layer.reshape(kernel, {g.taps[0], g.taps[1], 1, channels * multiplier}), g, channels)
             : kernel;
}

template <int64_t axes> Value buildDepthwise(LayerBuilder &layer) {
  Value x = imagesOf<axes>(layer);
  if (!x)
    return {};
  Geometry g = readGeometry<axes>(layer, "kernel_size", x);
  layer.config.expectAbsent({"depthwise_constraint"});
  layer.config.ignore({"filters", "kernel_initializer", "groups"});
  if (layer.config.failed())
    return {};
  Value y = depthwise<axes>(layer, x, g, "kernel", "depthwise_initializer");
  return y ? activate(layer, fromImages<axes>(layer, layer.addBias(y, layer.shapeOf(y).back()))) : y;
}

template <int64_t axes> Value buildSeparable(LayerBuilder &layer) {
  Value x = imagesOf<axes>(layer);
  if (!x)
    return {};
  int64_t filters = layer.size("filters");
  Geometry g = readGeometry<axes>(layer, "kernel_size", x);
  layer.config.expectAbsent({"depthwise_constraint", "pointwise_constraint"});
  layer.config.expect("groups", 1);
  if (layer.config.failed())
    return {};
  Value y = depthwise<axes>(layer, x, g, "depthwise_kernel", "depthwise_initializer");
  if (!y)
    return {};
  int64_t channels = layer.shapeOf(y).back();
  SmallVector<int64_t> shape(static_cast<size_t>(axes), 1);
  shape.append({channels, filters});
  Value pointwise = layer.variable("pointwise_kernel", shape, "pointwise_initializer");
  if (!pointwise)
    return {};
  y = convolve(layer, y, layer.reshape(pointwise, {1, 1, channels, filters}), Geometry(), 1);
  return activate(layer, fromImages<axes>(layer, layer.addBias(y, filters)));
}

// Transposed convolution: the gradient of a convolution of larger images, with the sizes of Keras with JAX and
// TensorFlow.
Value buildTransposed(LayerBuilder &layer) {
  Value x = imagesOf<2>(layer);
  if (!x)
    return {};
  int64_t filters = layer.size("filters"), channels = layer.shapeOf(x).back();
  Geometry g = readGeometry<2>(layer, "kernel_size", x);
  if (layer.config.failed())
    return {};
  Value kernel = layer.variable("kernel", {g.taps[0], g.taps[1], filters, channels}, "kernel_initializer");
  if (!kernel)
    return {};
  SmallVector<int64_t> sizes = {ShapedType::kDynamic}, padding, more;
  if (layer.config.find("output_padding"))
    more = layer.sizes("output_padding", 2, maxFactor, 0);
  for (int64_t axis : {0, 1}) {
    int64_t reach = (g.taps[axis] - 1) * g.dilation[axis] + 1, stride = g.strides[axis],
            size = layer.shapeOf(x)[axis + 1];
    int64_t total = g.same ? std::max<int64_t>(reach - stride, 0) : 0;
    if (!more.empty()) {
      // Keras' base size plus the output padding at the end; "same" pads by half of the kernel.
      int64_t wanted = more[static_cast<size_t>(axis)], odd = g.same ? reach % 2 : reach;
      if (wanted >= stride)
        return layer.fail("expected output_padding of less than the stride " + std::to_string(stride) + ", found " +
                          std::to_string(wanted));
      int64_t around = reach + odd - 2 + wanted,
              before = g.same ? std::min(around / 2 + around % 2, reach - 1) : reach - 1;
      sizes.push_back((size - 1) * stride + odd + wanted);
      padding.append({reach - 1 - before, g.same ? std::max<int64_t>(reach - 1 - (around - before), 0) : 0});
      continue;
    }
    // "same" results in size * stride; "valid" adds the part of the kernel that exceeds the stride.
    sizes.push_back(g.same ? size * stride : size * stride + std::max<int64_t>(reach - stride, 0));
    padding.append({total / 2, total - total / 2});
  }
  sizes.push_back(filters);
  Builder &b = layer.builder;
  SmallVector<NamedAttribute> attributes = {b.getNamedAttr("strides", b.getDenseI64ArrayAttr(g.strides)),
                                            b.getNamedAttr("padding", b.getDenseI64ArrayAttr(padding)),
                                            b.getNamedAttr("dilation", b.getDenseI64ArrayAttr(g.dilation))};
  Value y =
      layer.made<mt::Conv2DInputGradientOp>({x, kernel}, attributes, RankedTensorType::get(sizes, b.getF32Type()));
  return activate(layer, layer.addBias(y, filters));
}

} // namespace

llvm::ArrayRef<LayerEntry> convolutionLayers() {
  static constexpr LayerEntry entries[] = {{"Conv1D", buildConv<1>},
                                           {"Conv2D", buildConv<2>},
                                           {"DepthwiseConv1D", buildDepthwise<1>},
                                           {"DepthwiseConv2D", buildDepthwise<2>},
                                           {"SeparableConv1D", buildSeparable<1>},
                                           {"SeparableConv2D", buildSeparable<2>},
                                           {"Conv2DTranspose", buildTransposed}};
  return entries;
}

} // namespace mtc::keras
