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
    if (mode == "half_pixel_symmetric") { // the centres of both images lie on one another
      double width = static_cast<double>(from), shown = static_cast<double>(to) / (scale * width);
      return width / 2 * (1 - shown) + (i + half) / scale - half;
    }
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
  return logical::moveAxis(result, x.rank() - 1, axis);
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

// What a neighbour at a distance counts, before all are divided by their sum.
double kernelOf(double distance, bool cubic, double a) {
  double x = std::fabs(distance);
  if (!cubic)
    return std::fmax(1 - x, 0);
  if (x <= 1)
    return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

struct Neighbours {
  bool cubic, antialias, excludesOutside;
  double a; // of the cubic polynomial (Keys 1981)
};

// By the kernel of bilinear or bicubic interpolation, which is as wide as a result's element where there are fewer.
Known sharesOf(const Coordinates &places, const Neighbours &neighbours) {
  Known shares = Known::zeros({places.from, places.to}, Known::Type::Float);
  double narrow = neighbours.antialias ? std::fmin(places.scale, 1) : 1;
  auto reach = static_cast<int64_t>(std::ceil((neighbours.cubic ? 2 : 1) / narrow));
  logical::multiply(reach, places.to);
  for (int64_t i = 0; i < places.to; ++i) {
    double at = places.at(i), total = 0;
    auto middle = static_cast<int64_t>(std::floor(at));
    auto countOf = [&](int64_t from) {
      bool outside = from < 0 || from >= places.from;
      return outside && neighbours.excludesOutside
                 ? 0
                 : kernelOf((static_cast<double>(from) - at) * narrow, neighbours.cubic, neighbours.a);
    };
    for (int64_t from = middle - reach; from <= middle + reach; ++from)
      total += countOf(from);
    for (int64_t from = middle - reach; from <= middle + reach; ++from)
      shares.numbers[static_cast<size_t>(std::clamp<int64_t>(from, 0, places.from - 1) * places.to + i)] +=
          countOf(from) / total;
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

// The one scale of all axes with which no axis is longer than wanted, or none shorter; none: each has its own.
std::optional<double> scaleOfAll(Call &call, const Value &x, ArrayRef<int64_t> axes, const Known &sizes) {
  std::string policy = call.text("keep_aspect_ratio_policy", "stretch");
  if (policy == "stretch")
    return std::nullopt;
  if (policy != "not_larger" && policy != "not_smaller")
    throw Refused("expected a keep_aspect_ratio_policy of stretch, not_larger or not_smaller, found " + policy);
  std::optional<double> scale;
  for (auto [i, axis] : llvm::enumerate(axes)) {
    Size size = x.size(static_cast<size_t>(axis));
    if (size.batch)
      throw Refused("a resize of the batch");
    double own = sizes.numbers[i] / static_cast<double>(size.times);
    scale = !scale ? own : policy == "not_larger" ? std::fmin(*scale, own) : std::fmax(*scale, own);
  }
  return scale;
}

Known scalesOf(Call &call) {
  std::vector<double> numbers = call.numbers("scales");
  Known known = Known::zeros({static_cast<int64_t>(numbers.size())}, Known::Type::Float);
  known.numbers = numbers;
  return known;
}

// The sizes of the result; `scales` are read where there are some.
SmallVector<int64_t> readSizes(Call &call, const Value &x, std::vector<double> &scales) {
  SmallVector<int64_t> sizes, axes = call.integers("axes");
  bool bySize = call.has(3) && call.expectKnown(3, "sizes").count() != 0;
  const size_t place = bySize ? 3 : call.opset < 11 ? 1 : 2; // before opset 11 there is no region
  const Known requested =
      call.hasAttribute("scales") ? scalesOf(call) : call.expectKnown(place, bySize ? "sizes" : "scales");
  if (axes.empty())
    llvm::append_range(axes, llvm::seq<int64_t>(0, static_cast<int64_t>(x.rank())));
  if (requested.count() != static_cast<int64_t>(axes.size()))
    throw Refused("expected a number for each axis, found " + std::to_string(requested.count()));
  for (int64_t &axis : axes)
    axis = static_cast<int64_t>(Call::axisOf(axis, x.rank()));
  std::optional<double> kept = bySize ? scaleOfAll(call, x, axes, requested) : std::nullopt;
  for (size_t i = 0; i < x.rank(); ++i) {
    auto number = llvm::find(axes, static_cast<int64_t>(i)) - axes.begin();
    bool named = number < std::ssize(axes);
    Size size = x.size(i), wanted = named && bySize ? requested.size(number) : size;
    if (kept && named)
      wanted = static_cast<int64_t>(std::floor(*kept * static_cast<double>(size.times) + 0.5));
    double scale = !named           ? 1
                   : !bySize        ? requested.numbers[static_cast<size_t>(number)]
                   : kept           ? *kept
                   : wanted == size ? 1
                                    : static_cast<double>(wanted.times) / static_cast<double>(size.times);
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
  bool old = call.opset < 11; // and Upsample, whose coordinates were never said but as this
  std::string mode = call.text("mode", "nearest"),
              nearest = old ? "floor" : call.text("nearest_mode", "round_prefer_floor");
  std::string coordinates = old ? "asymmetric" : call.text("coordinate_transformation_mode", "half_pixel");
  call.ignore("extrapolation_value");
  call.ignore("keep_aspect_ratio_policy"); // of sizes alone
  if (!llvm::is_contained({"nearest", "linear", "cubic"}, mode) ||
      !llvm::is_contained({"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "asymmetric", "align_corners"},
                          coordinates))
    throw Refused("a resize of the mode " + mode + " with " + coordinates +
                  "; nearest, linear and cubic are supported, with half_pixel, half_pixel_symmetric, "
                  "pytorch_half_pixel, asymmetric, align_corners");
  constexpr double keys = -0.75;
  Neighbours neighbours = {mode == "cubic", call.integer("antialias", 0) != 0, call.integer("exclude_outside", 0) != 0,
                           call.number("cubic_coeff_a", keys)};
  bool byKernel = neighbours.cubic || (mode == "linear" && (neighbours.antialias || neighbours.excludesOutside));
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
                : shared(call, x, axis,
                         byKernel ? sharesOf(places, neighbours) : sharesOf(places, mode == "linear", nearest));
  }
  call.give(x);
}

// Resize has its place since opset 10.
void buildUpsample(Call &call) {
  if (call.opset >= 10)
    throw Refused("expected Resize in place of Upsample, which ended with opset 9");
  buildResize(call);
}

} // namespace

llvm::ArrayRef<OpEntry> resizingOps() {
  static constexpr OpEntry entries[] = {{"Resize", buildResize}, {"Upsample", buildUpsample}};
  return entries;
}

} // namespace mtc::onnx
