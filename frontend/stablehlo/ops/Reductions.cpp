// SPDX-License-Identifier: Apache-2.0
//
// Reductions of StableHLO, over axes and over windows, and the gradients of reductions over windows.
#include "frontend/logical/Functions.h"
#include "frontend/stablehlo/Call.h"

#include <cmath>

using namespace mlir;

namespace mtc::stablehlo {
namespace {

using logical::Shape;
using logical::Value;

// Whether the number with which a reduction starts changes no result.
bool isNeutral(const Known &start, mt::Reduction kind, bool boolean) {
  if (start.count() != 1 || start.hasBatch())
    return false;
  double number = start.numbers[0];
  constexpr double lowest = -3.4028234e38, whole = 2147483647;
  if (kind == mt::Reduction::sum)
    return number == 0;
  if (boolean)
    return number == (kind == mt::Reduction::min);
  return kind == mt::Reduction::max ? number <= lowest || number <= -whole : number >= -lowest || number >= whole;
}

mt::Reduction kindOf(Call &call) {
  if (call.operands.size() != 2)
    throw Refused("a reduction of " + std::to_string(call.operands.size() / 2) +
                  " values together, as argmax is; one "
                  "value with a start is supported");
  StringRef name = call.reducer();
  bool boolean = call.known(0) ? call.known(0)->type == Known::Type::Boolean : call.value(0).isBoolean();
  mt::Reduction kind;
  if (name == "stablehlo.add" && !boolean)
    kind = mt::Reduction::sum;
  else if (name == "stablehlo.maximum" || (name == "stablehlo.or" && boolean))
    kind = mt::Reduction::max;
  else if (name == "stablehlo.minimum" || (name == "stablehlo.and" && boolean))
    kind = mt::Reduction::min;
  else
    throw Refused("a reduction by " + (name.empty() ? "a computation" : name.str()) +
                  "; sums, maxima and minima are supported");
  const Known &start = call.expectKnown(1, "a start");
  bool isAdded = !boolean && !call.known(0) && start.count() == 1 && !start.hasBatch(); // by `started`
  if (!isAdded && !isNeutral(start, kind, boolean))
    throw Refused("a reduction that starts with what changes it");
  return kind;
}

// The result with what the reduction starts with.
Value started(Call &call, mt::Reduction kind, const Value &made) {
  const Known &start = *call.known(1);
  if (made.isBoolean() || isNeutral(start, kind, false))
    return made;
  Value number = start.lift(call.ops);
  if (kind == mt::Reduction::sum)
    return logical::binary<mt::AddOp>(call.ops, made, number);
  return kind == mt::Reduction::max ? logical::binary<mt::MaximumOp>(call.ops, made, number)
                                    : logical::binary<mt::MinimumOp>(call.ops, made, number);
}

// A product along axes that are not the batch, of a value that is not known.
bool buildProduct(Call &call, ArrayRef<int64_t> axes) {
  if (call.operands.size() != 2 || call.reducer() != "stablehlo.multiply" || call.known(0))
    return false;
  Value value = call.value(0);
  const Known &start = call.expectKnown(1, "a start");
  if (start.count() != 1 || start.hasBatch() || start.numbers[0] != 1)
    throw Refused("a product that starts with another number than 1");
  SmallVector<int64_t> sorted(axes);
  llvm::sort(sorted, std::greater<>());
  for (int64_t axis : sorted)
    value = logical::productAlong(call.ops, value, logical::checkAxis(axis, value.rank()));
  call.give(value);
  return true;
}

void buildReduce(Call &call) {
  if (buildArgmax(call))
    return;
  SmallVector<int64_t> axes = call.integers("dimensions");
  if (buildProduct(call, axes))
    return;
  mt::Reduction kind = kindOf(call);
  Value value = call.value(0);
  for (int64_t axis : axes)
    if (axis < 0 || axis >= std::ssize(value.axes))
      throw Refused("expected axes of the operand as dimensions");
  if (!value.isBoolean())
    return call.give(started(call, kind, logical::reduce(call.ops, kind, value, axes)));
  if (llvm::all_of(axes, [&](int64_t axis) { return value.size(axis).isOne(); }))
    return call.give(logical::squeeze(value, axes));
  constexpr double half = 0.5;
  Value reduced = logical::reduce(call.ops, kind, logical::cast(call.ops, value, call.ops.real()), axes);
  call.give(logical::compare(call.ops, mt::Compare::gt, reduced, call.ops.number(half, call.ops.real())));
}

// The windows that the op has along each axis.
logical::Windows readWindows(Call &call, size_t rank) {
  logical::Windows windows;
  windows.taps = call.integers("window_dimensions", rank);
  windows.strides = call.integers("window_strides", rank, 1);
  windows.dilation = call.integers("window_dilations", rank, 1);
  windows.spread = call.integers("base_dilations", rank, 1);
  SmallVector<int64_t> pads = call.integers("padding", 2 * rank, 0);
  constexpr int64_t most = int64_t{1} << 20;
  for (size_t i = 0; i < rank; ++i) {
    auto [least, largest] = std::minmax({windows.taps[i], windows.strides[i], windows.dilation[i], windows.spread[i]});
    if (least < 1 || largest > most || std::abs(pads[2 * i]) > most || std::abs(pads[2 * i + 1]) > most)
      throw Refused("windows of sizes above 2^20");
    windows.low.push_back(pads[2 * i]);
    windows.high.push_back(pads[2 * i + 1]);
  }
  return windows;
}

// Windows over two axes of four, or one of three; the channels are the axis that is left.
struct OrderedWindows {
  SmallVector<int64_t> order = {0}; // the samples, the channels, the axes with windows
  logical::Windows windows;
};

OrderedWindows orderedWindows(Call &call, size_t rank) {
  if (rank != 3 && rank != 4)
    throw Refused("windows of a value of " + std::to_string(rank) + " axes");
  const logical::Windows given = readWindows(call, rank);
  if (llvm::any_of(given.dilation, [](int64_t dilation) { return dilation != 1; }))
    throw Refused("windows with dilations");
  auto isStill = [&](size_t i) {
    return given.taps[i] == 1 && given.strides[i] == 1 && given.spread[i] == 1 && given.low[i] == 0 &&
           given.high[i] == 0;
  };
  if (!isStill(0))
    throw Refused("windows over the samples");
  // The last axis without a window has the channels.
  size_t channels = rank - 1;
  while (channels > 0 && !isStill(channels))
    --channels;
  if (channels == 0)
    throw Refused("windows over all axes of a sample");
  OrderedWindows result;
  result.order.push_back(static_cast<int64_t>(channels));
  for (size_t i = 1; i < rank; ++i)
    if (i != channels) {
      result.order.push_back(static_cast<int64_t>(i));
      result.windows.taps.push_back(given.taps[i]);
      result.windows.strides.push_back(given.strides[i]);
      result.windows.dilation.push_back(1);
      result.windows.spread.push_back(given.spread[i]);
      result.windows.low.push_back(given.low[i]);
      result.windows.high.push_back(given.high[i]);
    }
  return result;
}

SmallVector<int64_t> inverseOf(ArrayRef<int64_t> order) {
  SmallVector<int64_t> back(order.size());
  for (auto [to, from] : llvm::enumerate(order))
    back[from] = static_cast<int64_t>(to);
  return back;
}

// Reduces the windows of known numbers, such as the number of elements in each window of an average.
Known reducedWindows(Call &call, const Known &known, mt::Reduction kind) {
  size_t rank = known.shape.size();
  SmallVector<int64_t> taps = call.integers("window_dimensions", rank),
                       strides = call.integers("window_strides", rank, 1),
                       spread = call.integers("window_dilations", rank, 1),
                       base = call.integers("base_dilations", rank, 1), pads = call.integers("padding", 2 * rank, 0);
  logical::Windows windows{taps, strides, spread, {}, {}, 1, base};
  logical::Indices shape;
  int64_t work = 1;
  constexpr int64_t most = int64_t{1} << 20;
  for (size_t i = 0; i < rank; ++i) {
    windows.low.push_back(pads[2 * i]);
    windows.high.push_back(pads[2 * i + 1]);
    if (std::min({taps[i], strides[i], spread[i], base[i]}) < 1 ||
        std::max({taps[i], strides[i], spread[i], base[i], std::abs(pads[2 * i]), std::abs(pads[2 * i + 1])}) > most)
      throw Refused("windows of sizes above 2^20");
    shape.push_back(windows.count(i, known.shape[i]));
    work = logical::multiply(work, logical::multiply(shape.back(), taps[i]));
  }
  call.ops.charge(work);
  Known result = Known::zeros(shape, known.type);
  logical::Indices tapped, at(rank);
  tapped.assign(taps.begin(), taps.end());
  int64_t next = 0;
  auto each = [](ArrayRef<int64_t> sizes, llvm::function_ref<void(ArrayRef<int64_t>)> use) {
    logical::Indices index(sizes.size(), 0);
    for (bool more = true; more;) {
      use(index);
      more = false;
      for (size_t i = sizes.size(); i-- > 0 && !more;) {
        more = ++index[i] < sizes[i];
        index[i] = more ? index[i] : 0;
      }
    }
  };
  each(shape, [&](ArrayRef<int64_t> output) {
    std::optional<double> number;
    each(tapped, [&](ArrayRef<int64_t> tap) {
      for (size_t i = 0; i < rank; ++i) {
        int64_t place = output[i] * strides[i] + tap[i] * spread[i] - windows.low[i];
        at[i] = place / base[i];
        if (place < 0 || place % base[i] != 0 || at[i] >= known.shape[i])
          return;
      }
      double value = known.numbers[known.place(at)];
      if (kind == mt::Reduction::sum)
        number = number.value_or(0) + value;
      else
        number = kind == mt::Reduction::max ? std::max(number.value_or(value), value)
                                            : std::min(number.value_or(value), value);
    });
    result.numbers[next++] = number.value_or(call.known(1)->numbers[0]);
  });
  return result;
}

void buildReduceWindow(Call &call) {
  mt::Reduction kind = kindOf(call);
  if (const Known *known = call.known(0); known && !known->hasBatch())
    return call.give(reducedWindows(call, *known, kind));
  Value value = call.value(0);
  const mt::Reduction asked = kind;
  const bool least = kind == mt::Reduction::min; // the largest of the negatives
  if (least) {
    value = logical::unary<mt::NegOp>(call.ops, value);
    kind = mt::Reduction::max;
  }
  bool shared = llvm::none_of(value.shape(), [](const Size &size) { return size.batch; });
  auto [order, windows] =
      shared ? OrderedWindows{{}, readWindows(call, value.rank())} : orderedWindows(call, value.rank());
  // What all samples share has windows along any of its axes.
  Value images = shared ? logical::expandDims(value, {0, 1}) : logical::transpose(value, order);
  if (windows.spreads()) {
    if (kind != mt::Reduction::sum)
      throw Refused("maxima of windows with dilations");
    SmallVector<int64_t> none(images.rank(), 0), interior = {0, 0};
    for (int64_t n : windows.spread)
      interior.push_back(n - 1);
    images = logical::pad(call.ops, images, 0, none, none, interior);
    windows.spread.clear();
  }
  Value made = logical::pool(call.ops, kind, images, windows);
  made = shared ? logical::squeeze(made, {0, 1}) : logical::transpose(made, inverseOf(order));
  call.give(started(call, asked, least ? logical::unary<mt::NegOp>(call.ops, made) : made));
}

// The name of the only op of a region of two scalars, which it returns.
Operation *onlyOp(Region &region) {
  if (!region.hasOneBlock() || region.front().getOperations().size() != 2 || region.getNumArguments() != 2)
    return nullptr;
  Operation &first = region.front().front(), &last = region.front().back();
  bool plain = first.getNumOperands() == 2 && first.getNumResults() == 1 &&
               first.getOperand(0) == region.getArgument(0) && first.getOperand(1) == region.getArgument(1) &&
               last.getNumOperands() == 1 && last.getOperand(0) == first.getResult(0);
  return plain ? &first : nullptr;
}

// The gradient of maxima of windows: each goes to the first of the largest.
void buildSelectAndScatter(Call &call) {
  Operation *select = call.op.getNumRegions() == 2 ? onlyOp(call.op.getRegion(0)) : nullptr;
  Operation *scatter = call.op.getNumRegions() == 2 ? onlyOp(call.op.getRegion(1)) : nullptr;
  auto direction = select ? dyn_cast_or_null<OpaqueAttr>(select->getAttr("comparison_direction")) : OpaqueAttr();
  if (!scatter || scatter->getName().getStringRef() != "stablehlo.add" ||
      select->getName().getStringRef() != "stablehlo.compare" || !direction ||
      !direction.getAttrData().contains("GE") || call.expectKnown(2, "a start").count() != 1 ||
      call.known(2)->numbers[0] != 0)
    throw Refused("a select_and_scatter other than one that selects by GE and adds to zeros, which is the gradient of "
                  "maxima of windows");
  Value images = call.value(0), gradient = call.value(1);
  logical::checkCount(gradient.rank(), images.rank());
  auto [order, windows] = orderedWindows(call, images.rank());
  Value made = logical::maximumGradient(call.ops, logical::transpose(gradient, order),
                                        logical::transpose(images, order), windows);
  call.give(logical::transpose(made, inverseOf(order)));
}

} // namespace

llvm::ArrayRef<OpEntry> reductionOps() {
  static constexpr OpEntry entries[] = {{"reduce", buildReduce, anyNumber},
                                        {"reduce_window", buildReduceWindow, anyNumber},
                                        {"select_and_scatter", buildSelectAndScatter, 3}};
  return entries;
}

} // namespace mtc::stablehlo
