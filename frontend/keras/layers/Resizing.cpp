// SPDX-License-Identifier: Apache-2.0
#include "frontend/keras/layers/Resizing.h"

#include "frontend/keras/LayerTable.h"

#include <cmath>

using namespace mlir;
using mlir::mt::Expr;

namespace mtc::keras {
namespace {

// The weighted inputs of each output along an axis: for tap t, slice ids[t][o] times weights[t][o].
struct Taps {
  std::vector<std::vector<int32_t>> ids;
  std::vector<std::vector<float>> weights;
};

double sinc(double x) { return x == 0 ? 1 : std::sin(M_PI * x) / (M_PI * x); }
double lanczos(double x, double radius) { return x < radius ? sinc(x) * sinc(x / radius) : 0; }

struct Kernel {
  const char *name;
  double (*weight)(double distance);
};
// The cubic kernel is that of Keys with a = -1/2.
constexpr Kernel kernels[] = {
    {"bilinear", [](double x) { return std::max(0.0, 1 - x); }},
    {"bicubic",
     [](double x) { return x < 1   ? (1.5 * x - 2.5) * x * x + 1
                           : x < 2 ? ((-0.5 * x + 2.5) * x - 4) * x + 2
                                   : 0; }},
    {"lanczos3", [](double x) { return lanczos(x, 3); }},
    {"lanczos5", [](double x) { return lanczos(x, 5); }}};

Taps nearestTaps(int64_t from, int64_t to) {
  Taps taps{{{}}, {}};
  for (int64_t o = 0; o < to; ++o)
    taps.ids[0].push_back(static_cast<int32_t>(
        std::floor((static_cast<float>(o) + 0.5f) * static_cast<float>(from) / static_cast<float>(to))));
  return taps;
}

// Weights outside of the image are left out, and the others are divided by their sum.
Taps kernelTaps(const Kernel &kernel, int64_t from, int64_t to, bool antialias) {
  double step = double(from) / double(to), spread = antialias ? std::max(step, 1.0) : 1;
  std::vector<std::vector<std::pair<int64_t, double>>> tapLists(static_cast<size_t>(to));
  size_t most = 1;
  for (int64_t o = 0; o < to; ++o) {
    double at = (double(o) + 0.5) * step - 0.5, sum = 0;
    auto &list = tapLists[static_cast<size_t>(o)];
    int64_t reach = static_cast<int64_t>(std::ceil(5 * spread)), middle = static_cast<int64_t>(std::floor(at));
    for (int64_t i = std::max<int64_t>(middle - reach, 0); i <= std::min(middle + reach + 1, from - 1); ++i)
      if (double weight = kernel.weight(std::fabs(at - double(i)) / spread); weight != 0) {
        list.push_back({i, weight});
        sum += weight;
      }
    for (auto &[i, weight] : list)
      weight /= sum;
    most = std::max(most, list.size());
  }
  Taps taps;
  for (size_t t = 0; t < most; ++t) {
    auto &ids = taps.ids.emplace_back();
    auto &weights = taps.weights.emplace_back();
    for (const auto &list : tapLists) {
      auto [i, weight] = t < list.size() ? list[t] : std::pair(list.back().first, 0.0);
      ids.push_back(static_cast<int32_t>(i));
      weights.push_back(static_cast<float>(weight));
    }
  }
  return taps;
}

// Resizes axis 1 or 2.
Value resizeAxis(LayerBuilder &layer, Value x, int64_t axis, int64_t to, const Kernel *kernel, bool antialias) {
  int64_t from = layer.shapeOf(x)[axis];
  if (from == to)
    return x;
  Taps taps = kernel ? kernelTaps(*kernel, from, to, antialias) : nearestTaps(from, to);
  SmallVector<int64_t> shape(axis == 1 ? 3 : 2, 1);
  shape[0] = to;
  Value sum;
  for (size_t t = 0; t < taps.ids.size(); ++t) {
    Value ids = layer.constant(DenseElementsAttr::get(RankedTensorType::get({to}, layer.builder.getI32Type()),
                                                      ArrayRef<int32_t>(taps.ids[t])));
    Value part = mt::TakeOp::create(layer.builder, layer.location, x, ids, axis);
    if (!taps.weights.empty()) {
      auto type = RankedTensorType::get(shape, layer.builder.getF32Type());
      part =
          layer.binary<mt::MulOp>(part, layer.constant(DenseElementsAttr::get(type, ArrayRef<float>(taps.weights[t]))));
    }
    sum = sum ? layer.binary<mt::AddOp>(sum, part) : part;
  }
  return sum;
}

// Half of the difference of two sizes.
int64_t margin(int64_t whole, int64_t part) { return (whole - part) / 2; }
// Keras computes this in double precision and truncates.
int64_t proportional(int64_t size, int64_t numerator, int64_t denominator) {
  return static_cast<int64_t>(double(size * numerator) / double(denominator));
}

// Pads with a value to the aspect ratio height / width.
Value padToAspect(LayerBuilder &layer, Value x, int64_t height, int64_t width, double fill) {
  int64_t h = layer.shapeOf(x)[1], w = layer.shapeOf(x)[2];
  int64_t top = margin(std::max(h, proportional(w, height, width)), h),
          left = margin(std::max(w, proportional(h, width, height)), w);
  if (top == 0 && left == 0)
    return x;
  SmallVector<int64_t> border = {top, top > 0 ? 0 : left, 0};
  return layer.inferred<mt::PadOp>(
      {x}, {layer.integers("low", border), layer.integers("high", border), layer.number("value", fill)});
}

Value buildResizing(LayerBuilder &layer) {
  Value x = layer.channelsLast(layer.toFloat(layer.input(4)));
  int64_t height = layer.size("height", maxFactor), width = layer.size("width", maxFactor);
  std::string interpolation = layer.config.text("interpolation", "bilinear");
  bool crop = layer.config.boolean("crop_to_aspect_ratio", false),
       pad = layer.config.boolean("pad_to_aspect_ratio", false);
  bool antialias = layer.config.boolean("antialias", false);
  layer.config.expect("fill_mode", "constant");
  double fill = layer.config.real("fill_value", 0);
  layer.config.ignore({"bounding_box_format", "factor"});
  if (crop && pad)
    layer.fail("expected one of crop_to_aspect_ratio and pad_to_aspect_ratio, found both");
  if (!x || layer.config.failed())
    return {};
  x = crop ? cropToAspect(layer, x, height, width) : pad ? padToAspect(layer, x, height, width, fill) : x;
  return x ? layer.ownOrder(resizeImages(layer, x, height, width, interpolation, antialias)) : x;
}

} // namespace

Value resizeImages(LayerBuilder &layer, Value images, int64_t height, int64_t width, const std::string &interpolation,
                   bool antialias) {
  const Kernel *kernel = nullptr;
  for (const Kernel &known : kernels)
    if (interpolation == known.name)
      kernel = &known;
  if (!kernel && interpolation != "nearest")
    return layer.fail("expected an interpolation of nearest, bilinear, bicubic, lanczos3 and lanczos5, found '" +
                      interpolation + "'");
  return resizeAxis(layer, resizeAxis(layer, images, 1, height, kernel, antialias), 2, width, kernel, antialias);
}

Value cropImages(LayerBuilder &layer, Value images, int64_t top, int64_t left, int64_t height, int64_t width) {
  return layer.inferred<mt::SliceOp>({images},
                                     {layer.integers("starts", {top, left, 0}),
                                      layer.integers("sizes", {height, width, layer.shapeOf(images).back()})});
}

Value cropToAspect(LayerBuilder &layer, Value images, int64_t height, int64_t width) {
  int64_t h = layer.shapeOf(images)[1], w = layer.shapeOf(images)[2];
  int64_t ch = std::clamp<int64_t>(proportional(w, height, width), 1, h),
          cw = std::clamp<int64_t>(proportional(h, width, height), 1, w);
  return cropImages(layer, images, margin(h, ch), margin(w, cw), ch, cw);
}

llvm::ArrayRef<LayerEntry> resizingLayers() {
  static constexpr LayerEntry entries[] = {{"Resizing", buildResizing}};
  return entries;
}

} // namespace mtc::keras
