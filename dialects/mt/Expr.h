// SPDX-License-Identifier: Apache-2.0
//
// Formulas of mt ops, for gradients, optimizers and decompositions: `dy * (1.0 - y * y)`. An Expr is a value or a
// literal, which becomes an mt.constant of rank 0 and the other operand's element type. Operands broadcast like the
// ops.
#ifndef DIALECTS_MT_EXPR_H
#define DIALECTS_MT_EXPR_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"

namespace mlir::mt {

class Expr {
public:
  Expr(OpBuilder &builder, Location location, Value value) : builder(&builder), location(location), expression(value) {}
  Expr(double literal) : literal(literal) {}

  Value value() const { return expression; }
  // The value; a literal becomes a constant of `element` type, at the place of `like`.
  Value as(const Expr &like, Type element) const;
  RankedTensorType type() const { return cast<RankedTensorType>(expression.getType()); }
  bool isLiteral() const { return !expression; }
  Expr make(Value value) const { return Expr(*builder, *location, value); }
  OpBuilder &getBuilder() const { return *builder; }
  Location getLocation() const { return *location; }

private:
  OpBuilder *builder = nullptr;
  std::optional<Location> location;
  Value expression;
  double literal = 0;
};

Expr operator+(const Expr &a, const Expr &b);
Expr operator-(const Expr &a, const Expr &b);
Expr operator*(const Expr &a, const Expr &b);
Expr operator/(const Expr &a, const Expr &b);
Expr operator-(const Expr &a);
Expr operator<(const Expr &a, const Expr &b);
Expr operator<=(const Expr &a, const Expr &b);
Expr operator>(const Expr &a, const Expr &b);
Expr operator>=(const Expr &a, const Expr &b);
Expr operator==(const Expr &a, const Expr &b);
Expr operator!(const Expr &a);
Expr select(const Expr &condition, const Expr &a, const Expr &b);
Expr maximum(const Expr &a, const Expr &b);
Expr minimum(const Expr &a, const Expr &b);
Expr pow(const Expr &a, const Expr &b);
Expr exp(const Expr &a);
Expr log(const Expr &a);
Expr log1p(const Expr &a);
Expr sqrt(const Expr &a);
Expr square(const Expr &a);
Expr abs(const Expr &a);
Expr sign(const Expr &a);
Expr sigmoid(const Expr &a);
Expr erf(const Expr &a);
Expr erfInv(const Expr &a);
Expr tanh(const Expr &a);
Expr sin(const Expr &a);
Expr cos(const Expr &a);
Expr floor(const Expr &a);
Expr rsqrt(const Expr &a);
Expr softplus(const Expr &a);
Expr toFloat(const Expr &a);
// Sum or maximum over the last axis, which stays with size 1.
Expr sumLast(const Expr &a);
Expr maxLast(const Expr &a);
// Over axes, which stay with size 1.
Expr sumOver(const Expr &a, ArrayRef<int64_t> dims);
// Over all axes: each sample's own first, then one sum over the batch. tensor<f32>.
Expr sumAll(const Expr &a);
// A new last axis of size 1; without a last axis of size 1.
Expr unsqueezeLast(const Expr &a);
Expr squeezeLast(const Expr &a);
// Repeated to the type's shape.
Expr broadcastTo(const Expr &a, RankedTensorType type);

} // namespace mlir::mt

#endif
