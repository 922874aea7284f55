// SPDX-License-Identifier: Apache-2.0
//
// Functions of numbers that `mt` has no operation for, made of those that it has.
#ifndef FRONTEND_LOGICAL_FUNCTIONS_H
#define FRONTEND_LOGICAL_FUNCTIONS_H

#include "frontend/logical/Compute.h"
#include "frontend/logical/Known.h"

#include <cmath>

namespace mtc::logical {

Value tangent(Ops &ops, const Value &x);
Value hyperbolicSine(Ops &ops, const Value &x);
Value hyperbolicCosine(Ops &ops, const Value &x);
Value arcsine(Ops &ops, const Value &x);
Value arccosine(Ops &ops, const Value &x);
Value arctangent(Ops &ops, const Value &x);
Value hyperbolicArcsine(Ops &ops, const Value &x);
Value hyperbolicArccosine(Ops &ops, const Value &x);
Value hyperbolicArctangent(Ops &ops, const Value &x);
// The angle of the point (x, y).
Value angleOf(Ops &ops, const Value &y, const Value &x);
Value cubeRoot(Ops &ops, const Value &x);
// The nearest whole number; of two that are as near, the even one.
Value roundHalfEven(Ops &ops, const Value &x);
// The same, the one away from 0.
Value roundHalfAway(Ops &ops, const Value &x);
// The product along an axis that is not the batch: of halves, so that the gradient to each is the product of the
// others.
Value productAlong(Ops &ops, Value value, size_t axis);
// Products of what comes before and at each place of an axis, from its end if `reverse`.
Value cumulativeProduct(Ops &ops, Value value, size_t axis, bool reverse);

// Builds a call of one of these functions, or computes it of constants by `ofKnown`. Both are template arguments.
using Function = Value (*)(Ops &, const Value &);
template <Function function, double (*ofKnown)(double), typename Call> void buildFunction(Call &call) {
  if (const Known *known = call.known(0); known && !known->hasBatch() && known->type == Known::Type::Float)
    return call.give(computed({known}, known->type, [](llvm::ArrayRef<double> values) { return ofKnown(values[0]); }));
  Value value = call.value(0);
  if (!value.isFloat())
    throw Refused("expected floats, found integers or booleans");
  call.give(function(call.ops, value));
}

// The same functions of numbers that are known.
namespace known {
inline double tangent(double a) { return std::tan(a); }
inline double hyperbolicSine(double a) { return std::sinh(a); }
inline double hyperbolicCosine(double a) { return std::cosh(a); }
inline double arcsine(double a) { return std::asin(a); }
inline double arccosine(double a) { return std::acos(a); }
inline double arctangent(double a) { return std::atan(a); }
inline double hyperbolicArcsine(double a) { return std::asinh(a); }
inline double hyperbolicArccosine(double a) { return std::acosh(a); }
inline double hyperbolicArctangent(double a) { return std::atanh(a); }
inline double cubeRoot(double a) { return std::cbrt(a); }
inline double roundHalfEven(double a) { return std::nearbyint(a); }
inline double roundHalfAway(double a) { return std::round(a); }
} // namespace known

} // namespace mtc::logical

#endif
