// SPDX-License-Identifier: Apache-2.0
//
// exp, log, tanh ... of one lane, as straight-line code: every operation is IEEE, rounded to nearest, FMA where `fma`
// says so and nowhere else. So a lane's bits are the same on every CPU. Largest errors in ulp, by `lane-sweep`
// (test/unit/codegen): exp 0.95, log 0.76, log1p 1.44, tanh 1.25, erf 0.97; pow below 1; erf_inv is as good as its
// formula (3e-7 of the argument).
#include "dialects/mt/Lane.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinTypes.h"
#include <initializer_list>
#include <limits>

using namespace mlir;
using namespace mlir::mt;

static constexpr float infinity = std::numeric_limits<float>::infinity();

static Type withElement(Type type, Type element) {
  auto vector = dyn_cast<VectorType>(type);
  return vector ? Type(vector.clone(element)) : element;
}

static Lane bitcast(const Lane &a, Type element) {
  return a.make(arith::BitcastOp::create(a.getBuilder(), a.getLocation(), withElement(a.type(), element), a.value()));
}
static Lane bitsOf(const Lane &a) { return bitcast(a, a.getBuilder().getI32Type()); }
static Lane floatOf(const Lane &a) { return bitcast(a, a.getBuilder().getF32Type()); }
static Lane shiftLeft(const Lane &a, int count) {
  return a.make(arith::ShLIOp::create(a.getBuilder(), a.getLocation(), a.value(), Lane(count).as(a, a.type())));
}
static Lane shiftRight(const Lane &a, int count) {
  return a.make(arith::ShRSIOp::create(a.getBuilder(), a.getLocation(), a.value(), Lane(count).as(a, a.type())));
}
static Lane toFloat(const Lane &a, Type element) {
  return a.make(arith::SIToFPOp::create(a.getBuilder(), a.getLocation(), withElement(a.type(), element), a.value()));
}
Lane mlir::mt::roundTo(const Lane &a, Type half) {
  if (!half.isBF16()) {
    Value narrow = arith::TruncFOp::create(a.getBuilder(), a.getLocation(), withElement(a.type(), half), a.value());
    return a.make(arith::ExtFOp::create(a.getBuilder(), a.getLocation(), a.type(), narrow));
  }
  // The upper half of the bits, which a carry from the lower one may change. Not all targets have an instruction.
  Lane bits = bitsOf(a), odd = shiftRight(bits, 16) & Lane(1);
  Lane rounded = floatOf((bits + odd + Lane(0x7fff)) & Lane(-0x10000));
  return select(a == a, rounded, Lane(std::numeric_limits<float>::quiet_NaN()));
}

static Lane copySign(const Lane &magnitude, const Lane &sign) {
  return magnitude.make(
      LLVM::CopySignOp::create(magnitude.getBuilder(), magnitude.getLocation(), magnitude.value(), sign.value()));
}

// Horner's rule, highest power first.
static Lane polynomial(const Lane &x, std::initializer_list<double> coefficients) {
  const double *next = coefficients.begin();
  double first = *next++;
  Lane result = fma(x, Lane(first), Lane(*next++));
  for (; next != coefficients.end(); ++next)
    result = fma(result, x, Lane(*next));
  return result;
}

// Bounds that let a NaN through.
static Lane clamp(const Lane &a, double low, double high) {
  Lane below = select(a > Lane(high), Lane(high), a);
  return select(below < Lane(low), Lane(low), below);
}

// 2^n as f32 for an i32 n in [-126, 127].
static Lane powerOfTwo(const Lane &n) { return floatOf(shiftLeft(n + Lane(127), 23)); }

Lane mlir::mt::exp(const Lane &a) {
  // Above 89 the result is infinite, below -105 it is zero.
  Lane x = clamp(a, -105.0, 89.0);
  // n = x / ln 2 to the nearest integer: the magic number leaves it in the low bits.
  constexpr float magic = 12582912.0f;
  Lane shifted = fma(x, Lane(1.44269504088896341), Lane(magic));
  Lane n = shifted - Lane(magic);
  Lane r = fma(n, Lane(-0.693145751953125), x);
  r = fma(n, Lane(-1.42860682030941723e-06), r);
  Lane p = polynomial(r, {1.98527617612853646e-4, 1.39304355252534151e-3, 8.33336077630519867e-3,
                          4.16664853692054749e-2, 1.66666671633720398e-1, 0.5});
  p = fma(p, r * r, r) + Lane(1.0);
  // Two factors, so that a subnormal result is rounded once.
  Lane exponent = bitsOf(shifted) - Lane(0x4B400000);
  Lane half = shiftRight(exponent, 1);
  return p * powerOfTwo(half) * powerOfTwo(exponent - half);
}

