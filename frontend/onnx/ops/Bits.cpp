// SPDX-License-Identifier: Apache-2.0
//
// Bits of integers that the file says.
#include "frontend/onnx/OpTable.h"

#include <cmath>

using namespace mlir;

namespace mtc::onnx {
namespace {

// Integers as words of two's complement; the result is wrapped to the type by whoever makes it.
Known ofWords(Call &call, uint64_t (*formula)(uint64_t, uint64_t)) {
  const Known &a = call.expectKnown(0, "an operand of an operation on bits");
  const Known &b = call.count() > 1 ? call.expectKnown(1, "an operand of an operation on bits") : a;
  if (a.type != Known::Type::Integer || b.type != Known::Type::Integer)
    throw Refused("expected integers, found others");
  constexpr double exact = 9007199254740992.0; // 2^53: numbers beyond are not kept exactly
  auto wordOf = [](double number) {
    if (std::abs(number) > exact)
      throw Refused("bits of an integer beyond 2^53");
    return static_cast<uint64_t>(static_cast<int64_t>(number));
  };
  const uint64_t mask = std::abs(a.width) < 64 ? (uint64_t{1} << std::abs(a.width)) - 1 : ~uint64_t{0};
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

void buildBitAnd(Call &call) {
  call.give(ofWords(call, [](uint64_t a, uint64_t b) { return a & b; }));
}
void buildBitOr(Call &call) {
  call.give(ofWords(call, [](uint64_t a, uint64_t b) { return a | b; }));
}
void buildBitXor(Call &call) {
  call.give(ofWords(call, [](uint64_t a, uint64_t b) { return a ^ b; }));
}
void buildBitNot(Call &call) {
  call.give(ofWords(call, [](uint64_t a, uint64_t) { return ~a; }));
}

// To the right integers with a sign keep it. Beyond the bits, and by numbers below 0, all bits are shifted out.
void buildBitShift(Call &call) {
  std::string direction = call.text("direction", "");
  if (direction != "LEFT" && direction != "RIGHT")
    throw Refused("expected a direction of LEFT or RIGHT, found " + direction);
  const char *operand = "an operand of an operation on bits";
  const Known &a = call.expectKnown(0, operand), &by = call.expectKnown(1, operand);
  if (a.type != Known::Type::Integer || by.type != Known::Type::Integer)
    throw Refused("expected integers, found others");
  const double bits = std::abs(a.width);
  Known made = computed({&a, &by}, Known::Type::Integer, [&](ArrayRef<double> values) {
    double number = values[0], places = values[1];
    bool out = places < 0 || places >= bits;
    if (direction == "LEFT")
      return out ? 0 : logical::wrapped(std::ldexp(number, static_cast<int>(places)), a.width);
    return out ? (number < 0 ? -1 : 0) : std::floor(std::ldexp(number, -static_cast<int>(places)));
  });
  made.width = a.width;
  call.give(made);
}

} // namespace

llvm::ArrayRef<OpEntry> bitOps() {
  static constexpr OpEntry entries[] = {{"BitwiseAnd", buildBitAnd},
                                        {"BitwiseOr", buildBitOr},
                                        {"BitwiseXor", buildBitXor},
                                        {"BitwiseNot", buildBitNot},
                                        {"BitShift", buildBitShift}};
  return entries;
}

} // namespace mtc::onnx
