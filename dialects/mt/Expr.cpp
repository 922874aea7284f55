// SPDX-License-Identifier: Apache-2.0
#include "dialects/mt/Expr.h"
#include "dialects/mt/Compilation.h"
#include "dialects/mt/MtDialect.h"

using namespace mlir;
using namespace mlir::mt;

Value Expr::as(const Expr &like, Type element) const {
  if (expression)
    return expression;
  OpBuilder &b = like.getBuilder();
  auto type = RankedTensorType::get({}, element);
  TypedAttr value = isa<FloatType>(element) ? TypedAttr(b.getFloatAttr(element, literal))
                                            : TypedAttr(b.getIntegerAttr(element, static_cast<int64_t>(literal)));
  return ConstantOp::create(b, like.getLocation(), type, DenseElementsAttr::get(type, Attribute(value)));
}

// The type of numbers in the module that the expression is part of.
static Type realTypeAt(const Expr &a) {
  Operation *op = a.value().getDefiningOp();
  return Compilation(op ? op : a.value().getParentBlock()->getParentOp()).realType();
}

template <typename Op> static Expr binary(const Expr &a, const Expr &b) {
  const Expr &like = a.isLiteral() ? b : a;
  Type element = like.type().getElementType();
  return like.make(Op::create(like.getBuilder(), like.getLocation(), a.as(like, element), b.as(like, element)));
}
template <typename Op> static Expr unary(const Expr &a) {
  return a.make(Op::create(a.getBuilder(), a.getLocation(), a.value()));
}
static Expr compare(Compare kind, const Expr &a, const Expr &b) {
  const Expr &like = a.isLiteral() ? b : a;
  Type element = like.type().getElementType();
  return like.make(
      CompareOp::create(like.getBuilder(), like.getLocation(), kind, a.as(like, element), b.as(like, element)));
}

namespace mlir::mt {
Expr operator+(const Expr &a, const Expr &b) { return binary<AddOp>(a, b); }
Expr operator-(const Expr &a, const Expr &b) { return binary<SubOp>(a, b); }
Expr operator*(const Expr &a, const Expr &b) { return binary<MulOp>(a, b); }
Expr operator/(const Expr &a, const Expr &b) { return binary<DivOp>(a, b); }
Expr operator-(const Expr &a) { return unary<NegOp>(a); }
Expr operator<(const Expr &a, const Expr &b) { return compare(Compare::lt, a, b); }
Expr operator<=(const Expr &a, const Expr &b) { return compare(Compare::le, a, b); }
Expr operator>(const Expr &a, const Expr &b) { return compare(Compare::gt, a, b); }
Expr operator>=(const Expr &a, const Expr &b) { return compare(Compare::ge, a, b); }
Expr operator==(const Expr &a, const Expr &b) { return compare(Compare::eq, a, b); }
Expr operator!(const Expr &a) { return unary<NotOp>(a); }

Expr select(const Expr &condition, const Expr &a, const Expr &b) {
  Type element = !a.isLiteral()   ? a.type().getElementType()
                 : !b.isLiteral() ? b.type().getElementType()
                                  : realTypeAt(condition);
  return condition.make(SelectOp::create(condition.getBuilder(), condition.getLocation(), condition.value(),
                                         a.as(condition, element), b.as(condition, element)));
}

Expr maximum(const Expr &a, const Expr &b) { return binary<MaximumOp>(a, b); }
Expr minimum(const Expr &a, const Expr &b) { return binary<MinimumOp>(a, b); }
Expr pow(const Expr &a, const Expr &b) { return binary<PowOp>(a, b); }
Expr exp(const Expr &a) { return unary<ExpOp>(a); }
Expr log(const Expr &a) { return unary<LogOp>(a); }
Expr log1p(const Expr &a) { return unary<Log1pOp>(a); }
Expr sqrt(const Expr &a) { return unary<SqrtOp>(a); }
Expr square(const Expr &a) { return unary<SquareOp>(a); }
Expr abs(const Expr &a) { return unary<AbsOp>(a); }
Expr sign(const Expr &a) { return unary<SignOp>(a); }
Expr sigmoid(const Expr &a) { return unary<SigmoidOp>(a); }
Expr erf(const Expr &a) { return unary<ErfOp>(a); }
Expr erfInv(const Expr &a) { return unary<ErfInvOp>(a); }
Expr tanh(const Expr &a) { return unary<TanhOp>(a); }
Expr sin(const Expr &a) { return unary<SinOp>(a); }
Expr cos(const Expr &a) { return unary<CosOp>(a); }
Expr floor(const Expr &a) { return unary<FloorOp>(a); }
Expr rsqrt(const Expr &a) { return unary<RsqrtOp>(a); }
Expr softplus(const Expr &a) { return unary<SoftplusOp>(a); }

Expr toFloat(const Expr &a) {
  RankedTensorType type = a.type().clone(realTypeAt(a));
  return a.type() == type ? a : a.make(CastOp::create(a.getBuilder(), a.getLocation(), type, a.value()));
}

static Expr reduce(Reduction kind, const Expr &a, ArrayRef<int64_t> dims) {
  return a.make(ReduceOp::create(a.getBuilder(), a.getLocation(), kind, a.value(), dims));
}
static Expr reduceLast(Reduction kind, const Expr &a) {
  return unsqueezeLast(reduce(kind, a, {a.type().getRank() - 1}));
}
Expr sumOver(const Expr &a, ArrayRef<int64_t> dims) {
  SmallVector<int64_t> kept(a.type().getShape());
  for (int64_t dim : dims)
    kept[dim] = 1;
  Expr sum = reduce(Reduction::sum, a, dims);
  return a.make(ReshapeOp::create(a.getBuilder(), a.getLocation(), a.type().clone(kept), sum.value()));
}
Expr sumAll(const Expr &a) {
  bool split = isSplit(a.type());
  SmallVector<int64_t> inner = llvm::to_vector(llvm::seq<int64_t>(split, a.type().getRank()));
  Expr sum = inner.empty() ? a : reduce(Reduction::sum, a, inner);
  return split ? reduce(Reduction::sum, sum, {0}) : sum;
}
Expr sumLast(const Expr &a) { return reduceLast(Reduction::sum, a); }
Expr maxLast(const Expr &a) { return reduceLast(Reduction::max, a); }

Expr unsqueezeLast(const Expr &a) {
  SmallVector<int64_t> shape(a.type().getShape());
  shape.push_back(1);
  return a.make(ReshapeOp::create(a.getBuilder(), a.getLocation(), a.type().clone(shape), a.value()));
}
Expr squeezeLast(const Expr &a) {
  return a.make(
      ReshapeOp::create(a.getBuilder(), a.getLocation(), a.type().clone(a.type().getShape().drop_back()), a.value()));
}
Expr broadcastTo(const Expr &a, RankedTensorType type) {
  return a.type() == type ? a : a.make(BroadcastOp::create(a.getBuilder(), a.getLocation(), type, a.value()));
}
} // namespace mlir::mt