Lane mlir::mt::log(const Lane &a) {
  Lane subnormal = a < Lane(std::numeric_limits<float>::min());
  Lane x = select(subnormal, a * Lane(33554432.0), a);
  // x = m * 2^e with m in [sqrt(1/2), sqrt(2)).
  Lane bits = bitsOf(x);
  Lane e = shiftRight(bits - Lane(0x3F3504F3), 23);
  Lane f = floatOf(bits - shiftLeft(e, 23)) - Lane(1.0);
  Lane exponent = toFloat(e, a.getBuilder().getF32Type());
  exponent = select(subnormal, exponent - Lane(25.0), exponent);
  Lane z = f * f;
  Lane p = polynomial(f, {7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1,
                          -1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1});
  Lane y = p * f * z;
  y = fma(exponent, Lane(-2.12194440e-4), y);
  y = fma(z, Lane(-0.5), y);
  Lane result = fma(exponent, Lane(0.693359375), f + y);
  result = select(a == Lane(infinity), a, result);
  result = select(a < Lane(0.0), Lane(std::numeric_limits<float>::quiet_NaN()), result);
  result = select(a == Lane(0.0), Lane(-infinity), result);
  return select(a != a, a, result);
}

Lane mlir::mt::log1p(const Lane &a) {
  // log(u) + (what u = 1 + a lost) / u.
  Lane u = a + Lane(1.0);
  Lane lost = (a - (u - Lane(1.0))) / u;
  Lane result = log(u);
  // Where u is 0 or infinite nothing was lost; a itself keeps the sign of zero.
  result = select(abs(lost) < Lane(infinity), result + lost, result);
  return select(a == Lane(0.0), a, result);
}

Lane mlir::mt::tanh(const Lane &a) {
  Lane x = abs(a), s = a * a;
  Lane small =
      polynomial(s, {-5.70498872745e-3, 2.06390887954e-2, -5.37397155531e-2, 1.33314422036e-1, -3.33332819422e-1});
  small = fma(small * s, a, a);
  Lane large = Lane(1.0) - Lane(2.0) / (exp(x + x) + Lane(1.0));
  return copySign(select(x < Lane(0.625), small, large), a);
}

// e^a - 1 = tanh(a / 2) (e^a + 1), whose first factor is exact near 0.
Lane mlir::mt::expm1(const Lane &a) { return tanh(a * Lane(0.5)) * (exp(a) + Lane(1.0)); }

Lane mlir::mt::erf(const Lane &a) {
  Lane t = abs(a), s = a * a;
  // 1 - e^(polynomial), for |a| > 475/512.
  Lane r = fma(Lane(-1.72853470e-5), t, Lane(3.83197126e-4));
  Lane u = fma(Lane(-3.88396438e-3), t, Lane(2.42546219e-2));
  r = fma(r, s, u);
  r = fma(r, t, Lane(-1.06777877e-1));
  r = fma(r, t, Lane(-6.34846687e-1));
  r = fma(r, t, Lane(-1.28717512e-1));
  r = fma(r, t, -t);
  // Beyond 5 the result is 1, and the polynomial is no guide.
  Lane large = select(t > Lane(5.0), Lane(1.0), Lane(1.0) - exp(r));
  Lane small =
      polynomial(s, {-5.96761703e-4, 4.99119423e-3, -2.67681349e-2, 1.12819925e-1, -3.76125336e-1, 1.28379166e-1});
  small = fma(small, a, a);
  return select(t > Lane(0.927734375), copySign(large, a), small);
}

// M. Giles, "Approximating the erfinv function", 2010.
Lane mlir::mt::erfInv(const Lane &a) {
  Lane w = -log((Lane(1.0) - a) * (Lane(1.0) + a));
  Lane central = polynomial(w - Lane(2.5), {2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06,
                                            0.00021858087, -0.00125372503, -0.00417768164, 0.246640727, 1.50140941});
  Lane tail = polynomial(sqrt(w) - Lane(3.0), {-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844,
                                               0.00573950773, -0.0076224613, 0.00943887047, 1.00167406, 2.83297682});
  Lane result = select(w < Lane(5.0), central, tail) * a;
  return select(abs(a) == Lane(1.0), a * Lane(infinity), result);
}

namespace {
// pow, sin and cos work in double precision, so that the f32 result is off by little more than its own rounding.
struct Double {
  const Lane &like;
  Type f64, i64;
  explicit Double(const Lane &like)
      : like(like), f64(like.getBuilder().getF64Type()), i64(like.getBuilder().getI64Type()) {}

