// SPDX-License-Identifier: Apache-2.0
//
// Random augmentation of images during training; otherwise the images are unchanged. Random numbers are drawn for each
// sample by its index in the global batch, with Philox, so they differ from Keras'. Points outside of an image, and
// interpolation, are as in Keras with JAX.
#include "frontend/keras/LayerTable.h"
#include "frontend/keras/layers/Resizing.h"

using namespace mlir;
using mlir::mt::Expr;

namespace mtc::keras {
namespace {

Expr toInteger(const Expr &x) {
  return x.make(
      mt::CastOp::create(x.getBuilder(), x.getLocation(), x.type().clone(x.getBuilder().getI32Type()), x.value()));
}

class Augmentation {
public:
  // images() is the layer's input with the channels last; null after an error.
  explicit Augmentation(LayerBuilder &layer)
      : layer(layer), x(layer.channelsLast(layer.toFloat(layer.input(4)))), stream(layer.stream()) {
    layer.config.ignore({"seed"});
    layer.config.expectAbsent({"bounding_box_format"});
  }
  Value images() const { return x; }
  int64_t height() const { return layer.shapeOf(x)[1]; }
  int64_t width() const { return layer.shapeOf(x)[2]; }

  // A random number from `low` to `high` per sample, [?, 1, 1, 1] with `rank` axes; or, if rank is 0, one number for
  // the step, [1].
  Expr draw(llvm::StringRef what, double low, double high, size_t rank) {
    SmallVector<int64_t> shape(std::max<size_t>(rank, 1), 1);
    if (rank)
      shape[0] = batch;
    auto type = RankedTensorType::get(shape, layer.builder.getF32Type());
    Value step =
        mt::IterationOp::create(layer.builder, layer.location, RankedTensorType::get({}, layer.builder.getI32Type()));
    Expr u =
        layer.expr(mt::RandomUniformOp::create(layer.builder, layer.location, type, stream + "/" + what.str(), step));
    return u * (high - low) + low;
  }

  // `changed` during training, otherwise the images; in the layer's own order.
  Value finish(Value changed) { return finish(changed, x); }
  Value finish(Value changed, Value otherwise) {
    if (!changed || !otherwise)
      return {};
    return layer.ownOrder(layer.made<mt::WhileTrainingOp>({changed, otherwise}, {}, changed.getType()));
  }

