// SPDX-License-Identifier: Apache-2.0
//
// Sums at places: what the gradient of a lookup is.
#include "frontend/logical/Sorting.h"
#include "frontend/stablehlo/Call.h"

using namespace mlir;

namespace mtc::stablehlo {
namespace {

using logical::Shape;
using logical::Value;

// The numbers of an op's scatter_dimension_numbers.
struct Numbers {
  explicit Numbers(const std::string &text)
      : windows(listIn(text, "update_window_dims")), inserted(listIn(text, "inserted_window_dims")),
        batching(listIn(text, "input_batching_dims")), idBatching(listIn(text, "scatter_indices_batching_dims")),
        map(listIn(text, "scatter_dims_to_operand_dims")), vector(numberIn(text, "index_vector_dim").value_or(0)) {}
  SmallVector<int64_t> windows, inserted, batching, idBatching, map;
  int64_t vector;
};

// Ids without the axis of the index, which has one number.
Value idsOf(Call &call, const Numbers &numbers) {
  Shape shape = call.shape(1);
  if (numbers.vector < std::ssize(shape)) {
    if (numbers.vector < 0 || !shape[numbers.vector].isOne())
      throw Refused("a scatter by several indices");
    shape.erase(shape.begin() + numbers.vector);
  }
  return logical::reshape(call.ops, call.value(1), shape);
}

// Updates whose ids lie outside of an axis are zeros: StableHLO leaves them out.
Value inside(Call &call, const Value &ids, const Value &updates, int64_t size) {
  logical::Ops &ops = call.ops;
  Value lower = logical::compare(ops, mt::Compare::ge, ids, ops.number(0, ops.i32()));
  Value upper = logical::compare(ops, mt::Compare::lt, ids, ops.number(static_cast<double>(size), ops.i32()));
  Value both = logical::logicalAnd(ops, lower, upper);
  SmallVector<int64_t> added;
  for (size_t axis = ids.rank(); axis < updates.rank(); ++axis)
    added.push_back(static_cast<int64_t>(axis));
  return logical::select(ops, logical::expandDims(both, added), updates, ops.number(0, ops.real()));
}

// Adds updates [b, i..., k...] to elements of the last axis of [b, i..., n], by the ids [b, i..., k...] of each sample.
Value withinSamples(Call &call, const Numbers &numbers, const Value &updates) {
  Shape shape = call.shape(0);
  Value ids = idsOf(call, numbers);
  auto last = static_cast<int64_t>(shape.size()) - 1;
  bool plain = last > 0 && llvm::equal(numbers.batching, llvm::seq<int64_t>(0, last)) &&
               numbers.idBatching == numbers.batching && numbers.map[0] == last && numbers.windows.empty() &&
               !shape[last].batch && updates.rank() == ids.rank() && static_cast<int64_t>(ids.rank()) >= last;
  if (!plain)
    throw Refused("a scatter within each sample to other places than elements of its last axis");
  Value all = logical::select(call.ops, logical::isPlace(call.ops, ids, shape[last].times),
                              logical::expandDims(updates, {static_cast<int64_t>(updates.rank())}),
                              call.ops.number(0, call.ops.real()));
  SmallVector<int64_t> own = llvm::to_vector(llvm::seq<int64_t>(last, static_cast<int64_t>(ids.rank())));
  return own.empty() ? all : logical::reduce(call.ops, mt::Reduction::sum, all, own);
}

// Rows of a table, the first axis: ids [i...], updates [i..., d...].
Value rowsOf(Call &call, const Numbers &numbers, const Value &updates) {
  Shape shape = call.shape(0);
  Value ids = idsOf(call, numbers);
  SmallVector<int64_t> windows =
      llvm::to_vector(llvm::seq<int64_t>(static_cast<int64_t>(ids.rank()), static_cast<int64_t>(updates.rank())));
  if (numbers.map[0] != 0 || numbers.windows != windows || shape[0].batch ||
      !llvm::equal(ArrayRef<Size>(updates.shape()).drop_front(ids.rank()), ArrayRef<Size>(shape).drop_front()))
    throw Refused("a scatter of other parts than whole rows of the first axis");
  return logical::scatterRows(call.ops, shape[0].times, ids, inside(call, ids, updates, shape[0].times));
}

// One part at a place that the file says.
Value partOf(Call &call, const Numbers &numbers, const Value &updates, const Known &place) {
  Shape shape = call.shape(0), window;
  SmallVector<int64_t> at = place.integers(), starts(shape.size(), 0), low, high;
  if (place.count() != std::ssize(numbers.map) || !numbers.batching.empty())
    throw Refused("a scatter to several places that the file says");
  logical::checkAxes(numbers.map, shape.size());
  logical::checkAxes(numbers.inserted, shape.size());
  for (auto [axis, start] : llvm::zip(numbers.map, at))
    starts[axis] = start;
  size_t next = 0;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    bool one = llvm::is_contained(numbers.inserted, static_cast<int64_t>(axis));
    if (!one && next >= numbers.windows.size())
      throw Refused("expected an axis of the updates for each axis of the value");
    window.push_back(one ? Size(1) : updates.size(numbers.windows[next++]));
  }
  Value part = logical::reshape(call.ops, updates, window);
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    bool whole = window[axis] == shape[axis] && starts[axis] == 0;
    if (!whole && (shape[axis].batch || window[axis].batch))
      throw Refused("a scatter to a part of the samples of a batch");
    if (!whole && (starts[axis] < 0 || starts[axis] > shape[axis].times - window[axis].times))
      throw Refused("a scatter outside of the value");
    low.push_back(whole ? 0 : starts[axis]);
    high.push_back(whole ? 0 : shape[axis].times - window[axis].times - starts[axis]);
  }
  return logical::pad(call.ops, part, 0, low, high);
}

