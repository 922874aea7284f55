// SPDX-License-Identifier: Apache-2.0
//
// Attention, and the rotation of queries and keys. Values are [N, heads, length, size], or [N, length, heads * size].
#include "frontend/onnx/OpTable.h"

#include <cmath>
#include <limits>

using namespace mlir;

namespace mtc::onnx {
namespace {

using logical::Value;

constexpr double hidden = -std::numeric_limits<double>::infinity();

// [N, length, heads * size] as [N, heads, length, size].
Value inHeads(Call &call, const Value &value, int64_t heads) {
  if (value.rank() == 4)
    return value;
  if (value.rank() != 3 || heads < 1 || value.size(2).batch || value.size(2).times % heads)
    throw Refused("expected [N, heads, length, size], or [N, length, width] with q_num_heads and kv_num_heads that "
                  "divide the width, found " +
                  logical::describe(value.shape()));
  logical::Shape shape = value.shape();
  shape[2] = heads;
  shape.push_back(value.size(2).times / heads);
  return logical::transpose(logical::reshape(call.ops, value, shape), {0, 2, 1, 3});
}

// Each head as often as there are heads of queries for it.
Value repeatedHeads(Call &call, const Value &value, Size heads) {
  if (value.size(1) == heads)
    return value;
  if (heads.batch || value.size(1).batch || heads.times % value.size(1).times)
    throw Refused("expected as many heads of queries as of keys, or a multiple, found " + heads.text() + " and " +
                  value.size(1).text());
  logical::Shape shape = value.shape(), wide = shape;
  wide.insert(wide.begin() + 2, Size(heads.times / shape[1].times));
  shape[1] = heads;
  return logical::reshape(call.ops, logical::broadcast(logical::expandDims(value, {2}), wide), shape);
}

// What hides a score: places that must be allowed, and numbers that are added.
struct Mask {
  std::optional<Value> allowed, added;
  bool hidesRows = false; // perhaps all keys of a query

