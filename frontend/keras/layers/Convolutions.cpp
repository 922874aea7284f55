// SPDX-License-Identifier: Apache-2.0
//
// Convolutions over one, two or three axes.
#include "frontend/keras/Window.h"
#include "frontend/keras/layers/Logically.h"

using namespace mlir;

namespace mtc::keras {

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

namespace {

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
template <int64_t axes> Value buildTransposed(LayerBuilder &layer) {
  Value x = imagesOf<axes>(layer);
  if (!x)
    return {};
  int64_t filters = layer.size("filters"), channels = layer.shapeOf(x).back();
  Geometry g = readGeometry<axes>(layer, "kernel_size", x);
  if (layer.config.failed())
    return {};
  SmallVector<int64_t> shape(g.taps.end() - axes, g.taps.end());
  shape.append({filters, channels});
  Value kernel = layer.variable("kernel", shape, "kernel_initializer");
  std::optional<TransposedSizes> made = transposedSizes(layer, g, layer.shapeOf(x).slice(1, 2), axes);
  if (!kernel || !made)
    return {};
  kernel = layer.reshape(kernel, {g.taps[0], g.taps[1], filters, channels});
  SmallVector<int64_t> sizes = {ShapedType::kDynamic}, padding;
  for (size_t axis : {0, 1}) {
    sizes.push_back(made->sizes[axis]);
    padding.append({made->low[axis], made->high[axis]});
  }
  sizes.push_back(filters);
  Builder &b = layer.builder;
  SmallVector<NamedAttribute> attributes = {b.getNamedAttr("strides", b.getDenseI64ArrayAttr(g.strides)),
                                            b.getNamedAttr("padding", b.getDenseI64ArrayAttr(padding)),
                                            b.getNamedAttr("dilation", b.getDenseI64ArrayAttr(g.dilation))};
  Value y =
      layer.made<mt::Conv2DInputGradientOp>({x, kernel}, attributes, RankedTensorType::get(sizes, b.getF32Type()));
  return activate(layer, fromImages<axes>(layer, layer.addBias(y, filters)));
}

// Over three axes: the kernel [KD, KH, KW, C / groups, F], or [.., F, C] of a transposed one, as [F, C / groups, ..].
logical::Value kernelFirst(logical::Ops &ops, Value kernel) {
  return logical::transpose(ops.value(kernel), {4, 3, 0, 1, 2});
}

Value buildConv3D(LayerBuilder &layer) {
  Value x = imagesOf<3>(layer);
  if (!x)
    return {};
  int64_t filters = layer.size("filters"), channels = layer.shapeOf(x).back(),
          groups = readGroups(layer, channels, filters);
  Geometry g = readGeometry<3>(layer, "kernel_size", x);
  std::optional<SmallVector<int64_t>> padding =
      groups && !layer.config.failed() ? paddingOf(layer, x, g) : std::nullopt;
  if (!padding)
    return {};
  SmallVector<int64_t> shape = g.taps;
  shape.append({channels / groups, filters});
  Value kernel = layer.variable("kernel", shape, "kernel_initializer");
  Value y = !kernel ? kernel : builtLogically(layer, [&](logical::Ops &ops) {
    logical::Windows windows = logicalWindows(g, *padding);
    windows.groups = groups;
    return imagesLast(logical::convolution(ops, imagesFirst(ops, x), kernelFirst(ops, kernel), windows));
  });
  return y ? activate(layer, fromImages<3>(layer, layer.addBias(y, filters))) : y;
}

Value buildTransposed3D(LayerBuilder &layer) {
  Value x = imagesOf<3>(layer);
  if (!x)
    return {};
  int64_t filters = layer.size("filters"), channels = layer.shapeOf(x).back();
  Geometry g = readGeometry<3>(layer, "kernel_size", x);
  if (layer.config.failed())
    return {};
  SmallVector<int64_t> shape = g.taps;
  shape.append({filters, channels});
  Value kernel = layer.variable("kernel", shape, "kernel_initializer");
  std::optional<TransposedSizes> made = transposedSizes(layer, g, layer.shapeOf(x).slice(1, 3), 3);
  if (!kernel || !made)
    return {};
  Value y = builtLogically(layer, [&](logical::Ops &ops) {
    logical::Windows windows = logicalWindows(g, {});
    windows.low = made->low;
    windows.high = made->high;
    return imagesLast(
        logical::transposedConvolution(ops, imagesFirst(ops, x), kernelFirst(ops, kernel), windows, made->sizes));
  });
  return y ? activate(layer, fromImages<3>(layer, layer.addBias(y, filters))) : y;
}

} // namespace

llvm::ArrayRef<LayerEntry> convolutionLayers() {
  static constexpr LayerEntry entries[] = {{"Conv1D", buildConv<1>},
                                           {"Conv2D", buildConv<2>},
                                           {"DepthwiseConv1D", buildDepthwise<1>},
                                           {"DepthwiseConv2D", buildDepthwise<2>},
                                           {"SeparableConv1D", buildSeparable<1>},
                                           {"SeparableConv2D", buildSeparable<2>},
                                           {"Conv1DTranspose", buildTransposed<1>},
                                           {"Conv2DTranspose", buildTransposed<2>},
                                           {"Conv3D", buildConv3D},
                                           {"Conv3DTranspose", buildTransposed3D}};
  return entries;
}

} // namespace mtc::keras
