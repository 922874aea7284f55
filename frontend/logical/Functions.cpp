// SPDX-License-Identifier: Apache-2.0
#include "frontend/logical/Functions.h"

#include <cmath>
#include <limits>
#include <numbers>

using namespace mlir;

namespace mtc::logical {
namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();
constexpr double pi = std::numbers::pi, log2 = std::numbers::ln2;
constexpr double far = 1e15; // 1 added to the square is lost

// A value in a formula that is written with the operators of arithmetic.
class Number {
public:
  Number(Ops &ops, Value value) : maker(&ops), value(std::move(value)) {}

  Ops &ops() const { return *maker; }
  Number with(Value made) const { return {ops(), std::move(made)}; }
  Number constant(double number) const { return {ops(), ops().number(number, value.element())}; }

private:
  Ops *maker; // Number can be assigned

public:
  Value value;
};

template <typename Op> Number combine(const Number &a, const Number &b) {
  return a.with(binary<Op>(a.ops(), a.value, b.value));
}
Number operator+(const Number &a, const Number &b) { return combine<mt::AddOp>(a, b); }
Number operator-(const Number &a, const Number &b) { return combine<mt::SubOp>(a, b); }
Number operator*(const Number &a, const Number &b) { return combine<mt::MulOp>(a, b); }
Number operator/(const Number &a, const Number &b) { return combine<mt::DivOp>(a, b); }
Number operator+(const Number &a, double b) { return a + a.constant(b); }
Number operator-(const Number &a, double b) { return a - a.constant(b); }
Number operator*(const Number &a, double b) { return a * a.constant(b); }
Number operator-(double a, const Number &b) { return b.constant(a) - b; }
Number operator/(double a, const Number &b) { return b.constant(a) / b; }

template <typename Op> Number apply(const Number &a) { return a.with(unary<Op>(a.ops(), a.value)); }
Number negative(const Number &a) { return apply<mt::NegOp>(a); }
Number sizeOf(const Number &a) { return apply<mt::AbsOp>(a); }
Number squared(const Number &a) { return apply<mt::SquareOp>(a); }
Number rootOf(const Number &a) { return apply<mt::SqrtOp>(a); }
Number floored(const Number &a) { return apply<mt::FloorOp>(a); }

Value is(mt::Compare kind, const Number &a, double b) {
  return compare(a.ops(), kind, a.value, a.ops().number(b, a.value.element()));
}
Number choose(const Value &condition, const Number &a, const Number &b) {
  return a.with(select(a.ops(), condition, a.value, b.value));
}
// Returns the number of a constant, or none if the value is no constant.
std::optional<double> scalarOf(const Number &a) {
  auto constant = a.value.stored.getDefiningOp<mt::ConstantOp>();
  auto elements = constant ? dyn_cast<DenseFPElementsAttr>(constant.getValue()) : nullptr;
  return elements && elements.isSplat() ? std::optional(elements.getSplatValue<APFloat>().convertToDouble())
                                        : std::nullopt;
}
Number choose(const Value &condition, const Number &a, double b) { return choose(condition, a, a.constant(b)); }

// Returns the value without its gradient.
Number fixed(const Number &a) {
  Ops &ops = a.ops();
  mlir::Value stopped = mt::StopGradientOp::create(ops.builder, ops.location, a.value.stored.getType(), a.value.stored);
  return a.with({stopped, a.value.axes});
}

// Adds a gradient to `made`: the derivative by x is `slope`, and 0 where x is infinite.
Number sloped(const Number &made, const Number &x, const Number &slope) {
  Value finite = is(mt::Compare::lt, sizeOf(fixed(x)), infinite);
  Number near = choose(finite, x, 0);
  return made + choose(finite, fixed(slope), 0) * (near - fixed(near));
}

// Returns a size with the sign of x.
Number signedAs(const Number &x, const Number &size) { return choose(is(mt::Compare::lt, x, 0), negative(size), size); }

// Returns whether the sign bit of x is set, as in -0.
Value isBelow(const Number &x) {
  return logicalOr(x.ops(), is(mt::Compare::lt, x, 0), is(mt::Compare::eq, 1 / x, -infinite));
}

// Evaluates a polynomial by Horner's rule. The factor of the lowest power comes first.
Number polynomial(const Number &z, ArrayRef<double> factors) {
  Number sum = z.constant(factors.back());
  for (double factor : llvm::reverse(factors.drop_back()))
    sum = sum * z + factor;
  return sum;
}

// Returns atan(t) for t from 0 to 1. The polynomial is (atan(t) / t - 1) / t^2 in t^2 for t up to tan(pi / 8),
// interpolated at Chebyshev's points, with a relative error of 3e-9.
// In f64 it is the Taylor series, up to a term below 2^-55.
Number arctangentTo1(Number t) {
  Value isFar = is(mt::Compare::gt, t, std::tan(pi / 8));
  t = choose(isFar, (t - 1) / (t + 1), t);
  SmallVector<double> factors = {-0.33333331814569955, 0.19999550165336424, -0.14264234429320932, 0.10746313015272946,
                                 -0.06459414048771496};
  if (t.value.element().isF64()) {
    factors.clear();
    for (int k = 1; k <= 21; ++k)
      factors.push_back((k % 2 ? -1.0 : 1.0) / (2 * k + 1));
  }
  Number made = t + t * squared(t) * polynomial(squared(t), factors);
  return choose(isFar, made + pi / 4, made);
}

using Numbers = ArrayRef<Number>; // the operands of a function

Number tangent(Numbers x) { return apply<mt::SinOp>(x[0]) / apply<mt::CosOp>(x[0]); }

Number hyperbolicSine(Numbers x) {
  Value isSmall = is(mt::Compare::lt, sizeOf(x[0]), 1);
  Number t = apply<mt::Expm1Op>(choose(isSmall, x[0], 0)), near = (t + t / (t + 1)) * 0.5;
  Number up = apply<mt::ExpOp>(x[0] - log2), down = apply<mt::ExpOp>(negative(x[0]) - log2);
  return choose(isSmall, near, up - down);
}

Number hyperbolicCosine(Numbers x) { return apply<mt::ExpOp>(x[0] - log2) + apply<mt::ExpOp>(negative(x[0]) - log2); }

Number arctangent(Numbers x) {
  Number size = sizeOf(x[0]);
  Value isFar = is(mt::Compare::gt, size, 1);
  Number made = arctangentTo1(choose(isFar, 1 / size, size));
  return signedAs(x[0], choose(isFar, pi / 2 - made, made));
}
Number slopedArctangent(Numbers x) { return sloped(fixed(arctangent(x)), x[0], 1 / (squared(x[0]) + 1)); }

// asin(x) is 2 atan(x / (1 + sqrt(1 - x^2))).
template <Number (*angle)(Numbers)> Number arcsine(Numbers x) {
  return angle(x[0] / (rootOf((1 - x[0]) * (x[0] + 1)) + 1)) * 2;
}

// acos(x) is 2 atan(sqrt((1 - x) / (1 + x))).
template <Number (*angle)(Numbers)> Number arccosine(Numbers x) { return angle(rootOf((1 - x[0]) / (x[0] + 1))) * 2; }

Number hyperbolicArcsine(Numbers x) {
  Number size = sizeOf(x[0]), square = squared(x[0]);
  Number near = apply<mt::Log1pOp>(size + square / (rootOf(square + 1) + 1));
  return signedAs(x[0], choose(is(mt::Compare::gt, size, far), apply<mt::LogOp>(size) + log2, near));
}
Number slopedHyperbolicArcsine(Numbers x) {
  return sloped(fixed(hyperbolicArcsine(x)), x[0], 1 / rootOf(squared(x[0]) + 1));
}

Number hyperbolicArccosine(Numbers x) {
  Number t = x[0] - 1, near = apply<mt::Log1pOp>(t + rootOf(t * (x[0] + 1)));
  return choose(is(mt::Compare::gt, x[0], far), apply<mt::LogOp>(x[0]) + log2, near);
}

Number hyperbolicArctangent(Numbers x) { return (apply<mt::Log1pOp>(x[0]) - apply<mt::Log1pOp>(negative(x[0]))) * 0.5; }

Number angleOf(Numbers operands) {
  const Number &y = operands[0], &x = operands[1];
  Number a = sizeOf(y), b = sizeOf(x), more = combine<mt::MaximumOp>(a, b), less = combine<mt::MinimumOp>(a, b);
  Number quotient = less / choose(is(mt::Compare::eq, more, 0), more.constant(1), more);
  Value both = logicalAnd(y.ops(), is(mt::Compare::eq, a, infinite), is(mt::Compare::eq, b, infinite));
  Number made = arctangentTo1(choose(both, quotient.constant(1), quotient));
  made = choose(compare(y.ops(), mt::Compare::gt, a.value, b.value), pi / 2 - made, made);
  made = choose(isBelow(x), pi - made, made);
  return choose(isBelow(y), negative(made), made);
}
Number slopedAngle(Numbers operands) {
  const Number &y = operands[0], &x = operands[1];
  Number size = squared(y) + squared(x), turn = choose(is(mt::Compare::eq, size, 0), size.constant(0), 1 / size);
  return sloped(sloped(fixed(angleOf(operands)), y, x * turn), x, negative(y) * turn);
}

// The cube root is e^(log |x| / 3) after a step of Newton's method.
Number cubeRoot(Numbers x) {
  constexpr double third = 1.0 / 3;
  Number size = sizeOf(x[0]);
  Value inside = logicalAnd(size.ops(), is(mt::Compare::gt, size, 0), is(mt::Compare::lt, size, infinite));
  size = choose(inside, size, 1);
  Number root = apply<mt::ExpOp>(apply<mt::LogOp>(size) * third);
  root = root - (root - size / squared(root)) * third;
  return choose(inside, apply<mt::SignOp>(x[0]) * root, x[0]);
}

// The result is exact, since x - floor(x) is.
Number roundHalfEven(Numbers x) {
  Number below = floored(x[0]), rest = x[0] - below, half = below * 0.5;
  Ops &ops = below.ops();
  Value odd = compare(ops, mt::Compare::ne, floored(half).value, half.value);
  Value up = logicalOr(ops, is(mt::Compare::gt, rest, 0.5), logicalAnd(ops, is(mt::Compare::eq, rest, 0.5), odd));
  return below + below.with(cast(ops, up, ops.real()));
}

Number roundHalfAway(Numbers x) {
  Number size = sizeOf(x[0]), below = floored(size);
  Value up = is(mt::Compare::ge, size - below, 0.5);
  return signedAs(x[0], below + below.with(cast(below.ops(), up, below.ops().real())));
}

// Refuses float64 for functions whose formulas have the accuracy of f32.
void refuseDouble(const Number &x, const char *name) {
  if (x.value.element().isF64())
    throw Refused(std::string(name) + " in float64: compile with --precision f32");
}

// Below 1/2, lgamma and digamma reflect x to y = 1 - x. Below 8, they evaluate the series at y + 8.
constexpr int shift = 8;
struct Shifted {
  explicit Shifted(const Number &x)
      : isBelow(is(mt::Compare::lt, x, 0.5)), y(choose(isBelow, 1 - x, x)), isNear(is(mt::Compare::lt, y, shift)),
        large(choose(isNear, y + shift, y)), log(apply<mt::LogOp>(large)), inverse(1 / large) {}
  Value isBelow;
  Number y;
  Value isNear;
  Number large, log, inverse;
};
// Returns pi times the distance of x to the nearest whole number; |sin(pi x)| depends on nothing else.
Number turnOf(const Number &x) { return (x - roundHalfEven(x)) * pi; }

// Stirling's series. The reflection is log(pi) - log |sin(pi x)| - lgamma(1 - x).
Number logGamma(Numbers x) {
  refuseDouble(x[0], "lgamma");
  Shifted s(x[0]);
  Number made = (s.large - 0.5) * s.log - s.large + 0.5 * std::log(2 * pi) +
                s.inverse * polynomial(squared(s.inverse), {1.0 / 12, -1.0 / 360, 1.0 / 1260});
  Number product = choose(s.isNear, s.y, 1);
  for (int k = 1; k < shift; ++k)
    product = product * choose(s.isNear, s.y + k, 1);
  made = choose(s.isNear, made - apply<mt::LogOp>(product), made);
  made = choose(is(mt::Compare::eq, s.y, infinite), s.y, made); // infinite - infinite in the formula
  Number other = std::log(pi) - apply<mt::LogOp>(sizeOf(apply<mt::SinOp>(turnOf(x[0])))) - made;
  return choose(s.isBelow, choose(is(mt::Compare::eq, x[0], -infinite), other.constant(infinite), other), made);
}

// The derivative of lgamma; NaN at 0 and whole numbers below. The reflection is digamma(1 - x) - pi / tan(pi x).
Number digamma(Numbers x) {
  refuseDouble(x[0], "digamma");
  Shifted s(x[0]);
  Number made =
      s.log - s.inverse * 0.5 - squared(s.inverse) * polynomial(squared(s.inverse), {1.0 / 12, -1.0 / 120, 1.0 / 252});
  Number sum = 1 / choose(s.isNear, s.y, 1);
  for (int k = 1; k < shift; ++k)
    sum = sum + 1 / (choose(s.isNear, s.y, 1) + k);
  made = choose(s.isNear, made - sum, made);
  Number angle = turnOf(choose(s.isBelow, x[0], 0.25));
  Value pole = is(mt::Compare::eq, angle, 0);
  Number other = made - pi / tangent(choose(pole, angle.constant(1), angle));
  other = choose(pole, other.constant(std::numeric_limits<double>::quiet_NaN()), other);
  return choose(s.isBelow, other, made);
}

Number ceiling(Numbers x) { return negative(floored(negative(x[0]))); }
Number truncated(Numbers x) { return apply<mt::SignOp>(x[0]) * floored(sizeOf(x[0])); }
Number complementOfError(Numbers x) { return 1 - apply<mt::ErfOp>(x[0]); }

// Splits x into two numbers of 12 bits each, whose sum is x.
std::pair<Number, Number> halvesOf(const Number &x) {
  Number scaled = x * 4097, high = scaled - (scaled - x);
  return {high, x - high};
}

// Returns a - n b for the whole number n = a / b. The product is subtracted exactly, in two parts, for n up to 2^24.
Number remainderOf(const Number &a, const Number &b) {
  Number whole = truncated(a / b), product = whole * b;
  auto [high, low] = halvesOf(whole);
  auto [top, rest] = halvesOf(b);
  Number error = high * top - product + high * rest + low * top + low * rest;
  Number left = a - product - error, size = sizeOf(b), sign = apply<mt::SignOp>(a);
  // The quotient is rounded, so n may be one too large or too small.
  Number signedLeft = left * sign;
  Value isOver = compare(a.ops(), mt::Compare::ge, signedLeft.value, size.value);
  Number step = choose(is(mt::Compare::lt, signedLeft, 0), size, choose(isOver, negative(size), 0));
  left = left + step * sign;
  return choose(compare(a.ops(), mt::Compare::lt, sizeOf(a).value, size.value), a, left);
}

// The result is exact if a / b is below 2^68, or if b is a constant power of 2. The derivative by b is -n.
Number remainder(Numbers x) {
  refuseDouble(x[0], "fmod");
  Number a = x[0];
  int exponent = 0;
  std::optional<double> divisor = scalarOf(x[1]);
  if (!divisor || std::fabs(std::frexp(*divisor, &exponent)) != 0.5)
    for (int bits : {44, 22})
      a = remainderOf(a, x[1] * std::ldexp(1, bits));
  return remainderOf(a, x[1]);
}

template <Number (*function)(Numbers)> Value made(Ops &ops, ArrayRef<Value> values) {
  SmallVector<Number> numbers;
  for (const Value &value : values) {
    if (!value.isFloat())
      throw Refused("expected floats, found integers or booleans");
    numbers.emplace_back(ops, value);
  }
  return function(numbers).value;
}
template <Number (*formula)(Numbers), Number (*sloped)(Numbers) = formula>
constexpr Function entry(llvm::StringLiteral name, double (*ofKnown)(double), unsigned operands = 1) {
  return {name, operands, ofKnown, made<formula>, made<sloped>};
}

} // namespace

