// SPDX-License-Identifier: Apache-2.0
//
// exp, log, tanh and other functions in f64, as straight-line code whose bits are the same on every CPU. The sums are
// Taylor series whose first term that is left out is below 2^-54 of the result; `erf` beyond 1 is a Chebyshev series
// (computed with mpmath), and `erfInv` is the double-precision approximation of M. Giles, "Approximating the erfinv
// function", 2010. Errors in ulp, by test/python/test_doubles.py: below 4, but for pow.
#include "dialects/mt/VectorBits.h"
#include <limits>

using namespace mlir;
using namespace mlir::mt;
using namespace mlir::mt::bits;

namespace {
constexpr double infinite = std::numeric_limits<double>::infinity(),
                 notANumber = std::numeric_limits<double>::quiet_NaN();
// Added to a double of at most 2^51, it leaves the nearest integer in the low bits.
constexpr double magic = 6755399441055744.0;
constexpr int64_t magicBits = 0x4338000000000000;
// ln 2 in two parts. The first part has 40 bits: its product with an integer of 13 bits is exact.
constexpr double ln2High = 0.6931471805592082, ln2Low = 7.371002565167799e-13;

VectorExpr longsOf(const VectorExpr &a) { return bitcast(a, a.getBuilder().getI64Type()); }
VectorExpr doubleOf(const VectorExpr &a) { return bitcast(a, a.getBuilder().getF64Type()); }
// A literal of 64 bits: literals are doubles, which have the first 53 bits of these.
VectorExpr longs(int64_t number) { return static_cast<double>(number); }

// 2^n of an i64 n in [-1022, 1023].
VectorExpr powerOf(const VectorExpr &n) { return doubleOf(shiftLeft(n + VectorExpr(1023), 52)); }

// x = n ln 2 + rest, |rest| <= ln 2 / 2.
struct Reduced {
  VectorExpr n, integer, rest;
};
Reduced reduced(const VectorExpr &x) {
  VectorExpr shifted = fma(x, VectorExpr(1.4426950408889634), VectorExpr(magic));
  VectorExpr n = shifted - VectorExpr(magic);
  VectorExpr rest = fma(n, VectorExpr(-ln2Low), fma(n, VectorExpr(-ln2High), x));
  return {n, longsOf(shifted) - longs(magicBits), rest};
}

// e^r - 1 for |r| <= ln 2 / 2, with a small relative error.
VectorExpr smallExpm1(const VectorExpr &r) {
  VectorExpr p = polynomial(r, {1.0 / 87178291200, 1.0 / 6227020800, 1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800,
                                1.0 / 362880, 1.0 / 40320, 1.0 / 5040, 1.0 / 720, 1.0 / 120, 1.0 / 24, 1.0 / 6, 0.5});
  return fma(p, r * r, r);
}

// sin(a + quarters pi / 2).
VectorExpr sine(const VectorExpr &a, int quarters) {
  VectorExpr x = clamp(a, -0x1p40, 0x1p40);
  VectorExpr shifted = fma(x, VectorExpr(0.63661977236758134), VectorExpr(magic));
  VectorExpr n = shifted - VectorExpr(magic);
  VectorExpr r = fma(n, VectorExpr(-1.5707963267948966), x); // exact
  r = fma(n, VectorExpr(-6.123233995736766e-17), r);
  VectorExpr z = r * r;
  VectorExpr sine = fma(polynomial(z, {1.0 / 355687428096000, -1.0 / 1307674368000, 1.0 / 6227020800, -1.0 / 39916800,
                                       1.0 / 362880, -1.0 / 5040, 1.0 / 120, -1.0 / 6}),
                        z * r, r);
  VectorExpr rest = polynomial(z, {1.0 / 20922789888000, -1.0 / 87178291200, 1.0 / 479001600, -1.0 / 3628800,
                                   1.0 / 40320, -1.0 / 720, 1.0 / 24});
  VectorExpr cosine = fma(z * z, rest, fma(z, VectorExpr(-0.5), VectorExpr(1.0)));
  VectorExpr quadrant = longsOf(shifted) + VectorExpr(quarters);
  VectorExpr even = (quadrant & VectorExpr(1)) == VectorExpr(0);
  VectorExpr positive = (quadrant & VectorExpr(2)) == VectorExpr(0);
  VectorExpr result = select(even, sine, cosine);
  return select(abs(a) < VectorExpr(infinite), select(positive, result, -result), VectorExpr(notANumber));
}
} // namespace

VectorExpr doubles::exp(const VectorExpr &a) {
  // e^a is infinite above 709.8 and zero below -745.2.
  Reduced x = reduced(clamp(a, -746.0, 710.0));
  VectorExpr p = smallExpm1(x.rest) + VectorExpr(1.0);
  // Two factors, so that a subnormal result is rounded once.
  VectorExpr half = shiftRight(x.integer, 1);
  return p * powerOf(half) * powerOf(x.integer - half);
}

