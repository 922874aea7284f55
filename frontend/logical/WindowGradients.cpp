// SPDX-License-Identifier: Apache-2.0
//
// Gradients of convolutions and pools that a framework wrote out, as the ops that mt-differentiate makes of them.
#include "frontend/logical/Windows.h"

#include <cfloat>

using namespace mlir;

namespace mtc::logical {
namespace {

// One axis of a convolution of which output o reads image o * stride + k * dilation - low at tap k, without what takes
// no part, so that the ops of `mt` take it.
struct Span {
  int64_t size, outputs, low, high = 0;
  int64_t front = 0, back = 0;   // outputs that read padding alone
  int64_t before = 0, after = 0; // images that no window reads
};

// None: all windows read padding alone.
std::optional<Span> spanOf(int64_t size, int64_t outputs, int64_t taps, int64_t stride, int64_t dilation, int64_t low) {
  Span span{size, outputs, low};
  int64_t reach = multiply(taps - 1, dilation) + 1;
  if (low >= reach) {
    span.front = (low - reach) / stride + 1;
    span.low -= multiply(span.front, stride);
  }
  if (span.low < 0)
    span.before = -std::exchange(span.low, 0);
  span.size -= span.before;
  if (span.size < 1 || span.front >= outputs)
    return std::nullopt;
  span.outputs = std::min(outputs - span.front, (span.size - 1 + span.low) / stride + 1);
  span.back = outputs - span.front - span.outputs;
  span.high = multiply(span.outputs - 1, stride) + reach - span.size - span.low;
  if (span.high <= -stride) {
    span.after = -span.high;
    span.size -= span.after;
  }
  span.high = std::max<int64_t>(span.high, 0);
  return span;
}

// A convolution or pool of images of two axes.
struct Geometry {
  SmallVector<int64_t> taps, strides, dilation;
  int64_t groups = 1;
  SmallVector<Span> spans = {};

