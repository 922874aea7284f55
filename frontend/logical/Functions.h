// SPDX-License-Identifier: Apache-2.0
//
// Functions of numbers: element-wise ops of `mt`, and formulas for functions that `mt` has no op for. Importers compute
// the functions of constants and build ops for other values.
#ifndef FRONTEND_LOGICAL_FUNCTIONS_H
#define FRONTEND_LOGICAL_FUNCTIONS_H

#include "frontend/logical/Compute.h"
#include "frontend/logical/Known.h"

namespace mtc::logical {

// A function of one float or of two floats. Its name is that of C's library or of StableHLO.
struct Function {
  using Make = Value (*)(Ops &, llvm::ArrayRef<Value>);

  llvm::StringLiteral name;
  unsigned operands;
  double (*ofKnown)(double); // the function of a constant; null: constants become values
  Make formula;              // with the gradient of the formula, for callers that give another one
  Make build;                // with the gradient of the function
};
// Returns null if no function has this name.
const Function *findFunction(llvm::StringRef name);

// Builds an element-wise op of mt, or computes it for a constant.
template <typename Op, typename Call> void buildUnary(Call &call) {
  if (const Known *known = call.known(0); known && !known->hasBatch())
    return call.give(
        computed({known}, known->type, [](llvm::ArrayRef<double> values) { return Op::evaluate(values[0]); }));
  call.give(unary<Op>(call.ops, call.value(0)));
}
template <typename Op> Known computedBy(const Known &a, const Known &b) {
  return computed({&a, &b}, a.type, [](llvm::ArrayRef<double> values) { return Op::evaluate(values[0], values[1]); });
}

// Builds a call of a function, or computes it for a constant.
template <typename Call> void buildFunction(Call &call, llvm::StringRef name) {
  const Function &function = *findFunction(name);
  if (const Known *known = call.known(0);
      function.ofKnown && known && !known->hasBatch() && known->type == Known::Type::Float)
    return call.give(
        computed({known}, known->type, [&](llvm::ArrayRef<double> values) { return function.ofKnown(values[0]); }));
  llvm::SmallVector<Value> operands;
  for (size_t i = 0; i < function.operands; ++i)
    operands.push_back(call.value(i));
  call.give(function.build(call.ops, operands));
}

// A function of the bits of integers, as words of two's complement, which both operands have as many of.
Known bitwise(const Known &a, const Known &b, uint64_t (*formula)(uint64_t, uint64_t));
// The bits moved. To the right, integers with a sign keep it, but where zeros come in (`logical`). Beyond the bits, and
// by numbers below 0, all bits are shifted out.
enum class Shift { left, arithmetic, logical };
Known shifted(const Known &a, const Known &by, Shift shift);

// Multiplies the elements along an axis that is not the batch. Halves are multiplied by halves, so the gradient to an
// element is the product of the others.
Value productAlong(Ops &ops, Value value, size_t axis);
// Multiplies each element by all elements before it along an axis, or after it with `reverse`.
Value cumulativeProduct(Ops &ops, Value value, size_t axis, bool reverse);

} // namespace mtc::logical

#endif
