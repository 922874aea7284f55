// SPDX-License-Identifier: Apache-2.0
//
// Reductions of StableHLO, over axes and over windows, the gradient of the latter, and lookups.
#include "frontend/logical/Functions.h"
#include "frontend/stablehlo/Call.h"

#include <cmath>

using namespace mlir;

namespace mtc::stablehlo {
namespace {

using logical::Shape;
using logical::Value;

// Of no elements: what a reduction begins with, which XLA adds to the result.
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

// Of numbers that the file says, such as how many elements each window of an average has.
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

// Parts of any size at places that the file says: each is a slice, whose start is moved so that it lies inside.
void giveSlices(Call &call, const Known &places, ArrayRef<Size> sizes) {
  std::string text = call.text("dimension_numbers");
  SmallVector<int64_t> offsets = listIn(text, "offset_dims"), collapsed = listIn(text, "collapsed_slice_dims"),
                       map = listIn(text, "start_index_map");
  int64_t vector = numberIn(text, "index_vector_dim").value_or(0);
  Value value = call.value(0);
  Shape shape = value.shape(), lead(places.shape.begin(), places.shape.end()), part;
  if (vector < std::ssize(lead)) // the numbers of a place, behind one another
    lead.erase(lead.begin() + vector);
  int64_t count = 1;
  for (const Size &size : lead)
    count = logical::multiply(count, size.times);
  constexpr int64_t manyParts = 256;
  bool last = vector == std::ssize(places.shape) || vector + 1 == std::ssize(places.shape);
  if (!last || count < 1 || count > manyParts || count * std::ssize(map) != places.count() ||
      sizes.size() != shape.size())
    throw Refused("a gather of more than 256 parts, or by indices in another order");
  logical::checkAxes(map, shape.size());
  logical::checkAxes(collapsed, shape.size());
  SmallVector<int64_t> numbers = places.integers();
  SmallVector<Value> parts;
  for (int64_t i = 0; i < count; ++i) {
    SmallVector<int64_t> starts(shape.size(), 0), strides(shape.size(), 1);
    for (auto [index, axis] : llvm::enumerate(map)) {
      bool batch = shape[axis].batch || sizes[axis].batch;
      if (batch ? sizes[axis] != shape[axis] : sizes[axis].times > shape[axis].times)
        throw Refused("a gather of a part of the samples of a batch, or of more than there is");
      int64_t most = batch ? 0 : shape[axis].times - sizes[axis].times;
      starts[axis] = std::clamp<int64_t>(numbers[i * std::ssize(map) + static_cast<int64_t>(index)], 0, most);
    }
    for (size_t axis = 0; axis < shape.size(); ++axis)
      if (!llvm::is_contained(map, static_cast<int64_t>(axis)) && sizes[axis] != shape[axis] && shape[axis].batch)
        throw Refused("a gather of a part of the samples of a batch");
    Value slice = logical::slice(call.ops, value, starts, sizes, strides);
    parts.push_back(logical::expandDims(logical::squeeze(slice, collapsed), {0}));
  }
  part = parts[0].shape();
  Value all = count == 1 ? parts[0] : logical::concat(call.ops, parts, 0);
  Shape full = lead;
  full.append(part.begin() + 1, part.end());
  all = lead.size() == 1 && !lead[0].isOne() ? all : logical::reshape(call.ops, all, full);
  // The result has the parts' axes at offset_dims, and those of the places in between.
  SmallVector<int64_t> permutation;
  auto next = static_cast<int64_t>(lead.size());
  int64_t place = 0;
  for (int64_t i = 0; i < static_cast<int64_t>(all.rank()); ++i)
    permutation.push_back(llvm::is_contained(offsets, i) ? next++ : place++);
  call.give(logical::transpose(all, permutation));
}

// Whole slices by one index: rows of a table, or elements of each sample.
void giveGather(Call &call, ArrayRef<Size> sizes) {
  std::string text = call.text("dimension_numbers");
  SmallVector<int64_t> offsets = listIn(text, "offset_dims"), collapsed = listIn(text, "collapsed_slice_dims"),
                       map = listIn(text, "start_index_map"), batching = listIn(text, "operand_batching_dims");
  int64_t vector = numberIn(text, "index_vector_dim").value_or(0);
  Shape shape = call.shape(0), ids = call.shape(1);
  const Known *known = call.known(0), *places = call.known(1);
  bool whole = map.size() == 1 && collapsed == map && map[0] >= 0 && map[0] < std::ssize(shape);
  for (int64_t i = 0; whole && i < std::ssize(shape) && sizes.size() == shape.size(); ++i)
    whole = i == map[0] ? sizes[i].isOne() : sizes[i] == shape[i];
  if (!whole && batching.empty() && places && !places->hasBatch())
    return giveSlices(call, *places, sizes);
  auto last = static_cast<int64_t>(shape.size()) - 1;
  if (batching.size() > 1 && llvm::equal(batching, llvm::seq<int64_t>(0, last)) && offsets.empty() &&
      listIn(text, "start_indices_batching_dims") == batching && map == ArrayRef<int64_t>{last} && collapsed == map &&
      !shape[last].batch && vector == std::ssize(ids) - 1 && ids.back().isOne() && sizes.size() == shape.size() &&
      llvm::all_of(sizes, [](const Size &size) { return size.isOne(); })) {
    ids.pop_back();
    return call.give(takeOwn(call.ops, call.value(0), logical::reshape(call.ops, call.value(1), ids)));
  }
  bool own = batching == ArrayRef<int64_t>{0} && listIn(text, "start_indices_batching_dims") == ArrayRef<int64_t>{0};
  if (map.size() != 1 || collapsed != map || (!own && !batching.empty()) || sizes.size() != shape.size() ||
      map[0] < 0 || map[0] >= std::ssize(shape))
    throw Refused("a gather of other parts than whole slices by one index");
  int64_t axis = map[0];
  for (int64_t i = 0; i < std::ssize(shape); ++i)
    if (i != axis && !(own && i == 0) && sizes[i] != shape[i])
      throw Refused("a gather of other parts than whole slices by one index");
  // Without the axis of the index, which has one number.
  if (vector < std::ssize(ids)) {
    if (!ids[vector].isOne())
      throw Refused("a gather by several indices");
    ids.erase(ids.begin() + vector);
  }
  if (known && places && known->shape.size() == 1 && !places->hasBatch()) {
    logical::Indices to;
    for (const Size &size : ids)
      to.push_back(size.times);
    return call.give(known->remapped(to, [&, at = size_t{0}](ArrayRef<int64_t>) mutable {
      return std::clamp<int64_t>(static_cast<int64_t>(places->numbers[at++]), 0, known->count() - 1);
    }));
  }
  Value value = call.value(0), at = logical::reshape(call.ops, call.value(1), ids);
  size_t lead = own ? 1 : 0; // axes of the value that stand before the indices' own
  if (own && axis != 1)
    throw Refused("a gather within each sample along another axis than the first");
  // The result has the axes of the indices first, the others at offset_dims.
  Value gathered = logical::take(call.ops, value, at, static_cast<size_t>(axis));
  SmallVector<int64_t> order;
  int64_t before = own ? 1 : axis, count = std::ssize(ids) - static_cast<int64_t>(lead), next = 0;
  SmallVector<int64_t> others;
  for (int64_t i = static_cast<int64_t>(lead); i < static_cast<int64_t>(gathered.rank()); ++i)
    if (i < before || i >= before + count)
      others.push_back(i);
  int64_t index = 0;
  for (int64_t i = 0; i < static_cast<int64_t>(gathered.rank()); ++i)
    if (llvm::is_contained(offsets, i)) {
      if (next >= std::ssize(others))
        throw Refused("expected offset_dims of the slices' axes");
      order.push_back(others[next++]);
    } else {
      order.push_back(own && index == 0 ? 0 : before + index - static_cast<int64_t>(lead));
      ++index;
    }
  SmallVector<int64_t> sorted = order;
  llvm::sort(sorted);
  if (!llvm::equal(sorted, llvm::seq<int64_t>(0, static_cast<int64_t>(gathered.rank()))))
    throw Refused("expected offset_dims of the slices' axes");
  call.give(logical::transpose(gathered, order));
}

void buildGather(Call &call) {
  SmallVector<int64_t> sizes = call.integers("slice_sizes");
  giveGather(call, call.partSizes(0, sizes));
}
void buildDynamicGather(Call &call) { giveGather(call, call.expectKnown(2, "sizes of slices").sizes()); }

} // namespace

llvm::ArrayRef<OpEntry> reductionOps() {
  static constexpr OpEntry entries[] = {{"reduce", buildReduce, anyNumber},
                                        {"reduce_window", buildReduceWindow, anyNumber},
                                        {"select_and_scatter", buildSelectAndScatter, 3},
                                        {"gather", buildGather, 2},
                                        {"dynamic_gather", buildDynamicGather, 3}};
  return entries;
}

} // namespace mtc::stablehlo
