// SPDX-License-Identifier: Apache-2.0
//
// Arithmetic of one lane, for the `lower` expressions of MtOps.td. A VectorExpr is a scalar or vector of f32, i32 or
// i1, or a literal that takes the type of what it meets. Only arith ops and llvm intrinsics are emitted, so that a
// lane's bits depend on nothing but its operands.
#ifndef DIALECTS_MT_VECTOREXPR_H
#define DIALECTS_MT_VECTOREXPR_H

#include "mlir/IR/Builders.h"

namespace mlir::mt {

class VectorExpr {
public:
  VectorExpr(OpBuilder &builder, Location location, Value value) : builder(&builder), location(location), lane(value) {}
  VectorExpr(double literal) : literal(literal) {}
  VectorExpr(float literal) : literal(literal) {}
  VectorExpr(int literal) : literal(literal) {}

  // The emitted value. A literal alone has none.
  Value value() const { return lane; }
  bool isLiteral() const { return !lane; }
  Type type() const { return lane.getType(); }
  // The same bits everywhere in `type`: this value, or the literal splat to it. `like` gives builder and location.
  Value as(const VectorExpr &like, Type type) const;
  // Another lane of the same place in the code.
  VectorExpr make(Value value) const { return VectorExpr(*builder, *location, value); }
  OpBuilder &getBuilder() const { return *builder; }
  Location getLocation() const { return *location; }

private:
  OpBuilder *builder = nullptr;
  std::optional<Location> location;
  Value lane;
  double literal = 0;
};

// IEEE operations, rounded to nearest; integers wrap.
VectorExpr operator+(const VectorExpr &a, const VectorExpr &b);
VectorExpr operator-(const VectorExpr &a, const VectorExpr &b);
VectorExpr operator*(const VectorExpr &a, const VectorExpr &b);
VectorExpr operator/(const VectorExpr &a, const VectorExpr &b);
VectorExpr operator-(const VectorExpr &a);
// a * b + c, rounded once.
VectorExpr fma(const VectorExpr &a, const VectorExpr &b, const VectorExpr &c);
// i1 lanes. Comparisons with a NaN are false, but for `!=`.
VectorExpr operator<(const VectorExpr &a, const VectorExpr &b);
VectorExpr operator<=(const VectorExpr &a, const VectorExpr &b);
VectorExpr operator>(const VectorExpr &a, const VectorExpr &b);
VectorExpr operator>=(const VectorExpr &a, const VectorExpr &b);
VectorExpr operator==(const VectorExpr &a, const VectorExpr &b);
VectorExpr operator!=(const VectorExpr &a, const VectorExpr &b);
VectorExpr operator&(const VectorExpr &a, const VectorExpr &b);
VectorExpr operator!(const VectorExpr &a);
VectorExpr select(const VectorExpr &condition, const VectorExpr &a, const VectorExpr &b);
// A NaN if one of the two is; of equal ones a.
VectorExpr maximum(const VectorExpr &a, const VectorExpr &b);
VectorExpr minimum(const VectorExpr &a, const VectorExpr &b);
VectorExpr abs(const VectorExpr &a);
VectorExpr sqrt(const VectorExpr &a);
VectorExpr floor(const VectorExpr &a);

// The nearest bf16 or f16 of an f32, ties to even, as an f32.
VectorExpr roundTo(const VectorExpr &a, Type half);

// f32 functions; VectorExpr.cpp gives their errors in ulp.
VectorExpr exp(const VectorExpr &a);
VectorExpr expm1(const VectorExpr &a);
VectorExpr log(const VectorExpr &a);
VectorExpr log1p(const VectorExpr &a);
VectorExpr tanh(const VectorExpr &a);
VectorExpr erf(const VectorExpr &a);
VectorExpr erfInv(const VectorExpr &a);
VectorExpr pow(const VectorExpr &a, const VectorExpr &b);
// Below 2^26 as good as the others; beyond that they lose the phase, but stay from -1 to 1.
VectorExpr sin(const VectorExpr &a);
VectorExpr cos(const VectorExpr &a);

} // namespace mlir::mt

#endif
