// SPDX-License-Identifier: Apache-2.0
//
// Steps over images, and lookup.
#include "test/unit/random/Generator.h"

using namespace mlir;
using namespace mlir::mt;
using namespace mtc::test;

namespace {

// The attributes of a window over an axis of 3 elements or more: with any of them there is an output.
struct Axis {
  int64_t taps, dilation, stride, low, high;
  int64_t reach() const { return (taps - 1) * dilation + 1; }
};

} // namespace

static Axis axisOf(std::mt19937 &random, bool dilated) {
  Axis axis;
  axis.taps = 1 + random() % 3;
  axis.dilation = dilated && axis.taps == 2 ? 1 + random() % 2 : 1;
  axis.stride = 1 + random() % 2;
  axis.low = random() % axis.reach();
  axis.high = random() % axis.reach();
  return axis;
}

// An image [?, H, W, C] of a value's elements.
Expr Generator::image(const Expr &x, int64_t channels) {
  int64_t height = 3 + below(4), width = 3 + below(4);
  return reshape(resized(x, height * width * channels), {dynamic, height, width, channels});
}

Expr Generator::flattened(const Expr &y, const Expr &x) {
  return mix(x, resized(reshape(y, {dynamic, elementsPerRow(y.type())}), width(x)));
}

Expr Generator::convolutionStep(const Expr &x) {
  int64_t groups = oneOf<int64_t>({1, 2, 3}), channels = groups * (1 + below(3)), filters = groups * (1 + below(5));
  Axis rows = axisOf(random, true), columns = axisOf(random, true);
  SmallVector<int64_t> strides{rows.stride, columns.stride}, dilation{rows.dilation, columns.dilation},
      padding{rows.low, rows.high, columns.low, columns.high};
  double scale = 1.0 / (rows.taps * columns.taps * (channels / groups));
  int64_t kind = below(3);
  Expr images = image(x, channels);
  Expr kernel = kind == 1 ? variable({rows.taps, columns.taps, filters / groups, channels})
                          : variable({rows.taps, columns.taps, channels / groups, filters});
  auto convolved = [&](const Expr &weights) {
    return make<Conv2DOp>(images.value(), weights.value(), strides, padding, dilation, groups);
  };
  switch (kind) {
  case 0:
    return flattened(tanh(convolved(kernel) + variable({filters})), x);
  case 1: { // transposed
    auto size = [&](int64_t outputs, const Axis &axis) {
      return (outputs - 1) * axis.stride + axis.reach() - axis.low - axis.high + below(axis.stride);
    };
    ArrayRef<int64_t> shape = images.type().getShape();
    auto type = f32({dynamic, size(shape[1], rows), size(shape[2], columns), filters});
    return flattened(
        tanh(make<Conv2DInputGradientOp>(type, images.value(), kernel.value(), strides, padding, dilation, groups) *
             scale),
        x);
  }
  default: { // a kernel that is a sum over the batch
    Expr n = make<BatchSizeOp>(f32({}));
    Expr sum = make<Conv2DKernelGradientOp>(kernel.type(), images.value(), convolved(kernel).value(), strides, padding,
                                            dilation, groups);
    return flattened(tanh(convolved(tanh(sum / n * 0.1)) * scale), x);
  }
  }
}

Expr Generator::poolStep(const Expr &x) {
  Axis rows = axisOf(random, false), columns = axisOf(random, false);
  SmallVector<int64_t> window{rows.taps, columns.taps}, strides{rows.stride, columns.stride},
      padding{rows.low, rows.high, columns.low, columns.high};
  Reduction kind = chance(50) ? Reduction::max : Reduction::sum;
  Expr images = image(x, 1 + below(4));
  Expr pooled = make<PoolOp>(kind, images.value(), window, strides, padding);
  double scale = kind == Reduction::max ? 1.0 : 1.0 / (rows.taps * columns.taps);
  if (chance(50))
    return flattened(pooled * scale, x);
  // It has no gradient of its own: a comparison ends the way back.
  Expr spread = make<PoolGradientOp>(images.type(), kind, pooled.value(),
                                     kind == Reduction::max ? images.value() : Value(), window, strides, padding);
  Expr mask = compare(Compare::gt, spread * scale, constant({}));
  return flattened(select(mask, images, images * 0.5), x);
}

Expr Generator::movementStep(const Expr &x) {
  Expr images = image(x, 1 + below(4));
  SmallVector<int64_t> shape(images.type().getShape().drop_front());
  auto each = [&](auto choose) { return SmallVector<int64_t>{choose(shape[0]), choose(shape[1]), choose(shape[2])}; };
  auto small = [&](int64_t) { return below(3); };
  switch (below(5)) {
  case 0: {
    SmallVector<int64_t> interior = chance(50) ? each(small) : SmallVector<int64_t>();
    return flattened(make<PadOp>(images.value(), each(small), each(small), interior,
                                 llvm::APFloat(float(chance(50) ? between(-1, 1) : 0))),
                     x);
  }
  case 1: {
    SmallVector<int64_t> strides = each([&](int64_t) { return 1 + below(2); }),
                         starts = each([&](int64_t size) { return below(size); }), sizes;
    for (int axis = 0; axis < 3; ++axis)
      sizes.push_back(1 + below((shape[axis] - starts[axis] - 1) / strides[axis] + 1));
    if (llvm::all_of(strides, [](int64_t stride) { return stride == 1; }))
      strides.clear();
    return flattened(make<SliceOp>(images.value(), starts, sizes, strides), x);
  }
  case 2: {
    SmallVector<int64_t> dims{1 + below(3)};
    if (dims[0] < 3 && chance(50))
      dims.push_back(3);
    return flattened(make<ReverseOp>(images.value(), dims), x);
  }
  default:
    return flattened(make<ConcatOp>(ValueRange{images.value(), tanh(images).value()}, 1 + below(3)), x);
  }
}

Expr Generator::lookupStep(const Expr &x) {
  // Some indices are outside the table, and are clamped.
  int64_t rows = oneOf<int64_t>({1, 4, 9});
  if (chance(25)) {
    Expr ids = make<CastOp>(i32(x.type().getShape()), (x * 2.9 + 1.0317).value());
    return flattened(make<GatherOp>(variable({rows, 3}).value(), ids.value()), x);
  }
  Expr ids = unary<ArgmaxOp>(x), n = make<BatchSizeOp>(f32({}));
  Expr table = variable({rows, width(x)});
  if (chance(75))
    table = table + make<ScatterAddOp>(table.type(), ids.value(), x.value()) / n;
  return mix(x, make<GatherOp>(table.value(), ids.value()));
}

Expr Generator::takeStep(const Expr &x) {
  Expr images = image(x, 1 + below(4));
  int64_t dim = 1 + below(3);
  SmallVector<int64_t> others{1, 2, 3};
  others.erase(others.begin() + (dim - 1));
  // Some indices are outside the images, and are clamped. Each sample has its own, or all have the same.
  Expr numbers = chance(50) ? reduce(Reduction::max, images, others) : constant({oneOf<int64_t>({1, 3, 6})});
  Expr ids = make<CastOp>(i32(numbers.type().getShape()), (numbers * 2.9 + 1.0317).value());
  Expr taken = make<TakeOp>(images.value(), ids.value(), dim);
  if (chance(50))
    return flattened(taken, x);
  return flattened(make<IndexAddOp>(images.type(), ids.value(), taken.value(), dim) * 0.3, x);
}
