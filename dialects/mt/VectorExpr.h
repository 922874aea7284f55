// SPDX-License-Identifier: Apache-2.0
//
// Arithmetic of generated code, for the `lower` expressions of the .td files. A VectorExpr is a scalar or vector of
// f32, i32 or i1, or a literal that adopts the type of the other operand. It emits only arith ops and LLVM intrinsics,
// so the bits of a vector's element depend on the operands' elements at the same index alone.
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

  // The emitted value; null for a literal.
  Value value() const { return lane; }
  bool isLiteral() const { return !lane; }
  Type type() const { return lane.getType(); }
  // This value, or the literal as a splat of `type`, built with the builder and location of `like`.
  Value as(const VectorExpr &like, Type type) const;
  // An expression of `value` with the same builder and location.
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
// Comparisons, i1. A comparison with NaN is false, but for `!=`.
VectorExpr operator<(const VectorExpr &a, const VectorExpr &b);
VectorExpr operator<=(const VectorExpr &a, const VectorExpr &b);
VectorExpr operator>(const VectorExpr &a, const VectorExpr &b);
VectorExpr operator>=(const VectorExpr &a, const VectorExpr &b);
VectorExpr operator==(const VectorExpr &a, const VectorExpr &b);
VectorExpr operator!=(const VectorExpr &a, const VectorExpr &b);
VectorExpr operator&(const VectorExpr &a, const VectorExpr &b);
VectorExpr operator!(const VectorExpr &a);
VectorExpr select(const VectorExpr &condition, const VectorExpr &a, const VectorExpr &b);
// NaN if either operand is NaN; a if they are equal.
VectorExpr maximum(const VectorExpr &a, const VectorExpr &b);
VectorExpr minimum(const VectorExpr &a, const VectorExpr &b);
VectorExpr abs(const VectorExpr &a);
VectorExpr sqrt(const VectorExpr &a);
VectorExpr floor(const VectorExpr &a);

// Rounds f32 to the nearest bf16 or f16, ties to even; the result is an f32.
VectorExpr roundTo(const VectorExpr &a, Type half);

// f32 functions; VectorMath.cpp states their errors in ulp.
VectorExpr exp(const VectorExpr &a);
VectorExpr expm1(const VectorExpr &a);
VectorExpr log(const VectorExpr &a);
VectorExpr log1p(const VectorExpr &a);
VectorExpr tanh(const VectorExpr &a);
VectorExpr erf(const VectorExpr &a);
VectorExpr erfInv(const VectorExpr &a);
VectorExpr pow(const VectorExpr &a, const VectorExpr &b);
// For arguments below 2^26 as accurate as the other functions; for larger arguments only the range -1 to 1 is
// guaranteed.
VectorExpr sin(const VectorExpr &a);
VectorExpr cos(const VectorExpr &a);

} // namespace mlir::mt

#endif
