// SPDX-License-Identifier: Apache-2.0
//
// Steps that functions in f32 and in f64 share (VectorMath.cpp, VectorMathDouble.cpp).
#ifndef DIALECTS_MT_VECTORBITS_H
#define DIALECTS_MT_VECTORBITS_H

#include "dialects/mt/VectorExpr.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinTypes.h"
#include <initializer_list>

namespace mlir::mt::bits {

inline Type withElement(Type type, Type element) {
  auto vector = dyn_cast<VectorType>(type);
  return vector ? Type(vector.clone(element)) : element;
}

inline VectorExpr bitcast(const VectorExpr &a, Type element) {
  return a.make(arith::BitcastOp::create(a.getBuilder(), a.getLocation(), withElement(a.type(), element), a.value()));
}
inline VectorExpr shiftLeft(const VectorExpr &a, int count) {
  return a.make(arith::ShLIOp::create(a.getBuilder(), a.getLocation(), a.value(), VectorExpr(count).as(a, a.type())));
}
inline VectorExpr shiftRight(const VectorExpr &a, int count) {
  return a.make(arith::ShRSIOp::create(a.getBuilder(), a.getLocation(), a.value(), VectorExpr(count).as(a, a.type())));
}
inline VectorExpr toFloat(const VectorExpr &a, Type element) {
  return a.make(arith::SIToFPOp::create(a.getBuilder(), a.getLocation(), withElement(a.type(), element), a.value()));
}
inline VectorExpr copySign(const VectorExpr &magnitude, const VectorExpr &sign) {
  return magnitude.make(
      LLVM::CopySignOp::create(magnitude.getBuilder(), magnitude.getLocation(), magnitude.value(), sign.value()));
}

// Horner's rule, highest power first.
inline VectorExpr polynomial(const VectorExpr &x, std::initializer_list<double> coefficients) {
  const double *next = coefficients.begin();
  double first = *next++;
  VectorExpr result = fma(x, VectorExpr(first), VectorExpr(*next++));
  for (; next != coefficients.end(); ++next)
    result = fma(result, x, VectorExpr(*next));
  return result;
}

// Clamps to [low, high], but keeps NaN.
inline VectorExpr clamp(const VectorExpr &a, double low, double high) {
  VectorExpr below = select(a > VectorExpr(high), VectorExpr(high), a);
  return select(below < VectorExpr(low), VectorExpr(low), below);
}

} // namespace mlir::mt::bits

namespace mlir::mt {
// Whether the function computes in f64.
inline bool isDouble(const VectorExpr &a) { return !a.isLiteral() && getElementTypeOrSelf(a.type()).isF64(); }

// The functions of VectorExpr.h in f64.
namespace doubles {
VectorExpr exp(const VectorExpr &a);
VectorExpr expm1(const VectorExpr &a);
VectorExpr log(const VectorExpr &a);
VectorExpr log1p(const VectorExpr &a);
VectorExpr tanh(const VectorExpr &a);
VectorExpr erf(const VectorExpr &a);
VectorExpr erfInv(const VectorExpr &a);
VectorExpr pow(const VectorExpr &a, const VectorExpr &b);
VectorExpr sin(const VectorExpr &a);
VectorExpr cos(const VectorExpr &a);
} // namespace doubles
} // namespace mlir::mt

#endif