VectorExpr doubles::expm1(const VectorExpr &a) {
  Reduced x = reduced(clamp(a, -40.0, 40.0));
  VectorExpr factor = powerOf(x.integer);
  VectorExpr near = fma(factor, smallExpm1(x.rest), factor - VectorExpr(1.0));
  return select(a == VectorExpr(0.0), a, select(abs(a) > VectorExpr(40.0), doubles::exp(a) - VectorExpr(1.0), near));
}

VectorExpr doubles::log(const VectorExpr &a) {
  VectorExpr subnormal = a < VectorExpr(std::numeric_limits<double>::min());
  VectorExpr x = select(subnormal, a * VectorExpr(0x1p54), a);
  // x = m * 2^e with m in [sqrt(1/2), sqrt(2)). The literal is near the bits of sqrt(1/2).
  VectorExpr word = longsOf(x);
  VectorExpr e = shiftRight(word - longs(0x3FE6A09E00000000), 52);
  VectorExpr f = doubleOf(word - shiftLeft(e, 52)) - VectorExpr(1.0);
  VectorExpr exponent = toFloat(e, a.getBuilder().getF64Type());
  exponent = select(subnormal, exponent - VectorExpr(54.0), exponent);
  // log(1 + f) = 2 atanh(s), s = f / (2 + f), and 2 s = f - s f = f - f^2 / 2 + s f^2 / 2.
  VectorExpr s = f / (f + VectorExpr(2.0)), z = s * s, half = f * f * VectorExpr(0.5);
  VectorExpr series = z * polynomial(z, {2.0 / 23, 2.0 / 21, 2.0 / 19, 2.0 / 17, 2.0 / 15, 2.0 / 13, 2.0 / 11, 2.0 / 9,
                                         2.0 / 7, 2.0 / 5, 2.0 / 3});
  VectorExpr rest = fma(s, half + series, exponent * VectorExpr(ln2Low)) - half;
  VectorExpr result = fma(exponent, VectorExpr(ln2High), f + rest);
  result = select(a == VectorExpr(infinite), a, result);
  result = select(a < VectorExpr(0.0), VectorExpr(notANumber), result);
  result = select(a == VectorExpr(0.0), VectorExpr(-infinite), result);
  return select(a != a, a, result);
}

VectorExpr doubles::log1p(const VectorExpr &a) {
  // log1p(a) = log(u) + (error of u = 1 + a) / u.
  VectorExpr u = a + VectorExpr(1.0), taken = u - VectorExpr(1.0);
  // The smaller one of the two numbers that were added lost bits.
  VectorExpr error = select(abs(a) < VectorExpr(1.0), a - taken, VectorExpr(1.0) - (u - a));
  VectorExpr lost = error / u, result = doubles::log(u);
  result = select(abs(lost) < VectorExpr(infinite), result + lost, result);
  return select(a == VectorExpr(0.0), a, result);
}

VectorExpr doubles::tanh(const VectorExpr &a) {
  // 1 - tanh is below 2^-54 above 20.
  VectorExpr x = clamp(abs(a), 0.0, 20.0), t = doubles::expm1(x + x);
  return copySign(t / (t + VectorExpr(2.0)), a);
}

VectorExpr doubles::erf(const VectorExpr &a) {
  VectorExpr t = abs(a), s = a * a;
  VectorExpr small =
      polynomial(s, {-2.3784598852774293e-19, 4.763348040515068e-18,  -9.063970842808673e-17,  1.6342614095367152e-15,
                     -2.7835162072109215e-14, 4.4632242632864775e-13, -6.7113668551641105e-12, 9.422759064650411e-11,
                     -1.2290555301717928e-09, 1.4807192815879218e-08, -1.6365844691234924e-07, 1.6462114365889248e-06,
                     -1.492565035840625e-05,  0.00012055332981789664, -0.0008548327023450853,  0.005223977625442188,
                     -0.026866170645131252,   0.11283791670955126,    -0.37612638903183754,    0.12837916709551257});
  small = fma(small, a, a); // the first coefficient of the series is 1.128...
  // 1 - e^(-t^2) q((t - 3) / (t + 3)) from 1 to 6, where the result is 1.
  VectorExpr x = clamp(t, 1.0, 6.0), r = (x - VectorExpr(3.0)) / (x + VectorExpr(3.0));
  VectorExpr q =
      polynomial(r, {3.381355142042904e-09, 1.2755818949624478e-06, 2.0135111426447427e-06, -8.00978093907608e-06,
                     -1.2845780030775907e-05, 6.406279226046039e-05, 4.525434558991009e-05, -0.0005970624964924544,
                     0.0007077464666941425, 0.004269136356961225, -0.024392499318915004, 0.07166583719747308,
                     -0.15011593650077898, 0.24560380171233487, -0.3262335600430372, 0.17900115118138996});
  VectorExpr large = VectorExpr(1.0) - doubles::exp(-(x * x)) * q;
  return select(t > VectorExpr(1.0), copySign(large, a), small);
}

