// SPDX-License-Identifier: Apache-2.0
//
// Images of another size: nearest by a whole factor repeats elements; anything else is, along each axis, a product with
// the shares that elements have in each result.
#include "frontend/onnx/OpTable.h"

#include <cmath>

using namespace mlir;

namespace mtc::onnx {
namespace {

using logical::Value;

struct Coordinates {
  std::string mode;
  double scale;
  int64_t from, to;

  // Where a result's centre lies on the operand's axis.
  double at(int64_t index) const {
    constexpr double half = 0.5;
    auto i = static_cast<double>(index);
    if (mode == "align_corners")
      return to == 1 ? 0 : i * static_cast<double>(from - 1) / static_cast<double>(to - 1);
    if (mode == "asymmetric")
      return i / scale;
    if (mode == "pytorch_half_pixel" && to == 1)
      return 0;
    return (i + half) / scale - half;
  }
};

double rounded(double at, const std::string &mode) {
  constexpr double half = 0.5;
  if (mode == "floor")
    return std::floor(at);
  if (mode == "ceil")
    return std::ceil(at);
  return mode == "round_prefer_ceil" ? std::floor(at + half) : std::ceil(at - half);
}

Value repeated(Call &call, const Value &x, size_t axis, int64_t factor) {
  logical::Shape shape = x.shape(), full = shape;
  full.insert(full.begin() + static_cast<int64_t>(axis) + 1, Size(factor));
  shape[axis] = logical::multiply(shape[axis].times, factor);
  Value spread = logical::expandDims(x, {static_cast<int64_t>(axis) + 1});
  return logical::reshape(call.ops, logical::broadcast(spread, full), shape);
}

Value shared(Call &call, const Value &x, size_t axis, const Known &shares) {
  Value result = logical::product(call.ops, x, shares.lift(call.ops), {{static_cast<int64_t>(axis), 0}});
  SmallVector<int64_t> order;
  for (size_t i = 0; i < x.rank(); ++i)
    order.push_back(static_cast<int64_t>(i < axis ? i : i == axis ? x.rank() - 1 : i - 1));
  return logical::transpose(result, order);
}

Known sharesOf(const Coordinates &places, bool linear, const std::string &nearest) {
  Known shares = Known::zeros({places.from, places.to}, Known::Type::Float);
  auto last = static_cast<double>(places.from - 1);
  for (int64_t i = 0; i < places.to; ++i) {
    double at = std::fmin(std::fmax(places.at(i), 0), last);
    double low = linear ? std::floor(at) : std::fmin(std::fmax(rounded(places.at(i), nearest), 0), last);
    double share = linear ? at - low : 0;
    auto add = [&](double row, double number) { shares.numbers[static_cast<int64_t>(row) * places.to + i] += number; };
    add(low, 1 - share);
    if (share > 0)
      add(low + 1, share);
  }
  shares.round();
  return shares;
}

// Whether each element of the result, of a whole factor, is the one that it would be if all were repeated: the same in
// every block of the factor but at the ends.
bool isRepeated(const Coordinates &places, const std::string &nearest) {
  if (places.mode == "align_corners")
    return false;
  int64_t factor = places.to / places.from;
  auto last = static_cast<double>(places.from - 1);
  for (int64_t i = 0; i < places.to; ++i)
    if (std::fmin(std::fmax(rounded(places.at(i), nearest), 0), last) != static_cast<double>(i / factor))
      return false;
  return true;
}

// The sizes of the result; `scales` are read where there are some.
SmallVector<int64_t> readSizes(Call &call, const Value &x, std::vector<double> &scales) {
  SmallVector<int64_t> sizes;
  bool bySize = call.has(3) && call.expectKnown(3, "sizes").count() != 0;
  const Known &requested = call.expectKnown(bySize ? 3 : 2, bySize ? "sizes" : "scales");
  if (requested.count() != static_cast<int64_t>(x.rank()))
    throw Refused("expected a number for each axis, found " + std::to_string(requested.count()));
  for (size_t i = 0; i < x.rank(); ++i) {
    Size size = x.size(i), wanted = requested.size(static_cast<int64_t>(i));
    double scale = bySize ? (wanted == size ? 1 : static_cast<double>(wanted.times) / static_cast<double>(size.times))
                          : requested.numbers[i];
    if (size.batch && (scale != 1 || (bySize && !wanted.batch && wanted.times != call.fixedBatch)))
      throw Refused("a resize of the batch");
    constexpr double most = 0x1p20;
    if (!(scale > 0 && scale < most))
      throw Refused("expected scales from above 0 to below 2^20");
    scales.push_back(scale);
    sizes.push_back(bySize ? wanted.times : static_cast<int64_t>(std::floor(static_cast<double>(size.times) * scale)));
    if (!size.batch && sizes.back() < 1)
      throw Refused("expected sizes of 1 or more");
  }
  return sizes;
}

void buildResize(Call &call) {
  Value x = call.floats(0);
  std::string mode = call.text("mode", "nearest"), nearest = call.text("nearest_mode", "round_prefer_floor");
  std::string coordinates = call.text("coordinate_transformation_mode", "half_pixel");
  call.ignore("cubic_coeff_a");
  call.ignore("extrapolation_value");
  if ((mode != "nearest" && mode != "linear") || (coordinates != "half_pixel" && coordinates != "pytorch_half_pixel" &&
                                                  coordinates != "asymmetric" && coordinates != "align_corners"))
    throw Refused("a resize of the mode " + mode + " with " + coordinates +
                  "; nearest and linear are supported, with half_pixel, pytorch_half_pixel, asymmetric, align_corners");
  if (call.integer("antialias", 0) || call.integer("exclude_outside", 0) || call.hasAttribute("axes") ||
      call.text("keep_aspect_ratio_policy", "stretch") != "stretch")
    throw Refused("a resize with antialias, exclude_outside, axes or keep_aspect_ratio_policy");
  std::vector<double> scales;
  SmallVector<int64_t> sizes = readSizes(call, x, scales);
  for (size_t axis = 0; axis < x.rank(); ++axis) {
    int64_t size = x.size(axis).times;
    if (x.size(axis).batch || (sizes[axis] == size && scales[axis] == 1))
      continue;
    double exact = static_cast<double>(size) * scales[axis];
    if (coordinates == "align_corners" && exact != std::floor(exact) && !call.has(3))
      throw Refused("a resize with align_corners by a scale that gives no whole size, " + std::to_string(exact) +
                    ", of which programs make different corners: give it sizes");
    Coordinates places = {coordinates, scales[axis], size, sizes[axis]};
    bool repeats = mode == "nearest" && sizes[axis] == size * (sizes[axis] / size) &&
                   scales[axis] == static_cast<double>(sizes[axis] / size) && isRepeated(places, nearest);
    x = repeats ? repeated(call, x, axis, sizes[axis] / size)
                : shared(call, x, axis, sharesOf(places, mode == "linear", nearest));
  }
  call.give(x);
}

} // namespace

llvm::ArrayRef<OpEntry> resizingOps() {
  static constexpr OpEntry entries[] = {{"Resize", buildResize}};
  return entries;
}

} // namespace mtc::onnx
