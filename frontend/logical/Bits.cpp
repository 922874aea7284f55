// SPDX-License-Identifier: Apache-2.0
//
// Bits of integers that are known, and products along an axis.
#include "frontend/logical/Functions.h"

#include <cmath>

using namespace mlir;

namespace mtc::logical {

static void expectIntegers(const Known &a, const Known &b) {
  if (a.type != Known::Type::Integer || b.type != Known::Type::Integer)
    throw Refused("expected integers, found others");
}
static uint64_t maskOf(int width) { return std::abs(width) < 64 ? (uint64_t{1} << std::abs(width)) - 1 : ~uint64_t{0}; }

Known bitwise(const Known &a, const Known &b, uint64_t (*formula)(uint64_t, uint64_t)) {
  expectIntegers(a, b);
  constexpr double exact = 9007199254740992.0; // 2^53: numbers beyond are not kept exactly
  auto wordOf = [](double number) {
    if (std::abs(number) > exact)
      throw Refused("bits of an integer beyond 2^53");
    return static_cast<uint64_t>(static_cast<int64_t>(number));
  };
  const uint64_t mask = maskOf(a.width);
  Known made = computed({&a, &b}, Known::Type::Integer, [&](ArrayRef<double> values) {
    uint64_t word = formula(wordOf(values[0]) & mask, wordOf(values[1]) & mask) & mask;
    if (a.width > 0 && (word & ((mask >> 1) + 1)) != 0) // of integers with a sign
      word |= ~mask;
    if (a.width < 0 && word > static_cast<uint64_t>(exact))
      throw Refused("bits of an integer beyond 2^53");
    return a.width < 0 ? static_cast<double>(word) : static_cast<double>(static_cast<int64_t>(word));
  });
  made.width = a.width;
  return made;
}

Known shifted(const Known &a, const Known &by, Shift shift) {
  expectIntegers(a, by);
  const double bits = std::abs(a.width);
  const auto range = static_cast<double>(maskOf(a.width)) + 1;
  Known made = computed({&a, &by}, Known::Type::Integer, [&](ArrayRef<double> values) {
    double number = values[0], places = values[1];
    bool out = places < 0 || places >= bits;
    if (shift == Shift::logical && number < 0 && !out && places != 0)
      number += range;
    if (shift == Shift::left)
      return out ? 0 : wrapped(std::ldexp(number, static_cast<int>(places)), a.width);
    return out ? (number < 0 && shift == Shift::arithmetic ? -1 : 0)
               : std::floor(std::ldexp(number, -static_cast<int>(places)));
  });
  made.width = a.width;
  return made;
}

static Value partOf(Ops &ops, const Value &value, size_t axis, int64_t start, int64_t end) {
  return sliceAxis(ops, value, axis, start, end - start);
}

Value productAlong(Ops &ops, Value value, size_t axis) {
  if (value.size(axis).batch)
    throw Refused("a product over the batch");
  int64_t size = value.size(axis).times;
  while (size > 1) {
    int64_t half = size / 2;
    Value made = binary<mt::MulOp>(ops, partOf(ops, value, axis, 0, half), partOf(ops, value, axis, half, 2 * half));
    value = size % 2 ? concat(ops, {made, partOf(ops, value, axis, size - 1, size)}, axis) : made;
    size -= half;
  }
  return squeeze(value, {static_cast<int64_t>(axis)});
}

// Multiplies by the elements 1, 2, 4, ... places before.
Value cumulativeProduct(Ops &ops, Value value, size_t axis, bool reverse) {
  if (value.size(axis).batch)
    throw Refused("a product over the batch");
  int64_t size = value.size(axis).times;
  for (int64_t step = 1; step < size; step *= 2) {
    int64_t first = reverse ? size - step : 0;
    Value kept = partOf(ops, value, axis, first, first + step);
    Value low = partOf(ops, value, axis, 0, size - step), high = partOf(ops, value, axis, step, size);
    Value made = binary<mt::MulOp>(ops, low, high);
    value = reverse ? concat(ops, {made, kept}, axis) : concat(ops, {kept, made}, axis);
  }
  return value;
}

} // namespace mtc::logical
