// SPDX-License-Identifier: Apache-2.0
//
// Functions of numbers, which importers compute of constants, and build as ops of mt of anything else: ops of mt, and
// functions that `mt` has no operation for, made of those that it has.
#ifndef FRONTEND_LOGICAL_FUNCTIONS_H
#define FRONTEND_LOGICAL_FUNCTIONS_H

#include "frontend/logical/Compute.h"
#include "frontend/logical/Known.h"

namespace mtc::logical {

// A function of one float, or of two, by the name that C's library has for it, or StableHLO.
struct Function {
  using Make = Value (*)(Ops &, llvm::ArrayRef<Value>);

  llvm::StringLiteral name;
  unsigned operands;
  double (*ofKnown)(double); // of a constant; null: constants become values
  Make formula;              // with the gradient of the formula, for callers that give another one
  Make build;                // with the gradient of the function
};
// Null where there is none of this name.
const Function *findFunction(llvm::StringRef name);

// An op of mt element by element.
template <typename Op, typename Call> void buildUnary(Call &call) {
  if (const Known *known = call.known(0); known && !known->hasBatch())
    return call.give(
        computed({known}, known->type, [](llvm::ArrayRef<double> values) { return Op::evaluate(values[0]); }));
  call.give(unary<Op>(call.ops, call.value(0)));
}
template <typename Op> Known computedBy(const Known &a, const Known &b) {
  return computed({&a, &b}, a.type, [](llvm::ArrayRef<double> values) { return Op::evaluate(values[0], values[1]); });
}

// Builds a call of a function, or computes it of constants.
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

// The product along an axis that is not the batch: of halves, so that the gradient to each is the product of the
// others.
Value productAlong(Ops &ops, Value value, size_t axis);
// Products of what comes before and at each place of an axis, from its end if `reverse`.
Value cumulativeProduct(Ops &ops, Value value, size_t axis, bool reverse);

} // namespace mtc::logical

#endif
