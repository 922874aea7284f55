// SPDX-License-Identifier: Apache-2.0
//
// Arithmetic of one lane, for the `lower` expressions of MtOps.td. A Lane is a scalar or vector of f32, i32 or i1, or a
// literal that takes the type of what it meets. Only arith ops and llvm intrinsics are emitted, so that a lane's bits
// depend on nothing but its operands.
#ifndef DIALECTS_MT_LANE_H
#define DIALECTS_MT_LANE_H

#include "mlir/IR/Builders.h"

namespace mlir::mt {

class Lane {
public:
  Lane(OpBuilder &builder, Location location, Value value) : builder(&builder), location(location), lane(value) {}
  Lane(double literal) : literal(literal) {}
  Lane(float literal) : literal(literal) {}
  Lane(int literal) : literal(literal) {}

  // The emitted value. A literal alone has none.
  Value value() const { return lane; }
  bool isLiteral() const { return !lane; }
  Type type() const { return lane.getType(); }
  // The same bits everywhere in `type`: this value, or the literal splat to it. `like` gives builder and location.
  Value as(const Lane &like, Type type) const;
  // Another lane of the same place in the code.
  Lane make(Value value) const { return Lane(*builder, *location, value); }
  OpBuilder &getBuilder() const { return *builder; }
  Location getLocation() const { return *location; }

private:
  OpBuilder *builder = nullptr;
  std::optional<Location> location;
  Value lane;
  double literal = 0;
};

// IEEE operations, rounded to nearest; integers wrap.
Lane operator+(const Lane &a, const Lane &b);
Lane operator-(const Lane &a, const Lane &b);
Lane operator*(const Lane &a, const Lane &b);
Lane operator/(const Lane &a, const Lane &b);
Lane operator-(const Lane &a);
// a * b + c, rounded once.
Lane fma(const Lane &a, const Lane &b, const Lane &c);
// i1 lanes. Comparisons with a NaN are false, but for `!=`.
Lane operator<(const Lane &a, const Lane &b);
Lane operator<=(const Lane &a, const Lane &b);
Lane operator>(const Lane &a, const Lane &b);
Lane operator>=(const Lane &a, const Lane &b);
Lane operator==(const Lane &a, const Lane &b);
Lane operator!=(const Lane &a, const Lane &b);
Lane operator&(const Lane &a, const Lane &b);
Lane operator!(const Lane &a);
Lane select(const Lane &condition, const Lane &a, const Lane &b);
Lane abs(const Lane &a);
Lane sqrt(const Lane &a);
Lane floor(const Lane &a);

// The nearest bf16 or f16 of an f32, ties to even, as an f32.
Lane roundTo(const Lane &a, Type half);

// f32 functions; Lane.cpp gives their errors in ulp.
Lane exp(const Lane &a);
Lane expm1(const Lane &a);
Lane log(const Lane &a);
Lane log1p(const Lane &a);
Lane tanh(const Lane &a);
Lane erf(const Lane &a);
Lane erfInv(const Lane &a);
Lane pow(const Lane &a, const Lane &b);
// Below 2^26 as good as the others; beyond that they lose the phase, but stay from -1 to 1.
Lane sin(const Lane &a);
Lane cos(const Lane &a);

} // namespace mlir::mt

#endif