const Function *findFunction(StringRef name) {
  static constexpr Function functions[] = {
      entry<tangent>("tan", std::tan),
      entry<hyperbolicSine>("sinh", std::sinh),
      entry<hyperbolicCosine>("cosh", std::cosh),
      entry<arcsine<arctangent>, arcsine<slopedArctangent>>("asin", std::asin),
      entry<arccosine<arctangent>, arccosine<slopedArctangent>>("acos", std::acos),
      entry<arctangent, slopedArctangent>("atan", std::atan),
      entry<hyperbolicArcsine, slopedHyperbolicArcsine>("asinh", std::asinh),
      entry<hyperbolicArccosine>("acosh", std::acosh),
      entry<hyperbolicArctangent>("atanh", std::atanh),
      entry<cubeRoot>("cbrt", std::cbrt),
      entry<roundHalfEven>("round_nearest_even", std::nearbyint),
      entry<roundHalfAway>("round_nearest_afz", std::round),
      entry<ceiling>("ceil", std::ceil),
      entry<truncated>("trunc", std::trunc),
      entry<complementOfError>("erfc", std::erfc),
      entry<logGamma>("lgamma", std::lgamma),
      entry<digamma>("digamma", nullptr),
      entry<angleOf, slopedAngle>("atan2", nullptr, 2),
      entry<remainder>("fmod", nullptr, 2),
  };
  const Function *found = llvm::find_if(functions, [&](const Function &function) { return function.name == name; });
  return found == std::end(functions) ? nullptr : found;
}

} // namespace mtc::logical
