// SPDX-License-Identifier: Apache-2.0
#include "frontend/logical/Windows.h"

#include <cfloat>

using namespace mlir;

namespace mtc::logical {

int64_t Windows::count(size_t axis, int64_t size) const {
  int64_t reach = multiply(taps[axis] - 1, dilation[axis]) + 1;
  int64_t spaced = spread.empty() ? size : multiply(size - 1, spread[axis]) + 1;
  int64_t room = spaced + low[axis] + high[axis] - reach;
  if (room < 0)
    throw Refused("windows of " + std::to_string(taps[axis]) + " on an axis of " + std::to_string(size));
  return room / strides[axis] + 1;
}

Value perChannel(const Value &value, size_t rank) {
  if (rank < 2)
    throw Refused("expected images of two axes or more, found " + std::to_string(rank));
  Value result = value;
  result.axes.append(rank - 2, Parts{Axis{}});
  return result;
}

Value channelsLast(const Value &images) {
  if (images.rank() < 2)
    throw Refused("expected images of two axes or more, found " + std::to_string(images.rank()));
  return moveAxis(images, 1, images.rank() - 1);
}

Value asImages(const Value &value) { return value.rank() == 3 ? expandDims(value, {2}) : value; }
Value fromImages(const Value &value, size_t rank) { return rank == 3 ? squeeze(value, {2}) : value; }
Windows withTwoAxes(Windows windows) {
  if (windows.spread.empty())
    windows.spread.assign(windows.taps.size(), 1);
  if (windows.taps.size() != 1)
    return windows;
  for (SmallVector<int64_t> *list : {&windows.taps, &windows.strides, &windows.dilation, &windows.spread})
    list->insert(list->begin(), 1);
  for (SmallVector<int64_t> *list : {&windows.low, &windows.high})
    list->insert(list->begin(), 0);
  return windows;
}

// Whether the ops of `mt` have the padding of an axis: less than what a window reaches over.
static bool hasOwnPadding(const Windows &windows, size_t i) {
  int64_t reach = multiply(windows.taps[i] - 1, windows.dilation[i]) + 1;
  return std::min(windows.low[i], windows.high[i]) >= 0 && std::max(windows.low[i], windows.high[i]) < reach;
}

Value padded(Ops &ops, const Value &images, Windows &windows, double fill) {
  SmallVector<int64_t> low = {0, 0}, high = {0, 0};
  bool pads = false;
  for (size_t i = 0; i < 2; ++i) {
    bool own = hasOwnPadding(windows, i);
    low.push_back(own ? 0 : std::exchange(windows.low[i], 0));
    high.push_back(own ? 0 : std::exchange(windows.high[i], 0));
    pads |= !own;
  }
  return pads ? pad(ops, images, fill, low, high) : images;
}

void checkWindows(const Value &images, const Windows &windows) {
  for (size_t count : {windows.strides.size(), windows.dilation.size(), windows.low.size(), windows.high.size(),
                       windows.spread.empty() ? windows.taps.size() : windows.spread.size()})
    checkCount(count, windows.taps.size());
  if (images.rank() != windows.taps.size() + 2 || (images.rank() != 3 && images.rank() != 4))
    throw Refused("windows over " + std::to_string(windows.taps.size()) + " axes of " + describe(images.shape()) +
                  "; one or two are supported");
}

void checkImages(const Value &images, const Windows &windows) {
  checkWindows(images, windows);
  if (!images.size(0).isBatch())
    throw Refused("windows of images whose first axis is " + images.size(0).text() + ", not the samples");
  for (size_t i = 1; i < images.rank(); ++i)
    if (images.size(i).batch)
      throw Refused("windows over the samples of the batch");
}

SmallVector<int64_t> paddingOf(const Windows &windows) {
  return {windows.low[0], windows.high[0], windows.low[1], windows.high[1]};
}

RankedTensorType imagesType(Ops &ops, int64_t height, int64_t width, int64_t channels) {
  return RankedTensorType::get({ShapedType::kDynamic, height, width, channels}, ops.real());
}

mlir::Value wholeKernel(Ops &ops, const Value &kernel) { return whole(ops, transpose(asImages(kernel), {2, 3, 1, 0})); }

void checkKernel(const Value &images, const Value &kernel) {
  checkCount(kernel.rank(), images.rank());
  if (batchOf(kernel.flat()) >= 0)
    throw Refused("a convolution by a kernel that differs between samples, " + describe(kernel.shape()));
}

Value convolution(Ops &ops, const Value &input, const Value &kernel, const Windows &requested) {
  if (!hasKernels(input, requested)) {
    if (std::optional<Stacked> stacked = stackedImages(ops, input, requested, 0))
      return unstacked(ops, convolution(ops, stacked->images, kernel, stacked->windows), *stacked);
    return convolutionByTaps(ops, input, kernel, requested);
  }
  checkImages(input, requested);
  checkKernel(input, kernel);
  Windows windows = withTwoAxes(requested);
  Value images = padded(ops, asImages(input), windows, 0);
  if (windows.groups < 1 || kernel.size(1).times > images.size(1).times / windows.groups ||
      multiply(kernel.size(1).times, windows.groups) != images.size(1).times || kernel.size(0).times % windows.groups)
    throw Refused("a convolution of " + images.size(1).text() + " channels in " + std::to_string(windows.groups) +
                  " groups by a kernel " + describe(kernel.shape()));
  RankedTensorType type = imagesType(ops, windows.count(0, images.size(2).times),
                                     windows.count(1, images.size(3).times), kernel.size(0).times);
  mlir::Value result =
      mt::Conv2DOp::create(ops.builder, ops.location, type, whole(ops, channelsLast(images)), wholeKernel(ops, kernel),
                           windows.strides, paddingOf(windows), windows.dilation, windows.groups);
  return fromImages(channelsFirst(ops.value(result)), input.rank());
}

Value transposedConvolution(Ops &ops, const Value &input, const Value &kernel, const Windows &requested,
                            ArrayRef<int64_t> sizes) {
  if (!hasKernels(input, requested))
    return transposedByTaps(ops, input, kernel, requested, sizes);
  checkImages(input, requested);
  checkKernel(input, kernel);
  checkCount(sizes.size(), requested.taps.size());
  Windows windows = withTwoAxes(requested);
  Value images = asImages(input);
  SmallVector<int64_t> both(sizes);
  if (both.size() == 1)
    both.insert(both.begin(), 1);
  // Padding that the op does not have is cut off from a larger result.
  SmallVector<int64_t> low = {0, 0}, high = {0, 0};
  for (size_t i = 0; i < 2; ++i) {
    bool own = hasOwnPadding(windows, i);
    low.push_back(own ? 0 : -std::exchange(windows.low[i], 0));
    high.push_back(own ? 0 : -std::exchange(windows.high[i], 0));
    both[i] -= low.back() + high.back();
  }
  RankedTensorType type = imagesType(ops, both[0], both[1], multiply(kernel.size(1).times, windows.groups));
  mlir::Value result = mt::Conv2DInputGradientOp::create(
      ops.builder, ops.location, type, whole(ops, channelsLast(images)), wholeKernel(ops, kernel), windows.strides,
      paddingOf(windows), windows.dilation, windows.groups);
  return fromImages(pad(ops, channelsFirst(ops.value(result)), 0, low, high), input.rank());
}

Value pool(Ops &ops, mt::Reduction kind, const Value &input, const Windows &requested) {
  bool dilated = llvm::any_of(requested.dilation, [](int64_t n) { return n != 1; });
  if (dilated || !hasKernels(input, requested)) {
    std::optional<Stacked> stacked;
    if (!dilated)
      stacked = stackedImages(ops, input, requested, kind == mt::Reduction::sum ? 0 : -FLT_MAX);
    return stacked ? unstacked(ops, pool(ops, kind, stacked->images, stacked->windows), *stacked)
                   : poolByTaps(ops, kind, input, requested);
  }
  checkImages(input, requested);
  if (Value gradient = kind == mt::Reduction::sum ? averageGradient(ops, input, requested) : Value())
    return gradient;
  Windows windows = withTwoAxes(requested);
  Value images = padded(ops, asImages(input), windows, kind == mt::Reduction::sum ? 0 : -FLT_MAX);
  RankedTensorType type = imagesType(ops, windows.count(0, images.size(2).times),
                                     windows.count(1, images.size(3).times), images.size(1).times);
  mlir::Value result = mt::PoolOp::create(ops.builder, ops.location, type, kind, whole(ops, channelsLast(images)),
                                          windows.taps, windows.strides, paddingOf(windows));
  return fromImages(channelsFirst(ops.value(result)), input.rank());
}

Value batchNormalization(Ops &ops, const Value &images, ArrayRef<Value> parameters, double momentum, double epsilon) {
  Value last = channelsLast(images);
  mlir::Value stored = whole(ops, last);
  SmallVector<mlir::Value> operands;
  for (const Value &parameter : parameters)
    operands.push_back(whole(ops, parameter));
  mlir::Value result = mt::BatchNormalizationOp::create(
      ops.builder, ops.location, stored.getType(), stored, operands[0], operands[1], operands[2], operands[3],
      llvm::APFloat(static_cast<float>(momentum)), llvm::APFloat(static_cast<float>(epsilon)), false, false);
  return channelsFirst(ops.value(result));
}

} // namespace mtc::logical