void buildScatter(Call &call) {
  Numbers numbers(call.text("scatter_dimension_numbers"));
  if (call.reducer() != "stablehlo.add")
    throw Refused("a scatter that does more than add");
  Value updates = call.value(2);
  if (!updates.isFloat())
    throw Refused("a scatter of integers or booleans");
  const Known *place = call.known(1), *base = call.known(0);
  bool one = numbers.map.size() == 1 && numbers.inserted == numbers.map;
  if (!one && !place)
    throw Refused("a scatter by several indices, or of several rows");
  Value sums = place && !place->hasBatch() ? partOf(call, numbers, updates, *place)
               : numbers.batching.empty()  ? rowsOf(call, numbers, updates)
                                           : withinSamples(call, numbers, updates);
  bool zeros = base && llvm::all_of(base->numbers, [](double number) { return number == 0; });
  Value start = zeros ? Value() : call.value(0);
  DenseElementsAttr stored = zeros ? DenseElementsAttr() : logical::elementsOf(start.stored);
  zeros |= stored && stored.isSplat() && stored.getSplatValue<APFloat>().isZero();
  call.give(zeros ? sums : logical::binary<mt::AddOp>(call.ops, start, sums));
}

} // namespace

logical::Value takeOwn(logical::Ops &ops, const logical::Value &value, const logical::Value &ids) {
  auto last = static_cast<int64_t>(value.rank()) - 1;
  Shape shape = ids.shape();
  ArrayRef<Size> wanted = ArrayRef<Size>(shape).drop_front(last);
  if (!wanted.empty() && llvm::none_of(wanted, [](const Size &size) { return size.batch; })) {
    int64_t count = 1;
    for (const Size &size : wanted)
      count = logical::multiply(count, size.times);
    Shape lines(shape.begin(), shape.begin() + last);
    lines.push_back(count);
    return logical::reshape(ops, logical::takeAlong(ops, value, logical::reshape(ops, ids, lines), last), shape);
  }
  Value wide = value; // with the axes of the ids before the last one
  SmallVector<int64_t> added = llvm::to_vector(llvm::seq<int64_t>(last, static_cast<int64_t>(ids.rank())));
  wide = logical::expandDims(wide, added);
  Value chosen =
      logical::select(ops, logical::isPlace(ops, ids, value.size(last).times), wide, ops.number(0, value.element()));
  return logical::reduce(ops, mt::Reduction::sum, chosen, {static_cast<int64_t>(ids.rank())});
}

llvm::ArrayRef<OpEntry> scatterOps() {
  static constexpr OpEntry entries[] = {{"scatter", buildScatter, 3}};
  return entries;
}

} // namespace mtc::stablehlo