VectorExpr doubles::erfInv(const VectorExpr &a) {
  VectorExpr w = -doubles::log((VectorExpr(1.0) - a) * (VectorExpr(1.0) + a)), root = sqrt(w);
  VectorExpr central = polynomial(
      w - VectorExpr(3.125),
      {-3.6444120640178196996e-21, -1.685059138182016589e-19,  1.2858480715256400167e-18,  1.115787767802518096e-17,
       -1.333171662854620906e-16,  2.0972767875968561637e-17,  6.6376381343583238325e-15,  -4.0545662729752068639e-14,
       -8.1519341976054721522e-14, 2.6335093153082322977e-12,  -1.2975133253453532498e-11, -5.4154120542946279317e-11,
       1.051212273321532285e-09,   -4.1126339803469836976e-09, -2.9070369957882005086e-08, 4.2347877827932403518e-07,
       -1.3654692000834678645e-06, -1.3882523362786468719e-05, 0.0001867342080340571352,   -0.00074070253416626697512,
       -0.0060336708714301490533,  0.24015818242558961693,     1.6536545626831027356});
  VectorExpr middle = polynomial(
      root - VectorExpr(3.25),
      {2.2137376921775787049e-09, 9.0756561938885390979e-08, -2.7517406297064545428e-07, 1.8239629214389227755e-08,
       1.5027403968909827627e-06, -4.013867526981545969e-06, 2.9234449089955446044e-06, 1.2475304481671778723e-05,
       -4.7318229009055733981e-05, 6.8284851459573175448e-05, 2.4031110387097893999e-05, -0.0003550375203628474796,
       0.00095328937973738049703, -0.0016882755560235047313, 0.0024914420961078508066, -0.0037512085075692412107,
       0.005370914553590063617, 1.0052589676941592334, 3.0838856104922207635});
  VectorExpr tail = polynomial(root - VectorExpr(5.0),
                               {-2.7109920616438573243e-11, -2.5556418169965252055e-10, 1.5076572693500548083e-09,
                                -3.7894654401267369937e-09, 7.6157012080783393804e-09, -1.4960026627149240478e-08,
                                2.9147953450901080826e-08, -6.7711997758452339498e-08, 2.2900482228026654717e-07,
                                -9.9298272942317002539e-07, 4.5260625972231537039e-06, -1.9681778105531670567e-05,
                                7.5995277030017761139e-05, -0.00021503011930044477347, -0.00013871931833623122026,
                                1.0103004648645343977, 4.8499064014085844221});
  VectorExpr result = select(w < VectorExpr(6.25), central, select(w < VectorExpr(16.0), middle, tail)) * a;
  return select(abs(a) == VectorExpr(1.0), a * VectorExpr(infinite), result);
}

VectorExpr doubles::sin(const VectorExpr &a) { return select(a == VectorExpr(0.0), a, sine(a, 0)); }
VectorExpr doubles::cos(const VectorExpr &a) { return sine(a, 1); }

// The error of the logarithm, below one ulp, times the power is that of the result: b log |a| is at most 745.
VectorExpr doubles::pow(const VectorExpr &a, const VectorExpr &b) {
  VectorExpr x = abs(a), logarithm = doubles::log(x);
  VectorExpr product = b * logarithm;
  // The product lost this by rounding.
  VectorExpr lost = fma(b, logarithm, -product);
  VectorExpr power = doubles::exp(product);
  VectorExpr result = select(abs(lost) < VectorExpr(1.0), fma(power, lost, power), power);
  result = select(abs(power) < VectorExpr(infinite), result, power);
  // A square is a product, as in the frameworks.
  result = select(b == VectorExpr(2.0), a * a, result);
  // A negative base: an odd integer power is negative, a non-integer power is NaN. An infinite power counts as even.
  VectorExpr whole = floor(b) == b, halved = b * VectorExpr(0.5);
  VectorExpr odd = whole & (floor(halved) != halved);
  result = select(odd, copySign(result, a), result);
  result = select((a < VectorExpr(0.0)) & !whole & (x < VectorExpr(infinite)), VectorExpr(notANumber), result);
  result = select(b == VectorExpr(0.0), VectorExpr(1.0), result);
  result = select(a == VectorExpr(1.0), VectorExpr(1.0), result);
  return select((x == VectorExpr(1.0)) & (abs(b) == VectorExpr(infinite)), VectorExpr(1.0), result);
}