  LayerBuilder &layer;
  const Value x;

private:
  const std::string stream;
};

// A range: [low, high], or f for [-f, f].
std::pair<double, double> readRange(LayerBuilder &layer, llvm::StringRef key, double least, double most) {
  const Json *value = layer.config.find(key);
  std::pair<double, double> range{0, 0};
  if (value && value->is_number())
    range = {-std::fabs(value->get<double>()), std::fabs(value->get<double>())};
  else if (value && value->is_array() && value->size() == 2 && (*value)[0].is_number() && (*value)[1].is_number())
    range = std::minmax({(*value)[0].get<double>(), (*value)[1].get<double>()});
  else
    layer.fail("expected " + key.str() + " to be a number or two numbers, found " +
               (value ? describe(*value) : "none"));
  if (!(range.first >= least && range.second <= most))
    layer.fail("expected " + key.str() + " from " + std::to_string(least) + " to " + std::to_string(most) + ", found " +
               describe(*value));
  return range;
}

// Interpolation between pixels, and values of points outside of the image.
struct Sampling {
  std::string mode;
  double fill = 0;
  bool bilinear = true;
};

Sampling readSampling(LayerBuilder &layer) {
  Sampling sampling{layer.config.text("fill_mode", "reflect"), layer.config.real("fill_value", 0), true};
  std::string interpolation = layer.config.text("interpolation", "bilinear");
  sampling.bilinear = interpolation == "bilinear";
  if (!sampling.bilinear && interpolation != "nearest")
    layer.fail("expected an interpolation of nearest and bilinear, found '" + interpolation + "'");
  if (sampling.mode != "reflect" && sampling.mode != "wrap" && sampling.mode != "constant" &&
      sampling.mode != "nearest")
    layer.fail("expected a fill_mode of reflect, wrap, constant and nearest, found '" + sampling.mode + "'");
  return sampling;
}

// Maps integers outside of 0 .. size - 1 back by the mode; mt.take clamps indices of the other modes.
Expr comeBack(const Expr &i, int64_t size, const std::string &mode) {
  double n = double(size);
  if (mode == "wrap")
    return i - floor(i / n) * n;
  if (mode != "reflect")
    return i;
  Expr turn = i - floor(i / (2 * n)) * (2 * n);
  return select(turn < n, turn, 2 * n - 1 - turn);
}

// Rounds to integers, halves away from 0.
Expr roundAway(const Expr &x) {
  Expr low = floor(x), rest = x - low;
  return select(select(x < 0.0, toFloat(rest > 0.5), toFloat(rest >= 0.5)) > 0.5, low + 1.0, low);
}

// Pixels [?, H, W, C] of the images at positions (row, column), both [?, H, W] or with axes of size 1.
Value sampleAt(Augmentation &a, const Sampling &sampling, const Expr &row, const Expr &column) {
  LayerBuilder &layer = a.layer;
  int64_t height = a.height(), width = a.width(), channels = layer.shapeOf(a.x).back();
  Value pixels = layer.reshape(a.x, {batch, height * width, channels});
  auto plane = RankedTensorType::get({batch, height, width}, layer.builder.getF32Type());
  auto inside = [](const Expr &i, int64_t size) { return toFloat(i >= 0.0) * toFloat(i <= double(size - 1)); };
  // Pixels at integer positions.
  auto read = [&](const Expr &r, const Expr &c) {
    auto clamped = [](const Expr &i, int64_t size) { return minimum(maximum(i, 0.0), double(size - 1)); };
    Expr id = broadcastTo(clamped(comeBack(r, height, sampling.mode), height) * double(width) +
                              clamped(comeBack(c, width, sampling.mode), width),
                          plane);
    Value ids = layer.reshape(toInteger(id).value(), {batch, height * width});
    Expr gathered = layer.expr(layer.reshape(mt::TakeOp::create(layer.builder, layer.location, pixels, ids, int64_t{1}),
                                             {batch, height, width, channels}));
    if (sampling.mode != "constant")
      return gathered;
    return select(unsqueezeLast(broadcastTo(inside(r, height) * inside(c, width), plane)) > 0.5, gathered,
                  sampling.fill);
  };
  if (!sampling.bilinear)
    return read(roundAway(row), roundAway(column)).value();
  Expr top = floor(row), left = floor(column), down = unsqueezeLast(row - top), right = unsqueezeLast(column - left);
  Expr upper = read(top, left) * (1.0 - right) + read(top, left + 1.0) * right;
  Expr lower = read(top + 1.0, left) * (1.0 - right) + read(top + 1.0, left + 1.0) * right;
  return (upper * (1.0 - down) + lower * down).value();
}

// The indices 0 .. n - 1 along axis `axis` (1: rows, 2: columns) of [?, H, W]; the other axes have size 1.
Expr indicesAlong(LayerBuilder &layer, size_t axis, int64_t n) {
  SmallVector<int64_t> shape(2, 1);
  shape[axis - 1] = n;
  auto type = RankedTensorType::get(shape, layer.builder.getI32Type());
  return toFloat(layer.expr(mt::IotaOp::create(layer.builder, layer.location, type, static_cast<int64_t>(axis) - 1)));
}

Value buildFlip(LayerBuilder &layer) {
  Augmentation a(layer);
  std::string mode = layer.config.text("mode", "horizontal_and_vertical");
  SmallVector<int64_t> axes;
  if (mode != "horizontal")
    axes.push_back(1);
  if (mode != "vertical")
    axes.push_back(2);
  if (mode != "horizontal" && mode != "vertical" && mode != "horizontal_and_vertical")
    layer.fail("expected a mode of horizontal, vertical and horizontal_and_vertical, found '" + mode + "'");
  if (!a.images() || layer.config.failed())
    return {};
  Value turned = mt::ReverseOp::create(layer.builder, layer.location, a.x, axes);
  return a.finish(select(a.draw("flip", 0, 1, 4) <= 0.5, layer.expr(turned), layer.expr(a.x)).value());
}

Value buildTranslation(LayerBuilder &layer) {
  Augmentation a(layer);
  auto [up, down] = readRange(layer, "height_factor", -1, 1);
  auto [left, right] = readRange(layer, "width_factor", -1, 1);
  Sampling sampling = readSampling(layer);
  if (!a.images() || layer.config.failed())
    return {};
  Expr row = indicesAlong(layer, 1, a.height()) - a.draw("height", up, down, 3) * double(a.height());
  Expr column = indicesAlong(layer, 2, a.width()) - a.draw("width", left, right, 3) * double(a.width());
  return a.finish(sampleAt(a, sampling, row, column));
}

Value buildZoom(LayerBuilder &layer) {
  Augmentation a(layer);
  auto vertical = readRange(layer, "height_factor", -1, 1), horizontal = vertical;
  bool separate = layer.config.find("width_factor");
  if (separate)
    horizontal = readRange(layer, "width_factor", -1, 1);
  Sampling sampling = readSampling(layer);
  if (!a.images() || layer.config.failed())
    return {};
  Expr y = a.draw("height", 1 + vertical.first, 1 + vertical.second, 3);
  Expr x = separate ? a.draw("width", 1 + horizontal.first, 1 + horizontal.second, 3) : y;
  Expr row = indicesAlong(layer, 1, a.height()) * y + (1.0 - y) * (double(a.height() - 1) / 2);
  Expr column = indicesAlong(layer, 2, a.width()) * x + (1.0 - x) * (double(a.width() - 1) / 2);
  return a.finish(sampleAt(a, sampling, row, column));
}

// Rotation about the center; the factor is a fraction of a full turn.
Value buildRotation(LayerBuilder &layer) {
  Augmentation a(layer);
  auto [low, high] = readRange(layer, "factor", -1, 1);
  Sampling sampling = readSampling(layer);
  if (!a.images() || layer.config.failed())
    return {};
  Expr angle = a.draw("angle", low * 2 * M_PI, high * 2 * M_PI, 3), c = cos(angle), s = sin(angle);
  Expr y = indicesAlong(layer, 1, a.height()), x = indicesAlong(layer, 2, a.width());
  double middleX = double(a.width() - 1) / 2, middleY = double(a.height() - 1) / 2;
  Expr row = y * c + x * s + (middleY - s * middleX - c * middleY);
  Expr column = x * c - y * s + (middleX - c * middleX + s * middleY);
  return a.finish(sampleAt(a, sampling, row, column));
}

// In training, crops all samples of a step to the same box at a random position. Otherwise, and for images that are not
// larger than the box, crops to the center and resizes the result to the box.
Value buildCrop(LayerBuilder &layer) {
  Augmentation a(layer);
  int64_t height = layer.size("height", maxFactor), width = layer.size("width", maxFactor);
  if (!a.images() || layer.config.failed())
    return {};
  Value middle = resizeImages(layer, cropToAspect(layer, a.x, height, width), height, width, "bilinear");
  if (a.height() <= height || a.width() <= width)
    return layer.ownOrder(middle);
  auto take = [&](Value from, llvm::StringRef what, int64_t axis, int64_t size) {
    Expr first = floor(a.draw(what, 0, double(layer.shapeOf(a.x)[axis] - size + 1), 0));
    auto type = RankedTensorType::get({size}, layer.builder.getI32Type());
    Expr index = toFloat(layer.expr(mt::IotaOp::create(layer.builder, layer.location, type, int64_t{0})));
    return mt::TakeOp::create(layer.builder, layer.location, from, toInteger(index + first).value(), axis).getResult();
  };
  return a.finish(take(take(a.x, "height", 1, height), "width", 2, width), middle);
}

// Moves the pixels away from, or towards, the mean of each channel of an image.
Value buildContrast(LayerBuilder &layer) {
  Augmentation a(layer);
  auto [low, high] = readRange(layer, "factor", -1, 1);
  auto [least, most] = readRange(layer, "value_range", -1e30, 1e30);
  if (!a.images() || layer.config.failed())
    return {};
  Expr x = layer.expr(a.x), mean = sumOver(x, {1, 2}) / double(a.height() * a.width());
  Expr changed = (x - mean) * a.draw("contrast", 1 - std::max(low, 0.0), 1 + high, 4) + mean;
  return a.finish(minimum(maximum(changed, least), most).value());
}

// The range of a factor from 0 to 1 that is one number, its upper bound, or two.
std::pair<double, double> readFactor(LayerBuilder &layer, llvm::StringRef key) {
  const Json *value = layer.config.find(key);
  std::pair<double, double> range = readRange(layer, key, -1, 1);
  return value && value->is_number() ? std::pair(0.0, range.second) : range;
}

// Adds a number to the values, as numbers from 0 to 255, and inverts the values from a threshold on.
Value buildSolarization(LayerBuilder &layer) {
  Augmentation a(layer);
  auto [leastAdded, mostAdded] = readFactor(layer, "addition_factor");
  auto [low, high] = readFactor(layer, "threshold_factor");
  auto [least, most] = readRange(layer, "value_range", -1e30, 1e30);
  if (!a.images() || layer.config.failed())
    return {};
  double scale = 255 / (most - least);
  Expr made = (layer.expr(a.x) - least) * scale + a.draw("addition", leastAdded, mostAdded * 255, 4);
  made = minimum(maximum(made, 0.0), 255.0);
  made = select(made < a.draw("threshold", low, high * 255, 4), made, 255.0 - made);
  return a.finish((made / scale + least).value());
}

// The center of the images, which are made larger first if they are smaller.
Value buildCenterCrop(LayerBuilder &layer) {
  Value x = layer.channelsLast(layer.toFloat(layer.input(4)));
  int64_t height = layer.size("height", maxFactor), width = layer.size("width", maxFactor);
  if (!x || layer.config.failed())
    return {};
  int64_t above = layer.shapeOf(x)[1] - height, before = layer.shapeOf(x)[2] - width;
  if (above >= 0 && before >= 0)
    return layer.ownOrder(cropImages(layer, x, above / 2, before / 2, height, width));
  return layer.ownOrder(resizeImages(layer, cropToAspect(layer, x, height, width), height, width, "bilinear"));
}

} // namespace

llvm::ArrayRef<LayerEntry> augmentationLayers() {
  static constexpr LayerEntry entries[] = {{"RandomFlip", buildFlip},           {"RandomTranslation", buildTranslation},
                                           {"RandomZoom", buildZoom},           {"RandomRotation", buildRotation},
                                           {"RandomCrop", buildCrop},           {"RandomContrast", buildContrast},
                                           {"Solarization", buildSolarization}, {"CenterCrop", buildCenterCrop}};
  return entries;
}

} // namespace mtc::keras
