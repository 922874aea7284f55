// SPDX-License-Identifier: Apache-2.0
//
// exp, log, tanh and other functions as straight-line code. Every operation is IEEE, rounded to nearest; an FMA is used
// only where `fma` is written. So the bits are the same on every CPU. Largest errors in ulp, measured by `lane-sweep`
// (test/unit/codegen): exp 0.95, log 0.76, log1p 1.44, tanh 1.25, erf 0.97, pow below 1. erf_inv has the relative error
// of its formula (3e-7).
#include "dialects/mt/VectorBits.h"
#include <limits>

using namespace mlir;
using namespace mlir::mt;
using namespace mlir::mt::bits;

static constexpr float infinity = std::numeric_limits<float>::infinity();

static VectorExpr bitsOf(const VectorExpr &a) { return bitcast(a, a.getBuilder().getI32Type()); }
static VectorExpr floatOf(const VectorExpr &a) { return bitcast(a, a.getBuilder().getF32Type()); }
VectorExpr mlir::mt::roundTo(const VectorExpr &a, Type half) {
  if (!half.isBF16()) {
    Value narrow = arith::TruncFOp::create(a.getBuilder(), a.getLocation(), withElement(a.type(), half), a.value());
    return a.make(arith::ExtFOp::create(a.getBuilder(), a.getLocation(), a.type(), narrow));
  }
  // Rounds the upper half of the bits by integer additions, because not all targets have an instruction for it.
  VectorExpr bits = bitsOf(a), odd = shiftRight(bits, 16) & VectorExpr(1);
  VectorExpr rounded = floatOf((bits + odd + VectorExpr(0x7fff)) & VectorExpr(-0x10000));
  return select(a == a, rounded, VectorExpr(std::numeric_limits<float>::quiet_NaN()));
}

// 2^n as f32 for an i32 n in [-126, 127].
static VectorExpr powerOfTwo(const VectorExpr &n) { return floatOf(shiftLeft(n + VectorExpr(127), 23)); }

VectorExpr mlir::mt::exp(const VectorExpr &a) {
  if (isDouble(a))
    return doubles::exp(a);
  // e^a is infinite above 89 and zero below -105.
  VectorExpr x = clamp(a, -105.0, 89.0);
  // n = x / ln 2, rounded to an integer: adding the magic number leaves n in the low bits.
  constexpr float magic = 12582912.0f;
  VectorExpr shifted = fma(x, VectorExpr(1.44269504088896341), VectorExpr(magic));
  VectorExpr n = shifted - VectorExpr(magic);
  VectorExpr r = fma(n, VectorExpr(-0.693145751953125), x);
  r = fma(n, VectorExpr(-1.42860682030941723e-06), r);
  VectorExpr p = polynomial(r, {1.98527617612853646e-4, 1.39304355252534151e-3, 8.33336077630519867e-3,
                                4.16664853692054749e-2, 1.66666671633720398e-1, 0.5});
  p = fma(p, r * r, r) + VectorExpr(1.0);
  // Two factors, so that a subnormal result is rounded once.
  VectorExpr exponent = bitsOf(shifted) - VectorExpr(0x4B400000);
  VectorExpr half = shiftRight(exponent, 1);
  return p * powerOfTwo(half) * powerOfTwo(exponent - half);
}

VectorExpr mlir::mt::log(const VectorExpr &a) {
  if (isDouble(a))
    return doubles::log(a);
  VectorExpr subnormal = a < VectorExpr(std::numeric_limits<float>::min());
  VectorExpr x = select(subnormal, a * VectorExpr(33554432.0), a);
  // x = m * 2^e with m in [sqrt(1/2), sqrt(2)).
  VectorExpr bits = bitsOf(x);
  VectorExpr e = shiftRight(bits - VectorExpr(0x3F3504F3), 23);
  VectorExpr f = floatOf(bits - shiftLeft(e, 23)) - VectorExpr(1.0);
  VectorExpr exponent = toFloat(e, a.getBuilder().getF32Type());
  exponent = select(subnormal, exponent - VectorExpr(25.0), exponent);
  VectorExpr z = f * f;
  VectorExpr p = polynomial(f, {7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1,
                                -1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1});
  VectorExpr y = p * f * z;
  y = fma(exponent, VectorExpr(-2.12194440e-4), y);
  y = fma(z, VectorExpr(-0.5), y);
  VectorExpr result = fma(exponent, VectorExpr(0.693359375), f + y);
  result = select(a == VectorExpr(infinity), a, result);
  result = select(a < VectorExpr(0.0), VectorExpr(std::numeric_limits<float>::quiet_NaN()), result);
  result = select(a == VectorExpr(0.0), VectorExpr(-infinity), result);
  return select(a != a, a, result);
}

