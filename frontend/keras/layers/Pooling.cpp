// SPDX-License-Identifier: Apache-2.0
#include "frontend/keras/Window.h"
#include "frontend/keras/layers/Logically.h"

using namespace mlir;

namespace mtc::keras {
namespace {

Value pool(LayerBuilder &layer, Value x, const Geometry &g, ArrayRef<int64_t> padding, mt::Reduction kind) {
  Builder &b = layer.builder;
  SmallVector<NamedAttribute> attributes = {b.getNamedAttr("kind", mt::ReductionAttr::get(b.getContext(), kind)),
                                            b.getNamedAttr("window", b.getDenseI64ArrayAttr(g.taps)),
                                            b.getNamedAttr("strides", b.getDenseI64ArrayAttr(g.strides)),
                                            b.getNamedAttr("padding", b.getDenseI64ArrayAttr(padding))};
  return layer.inferred<mt::PoolOp>({x}, attributes);
}

// For each output along one axis, the number of the window's taps that are inside the image.
SmallVector<int64_t> tapsInside(int64_t inputs, int64_t outputs, int64_t taps, int64_t stride, int64_t low) {
  SmallVector<int64_t> counts;
  for (int64_t o = 0; o < outputs; ++o) {
    int64_t first = o * stride - low;
    counts.push_back(std::min(first + taps, inputs) - std::max<int64_t>(first, 0));
  }
  return counts;
}

template <int64_t axes, bool average> Value buildPool(LayerBuilder &layer) {
  Value x = imagesOf<axes>(layer);
  if (!x)
    return {};
  Geometry g = readGeometry<axes>(layer, "pool_size", x);
  if (layer.config.failed())
    return {};
  std::optional<SmallVector<int64_t>> padding = paddingOf(layer, x, g);
  Value y = padding ? pool(layer, x, g, *padding, average ? mt::Reduction::sum : mt::Reduction::max) : Value();
  if (!y || !average)
    return fromImages<axes>(layer, y);
  // The padding does not count: multiplies by 1 / (number of taps inside), [OH, OW, 1].
  ArrayRef<int64_t> from = layer.shapeOf(x), to = layer.shapeOf(y);
  if (to[1] * to[2] > maxFactor * 64)
    return layer.fail("expected at most 2^26 windows, found " + std::to_string(to[1] * to[2]));
  SmallVector<int64_t> rows = tapsInside(from[1], to[1], g.taps[0], g.strides[0], (*padding)[0]),
                       columns = tapsInside(from[2], to[2], g.taps[1], g.strides[1], (*padding)[2]);
  auto shared = [](ArrayRef<int64_t> counts) { return llvm::all_equal(counts); };
  if (shared(rows) && shared(columns))
    return fromImages<axes>(layer, (layer.expr(y) / double(rows[0] * columns[0])).value());
  std::vector<float> weights;
  for (int64_t row : rows)
    for (int64_t column : columns)
      weights.push_back(1.0f / static_cast<float>(row * column));
  auto type = RankedTensorType::get({to[1], to[2], 1}, layer.builder.getF32Type());
  return fromImages<axes>(
      layer, layer.binary<mt::MulOp>(y, layer.constant(DenseElementsAttr::get(type, ArrayRef<float>(weights)))));
}

template <bool average> Value buildPool3D(LayerBuilder &layer) {
  Value x = imagesOf<3>(layer);
  if (!x)
    return {};
  Geometry g = readGeometry<3>(layer, "pool_size", x);
  std::optional<SmallVector<int64_t>> padding = layer.config.failed() ? std::nullopt : paddingOf(layer, x, g);
  Value y = !padding ? Value() : builtLogically(layer, [&](logical::Ops &ops) {
    return imagesLast(logical::pool(ops, average ? mt::Reduction::sum : mt::Reduction::max, imagesFirst(ops, x),
                                    logicalWindows(g, *padding)));
  });
  // The padding does not count: multiplies by 1 / (number of taps inside) along each axis.
  for (size_t axis = 0; y && average && axis < 3; ++axis) {
    int64_t windows = layer.shapeOf(y)[axis + 1];
    if (windows > maxFactor)
      return layer.fail("expected at most 2^20 windows, found " + std::to_string(windows));
    std::vector<float> weights;
    for (int64_t taps :
         tapsInside(layer.shapeOf(x)[axis + 1], windows, g.taps[axis], g.strides[axis], (*padding)[2 * axis]))
      weights.push_back(1.0f / static_cast<float>(taps));
    SmallVector<int64_t> shape(4 - axis, 1);
    shape[0] = windows;
    auto type = RankedTensorType::get(shape, layer.builder.getF32Type());
    y = layer.binary<mt::MulOp>(y, layer.constant(DenseElementsAttr::get(type, ArrayRef<float>(weights))));
  }
  return fromImages<3>(layer, y);
}

template <int64_t axes, bool average> Value buildGlobal(LayerBuilder &layer) {
  Value x = layer.channelsLast(layer.toFloat(layer.input(axes + 2)));
  if (!x)
    return {};
  bool keep = layer.config.boolean("keepdims", false);
  SmallVector<int64_t> dims;
  int64_t count = 1;
  for (int64_t axis = 1; axis <= axes; ++axis) {
    dims.push_back(axis);
    count *= layer.shapeOf(x)[axis];
  }
  // The average is over the steps that a mask selects.
  Value mask = average && axes == 1 ? layer.inputMask() : Value();
  if (mask)
    x = select(unsqueezeLast(layer.expr(mask)), layer.expr(x), 0.0).value();
  Value y =
      mt::ReduceOp::create(layer.builder, layer.location, average ? mt::Reduction::sum : mt::Reduction::max, x, dims);
  if (mask)
    y = (layer.expr(y) / sumLast(toFloat(layer.expr(mask)))).value();
  else if (average)
    y = (layer.expr(y) / double(count)).value();
  SmallVector<int64_t> shape(static_cast<size_t>(axes) + 2, 1);
  shape.front() = ShapedType::kDynamic;
  shape.back() = layer.shapeOf(x).back();
  return keep ? layer.ownOrder(layer.reshape(y, shape)) : y;
}

} // namespace

llvm::ArrayRef<LayerEntry> poolingLayers() {
  static constexpr LayerEntry entries[] = {{"MaxPooling1D", buildPool<1, false>},
                                           {"MaxPooling2D", buildPool<2, false>},
                                           {"AveragePooling1D", buildPool<1, true>},
                                           {"AveragePooling2D", buildPool<2, true>},
                                           {"MaxPooling3D", buildPool3D<false>},
                                           {"AveragePooling3D", buildPool3D<true>},
                                           {"GlobalMaxPooling1D", buildGlobal<1, false>},
                                           {"GlobalMaxPooling2D", buildGlobal<2, false>},
                                           {"GlobalAveragePooling1D", buildGlobal<1, true>},
                                           {"GlobalAveragePooling2D", buildGlobal<2, true>},
                                           {"GlobalMaxPooling3D", buildGlobal<3, false>},
                                           {"GlobalAveragePooling3D", buildGlobal<3, true>}};
  return entries;
}

} // namespace mtc::keras
