// SPDX-License-Identifier: Apache-2.0
//
// Bits of integers that the file says.
#include "frontend/logical/Functions.h"
#include "frontend/onnx/OpTable.h"

using namespace mlir;

namespace mtc::onnx {
namespace {

Known ofWords(Call &call, uint64_t (*formula)(uint64_t, uint64_t)) {
  const Known &a = call.expectKnown(0, "an operand of an operation on bits");
  return logical::bitwise(a, call.count() > 1 ? call.expectKnown(1, "an operand of an operation on bits") : a, formula);
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

void buildBitShift(Call &call) {
  std::string direction = call.text("direction", "");
  if (direction != "LEFT" && direction != "RIGHT")
    throw Refused("expected a direction of LEFT or RIGHT, found " + direction);
  const char *operand = "an operand of an operation on bits";
  call.give(logical::shifted(call.expectKnown(0, operand), call.expectKnown(1, operand),
                             direction == "LEFT" ? logical::Shift::left : logical::Shift::arithmetic));
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
