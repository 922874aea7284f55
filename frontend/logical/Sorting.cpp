// SPDX-License-Identifier: Apache-2.0
#include "frontend/logical/Sorting.h"
#include "frontend/logical/Known.h"

#include "llvm/ADT/SetVector.h"

#include <limits>
#include <numeric>

using namespace mlir;

namespace mtc::logical {
namespace {

constexpr int64_t mostMaxima = 32;   // that are found one after the other
constexpr int64_t mostCompared = 64; // elements of which each is compared with each other one
constexpr int64_t mostSorted = int64_t{1} << 15;

// 0, 1, 2 ... as a constant.
Value line(Ops &ops, int64_t size, Known::Type type = Known::Type::Integer) {
  Known numbers = Known::zeros({size}, type);
  for (int64_t i = 0; i < size; ++i)
    numbers.numbers[i] = static_cast<double>(i);
  return numbers.lift(ops);
}

// Whether a comes before b in an order; `whereEqual` says it for equal elements.
Value comesBefore(Ops &ops, const Value &a, const Value &b, bool descending, const Value &whereEqual) {
  const Value &first = descending ? b : a, &second = descending ? a : b;
  Value less = compare(ops, mt::Compare::lt, first, second), same = compare(ops, mt::Compare::eq, first, second);
  if (a.isFloat()) {
    Value isNan = compare(ops, mt::Compare::ne, first, first),
          otherIsNan = compare(ops, mt::Compare::ne, second, second);
    less = logicalOr(ops, less, logicalAnd(ops, otherIsNan, logicalNot(ops, isNan)));
    same = logicalOr(ops, same, logicalAnd(ops, isNan, otherIsNan));
  }
  return logicalOr(ops, less, logicalAnd(ops, same, whereEqual));
}

// An element's place in the order is the number of elements that come before it.
Value placesByRank(Ops &ops, ArrayRef<Value> keys, int64_t count, bool descending) {
  auto rank = static_cast<int64_t>(keys[0].rank());
  int64_t size = keys[0].size(keys[0].rank() - 1).times;
  ops.charge(size * size);
  Known stands = Known::zeros({size, size}, Known::Type::Boolean); // whether element j stands before element i
  for (int64_t i = 0; i < size; ++i)
    for (int64_t j = 0; j < i; ++j)
      stands.numbers[i * size + j] = 1;
  Value before = stands.lift(ops);
  for (const Value &key : llvm::reverse(keys))
    before = comesBefore(ops, expandDims(key, {rank - 1}), expandDims(key, {rank}), descending, before);
  Value place = reduce(ops, mt::Reduction::sum, cast(ops, before, ops.real()), {rank});
  Value wanted = expandDims(line(ops, count, Known::Type::Float), {1});
  Value isThere = compare(ops, mt::Compare::eq, expandDims(place, {rank - 1}), wanted);
  Value chosen = select(ops, isThere, line(ops, size, Known::Type::Float), ops.number(0, ops.real()));
  return cast(ops, reduce(ops, mt::Reduction::sum, chosen, {rank}), ops.i32());
}

// Each place is that of the largest element which the places before it leave.
Value placesOneByOne(Ops &ops, Value key, int64_t count, bool descending) {
  size_t last = key.rank() - 1;
  int64_t size = key.size(last).times;
  double lowest = key.element().isF64() ? std::numeric_limits<double>::lowest()
                                        : static_cast<double>(std::numeric_limits<float>::lowest());
  Value least = ops.number(lowest, ops.real());
  if (!descending) { // where NaN comes last
    Value isNan = compare(ops, mt::Compare::ne, key, key);
    key = select(ops, isNan, least, unary<mt::NegOp>(ops, key));
  }
  Value left = binary<mt::MaximumOp>(ops, key, least); // above what is found already
  Value found = ops.number(-std::numeric_limits<double>::infinity(), ops.real());
  SmallVector<Value> places;
  for (int64_t i = 0; i < count; ++i) {
    Value place = argmax(ops, left, last);
    places.push_back(expandDims(place, {static_cast<int64_t>(last)}));
    left = select(ops, isPlace(ops, place, size), found, left);
  }
  return concat(ops, places, last);
}

// For each stage of Batcher's odd-even merge sort (1968) the place with which each place is compared; its own where
// there is none. Of a length that is no power of 2, the pairs that would reach behind the end are left out, as if the
// largest elements stood there.
std::vector<std::vector<int64_t>> stagesOf(int64_t size) {
  std::vector<std::vector<int64_t>> stages;
  for (int64_t span = 1; span < size; span *= 2)
    for (int64_t distance = span; distance > 0; distance /= 2) {
      std::vector<int64_t> partner(size);
      std::iota(partner.begin(), partner.end(), 0);
      for (int64_t start = distance % span; start < size - distance; start += 2 * distance)
        for (int64_t i = start; i < std::min(start + distance, size - distance); ++i)
          if (i / (2 * span) == (i + distance) / (2 * span)) {
            partner[i] = i + distance;
            partner[i + distance] = i;
          }
      stages.push_back(std::move(partner));
    }
  return stages;
}

Value placesByNetwork(Ops &ops, ArrayRef<Value> keys, bool descending) {
  size_t last = keys[0].rank() - 1;
  int64_t size = keys[0].size(last).times;
  SmallVector<Value> now(keys);
  now.push_back(broadcast(line(ops, size), keys[0].shape()));
  for (const std::vector<int64_t> &partners : stagesOf(size)) {
    ops.charge(3 * size);
    Known ids = Known::zeros({size}, Known::Type::Integer), isHigh = Known::zeros({size}, Known::Type::Boolean),
          isPaired = isHigh;
    for (auto [i, partner] : llvm::enumerate(partners)) {
      ids.numbers[i] = static_cast<double>(partner);
      isHigh.numbers[i] = partner < static_cast<int64_t>(i);
      isPaired.numbers[i] = partner != static_cast<int64_t>(i);
    }
    Value partner = ids.lift(ops);
    SmallVector<Value> other;
    for (const Value &value : now)
      other.push_back(take(ops, value, partner, last));
    Value before = compare(ops, mt::Compare::lt, other.back(), now.back());
    for (size_t i = keys.size(); i-- > 0;)
      before = comesBefore(ops, other[i], now[i], descending, before);
    // The lower place of a pair swaps where the other element comes before its own, the higher place where it does not.
    Value swaps = logicalAnd(ops, isPaired.lift(ops), logicalXor(ops, isHigh.lift(ops), before));
    for (auto [value, theirs] : llvm::zip_equal(now, other))
      value = select(ops, swaps, theirs, value);
  }
  return now.back();
}

// A value each of whose parts is an axis, without a change of the tensor: the batch first, then the other parts of the
// leading axes, then the last axis.
struct Apart {
  Value value;
  SmallVector<SmallVector<size_t>> axes; // for each leading axis the numbers of its parts
  bool split = false;