  Lane extend(const Lane &a) const {
    return a.make(arith::ExtFOp::create(a.getBuilder(), a.getLocation(), withElement(a.type(), f64), a.value()));
  }
  Lane round(const Lane &a) const {
    Type f32 = withElement(a.type(), a.getBuilder().getF32Type());
    return a.make(arith::TruncFOp::create(a.getBuilder(), a.getLocation(), f32, a.value()));
  }
  // log2 of a finite f32 > 0, subnormal ones included (they are normal as f64).
  Lane log2(const Lane &a) const {
    Lane bits = bitcast(extend(a), i64);
    Lane e = shiftRight(bits - Lane(double(0x3FE6A09E00000000ll)), 52);
    Lane m = bitcast(bits - shiftLeft(e, 52), f64);
    Lane s = (m - Lane(1.0)) / (m + Lane(1.0)), z = s * s;
    // 2 atanh(s) / ln 2
    Lane p = polynomial(z, {1.0 / 19, 1.0 / 17, 1.0 / 15, 1.0 / 13, 1.0 / 11, 1.0 / 9, 1.0 / 7, 1.0 / 5, 1.0 / 3, 1.0});
    return fma(p * s, Lane(2.8853900817779268), toFloat(e, f64));
  }
  // 2^t, t in [-200, 200].
  Lane exp2(const Lane &t) const {
    constexpr double magic = 6755399441055744.0;
    Lane shifted = t + Lane(magic);
    Lane r = (t - (shifted - Lane(magic))) * Lane(0.69314718055994531);
    Lane p = polynomial(r, {1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880, 1.0 / 40320, 1.0 / 5040, 1.0 / 720, 1.0 / 120,
                            1.0 / 24, 1.0 / 6, 0.5, 1.0, 1.0});
    Lane n = bitcast(shifted, i64) - Lane(double(0x4338000000000000ll));
    return p * bitcast(shiftLeft(n + Lane(1023), 52), f64);
  }
  // sin(a + quarters pi / 2).
  Lane sine(const Lane &a, int quarters) const {
    constexpr double magic = 6755399441055744.0;
    Lane x = clamp(extend(a), -0x1p40, 0x1p40);
    Lane shifted = fma(x, Lane(0.63661977236758134), Lane(magic));
    Lane n = shifted - Lane(magic);
    Lane r = fma(n, Lane(-1.5707963267948966), x);
    r = fma(n, Lane(-6.123233995736766e-17), r);
    Lane z = r * r;
    Lane sine = fma(polynomial(z, {1.0 / 6227020800, -1.0 / 39916800, 1.0 / 362880, -1.0 / 5040, 1.0 / 120, -1.0 / 6}),
                    z * r, r);
    Lane cosine = polynomial(z, {1.0 / 479001600, -1.0 / 3628800, 1.0 / 40320, -1.0 / 720, 1.0 / 24, -0.5, 1.0});
    Lane quadrant = bitcast(shifted, i64) + Lane(quarters);
    Lane even = (quadrant & Lane(1)) == Lane(0), positive = (quadrant & Lane(2)) == Lane(0);
    Lane result = select(even, sine, cosine);
    return round(select(positive, result, -result));
  }
};
} // namespace

static Lane sineOf(const Lane &a, int quarters) {
  Lane result = Double(a).sine(a, quarters);
  return select(abs(a) < Lane(infinity), result, Lane(std::numeric_limits<float>::quiet_NaN()));
}
Lane mlir::mt::sin(const Lane &a) { return select(a == Lane(0.0), a, sineOf(a, 0)); }
Lane mlir::mt::cos(const Lane &a) { return sineOf(a, 1); }

Lane mlir::mt::pow(const Lane &base, const Lane &power) {
  const Lane &like = base.isLiteral() ? power : base;
  Lane a = like.make(base.as(like, like.type())), b = like.make(power.as(like, like.type()));
  Double in64(a);
  Lane x = abs(a);
  Lane regular = (x > Lane(0.0)) & (x < Lane(infinity));
  Lane logarithm = in64.log2(select(regular, x, Lane(1.0)));
  Lane irregular = select(x == Lane(0.0), Lane(-infinity), x); // infinity or NaN otherwise
  logarithm = select(regular, logarithm, in64.extend(irregular));
  Lane result = in64.round(in64.exp2(clamp(in64.extend(b) * logarithm, -200.0, 200.0)));
  // A negative base: the sign of an odd power, NaN for a broken one. An infinite power is even.
  Lane whole = floor(b) == b, halved = b * Lane(0.5);
  Lane odd = whole & (floor(halved) != halved);
  result = select(odd, copySign(result, a), result);
  result =
      select((a < Lane(0.0)) & !whole & (x < Lane(infinity)), Lane(std::numeric_limits<float>::quiet_NaN()), result);
  result = select(b == Lane(0.0), Lane(1.0), result);
  result = select(a == Lane(1.0), Lane(1.0), result);
  return select((x == Lane(1.0)) & (abs(b) == Lane(infinity)), Lane(1.0), result);
}
