// SPDX-License-Identifier: Apache-2.0
//
// Convolutions and pools. Images are [N, C, spatial...].
#include "frontend/onnx/OpTable.h"

using namespace mlir;

namespace mtc::onnx {
namespace {

using logical::Value;
using logical::Windows;

constexpr int64_t maxFactor = int64_t{1} << 20; // of kernels, strides, paddings

SmallVector<int64_t> factors(Call &call, const char *name, size_t count, int64_t otherwise, int64_t least) {
  SmallVector<int64_t> numbers = call.integers(name, SmallVector<int64_t>(count, otherwise));
  if (numbers.size() != count)
    throw Refused(std::string("expected ") + std::to_string(count) + " numbers in " + name + ", found " +
                  std::to_string(numbers.size()));
  for (int64_t number : numbers)
    if (number < least || number > maxFactor)
      throw Refused(std::string("expected numbers from ") + std::to_string(least) + " to 2^20 in " + name + ", found " +
                    std::to_string(number));
  return numbers;
}

// Strides, dilation, groups and padding; `taps` is known. SAME pads so that there are ceil(size / stride) windows.
Windows readWindows(Call &call, ArrayRef<int64_t> taps, ArrayRef<Size> images) {
  Windows windows;
  size_t count = taps.size();
  windows.taps.assign(taps.begin(), taps.end());
  for (int64_t tap : taps)
    if (tap < 1 || tap > maxFactor)
      throw Refused("expected windows from 1 to 2^20, found " + std::to_string(tap));
  windows.strides = factors(call, "strides", count, 1, 1);
  windows.dilation = factors(call, "dilations", count, 1, 1);
  windows.low.assign(count, 0);
  windows.high.assign(count, 0);
  std::string automatic = call.text("auto_pad", "NOTSET");
  if (automatic == "NOTSET" || automatic.empty()) {
    SmallVector<int64_t> pads = factors(call, "pads", 2 * count, 0, 0);
    windows.low.assign(pads.begin(), pads.begin() + static_cast<int64_t>(count));
    windows.high.assign(pads.begin() + static_cast<int64_t>(count), pads.end());
    return windows;
  }
  call.ignore("pads");
  if (automatic == "VALID")
    return windows;
  if (automatic != "SAME_UPPER" && automatic != "SAME_LOWER")
    throw Refused("expected auto_pad of NOTSET, VALID, SAME_UPPER or SAME_LOWER, found " + automatic);
  for (size_t i = 0; i < count; ++i) {
    int64_t size = images[i + 2].times, stride = windows.strides[i];
    int64_t total = std::max<int64_t>(0, ((size + stride - 1) / stride - 1) * stride +
                                             (taps[i] - 1) * windows.dilation[i] + 1 - size);
    (automatic == "SAME_UPPER" ? windows.low : windows.high)[i] = total / 2;
    (automatic == "SAME_UPPER" ? windows.high : windows.low)[i] = total - total / 2;
  }
  return windows;
}

SmallVector<int64_t> spatialSizes(const Value &value) {
  SmallVector<int64_t> sizes;
  for (size_t i = 2; i < value.rank(); ++i) {
    if (value.size(i).batch)
      throw Refused("windows over the samples of the batch");
    sizes.push_back(value.size(i).times);
  }
  return sizes;
}

Value withBias(Call &call, const Value &value) {
  if (!call.has(2))
    return value;
  return logical::binary<mt::AddOp>(call.ops, value, logical::perChannel(call.value(2), value.rank()));
}

std::pair<Value, Value> imagesAndKernel(Call &call) {
  Value images = call.value(0), kernel = call.value(1);
  if (images.rank() != kernel.rank() || images.rank() < 3)
    throw Refused("expected images and a kernel of as many axes, three or more, found " +
                  logical::describe(images.shape()) + " and " + logical::describe(kernel.shape()));
  SmallVector<int64_t> taps = spatialSizes(kernel);
  if (call.integers("kernel_shape", taps) != taps)
    throw Refused("expected a kernel_shape as the kernel has it");
  return {images, kernel};
}

void buildConv(Call &call) {
  auto [images, kernel] = imagesAndKernel(call);
  Windows windows = readWindows(call, spatialSizes(kernel), images.shape());
  windows.groups = call.integer("group", 1);
  call.give(withBias(call, logical::convolution(call.ops, images, kernel, windows)));
}

// The gradient of a convolution to its images.
void buildConvTranspose(Call &call) {
  auto [images, kernel] = imagesAndKernel(call);
  if (call.hasAttribute("output_shape"))
    throw Refused("a transposed convolution with output_shape; one with pads and output_padding is supported");
  if (call.text("auto_pad", "NOTSET") != "NOTSET")
    throw Refused("a transposed convolution with auto_pad; one with pads is supported");
  SmallVector<int64_t> taps = spatialSizes(kernel);
  Windows windows = readWindows(call, taps, images.shape());
  windows.groups = call.integer("group", 1);
  SmallVector<int64_t> more = factors(call, "output_padding", taps.size(), 0, 0), sizes;
  for (size_t i = 0; i < taps.size(); ++i)
    sizes.push_back(logical::multiply(windows.strides[i], images.size(i + 2).times - 1) + more[i] +
                    (taps[i] - 1) * windows.dilation[i] + 1 - windows.low[i] - windows.high[i]);
  if (windows.groups < 1 || kernel.size(0) != images.size(1) || images.size(1).times % windows.groups)
    throw Refused("a transposed convolution of " + images.size(1).text() + " channels by a kernel " +
                  logical::describe(kernel.shape()) + " in " + std::to_string(windows.groups) + " groups");
  if (llvm::any_of(sizes, [](int64_t size) { return size < 1; }))
    throw Refused("a transposed convolution without results");
  call.give(withBias(call, logical::transposedConvolution(call.ops, images, kernel, windows, sizes)));
}

// With `ceil_mode` a window may begin inside and end outside.
void roundUp(Windows &windows, ArrayRef<int64_t> sizes) {
  for (size_t i = 0; i < sizes.size(); ++i) {
    int64_t reach = logical::multiply(windows.taps[i] - 1, windows.dilation[i]) + 1;
    int64_t room = sizes[i] + windows.low[i] + windows.high[i] - reach, stride = windows.strides[i];
    if (room < 0)
      continue; // the error comes where the windows are counted
    int64_t count = (room + stride - 1) / stride + 1;
    if ((count - 1) * stride >= sizes[i] + windows.low[i])
      --count;
    windows.high[i] = std::max(windows.high[i], (count - 1) * stride + reach - sizes[i] - windows.low[i]);
  }
}

Windows readPool(Call &call, const Value &images) {
  if (images.rank() < 3)
    throw Refused("expected images with spatial axes, found " + logical::describe(images.shape()));
  return readWindows(call, factors(call, "kernel_shape", images.rank() - 2, 1, 1), images.shape());
}

void buildMaxPool(Call &call) {
  Value images = call.value(0);
  Windows windows = readPool(call, images);
  call.ignore("storage_order"); // of the indices
  if (call.integer("ceil_mode", 0))
    roundUp(windows, spatialSizes(images));
  call.give(logical::pool(call.ops, mt::Reduction::max, images, windows));
}

void buildAveragePool(Call &call) {
  Value images = call.value(0);
  Windows windows = readPool(call, images);
  SmallVector<int64_t> sizes = spatialSizes(images), high = windows.high, counts;
  bool countsPadding = call.integer("count_include_pad", 0) != 0;
  if (call.integer("ceil_mode", 0))
    roundUp(windows, sizes);
  for (size_t i = 0; i < sizes.size(); ++i)
    counts.push_back(windows.count(i, sizes[i]));
  Known shares = Known::zeros(counts, Known::Type::Float);
  auto inside = [&](size_t axis, int64_t index) {
    int64_t begin = index * windows.strides[axis] - windows.low[axis], step = windows.dilation[axis];
    int64_t first = countsPadding ? begin : 0, end = countsPadding ? sizes[axis] + high[axis] : sizes[axis];
    auto stepsTo = [&](int64_t place) { return place <= begin ? 0 : (place - begin + step - 1) / step; };
    return std::min(windows.taps[axis], stepsTo(end)) - stepsTo(first);
  };
  for (int64_t i = 0; i < shares.count(); ++i) {
    int64_t all = 1, place = i;
    for (size_t axis = counts.size(); axis-- > 0; place /= counts[axis])
      all = logical::multiply(all, std::max<int64_t>(inside(axis, place % counts[axis]), 0));
    shares.numbers[i] = 1.0 / static_cast<double>(std::max<int64_t>(all, 1));
  }
  Value sums = logical::pool(call.ops, mt::Reduction::sum, images, windows);
  call.give(logical::binary<mt::MulOp>(call.ops, sums, shares.lift(call.ops)));
}

SmallVector<int64_t> spatialAxes(const Value &images) {
  return llvm::to_vector(llvm::seq<int64_t>(2, std::max<int64_t>(2, static_cast<int64_t>(images.rank()))));
}

int64_t readPower(Call &call) {
  int64_t p = call.integer("p", 2);
  if (p < 1)
    throw Refused("expected p of 1 or more, found " + std::to_string(p));
  return p;
}

Value powersOf(logical::Ops &ops, const Value &images, int64_t p) {
  return logical::integerPower(ops, logical::unary<mt::AbsOp>(ops, images), p);
}

Value rootOf(logical::Ops &ops, const Value &sums, int64_t p) {
  if (p == 1)
    return sums;
  return p == 2 ? logical::unary<mt::SqrtOp>(ops, sums)
                : logical::binary<mt::PowOp>(ops, sums, 1 / static_cast<double>(p));
}

// (sum of |x|^p)^(1/p) of each window.
void buildLpPool(Call &call) {
  logical::Ops &ops = call.ops;
  Value images = call.value(0);
  int64_t p = readPower(call);
  Windows windows = readPool(call, images);
  if (call.integer("ceil_mode", 0))
    roundUp(windows, spatialSizes(images));
  Value powers = powersOf(ops, images, p);
  call.give(rootOf(ops, logical::pool(ops, mt::Reduction::sum, powers, windows), p));
}

// Across the whole image, one window.
void buildGlobalLpPool(Call &call) {
  logical::Ops &ops = call.ops;
  Value images = call.value(0);
  int64_t p = readPower(call);
  SmallVector<int64_t> axes = spatialAxes(images);
  Value powers = powersOf(ops, images, p);
  call.give(rootOf(ops, logical::keepDims(logical::reduce(ops, mt::Reduction::sum, powers, axes), axes), p));
}

// x / (bias + alpha / size * sum of the squares of `size` channels around)^beta (Krizhevsky et al. 2012, section 3.3).
void buildLrn(Call &call) {
  logical::Ops &ops = call.ops;
  constexpr double defaultAlpha = 1e-4, defaultBeta = 0.75;
  Value x = call.value(0);
  int64_t size = call.integer("size", 1);
  double alpha = call.number("alpha", defaultAlpha), beta = call.number("beta", defaultBeta);
  double bias = call.number("bias", 1);
  if (x.rank() < 2 || x.size(1).batch || size < 1 || size > maxFactor)
    throw Refused("expected channels as the second axis and a size from 1 to 2^20, found " +
                  logical::describe(x.shape()) + " and " + std::to_string(size));
  int64_t channels = x.size(1).times;
  Known near = Known::zeros({channels, channels}, Known::Type::Float);
  for (int64_t to = 0; to < channels; ++to)
    for (int64_t from = std::max<int64_t>(0, to - (size - 1) / 2); from <= std::min(channels - 1, to + size / 2);
         ++from)
      near.numbers[static_cast<size_t>(from * channels + to)] = 1;
  Value sums = logical::product(ops, logical::unary<mt::SquareOp>(ops, x), near.lift(ops), {{1, 0}});
  sums = logical::moveAxis(sums, x.rank() - 1, 1);
  sums = logical::binary<mt::MulOp>(ops, sums, alpha / static_cast<double>(size));
  Value base = logical::binary<mt::AddOp>(ops, sums, bias);
  call.give(logical::binary<mt::DivOp>(ops, x, logical::binary<mt::PowOp>(ops, base, beta)));
}

void buildGlobalAverage(Call &call) {
  Value images = call.value(0);
  SmallVector<int64_t> axes = spatialAxes(images);
  call.give(logical::keepDims(logical::mean(call.ops, images, axes), axes));
}

void buildGlobalMax(Call &call) {
  Value images = call.value(0);
  SmallVector<int64_t> axes = spatialAxes(images);
  call.give(logical::keepDims(logical::reduce(call.ops, mt::Reduction::max, images, axes), axes));
}

} // namespace

llvm::ArrayRef<OpEntry> windowOps() {
  static constexpr OpEntry entries[] = {{"Conv", buildConv},
                                        {"ConvTranspose", buildConvTranspose},
                                        {"MaxPool", buildMaxPool},
                                        {"AveragePool", buildAveragePool},
                                        {"LpPool", buildLpPool},
                                        {"GlobalLpPool", buildGlobalLpPool},
                                        {"LRN", buildLrn},
                                        {"GlobalAveragePool", buildGlobalAverage},
                                        {"GlobalMaxPool", buildGlobalMax}};
  return entries;
}

} // namespace mtc::onnx