  explicit Apart(const Value &aligned) : value{aligned.stored, {}} {
    ArrayRef<Parts> lead = ArrayRef<Parts>(aligned.axes).drop_back();
    for (const Parts &parts : lead)
      for (const Axis &part : parts)
        if (part.size.batch)
          value.axes.push_back({part});
    split = !value.axes.empty();
    for (const Parts &parts : lead) {
      axes.emplace_back();
      for (const Axis &part : parts) {
        axes.back().push_back(part.size.batch ? 0 : value.axes.size());
        if (!part.size.batch)
          value.axes.push_back({part});
      }
    }
    value.axes.push_back(aligned.axes.back());
  }
  // The number of lines of a sample.
  int64_t lines() const {
    int64_t number = 1;
    for (size_t i = split; i + 1 < value.rank(); ++i)
      number = multiply(number, value.size(i).times);
    return number;
  }
};

// Where each line starts if the lines stand one behind the other.
Value startsOf(Ops &ops, const Apart &lines, int64_t size) {
  Indices shape;
  for (size_t i = lines.split; i + 1 < lines.value.rank(); ++i)
    shape.push_back(lines.value.size(i).times);
  shape.push_back(1);
  Known starts = Known::zeros(shape, Known::Type::Integer);
  for (auto [i, start] : llvm::enumerate(starts.numbers))
    start = static_cast<double>(i) * static_cast<double>(size);
  return starts.lift(ops);
}

} // namespace

Value sortedPlaces(Ops &ops, ArrayRef<Value> keys, int64_t count, size_t axis, bool descending) {
  SmallVector<Value> lines;
  for (const Value &key : keys) {
    checkAxis(static_cast<int64_t>(axis), key.rank());
    if (key.shape() != keys[0].shape())
      throw Refused("expected keys of one shape");
    lines.push_back(moveAxis(key.isBoolean() ? cast(ops, key, ops.i32()) : key, axis, key.rank() - 1));
  }
  if (lines.empty())
    throw Refused("expected keys to sort by, found none");
  size_t last = lines[0].rank() - 1;
  Size size = lines[0].size(last);
  if (size.batch)
    throw Refused("the order of the samples");
  if (count < 1 || count > size.times)
    throw Refused("expected 1 to " + size.text() + " elements of a line, found " + std::to_string(count));
  Value places;
  if (size.times <= mostCompared) {
    places = placesByRank(ops, lines, count, descending);
  } else if (count <= mostMaxima && lines.size() == 1 && lines[0].isFloat()) {
    places = placesOneByOne(ops, lines[0], count, descending);
  } else {
    if (size.times > mostSorted)
      throw Refused("an order of " + size.text() + " elements along an axis: expected at most " +
                    std::to_string(mostSorted) + ", or up to " + std::to_string(mostMaxima) + " floats of them");
    places = sliceAxis(ops, placesByNetwork(ops, lines, descending), last, 0, count);
  }
  return moveAxis(places, last, axis);
}

Value isPlace(Ops &ops, const Value &ids, int64_t size) {
  return compare(ops, mt::Compare::eq, expandDims(ids, {static_cast<int64_t>(ids.rank())}), line(ops, size));
}

SmallVector<mt::InputOp> dataOf(mlir::Value value) {
  llvm::SetVector<mlir::Value> seen;
  SmallVector<mt::InputOp> inputs;
  seen.insert(value);
  for (size_t i = 0; i < seen.size(); ++i) {
    Operation *op = seen[i].getDefiningOp();
    if (auto input = dyn_cast_or_null<mt::InputOp>(op))
      inputs.push_back(input);
    else if (op && op->getNumOperands() &&
             ((op->hasTrait<mt::Moves>() && !isa<mt::SliceOp>(op)) || isa<mt::CastOp>(op)))
      seen.insert(op->operand_begin(), op->operand_end());
    else
      return {};
  }
  return inputs;
}

void limitData(mlir::Value ids, int64_t size) {
  for (mt::InputOp data : dataOf(ids))
    data.setLimit(std::min<uint64_t>(static_cast<uint64_t>(size), data.getLimit().value_or(size)));
}

Value takeAlong(Ops &ops, const Value &input, const Value &places, size_t axis) {
  checkAxis(static_cast<int64_t>(axis), input.rank());
  checkCount(places.rank(), input.rank());
  if (!places.isInteger())
    throw Refused("expected places of integers");
  if (input.isBoolean())
    return compare(ops, mt::Compare::ne, takeAlong(ops, cast(ops, input, ops.i32()), places, axis),
                   ops.number(0, ops.i32()));
  size_t last = input.rank() - 1;
  Value value = decide(moveAxis(input, axis, last)), ids = decide(moveAxis(places, axis, last));
  int64_t size = value.size(last).times, count = ids.size(last).times;
  if (value.size(last).batch || ids.size(last).batch)
    throw Refused("a lookup among the samples");
  Shape lead = value.shape(), ofIds = ids.shape();
  lead.pop_back(), ofIds.pop_back();
  if (lead != ofIds)
    throw Refused("expected ids for all lines of " + describe(input.shape()) + ", found " + describe(places.shape()));
  limitData(ids.stored, size);
  auto leadOf = [&](const Value &of) { return Value{of.stored, {of.axes.begin(), of.axes.end() - 1}}; };
  SmallVector<Value> both = align({leadOf(value), leadOf(ids)});
  both[0].axes.push_back(value.axes.back()), both[1].axes.push_back(ids.axes.back());
  Apart lines(both[0]), wanted(both[1]);
  int64_t number = lines.lines();
  Value flatIds = wanted.value;
  if (number > 1) {
    if (multiply(number, size) > std::numeric_limits<int32_t>::max())
      throw Refused("a lookup in more than 2^31 elements of a sample");
    Value inside = binary<mt::MinimumOp>(ops, binary<mt::MaximumOp>(ops, flatIds, 0), static_cast<double>(size - 1));
    flatIds = binary<mt::AddOp>(ops, inside, startsOf(ops, lines, size));
  }
  auto flat = [&](const Value &value, int64_t elements) {
    Shape shape;
    if (lines.split)
      shape.push_back(batchSize());
    shape.push_back(multiply(number, elements));
    return reshape(ops, value, shape);
  };
  Shape parts = wanted.value.shape();
  Value taken = reshape(ops, take(ops, flat(lines.value, size), flat(flatIds, count), lines.split), parts);
  Value result{taken.stored, {}};
  for (ArrayRef<size_t> numbers : lines.axes) {
    result.axes.emplace_back();
    for (size_t part : numbers)
      llvm::append_range(result.axes.back(), taken.axes[part]);
  }
  result.axes.push_back(taken.axes.back());
  return moveAxis(result, last, axis);
}

} // namespace mtc::logical
