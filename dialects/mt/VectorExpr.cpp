// SPDX-License-Identifier: Apache-2.0
#include "dialects/mt/VectorExpr.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::mt;

static Type withElement(Type type, Type element) {
  auto vector = dyn_cast<VectorType>(type);
  return vector ? Type(vector.clone(element)) : element;
}

static bool isFloat(Type type) { return isa<FloatType>(getElementTypeOrSelf(type)); }

Value VectorExpr::as(const VectorExpr &like, Type type) const {
  if (lane)
    return lane;
  OpBuilder &b = like.getBuilder();
  Type element = getElementTypeOrSelf(type);
  TypedAttr scalar = isFloat(type) ? TypedAttr(b.getFloatAttr(element, literal))
                                   : TypedAttr(b.getIntegerAttr(element, static_cast<int64_t>(literal)));
  if (auto vector = dyn_cast<VectorType>(type))
    scalar = DenseElementsAttr::get(vector, Attribute(scalar));
  return arith::ConstantOp::create(b, like.getLocation(), scalar);
}

namespace {
// The two operands of a binary operation, converted to one type.
struct Pair {
  const VectorExpr &like;
  Value a, b;
  Pair(const VectorExpr &x, const VectorExpr &y)
      : like(x.isLiteral() ? y : x), a(x.as(like, like.type())), b(y.as(like, like.type())) {}
  bool floats() const { return isFloat(a.getType()); }
  template <typename Op, typename... Args> VectorExpr emit(Args &&...args) const {
    return like.make(Op::create(like.getBuilder(), like.getLocation(), std::forward<Args>(args)...));
  }
  VectorExpr compare(arith::CmpFPredicate floating, arith::CmpIPredicate integer) const {
    return floats() ? emit<arith::CmpFOp>(floating, a, b) : emit<arith::CmpIOp>(integer, a, b);
  }
};
} // namespace

VectorExpr mlir::mt::operator+(const VectorExpr &a, const VectorExpr &b) {
  Pair p(a, b);
  return p.floats() ? p.emit<arith::AddFOp>(p.a, p.b) : p.emit<arith::AddIOp>(p.a, p.b);
}
VectorExpr mlir::mt::operator-(const VectorExpr &a, const VectorExpr &b) {
  Pair p(a, b);
  return p.floats() ? p.emit<arith::SubFOp>(p.a, p.b) : p.emit<arith::SubIOp>(p.a, p.b);
}
VectorExpr mlir::mt::operator*(const VectorExpr &a, const VectorExpr &b) {
  Pair p(a, b);
  return p.floats() ? p.emit<arith::MulFOp>(p.a, p.b) : p.emit<arith::MulIOp>(p.a, p.b);
}
VectorExpr mlir::mt::operator/(const VectorExpr &a, const VectorExpr &b) {
  Pair p(a, b);
  return p.emit<arith::DivFOp>(p.a, p.b);
}
VectorExpr mlir::mt::operator-(const VectorExpr &a) {
  if (!isFloat(a.type()))
    return VectorExpr(0) - a;
  return a.make(arith::NegFOp::create(a.getBuilder(), a.getLocation(), a.value()));
}
VectorExpr mlir::mt::fma(const VectorExpr &a, const VectorExpr &b, const VectorExpr &c) {
  const VectorExpr &like = a.isLiteral() ? (b.isLiteral() ? c : b) : a;
  Type type = like.type();
  return like.make(
      LLVM::FMAOp::create(like.getBuilder(), like.getLocation(), a.as(like, type), b.as(like, type), c.as(like, type)));
}

