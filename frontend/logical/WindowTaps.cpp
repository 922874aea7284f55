// SPDX-License-Identifier: Apache-2.0
//
// Convolutions and pools that the ops of `mt` do not take: images whose first axis is not the batch, or several for
// each sample, and windows over any number of axes. Several images of a sample are stacked into one; all others are
// slices, one for each place in a window.
#include "frontend/logical/Windows.h"

#include <cfloat>

using namespace mlir;

namespace mtc::logical {
namespace {

constexpr int64_t mostTaps = 4096; // places in a window

// Applies `function` to the places in a window, the last axis first.
void forTaps(ArrayRef<int64_t> taps, llvm::function_ref<void(ArrayRef<int64_t>)> function) {
  int64_t count = 1;
  for (int64_t tap : taps)
    count = multiply(count, tap);
  if (count > mostTaps)
    throw Refused("windows of " + std::to_string(count) + " places; at most " + std::to_string(mostTaps) +
                  " are supported for images like these");
  SmallVector<int64_t> at(taps.size(), 0);
  for (int64_t i = 0; i < count; ++i) {
    function(at);
    for (size_t axis = taps.size(); axis-- > 0 && ++at[axis] == taps[axis];)
      at[axis] = 0;
  }
}

// What each window has at one place: `first` axes of the images, then the windows.
Value atTap(Ops &ops, const Value &images, size_t first, const Windows &windows, ArrayRef<int64_t> tap,
            ArrayRef<int64_t> counts) {
  SmallVector<int64_t> starts(first, 0), strides(first, 1);
  Shape sizes = images.shape();
  for (size_t i = 0; i < tap.size(); ++i) {
    starts.push_back(multiply(tap[i], windows.dilation[i]));
    strides.push_back(counts[i] == 1 ? 1 : windows.strides[i]);
    if (!sizes[first + i].batch)
      sizes[first + i] = counts[i];
  }
  return slice(ops, images, starts, sizes, strides);
}

// How many windows there are on each axis. An axis of the samples has a window of one element.
SmallVector<int64_t> countsOf(const Value &images, size_t first, const Windows &windows) {
  SmallVector<int64_t> counts;
  for (size_t i = 0; i < windows.taps.size(); ++i) {
    bool whole = windows.taps[i] == 1 && windows.strides[i] == 1 && windows.low[i] == 0 && windows.high[i] == 0;
    if (images.size(first + i).batch && !whole)
      throw Refused("windows over the samples of the batch");
    counts.push_back(images.size(first + i).batch ? 1 : windows.count(i, images.size(first + i).times));
  }
  return counts;
}

// With the padding of the windows, and zeros between the elements, both of which `windows` loses.
Value withPadding(Ops &ops, const Value &images, Windows &windows, double fill) {
  SmallVector<int64_t> low = {0, 0}, high = {0, 0}, interior = {0, 0};
  for (size_t i = 0; i < windows.taps.size(); ++i) {
    low.push_back(std::exchange(windows.low[i], 0));
    high.push_back(std::exchange(windows.high[i], 0));
    interior.push_back(windows.spread.empty() ? 0 : windows.spread[i] - 1);
  }
  windows.spread.clear();
  bool pads = llvm::any_of(llvm::concat<int64_t>(low, high, interior), [](int64_t n) { return n != 0; });
  return pads ? pad(ops, images, fill, low, high, interior) : images;
}

void checkRanks(const Value &images, const Windows &windows) {
  for (size_t count : {windows.strides.size(), windows.dilation.size(), windows.low.size(), windows.high.size(),
                       windows.spread.empty() ? windows.taps.size() : windows.spread.size()})
    checkCount(count, windows.taps.size());
  if (images.rank() != windows.taps.size() + 2 || windows.taps.empty())
    throw Refused("windows over " + std::to_string(windows.taps.size()) + " axes of " + describe(images.shape()));
}

} // namespace

bool hasKernels(const Value &images, const Windows &windows) {
  return (images.rank() == 3 || images.rank() == 4) && images.size(0).isBatch() &&
         llvm::none_of(llvm::drop_begin(images.shape()), [](const Size &size) { return size.batch; }) &&
         windows.taps.size() + 2 == images.rank();
}

Value convolutionByTaps(Ops &ops, const Value &input, const Value &kernel, const Windows &requested) {
  checkRanks(input, requested);
  checkCount(kernel.rank(), input.rank());
  checkKernel(input, kernel);
  Windows windows = requested;
  int64_t groups = windows.groups, filters = kernel.size(0).times, each = kernel.size(1).times;
  if (input.size(1).batch || groups < 1 || multiply(each, groups) != input.size(1).times || filters % groups)
    throw Refused("a convolution of " + input.size(1).text() + " channels in " + std::to_string(groups) +
                  " groups by a kernel " + describe(kernel.shape()));
  Value images = withPadding(ops, input, windows, 0);
  SmallVector<int64_t> counts = countsOf(images, 2, windows);
  // [N, C, taps, windows...], one place beside the other.
  SmallVector<Value> parts;
  forTaps(windows.taps, [&](ArrayRef<int64_t> tap) {
    parts.push_back(expandDims(atTap(ops, images, 2, windows, tap, counts), {2}));
  });
  auto taps = static_cast<int64_t>(parts.size());
  Value columns = parts.size() == 1 ? parts[0] : concat(ops, parts, 2);
  Shape shape = columns.shape(); // the channels of a group, and the places in a window, as one axis
  shape[1] = groups;
  shape[2] = multiply(each, taps);
  columns = reshape(ops, columns, shape);
  Value weights = reshape(ops, kernel, {groups, filters / groups, multiply(each, taps)});
  Value made = product(ops, columns, weights, {{2, 2}}, {{1, 0}}); // [groups, N, windows..., F / groups]
  SmallVector<int64_t> order = {1, 0, static_cast<int64_t>(made.rank()) - 1};
  llvm::append_range(order, llvm::seq<int64_t>(2, static_cast<int64_t>(made.rank()) - 1));
  made = transpose(made, order);
  Shape result = made.shape();
  result.erase(result.begin() + 1);
  result[1] = filters;
  return reshape(ops, made, result);
}

Value poolByTaps(Ops &ops, mt::Reduction kind, const Value &input, const Windows &requested) {
  checkRanks(input, requested);
  Windows windows = requested;
  bool sum = kind == mt::Reduction::sum;
  Value images = withPadding(ops, input, windows, sum ? 0 : -FLT_MAX), total;
  SmallVector<int64_t> counts = countsOf(images, 2, windows);
  forTaps(windows.taps, [&](ArrayRef<int64_t> tap) {
    Value here = atTap(ops, images, 2, windows, tap, counts);
    if (!total)
      total = here;
    else if (sum)
      total = binary<mt::AddOp>(ops, total, here);
    else { // the first of the largest, to which the gradient goes; NaN stays
      Value kept =
          logicalOr(ops, compare(ops, mt::Compare::le, here, total), compare(ops, mt::Compare::ne, total, total));
      total = select(ops, kept, total, here);
    }
  });
  return total;
}

Value transposedByTaps(Ops &ops, const Value &images, const Value &kernel, const Windows &requested,
                       ArrayRef<int64_t> sizes) {
  checkRanks(images, requested);
  checkCount(kernel.rank(), images.rank());
  checkCount(sizes.size(), requested.taps.size());
  int64_t groups = requested.groups, filters = kernel.size(0).times, each = kernel.size(1).times;
  if (groups < 1 || filters % groups)
    throw Refused("a transposed convolution by a kernel " + describe(kernel.shape()) + " in " + std::to_string(groups) +
                  " groups");
  // Zeros between the images take the place of the strides; the kernel is reversed.
  Windows windows = requested;
  windows.spread = requested.strides;
  SmallVector<int64_t> axes;
  for (size_t i = 0; i < sizes.size(); ++i) {
    windows.strides[i] = 1;
    int64_t reach = multiply(windows.taps[i] - 1, windows.dilation[i]);
    int64_t spaced = multiply(images.size(i + 2).times - 1, requested.strides[i]) + 1;
    windows.low[i] = reach - requested.low[i];
    windows.high[i] = sizes[i] - spaced - windows.low[i] + reach;
    axes.push_back(static_cast<int64_t>(i) + 2);
  }
  Shape shape = kernel.shape();
  shape[0] = filters / groups;
  shape.insert(shape.begin(), Size(groups));
  Value turned = moveAxis(reshape(ops, reverse(ops, kernel, axes), shape), 1, 2);
  Shape flat = turned.shape();
  flat.erase(flat.begin());
  flat[0] = multiply(each, groups);
  return convolutionByTaps(ops, images, reshape(ops, turned, flat), windows);
}

// ---- Several images of a sample

std::optional<Stacked> stackedImages(Ops &ops, const Value &images, const Windows &windows, double fill) {
  if (windows.taps.size() > 2 || images.rank() != windows.taps.size() + 2 || !images.size(0).batch ||
      images.size(0).isBatch() || windows.spreads() ||
      llvm::any_of(llvm::drop_begin(images.shape()), [](const Size &size) { return size.batch; }))
    return std::nullopt;
  Stacked stacked;
  stacked.many = images.size(0).times;
  stacked.windows = windows;
  Shape shape = images.shape();
  shape[0] = batchSize();
  shape.insert(shape.begin() + 1, Size(stacked.many));
  Value apart; // [b, many, C, spatial...]
  try {
    apart = reshape(ops, images, shape);
  } catch (const Refused &) { // the batch is the inner part
    std::swap(shape[0], shape[1]);
    apart = reshape(ops, images, shape);
    apart = moveAxis(apart, 0, 1);
    stacked.batchInside = true;
  }
  // Each image with its own padding, and as much more as makes its rows a multiple of the stride.
  int64_t rows = images.size(2).times, stride = windows.strides[0];
  stacked.count = windows.count(0, rows);
  int64_t all = rows + windows.low[0] + windows.high[0], more = (stride - all % stride) % stride;
  SmallVector<int64_t> low(apart.rank(), 0), high(apart.rank(), 0);
  low[3] = windows.low[0];
  high[3] = windows.high[0] + more;
  stacked.windows.low[0] = stacked.windows.high[0] = 0;
  apart = pad(ops, apart, fill, low, high);
  SmallVector<int64_t> order = {0, 2, 1, 3};
  if (apart.rank() == 5)
    order.push_back(4);
  Value turned = transpose(apart, order);
  Shape joined = turned.shape();
  stacked.each = (all + more) / stride;
  joined.erase(joined.begin() + 2);
  joined[2] = multiply(stacked.many, all + more);
  stacked.images = reshape(ops, turned, joined);
  return stacked;
}

Value unstacked(Ops &ops, const Value &made, const Stacked &stacked) {
  // Windows that begin in one image and end in the next are left out.
  SmallVector<int64_t> low(made.rank(), 0), high(made.rank(), 0);
  high[2] = multiply(stacked.many, stacked.each) - made.size(2).times;
  Value all = pad(ops, made, 0, low, high);
  Shape shape = all.shape();
  shape[2] = stacked.each;
  shape.insert(shape.begin() + 2, Size(stacked.many));
  Value apart = sliceAxis(ops, reshape(ops, all, shape), 3, 0, stacked.count);
  SmallVector<int64_t> order =
      stacked.batchInside ? SmallVector<int64_t>{2, 0, 1, 3} : SmallVector<int64_t>{0, 2, 1, 3};
  if (apart.rank() == 5)
    order.push_back(4);
  Value turned = transpose(apart, order);
  Shape joined = turned.shape();
  joined.erase(joined.begin());
  joined[0] = Size(stacked.many, true);
  return reshape(ops, turned, joined);
}

} // namespace mtc::logical