VectorExpr mlir::mt::log1p(const VectorExpr &a) {
  if (isDouble(a))
    return doubles::log1p(a);
  // log1p(a) = log(u) + (error of u = 1 + a) / u.
  VectorExpr u = a + VectorExpr(1.0);
  VectorExpr lost = (a - (u - VectorExpr(1.0))) / u;
  VectorExpr result = log(u);
  // If u is 0 or infinite, there is no error term. For a = 0 the result is a, which keeps the sign of zero.
  result = select(abs(lost) < VectorExpr(infinity), result + lost, result);
  return select(a == VectorExpr(0.0), a, result);
}

VectorExpr mlir::mt::tanh(const VectorExpr &a) {
  if (isDouble(a))
    return doubles::tanh(a);
  VectorExpr x = abs(a), s = a * a;
  VectorExpr small =
      polynomial(s, {-5.70498872745e-3, 2.06390887954e-2, -5.37397155531e-2, 1.33314422036e-1, -3.33332819422e-1});
  small = fma(small * s, a, a);
  VectorExpr large = VectorExpr(1.0) - VectorExpr(2.0) / (exp(x + x) + VectorExpr(1.0));
  return copySign(select(x < VectorExpr(0.625), small, large), a);
}

// e^a - 1 = tanh(a / 2) (e^a + 1), where tanh is exact near 0.
VectorExpr mlir::mt::expm1(const VectorExpr &a) {
  return isDouble(a) ? doubles::expm1(a) : tanh(a * VectorExpr(0.5)) * (exp(a) + VectorExpr(1.0));
}

VectorExpr mlir::mt::erf(const VectorExpr &a) {
  if (isDouble(a))
    return doubles::erf(a);
  VectorExpr t = abs(a), s = a * a;
  // 1 - e^polynomial, for |a| > 475/512.
  VectorExpr r = fma(VectorExpr(-1.72853470e-5), t, VectorExpr(3.83197126e-4));
  VectorExpr u = fma(VectorExpr(-3.88396438e-3), t, VectorExpr(2.42546219e-2));
  r = fma(r, s, u);
  r = fma(r, t, VectorExpr(-1.06777877e-1));
  r = fma(r, t, VectorExpr(-6.34846687e-1));
  r = fma(r, t, VectorExpr(-1.28717512e-1));
  r = fma(r, t, -t);
  // Above 5 the result is 1 and the polynomial is not valid.
  VectorExpr large = select(t > VectorExpr(5.0), VectorExpr(1.0), VectorExpr(1.0) - exp(r));
  VectorExpr small =
      polynomial(s, {-5.96761703e-4, 4.99119423e-3, -2.67681349e-2, 1.12819925e-1, -3.76125336e-1, 1.28379166e-1});
  small = fma(small, a, a);
  return select(t > VectorExpr(0.927734375), copySign(large, a), small);
}

// M. Giles, "Approximating the erfinv function", 2010.
VectorExpr mlir::mt::erfInv(const VectorExpr &a) {
  if (isDouble(a))
    return doubles::erfInv(a);
  VectorExpr w = -log((VectorExpr(1.0) - a) * (VectorExpr(1.0) + a));
  VectorExpr central =
      polynomial(w - VectorExpr(2.5), {2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087,
                                       -0.00125372503, -0.00417768164, 0.246640727, 1.50140941});
  VectorExpr tail =
      polynomial(sqrt(w) - VectorExpr(3.0), {-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844,
                                             0.00573950773, -0.0076224613, 0.00943887047, 1.00167406, 2.83297682});
  VectorExpr result = select(w < VectorExpr(5.0), central, tail) * a;
  return select(abs(a) == VectorExpr(1.0), a * VectorExpr(infinity), result);
}

namespace {
// pow, sin and cos compute in double precision, so the error of the f32 result is little more than its own rounding.
struct Double {
  const VectorExpr &like;
  Type f64, i64;
  explicit Double(const VectorExpr &like)
      : like(like), f64(like.getBuilder().getF64Type()), i64(like.getBuilder().getI64Type()) {}