  // False: all windows read padding alone.
  bool add(std::optional<Span> span) {
    if (span)
      spans.push_back(*span);
    return span.has_value();
  }
  SmallVector<int64_t> padding() const { return {spans[0].low, spans[0].high, spans[1].low, spans[1].high}; }
  SmallVector<int64_t> sizes() const { return {spans[0].size, spans[1].size}; }
};

// Without what takes no part.
Value outputsOf(Ops &ops, Value gradient, const Geometry &geometry) {
  for (auto [i, span] : llvm::enumerate(geometry.spans))
    if (span.front != 0 || span.back != 0)
      gradient = sliceAxis(ops, gradient, i + 2, span.front, span.outputs);
  return gradient;
}
Value imagesOf(Ops &ops, Value images, const Geometry &geometry) {
  for (auto [i, span] : llvm::enumerate(geometry.spans))
    if (span.before != 0 || span.after != 0)
      images = sliceAxis(ops, images, i + 2, span.before, span.size);
  return images;
}
// With zeros for images that no window reads.
Value allImages(Ops &ops, const Value &images, const Geometry &geometry) {
  SmallVector<int64_t> before = {0, 0}, after = {0, 0};
  for (const Span &span : geometry.spans) {
    before.push_back(span.before);
    after.push_back(span.after);
  }
  return pad(ops, images, 0, before, after);
}

mlir::Value stored(Ops &ops, const Value &images) { return whole(ops, channelsLast(images)); }

// ---- The convolution that a gradient belongs to, where the model has it

bool isView(Operation &op) { return isa<mt::TransposeOp, mt::ReshapeOp>(op); }

// The convolutions that read a value, or another view of the same elements.
SmallVector<mt::Conv2DOp> readersOf(mlir::Value value) {
  for (int views = 0; views < 4 && value.getDefiningOp() && isView(*value.getDefiningOp()); ++views)
    value = value.getDefiningOp()->getOperand(0);
  SmallVector<mt::Conv2DOp> found;
  SmallVector<std::pair<mlir::Value, int>> waiting = {{value, 0}};
  while (!waiting.empty()) {
    auto [next, views] = waiting.pop_back_val();
    for (Operation *user : next.getUsers())
      if (auto convolution = dyn_cast<mt::Conv2DOp>(user))
        found.push_back(convolution);
      else if (isView(*user) && views < 4)
        waiting.push_back({user->getResult(0), views + 1});
  }
  return found;
}

// Padding behind the images may be more than what windows read. The same as that of the convolution makes the same
// kernels of both.
SmallVector<int64_t> paddingLike(ArrayRef<mt::Conv2DOp> readers, const Geometry &geometry, RankedTensorType images,
                                 RankedTensorType kernel, RankedTensorType outputs) {
  SmallVector<int64_t> padding = geometry.padding();
  for (mt::Conv2DOp reader : readers) {
    ArrayRef<int64_t> other = reader.getPadding();
    if (reader.getInput().getType() == images && reader.getKernel().getType() == kernel &&
        reader.getType() == outputs && reader.getStrides() == ArrayRef<int64_t>(geometry.strides) &&
        reader.getDilation() == ArrayRef<int64_t>(geometry.dilation) &&
        static_cast<int64_t>(reader.getGroups()) == geometry.groups && other[0] == padding[0] && other[2] == padding[2])
      return SmallVector<int64_t>(other);
  }
  return padding;
}

// ---- To the kernel

// The sum over the samples: [F, C / groups, taps...] of images [b, C, ...] and the gradient of the outputs [b, F, ...].
Value kernelGradient(Ops &ops, const Value &images, const Value &gradient, const Geometry &geometry) {
  int64_t channels = images.size(1).times, filters = gradient.size(1).times, groups = geometry.groups;
  if (groups < 1 || channels % groups != 0 || filters % groups != 0)
    throw Refused("the gradient of a kernel for " + std::to_string(channels) + " channels and " +
                  std::to_string(filters) + " filters in " + std::to_string(groups) + " groups");
  mlir::Value x = stored(ops, imagesOf(ops, images, geometry)), dy = stored(ops, outputsOf(ops, gradient, geometry));
  auto type = RankedTensorType::get({geometry.taps[0], geometry.taps[1], channels / groups, filters}, ops.real());
  SmallVector<int64_t> padding = paddingLike(readersOf(x), geometry, cast<RankedTensorType>(x.getType()), type,
                                             cast<RankedTensorType>(dy.getType()));
  mlir::Value made = mt::Conv2DKernelGradientOp::create(ops.builder, ops.location, type, x, dy, geometry.strides,
                                                        padding, geometry.dilation, groups);
  return transpose(ops.value(made), {3, 2, 0, 1});
}

void checkSamplesContracted(const Value &images, const Value &gradient) {
  for (const Value *value : {&images, &gradient})
    for (size_t i = 0; i < value->rank(); ++i)
      if (i == 1 ? !value->size(i).isBatch() : value->size(i).batch)
        throw Refused("a convolution of " + describe(images.shape()) + " by " + describe(gradient.shape()) +
                      ", which mixes samples; a sum over the samples has them as the second axis of both");
}

// One of several batches that stand one after the other along the second axis.
Value batchOf(Ops &ops, const Value &value, int64_t number) {
  Shape shape = value.shape(), apart = shape;
  apart[1] = batchSize();
  Shape one = apart;
  apart.insert(apart.begin() + 1, Size(shape[1].times));
  return reshape(ops, sliceAxis(ops, reshape(ops, value, apart), 1, number, 1), one);
}

// Computes the gradient of a kernel, [C / groups, F, taps...], from images [C, b, ...] and the gradient of the outputs
// [F, b, ...]. The taps are the outputs of the convolution that the framework wrote, whose dilation is the stride of
// the model's convolution.
Value kernelGradientOf(Ops &ops, const Value &first, const Value &second, const Windows &written, int64_t groups) {
  if (int64_t batches = first.size(1).times; first.size(1).batch && first.size(1) == second.size(1) && batches > 1) {
    Value sum = kernelGradientOf(ops, batchOf(ops, first, 0), batchOf(ops, second, 0), written, groups);
    for (int64_t i = 1; i < batches; ++i)
      sum = binary<mt::AddOp>(ops, sum,
                              kernelGradientOf(ops, batchOf(ops, first, i), batchOf(ops, second, i), written, groups));
    return sum;
  }
  checkSamplesContracted(first, second);
  if (written.groups != 1)
    throw Refused("a convolution over the samples in groups of them");
  Windows windows = withTwoAxes(written);
  Value images = transpose(asImages(first), {1, 0, 2, 3}), gradient = transpose(asImages(second), {1, 0, 2, 3});
  Geometry geometry{{}, windows.dilation, windows.strides, groups};
  for (size_t i = 0; i < 2; ++i)
    geometry.taps.push_back(windows.count(i, images.size(i + 2).times));
  bool spreads = windows.spreads();
  bool strided = llvm::any_of(windows.dilation, [](int64_t n) { return n != 1; });
  if (spreads && (strided || groups != 1)) {
    SmallVector<int64_t> none(4, 0);
    images = pad(ops, images, 0, none, none, {0, 0, windows.spread[0] - 1, windows.spread[1] - 1});
    spreads = false;
  }
  // The model's convolution has zeros between its images: it is the gradient of one that makes them of its outputs.
  if (spreads)
    geometry.strides = windows.spread;
  for (size_t i = 0; i < 2; ++i) {
    int64_t size = images.size(i + 2).times, outputs = gradient.size(i + 2).times, taps = geometry.taps[i];
    if (!geometry.add(spreads ? spanOf(outputs, size, taps, geometry.strides[i], geometry.dilation[i],
                                       multiply(taps - 1, geometry.dilation[i]) - windows.low[i])
                              : spanOf(size, outputs, taps, geometry.strides[i], geometry.dilation[i], windows.low[i])))
      throw Refused("the gradient of a kernel of a convolution whose windows read padding alone");
  }
  Value made;
  if (spreads)
    made = reverse(ops, kernelGradient(ops, gradient, images, geometry), {2, 3});
  else
    made = transpose(kernelGradient(ops, images, gradient, geometry), {1, 0, 2, 3});
  return fromImages(made, first.rank());
}

// ---- To the images

// A kernel [O, I / groups, taps...] of a convolution that is a gradient, for the model's convolution: [I, O / groups,
// taps...].
Value transposedKernel(Ops &ops, const Value &kernel, int64_t groups) {
  if (groups == 1)
    return transpose(kernel, {1, 0, 2, 3});
  int64_t outputs = kernel.size(0).times, inputs = kernel.size(1).times;
  int64_t height = kernel.size(2).times, width = kernel.size(3).times;
  Value apart = reshape(ops, kernel, {groups, outputs / groups, inputs, height, width});
  return reshape(ops, transpose(apart, {0, 2, 1, 3, 4}), {multiply(groups, inputs), outputs / groups, height, width});
}

// What is reversed along all spatial axes; none: the kernel is not.
std::optional<Value> unreversed(const Value &kernel) {
  auto reversed = kernel.stored.getDefiningOp<mt::ReverseOp>();
  if (!reversed)
    return std::nullopt;
  size_t count = 0;
  for (size_t i = 2; i < kernel.rank(); ++i)
    for (const Axis &part : kernel.axes[i])
      if (part.isStored()) {
        if (!llvm::is_contained(reversed.getDims(), part.place))
          return std::nullopt;
        ++count;
      }
  if (count != reversed.getDims().size())
    return std::nullopt;
  return Value{reversed.getOperand(), kernel.axes};
}

// Whether a kernel of one tap is that of a convolution with its two first axes in the other order, which the model has.
bool isTransposedOfReader(const Value &kernel) {
  Parts outputs = kernel.axes[0], inputs = kernel.axes[1];
  if (outputs.size() != 1 || inputs.size() != 1 || !outputs[0].isStored() || !inputs[0].isStored())
    return false;
  for (mt::Conv2DOp reader : readersOf(kernel.stored)) {
    auto type = cast<RankedTensorType>(reader.getKernel().getType());
    if (reader.getGroups() != 1 || type.getDimSize(0) != 1 || type.getDimSize(1) != 1 ||
        type.getDimSize(2) != outputs[0].size.times || type.getDimSize(3) != inputs[0].size.times)
      continue;
    bool swapped = outputs[0].place > inputs[0].place; // whether that of the reader has the two in another order
    auto follow = [&](mlir::Value value) {
      for (; value.getDefiningOp() && isView(*value.getDefiningOp()); value = value.getDefiningOp()->getOperand(0))
        if (auto transposed = dyn_cast<mt::TransposeOp>(value.getDefiningOp())) {
          auto from = cast<RankedTensorType>(transposed.getOperand().getType());
          SmallVector<int64_t> moved;
          for (int64_t axis : transposed.getPermutation())
            if (from.getDimSize(axis) != 1)
              moved.push_back(axis);
          swapped ^= !llvm::is_sorted(moved);
        }
      return value;
    };
    if (follow(reader.getKernel()) == follow(kernel.stored) && !swapped)
      return true;
  }
  return false;
}

// Computes the gradient of the images, [b, C, ...], from the gradient of the outputs [b, F, ...] and a kernel
// [F, C / groups, taps...].
Value imageGradient(Ops &ops, const Value &gradient, const Value &kernel, const Geometry &geometry) {
  int64_t channels = multiply(kernel.size(1).times, geometry.groups);
  mlir::Value dy = stored(ops, outputsOf(ops, gradient, geometry)), w = wholeKernel(ops, kernel);
  RankedTensorType type = imagesType(ops, geometry.spans[0].size, geometry.spans[1].size, channels);
  SmallVector<int64_t> padding = paddingLike(readersOf(w), geometry, type, cast<RankedTensorType>(w.getType()),
                                             cast<RankedTensorType>(dy.getType()));
  mlir::Value made = mt::Conv2DInputGradientOp::create(ops.builder, ops.location, type, dy, w, geometry.strides,
                                                       padding, geometry.dilation, geometry.groups);
  return allImages(ops, channelsFirst(ops.value(made)), geometry);
}

bool isEach(ArrayRef<int64_t> numbers, int64_t number) {
  return llvm::all_of(numbers, [&](int64_t n) { return n == number; });
}

// A convolution of strides 1 and the kernel [I, O / groups, taps...] of the one to whose images it is the gradient.
// Null: all of its windows read padding alone.
Value imageGradientOf(Ops &ops, const Value &input, const Value &kernel, const Windows &windows) {
  Value gradient = asImages(input);
  Geometry geometry{windows.taps, windows.spread, windows.dilation, windows.groups};
  for (size_t i = 0; i < 2; ++i) {
    int64_t outputs = gradient.size(i + 2).times, reach = multiply(windows.taps[i] - 1, windows.dilation[i]) + 1;
    if (!geometry.add(spanOf(windows.count(i, outputs), outputs, windows.taps[i], windows.spread[i],
                             windows.dilation[i], reach - 1 - windows.low[i])))
      return {};
  }
  return fromImages(imageGradient(ops, gradient, kernel, geometry), input.rank());
}

} // namespace

Value generalConvolution(Ops &ops, const Value &images, const Value &kernel, const Windows &requested,
                         int64_t sampleGroups) {
  checkCount(kernel.rank(), images.rank());
  if (images.size(1).batch || kernel.size(1).batch) {
    checkWindows(images, requested);
    return kernelGradientOf(ops, images, kernel, requested, sampleGroups);
  }
  if (sampleGroups != 1)
    throw Refused("a convolution in groups of samples");
  if (!hasKernels(images, requested))
    return convolution(ops, images, kernel, requested);
  checkImages(images, requested);
  checkKernel(images, kernel);
  Windows windows = withTwoAxes(requested);
  int64_t groups = windows.groups, outputs = kernel.size(0).times;
  bool divides = groups >= 1 && outputs % groups == 0 && images.size(1).times % groups == 0 &&
                 kernel.size(1).times == images.size(1).times / groups;
  if (divides && isEach(windows.strides, 1)) {
    Value both = asImages(kernel);
    std::optional<Value> straight = unreversed(both);
    bool plain = isEach(windows.taps, 1) && isEach(windows.low, 0) && isEach(windows.high, 0) && groups == 1;
    if (!straight && windows.spreads())
      straight = reverse(ops, both, {2, 3});
    else if (!straight && plain && isTransposedOfReader(both))
      straight = both;
    if (Value made =
            straight ? imageGradientOf(ops, images, transposedKernel(ops, *straight, groups), windows) : Value())
      return made;
  }
  if (!windows.spreads())
    return convolution(ops, images, kernel, requested);
  SmallVector<int64_t> none(images.rank(), 0), interior = {0, 0};
  for (int64_t n : requested.spread)
    interior.push_back(n - 1);
  Windows rest = requested;
  rest.spread.clear();
  return convolution(ops, pad(ops, images, 0, none, none, interior), kernel, rest);
}

Value maximumGradient(Ops &ops, const Value &gradient, const Value &input, const Windows &requested) {
  checkImages(input, requested);
  checkImages(gradient, requested);
  Windows windows = withTwoAxes(requested);
  SmallVector<int64_t> low = {0, 0}, high = {0, 0};
  for (size_t i = 0; i < 2; ++i)
    low.push_back(windows.low[i]), high.push_back(windows.high[i]);
  Value images = padded(ops, asImages(input), windows, -FLT_MAX);
  for (size_t i = 0; i < 2; ++i) {
    bool own = windows.low[i] == low[i + 2] && windows.high[i] == high[i + 2];
    low[i + 2] = own ? 0 : -low[i + 2];
    high[i + 2] = own ? 0 : -high[i + 2];
    int64_t outputs = windows.count(i, images.size(i + 2).times);
    if (int64_t found = asImages(gradient).size(i + 2).times; found != outputs)
      throw Refused("expected a gradient of " + std::to_string(outputs) + " windows, found one of " +
                    std::to_string(found));
  }
  if (!(gradient.size(1) == input.size(1)))
    throw Refused("expected a gradient of " + input.size(1).text() + " channels, found " + gradient.size(1).text());
  mlir::Value x = stored(ops, images), dy = stored(ops, asImages(gradient));
  mlir::Value made = mt::PoolGradientOp::create(ops.builder, ops.location, x.getType(), mt::Reduction::max, dy, x,
                                                windows.taps, windows.strides, paddingOf(windows));
  Value result = channelsFirst(ops.value(made));
  return fromImages(pad(ops, result, 0, low, high), input.rank());
}

Value averageGradient(Ops &ops, const Value &input, const Windows &requested) {
  auto zeros = input.stored.getDefiningOp<mt::PadOp>();
  if (!zeros || zeros.getInterior().empty() || !zeros.getValue().isZero() || !isEach(requested.strides, 1))
    return {};
  Windows windows = withTwoAxes(requested);
  Value gradient{zeros.getOperand(), input.axes};
  auto from = cast<RankedTensorType>(zeros.getOperand().getType());
  for (auto [i, axis] : llvm::enumerate(gradient.axes))
    for (Axis &part : axis)
      if (part.isStored() && !part.size.batch) {
        part.size = from.getDimSize(part.place);
        bool moves = !(part.size == input.axes[i][&part - axis.begin()].size);
        if (moves && (i < 2 || axis.size() != 1))
          return {};
      }
  Value images = asImages(gradient);
  SmallVector<int64_t> low = windows.low, strides;
  int first = mt::isSplit(from) ? 1 : 0; // the numbers of a pad are without the batch axis
  for (size_t i = 0; i < 2; ++i) {
    const Parts &parts = images.axes[i + 2];
    bool isThere = parts.size() == 1 && parts[0].isStored();
    strides.push_back(isThere ? zeros.getInterior()[parts[0].place - first] + 1 : 1);
    low[i] += isThere ? zeros.getLow()[parts[0].place - first] : 0;
  }
  Geometry geometry{windows.taps, strides, {1, 1}};
  for (size_t i = 0; i < 2; ++i)
    if (!geometry.add(spanOf(windows.count(i, asImages(input).size(i + 2).times), images.size(i + 2).times,
                             windows.taps[i], strides[i], 1, windows.taps[i] - 1 - low[i])))
      return {};
  mlir::Value dy = stored(ops, outputsOf(ops, ops.tidy(images), geometry));
  RankedTensorType type = imagesType(ops, geometry.spans[0].size, geometry.spans[1].size, input.size(1).times);
  mlir::Value made = mt::PoolGradientOp::create(ops.builder, ops.location, type, mt::Reduction::sum, dy, mlir::Value(),
                                                windows.taps, strides, geometry.padding());
  Value result = allImages(ops, channelsFirst(ops.value(made)), geometry);
  return fromImages(result, input.rank());
}

} // namespace mtc::logical