  void allow(logical::Ops &ops, const Value &more) {
    allowed = allowed ? logical::logicalAnd(ops, *allowed, more) : more;
  }
};

// The places of queries (axis 0) or keys (axis 1) of a square of scores, and a number, as i32.
Value places(Call &call, int64_t queries, int64_t keys, int64_t ofQuery, int64_t ofKey, int64_t offset) {
  Known known = Known::zeros({queries, keys}, Known::Type::Integer);
  for (int64_t i = 0; i < queries; ++i)
    for (int64_t j = 0; j < keys; ++j)
      known.numbers[static_cast<size_t>(i * keys + j)] = static_cast<double>(ofQuery * i + ofKey * j + offset);
  return known.lift(call.ops);
}

// The mask that is an operand, with the keys that it lacks hidden.
void readMask(Call &call, Mask &mask, int64_t keys) {
  if (!call.has(3))
    return;
  Value given = call.value(3);
  if (given.rank() < 1 || given.size(given.rank() - 1).batch)
    throw Refused("expected a mask [..., queries, keys], found " + logical::describe(given.shape()));
  int64_t missing = keys - given.size(given.rank() - 1).times;
  bool flags = given.isBoolean();
  if (missing < 0 || (!flags && !given.isFloat()))
    throw Refused("expected a mask of floats or booleans for " + std::to_string(keys) + " keys, found " +
                  logical::describe(given.shape()));
  if (missing > 0 && given.size(given.rank() - 1).times != 1) {
    SmallVector<int64_t> low(given.rank(), 0), high(given.rank(), 0);
    high.back() = missing;
    if (flags)
      given = logical::cast(call.ops, given, call.ops.i32());
    given = logical::pad(call.ops, given, flags ? 0 : hidden, low, high);
    if (flags)
      given = logical::cast(call.ops, given, call.ops.i1());
  }
  mask.hidesRows = true;
  (flags ? mask.allowed : mask.added) = given;
}

// Keys up to the query's place, in a window beside it, and below the number of a sample.
void addPlaces(Call &call, Mask &mask, int64_t queries, int64_t keys, int64_t past) {
  logical::Ops &ops = call.ops;
  bool causal = call.integer("is_causal", 0) != 0;
  int64_t left = call.integer("left_window_size", -1), right = call.integer("right_window_size", -1);
  auto atMost = [&](const Value &a, const Value &b) { mask.allow(ops, logical::compare(ops, mt::Compare::le, a, b)); };
  Value offset = ops.number(static_cast<double>(past), ops.i32());
  if (call.has(6)) {
    Value counts = call.value(6); // valid keys of each sample
    if (counts.rank() != 1 || !counts.isInteger() || past)
      throw Refused("expected nonpad_kv_seqlen [N] of integers, without past keys");
    counts = logical::expandDims(counts, {1, 2, 3});
    atMost(places(call, 1, keys, 0, 1, 1), counts);
    offset = logical::binary<mt::SubOp>(ops, counts, ops.number(static_cast<double>(queries), ops.i32()));
    mask.hidesRows = true;
  }
  // The key's place less the query's, at most the offset.
  Value distance = places(call, queries, keys, -1, 1, 0);
  auto shifted = [&](int64_t by) {
    return logical::binary<mt::AddOp>(ops, offset, ops.number(static_cast<double>(by), ops.i32()));
  };
  if (causal)
    atMost(distance, offset);
  if (left >= 0)
    atMost(shifted(-left), distance), mask.hidesRows = true;
  if (right >= 0)
    atMost(distance, shifted(right)), mask.hidesRows = true;
}

// The numbers that are added to the scores.
Value biasOf(Call &call, const Mask &mask) {
  logical::Ops &ops = call.ops;
  Value none = mask.added ? *mask.added : ops.number(0, ops.real());
  return mask.allowed ? logical::select(ops, *mask.allowed, none, ops.number(hidden, ops.real())) : none;
}

void buildAttention(Call &call) {
  logical::Ops &ops = call.ops;
  int64_t queryHeads = call.integer("q_num_heads", 0), keyHeads = call.integer("kv_num_heads", 0);
  Value given = call.floats(0), query = inHeads(call, given, queryHeads);
  Value key = inHeads(call, call.floats(1), keyHeads), value = inHeads(call, call.floats(2), keyHeads);
  int64_t past = 0;
  if (call.has(4) != call.has(5))
    throw Refused("expected past keys and past values, or none of both");
  if (call.has(4)) {
    past = call.value(4).rank() == 4 ? call.value(4).size(2).times : 0;
    key = logical::concat(ops, {call.floats(4), key}, 2);
    value = logical::concat(ops, {call.floats(5), value}, 2);
  }
  if (query.size(2).batch || key.size(2).batch || query.size(3).batch)
    throw Refused("expected the samples as the first axis, found " + logical::describe(query.shape()) + " and " +
                  logical::describe(key.shape()));
  int64_t queries = query.size(2).times, keys = key.size(2).times;
  Mask mask;
  readMask(call, mask, keys);
  addPlaces(call, mask, queries, keys, past);
  call.ignore("softmax_precision"); // sums have the precision of the plan

  Value allKeys = repeatedHeads(call, key, query.size(1)), allValues = repeatedHeads(call, value, query.size(1));
  Value scores = logical::product(ops, query, allKeys, {{3, 3}}, {{0, 0}, {1, 1}});
  double scale = call.number("scale", 1 / std::sqrt(static_cast<double>(query.size(3).times)));
  scores = logical::binary<mt::MulOp>(ops, scores, scale);
  if (double cap = call.number("softcap", 0); cap > 0) {
    scores = logical::unary<mt::TanhOp>(ops, logical::binary<mt::DivOp>(ops, scores, cap));
    scores = logical::binary<mt::MulOp>(ops, scores, cap);
  }
  int64_t shown = call.integer("qk_matmul_output_mode", 0);
  Value raw = scores, weights;
  if (mask.allowed || mask.added) {
    Value bias = biasOf(call, mask);
    std::optional<Value> empty;
    if (mask.hidesRows) { // a query without keys has the result 0
      bias = logical::broadcast(bias, logical::commonShape({bias, ops.number(0, ops.real(), {queries, keys})}));
      int64_t last = static_cast<int64_t>(bias.rank()) - 1;
      Value most = logical::keepDims(logical::reduce(ops, mt::Reduction::max, bias, {last}), {last});
      empty = logical::compare(ops, mt::Compare::eq, most, ops.number(hidden, ops.real()));
      Value safe = logical::select(ops, *empty, ops.number(0, ops.real()), bias);
      weights = logical::softmax(ops, logical::binary<mt::AddOp>(ops, scores, safe), 3, false);
      weights = logical::select(ops, *empty, ops.number(0, ops.real()), weights);
    } else
      weights = logical::softmax(ops, logical::binary<mt::AddOp>(ops, scores, bias), 3, false);
    scores = logical::binary<mt::AddOp>(ops, scores, bias);
  } else
    weights = logical::softmax(ops, scores, 3, false);
  Value result = logical::product(ops, weights, allValues, {{3, 2}}, {{0, 0}, {1, 1}});
  if (given.rank() == 3) {
    logical::Shape shape = given.shape();
    shape[2] = logical::multiply(result.size(1).times, result.size(3).times);
    result = logical::reshape(ops, logical::transpose(result, {0, 2, 1, 3}), shape);
  }
  call.give(result);
  call.give(key);
  call.give(value);
  call.give(shown == 3 ? weights : shown == 2 ? scores : raw);
}

// Pairs of numbers turned by the angle of their place: halves of each head, or neighbours.
void buildRotaryEmbedding(Call &call) {
  logical::Ops &ops = call.ops;
  Value given = call.floats(0), value = inHeads(call, given, call.integer("num_heads", 0));
  int64_t size = value.size(3).times, turned = call.integer("rotary_embedding_dim", 0);
  bool neighbours = call.integer("interleaved", 0) != 0;
  turned = turned ? turned : size;
  if (turned < 2 || turned > size || turned % 2)
    throw Refused("expected an even rotary_embedding_dim up to " + std::to_string(size) + ", found " +
                  std::to_string(turned));
  int64_t half = turned / 2;
  auto angles = [&](size_t index) { // [N, 1, length, half]
    Value cache = call.floats(index);
    if (call.has(3))
      cache = logical::take(ops, cache, call.value(3), 0);
    if (cache.rank() != 3 || !(cache.size(2) == Size(half)))
      throw Refused("expected " + std::to_string(half) + " numbers for each place, found " +
                    logical::describe(cache.shape()));
    return logical::expandDims(cache, {1});
  };
  Value cosines = angles(1), sines = angles(2);
  int64_t stride = neighbours ? 2 : 1;
  Value first = logical::sliceAxis(ops, value, 3, 0, half, stride);
  Value second = logical::sliceAxis(ops, value, 3, neighbours ? 1 : half, half, stride);
  auto times = [&](const Value &a, const Value &b) { return logical::binary<mt::MulOp>(ops, a, b); };
  Value real = logical::binary<mt::SubOp>(ops, times(cosines, first), times(sines, second));
  Value other = logical::binary<mt::AddOp>(ops, times(sines, first), times(cosines, second));
  Value result;
  if (neighbours) {
    logical::Shape shape = value.shape();
    shape[3] = turned;
    result = logical::concat(ops, {logical::expandDims(real, {4}), logical::expandDims(other, {4})}, 4);
    result = logical::reshape(ops, result, shape);
  } else
    result = logical::concat(ops, {real, other}, 3);
  if (turned < size)
    result = logical::concat(ops, {result, logical::sliceAxis(ops, value, 3, turned, size - turned)}, 3);
  if (given.rank() == 3)
    result = logical::reshape(ops, logical::transpose(result, {0, 2, 1, 3}), given.shape());
  call.give(result);
}

} // namespace

llvm::ArrayRef<OpEntry> attentionOps() {
  static constexpr OpEntry entries[] = {{"Attention", buildAttention}, {"RotaryEmbedding", buildRotaryEmbedding}};
  return entries;
}

} // namespace mtc::onnx