  VectorExpr extend(const VectorExpr &a) const {
    return a.make(arith::ExtFOp::create(a.getBuilder(), a.getLocation(), withElement(a.type(), f64), a.value()));
  }
  VectorExpr round(const VectorExpr &a) const {
    Type f32 = withElement(a.type(), a.getBuilder().getF32Type());
    return a.make(arith::TruncFOp::create(a.getBuilder(), a.getLocation(), f32, a.value()));
  }
  // log2 of a finite f32 > 0, including subnormal numbers, which are normal as f64.
  VectorExpr log2(const VectorExpr &a) const {
    VectorExpr bits = bitcast(extend(a), i64);
    VectorExpr e = shiftRight(bits - VectorExpr(double(0x3FE6A09E00000000ll)), 52);
    VectorExpr m = bitcast(bits - shiftLeft(e, 52), f64);
    VectorExpr s = (m - VectorExpr(1.0)) / (m + VectorExpr(1.0)), z = s * s;
    // 2 atanh(s) / ln 2
    VectorExpr p =
        polynomial(z, {1.0 / 19, 1.0 / 17, 1.0 / 15, 1.0 / 13, 1.0 / 11, 1.0 / 9, 1.0 / 7, 1.0 / 5, 1.0 / 3, 1.0});
    return fma(p * s, VectorExpr(2.8853900817779268), toFloat(e, f64));
  }
  // 2^t, t in [-200, 200].
  VectorExpr exp2(const VectorExpr &t) const {
    constexpr double magic = 6755399441055744.0;
    VectorExpr shifted = t + VectorExpr(magic);
    VectorExpr r = (t - (shifted - VectorExpr(magic))) * VectorExpr(0.69314718055994531);
    VectorExpr p = polynomial(r, {1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880, 1.0 / 40320, 1.0 / 5040, 1.0 / 720,
                                  1.0 / 120, 1.0 / 24, 1.0 / 6, 0.5, 1.0, 1.0});
    VectorExpr n = bitcast(shifted, i64) - VectorExpr(double(0x4338000000000000ll));
    return p * bitcast(shiftLeft(n + VectorExpr(1023), 52), f64);
  }
  // sin(a + quarters pi / 2).
  VectorExpr sine(const VectorExpr &a, int quarters) const {
    constexpr double magic = 6755399441055744.0;
    VectorExpr x = clamp(extend(a), -0x1p40, 0x1p40);
    VectorExpr shifted = fma(x, VectorExpr(0.63661977236758134), VectorExpr(magic));
    VectorExpr n = shifted - VectorExpr(magic);
    VectorExpr r = fma(n, VectorExpr(-1.5707963267948966), x);
    r = fma(n, VectorExpr(-6.123233995736766e-17), r);
    VectorExpr z = r * r;
    VectorExpr sine = fma(
        polynomial(z, {1.0 / 6227020800, -1.0 / 39916800, 1.0 / 362880, -1.0 / 5040, 1.0 / 120, -1.0 / 6}), z * r, r);
    VectorExpr cosine = polynomial(z, {1.0 / 479001600, -1.0 / 3628800, 1.0 / 40320, -1.0 / 720, 1.0 / 24, -0.5, 1.0});
    VectorExpr quadrant = bitcast(shifted, i64) + VectorExpr(quarters);
    VectorExpr even = (quadrant & VectorExpr(1)) == VectorExpr(0),
               positive = (quadrant & VectorExpr(2)) == VectorExpr(0);
    VectorExpr result = select(even, sine, cosine);
    return round(select(positive, result, -result));
  }
};
} // namespace

static VectorExpr sineOf(const VectorExpr &a, int quarters) {
  VectorExpr result = Double(a).sine(a, quarters);
  return select(abs(a) < VectorExpr(infinity), result, VectorExpr(std::numeric_limits<float>::quiet_NaN()));
}
VectorExpr mlir::mt::sin(const VectorExpr &a) {
  return isDouble(a) ? doubles::sin(a) : select(a == VectorExpr(0.0), a, sineOf(a, 0));
}
VectorExpr mlir::mt::cos(const VectorExpr &a) { return isDouble(a) ? doubles::cos(a) : sineOf(a, 1); }

VectorExpr mlir::mt::pow(const VectorExpr &base, const VectorExpr &power) {
  const VectorExpr &like = base.isLiteral() ? power : base;
  VectorExpr a = like.make(base.as(like, like.type())), b = like.make(power.as(like, like.type()));
  if (isDouble(a))
    return doubles::pow(a, b);
  Double in64(a);
  VectorExpr x = abs(a);
  VectorExpr regular = (x > VectorExpr(0.0)) & (x < VectorExpr(infinity));
  VectorExpr logarithm = in64.log2(select(regular, x, VectorExpr(1.0)));
  // the other values are infinity and NaN
  VectorExpr irregular = select(x == VectorExpr(0.0), VectorExpr(-infinity), x);
  logarithm = select(regular, logarithm, in64.extend(irregular));
  VectorExpr result = in64.round(in64.exp2(clamp(in64.extend(b) * logarithm, -200.0, 200.0)));
  // A negative base: an odd integer power is negative, a non-integer power is NaN. An infinite power counts as even.
  VectorExpr whole = floor(b) == b, halved = b * VectorExpr(0.5);
  VectorExpr odd = whole & (floor(halved) != halved);
  result = select(odd, copySign(result, a), result);
  result = select((a < VectorExpr(0.0)) & !whole & (x < VectorExpr(infinity)),
                  VectorExpr(std::numeric_limits<float>::quiet_NaN()), result);
  result = select(b == VectorExpr(0.0), VectorExpr(1.0), result);
  result = select(a == VectorExpr(1.0), VectorExpr(1.0), result);
  return select((x == VectorExpr(1.0)) & (abs(b) == VectorExpr(infinity)), VectorExpr(1.0), result);
}