VectorExpr mlir::mt::operator<(const VectorExpr &a, const VectorExpr &b) {
  return Pair(a, b).compare(arith::CmpFPredicate::OLT, arith::CmpIPredicate::slt);
}
VectorExpr mlir::mt::operator<=(const VectorExpr &a, const VectorExpr &b) {
  return Pair(a, b).compare(arith::CmpFPredicate::OLE, arith::CmpIPredicate::sle);
}
VectorExpr mlir::mt::operator>(const VectorExpr &a, const VectorExpr &b) {
  return Pair(a, b).compare(arith::CmpFPredicate::OGT, arith::CmpIPredicate::sgt);
}
VectorExpr mlir::mt::operator>=(const VectorExpr &a, const VectorExpr &b) {
  return Pair(a, b).compare(arith::CmpFPredicate::OGE, arith::CmpIPredicate::sge);
}
VectorExpr mlir::mt::operator==(const VectorExpr &a, const VectorExpr &b) {
  return Pair(a, b).compare(arith::CmpFPredicate::OEQ, arith::CmpIPredicate::eq);
}
VectorExpr mlir::mt::operator!=(const VectorExpr &a, const VectorExpr &b) {
  return Pair(a, b).compare(arith::CmpFPredicate::UNE, arith::CmpIPredicate::ne);
}
VectorExpr mlir::mt::operator&(const VectorExpr &a, const VectorExpr &b) {
  Pair p(a, b);
  return p.emit<arith::AndIOp>(p.a, p.b);
}
VectorExpr mlir::mt::operator!(const VectorExpr &a) {
  Value ones = VectorExpr(1).as(a, a.type());
  return a.make(arith::XOrIOp::create(a.getBuilder(), a.getLocation(), a.value(), ones));
}

VectorExpr mlir::mt::select(const VectorExpr &condition, const VectorExpr &a, const VectorExpr &b) {
  // Two literals become values of the type that the condition compares, or else f32, of the condition's shape.
  auto compared = condition.value().getDefiningOp<arith::CmpFOp>();
  Type element = compared ? getElementTypeOrSelf(compared.getLhs().getType()) : condition.getBuilder().getF32Type();
  Type type = !a.isLiteral() ? a.type() : !b.isLiteral() ? b.type() : withElement(condition.type(), element);
  return condition.make(arith::SelectOp::create(condition.getBuilder(), condition.getLocation(), condition.value(),
                                                a.as(condition, type), b.as(condition, type)));
}

static bool isNeverNaN(const VectorExpr &a) {
  if (a.isLiteral() || !isFloat(a.type()))
    return true;
  Attribute constant;
  if (!matchPattern(a.value(), m_Constant(&constant)))
    return false;
  if (auto splat = dyn_cast<SplatElementsAttr>(constant))
    constant = splat.getSplatValue<Attribute>();
  auto number = dyn_cast<FloatAttr>(constant);
  return number && !number.getValue().isNaN();
}
// A comparison with NaN is false. The forms below are chosen so that a NaN of the operand selected in that case is
// kept.
static VectorExpr orNaN(const VectorExpr &a, const VectorExpr &chosen) {
  return isNeverNaN(a) ? chosen : select(a != a, a, chosen);
}
VectorExpr mlir::mt::maximum(const VectorExpr &a, const VectorExpr &b) {
  return isNeverNaN(a) ? select(a >= b, a, b) : orNaN(b, select(a < b, b, a));
}
VectorExpr mlir::mt::minimum(const VectorExpr &a, const VectorExpr &b) {
  return isNeverNaN(a) ? select(a <= b, a, b) : orNaN(b, select(a > b, b, a));
}

template <typename Op> static VectorExpr intrinsic(const VectorExpr &a) {
  return a.make(Op::create(a.getBuilder(), a.getLocation(), a.value()));
}
VectorExpr mlir::mt::abs(const VectorExpr &a) { return intrinsic<LLVM::FAbsOp>(a); }
VectorExpr mlir::mt::sqrt(const VectorExpr &a) { return intrinsic<LLVM::SqrtOp>(a); }
VectorExpr mlir::mt::floor(const VectorExpr &a) { return intrinsic<LLVM::FFloorOp>(a); }
