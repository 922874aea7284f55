// SPDX-License-Identifier: Apache-2.0
//
// Functions of one number, which importers compute of constants, and build as ops of mt of anything else.
#ifndef FRONTEND_LOGICAL_UNARY_H
#define FRONTEND_LOGICAL_UNARY_H

#include "frontend/logical/Compute.h"
#include "frontend/logical/Known.h"

#include <cmath>

namespace mtc::logical {

inline double absolute(double a) { return std::fabs(a); }
inline double exponential(double a) { return std::exp(a); }
inline double logarithm(double a) { return std::log(a); }
inline double root(double a) { return std::sqrt(a); }
inline double sine(double a) { return std::sin(a); }
inline double cosine(double a) { return std::cos(a); }
inline double lower(double a) { return std::floor(a); }
inline double signOf(double a) { return a > 0 ? 1 : a < 0 ? -1 : a; } // of NaN that
// NaN is the result where one of them is, as of NumPy's.
inline double larger(double a, double b) { return a >= b || std::isnan(a) ? a : b; }
inline double smaller(double a, double b) { return a <= b || std::isnan(a) ? a : b; }

// An op of mt of the same meaning as `formula`. Without one constants become values.
template <typename Op, double (*formula)(double) = nullptr, typename Call> void buildUnary(Call &call) {
  if constexpr (formula != nullptr)
    if (const Known *known = call.known(0); known && !known->hasBatch())
      return call.give(
          computed({known}, known->type, [](llvm::ArrayRef<double> values) { return formula(values[0]); }));
  call.give(unary<Op>(call.ops, call.value(0)));
}

} // namespace mtc::logical

#endif
