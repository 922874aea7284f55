// SPDX-License-Identifier: Apache-2.0
//
// Formulas of mt ops, such as `dy * (1.0 - y * y)`, for gradients, optimizers and decompositions. An Expr is a value or
// a literal. A literal becomes an mt.constant of rank 0 and of the other operand's element type. Operands broadcast by
// the rules of the ops.
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
  // The value; a literal becomes a constant of type `element`, with the builder and the location of `like`.
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
// Sum or maximum over the last axis, which is kept with size 1.
Expr sumLast(const Expr &a);
Expr maxLast(const Expr &a);
// Sum over axes, which are kept with size 1.
Expr sumOver(const Expr &a, ArrayRef<int64_t> dims);
// Sum over all axes, tensor<f32>: first over each sample, then over the batch.
Expr sumAll(const Expr &a);
// Adds or removes a last axis of size 1.
Expr unsqueezeLast(const Expr &a);
Expr squeezeLast(const Expr &a);
// Broadcasts a to the shape of the type.
Expr broadcastTo(const Expr &a, RankedTensorType type);

} // namespace mlir::mt

#endif
