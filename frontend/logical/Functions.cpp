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

// Numbers of one formula, with the operators of arithmetic.
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

Number operator+(const Number &a, const Number &b) { return a.with(binary<mt::AddOp>(a.ops(), a.value, b.value)); }
Number operator-(const Number &a, const Number &b) { return a.with(binary<mt::SubOp>(a.ops(), a.value, b.value)); }
Number operator*(const Number &a, const Number &b) { return a.with(binary<mt::MulOp>(a.ops(), a.value, b.value)); }
Number operator/(const Number &a, const Number &b) { return a.with(binary<mt::DivOp>(a.ops(), a.value, b.value)); }
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
Number choose(const Value &condition, const Number &a, double b) { return choose(condition, a, a.constant(b)); }

// Without a gradient.
Number fixed(const Number &a) {
  Ops &ops = a.ops();
  mlir::Value stopped = mt::StopGradientOp::create(ops.builder, ops.location, a.value.stored.getType(), a.value.stored);
  return a.with({stopped, a.value.axes});
}

// The same value with this slope to x in addition; none where x is infinite.
Number sloped(const Number &made, const Number &x, const Number &slope) {
  Value finite = is(mt::Compare::lt, sizeOf(fixed(x)), infinite);
  Number near = choose(finite, x, 0);
  return made + choose(finite, fixed(slope), 0) * (near - fixed(near));
}

// Of numbers from 0 to 1. The polynomial is (atan(t) / t - 1) / t^2 in t^2 for t up to tan(pi / 8), by Chebyshev's
// points: 3e-9 of the whole.
Number arctangentTo1(Number t) {
  constexpr double factors[] = {-0.33333331814569955, 0.19999550165336424, -0.14264234429320932, 0.10746313015272946,
                                -0.06459414048771496};
  Value isFar = is(mt::Compare::gt, t, std::tan(pi / 8));
  t = choose(isFar, (t - 1) / (t + 1), t);
  Number square = squared(t), sum = t.constant(factors[4]);
  for (int i = 3; i >= 0; --i)
    sum = sum * square + factors[i];
  Number made = t + t * square * sum;
  return choose(isFar, made + pi / 4, made);
}

// With the sign of x.
Number signedAs(const Number &x, const Number &size) { return choose(is(mt::Compare::lt, x, 0), negative(size), size); }

// Whether a number has the sign of those below 0: -0 too.
Value isBelow(const Number &x) {
  return logicalOr(x.ops(), is(mt::Compare::lt, x, 0), is(mt::Compare::eq, 1 / x, -infinite));
}

Number angleWithoutSlope(const Number &x) {
  Number size = sizeOf(x);
  Value isFar = is(mt::Compare::gt, size, 1);
  Number made = arctangentTo1(choose(isFar, 1 / size, size));
  return signedAs(x, choose(isFar, pi / 2 - made, made));
}

Value partOf(Ops &ops, const Value &value, size_t axis, int64_t start, int64_t end) {
  return sliceAxis(ops, value, axis, start, end - start);
}

} // namespace

Value tangent(Ops &ops, const Value &x) {
  return binary<mt::DivOp>(ops, unary<mt::SinOp>(ops, x), unary<mt::CosOp>(ops, x));
}

Value hyperbolicSine(Ops &ops, const Value &value) {
  Number x{ops, value};
  Value isSmall = is(mt::Compare::lt, sizeOf(x), 1);
  Number t = apply<mt::Expm1Op>(choose(isSmall, x, 0)), near = (t + t / (t + 1)) * 0.5;
  Number up = apply<mt::ExpOp>(x - log2), down = apply<mt::ExpOp>(negative(x) - log2);
  return choose(isSmall, near, up - down).value;
}

Value hyperbolicCosine(Ops &ops, const Value &value) {
  Number x{ops, value};
  return (apply<mt::ExpOp>(x - log2) + apply<mt::ExpOp>(negative(x) - log2)).value;
}

Value arctangent(Ops &ops, const Value &value) {
  Number x{ops, value};
  return sloped(fixed(angleWithoutSlope(x)), x, 1 / (squared(x) + 1)).value;
}

// 2 atan(x / (1 + sqrt(1 - x^2)))
Value arcsine(Ops &ops, const Value &value) {
  Number x{ops, value}, root = rootOf((1 - x) * (x + 1));
  return binary<mt::MulOp>(ops, arctangent(ops, (x / (root + 1)).value), 2);
}

// 2 atan(sqrt((1 - x) / (1 + x)))
Value arccosine(Ops &ops, const Value &value) {
  Number x{ops, value};
  return binary<mt::MulOp>(ops, arctangent(ops, rootOf((1 - x) / (x + 1)).value), 2);
}

Value hyperbolicArcsine(Ops &ops, const Value &value) {
  Number x{ops, value}, size = sizeOf(x), square = squared(x);
  Number near = apply<mt::Log1pOp>(size + square / (rootOf(square + 1) + 1));
  Number made = choose(is(mt::Compare::gt, size, far), apply<mt::LogOp>(size) + log2, near);
  return sloped(fixed(signedAs(x, made)), x, 1 / rootOf(square + 1)).value;
}

Value hyperbolicArccosine(Ops &ops, const Value &value) {
  Number x{ops, value}, t = x - 1, near = apply<mt::Log1pOp>(t + rootOf(t * (x + 1)));
  return choose(is(mt::Compare::gt, x, far), apply<mt::LogOp>(x) + log2, near).value;
}

Value hyperbolicArctangent(Ops &ops, const Value &value) {
  Number x{ops, value};
  return ((apply<mt::Log1pOp>(x) - apply<mt::Log1pOp>(negative(x))) * 0.5).value;
}

Value angleOf(Ops &ops, const Value &first, const Value &second) {
  Number y{ops, first}, x{ops, second}, a = sizeOf(y), b = sizeOf(x);
  Number more = a.with(binary<mt::MaximumOp>(ops, a.value, b.value)),
         less = a.with(binary<mt::MinimumOp>(ops, a.value, b.value));
  Number quotient = less / choose(is(mt::Compare::eq, more, 0), more.constant(1), more);
  Value both = logicalAnd(ops, is(mt::Compare::eq, a, infinite), is(mt::Compare::eq, b, infinite));
  Number made = arctangentTo1(choose(both, quotient.constant(1), quotient));
  made = choose(compare(ops, mt::Compare::gt, a.value, b.value), pi / 2 - made, made);
  made = choose(isBelow(x), pi - made, made);
  made = choose(isBelow(y), negative(made), made);
  Number size = squared(y) + squared(x), turn = choose(is(mt::Compare::eq, size, 0), size.constant(0), 1 / size);
  return sloped(sloped(fixed(made), y, x * turn), x, negative(y) * turn).value;
}

// e^(log |x| / 3), and a step of Newton's method.
Value cubeRoot(Ops &ops, const Value &value) {
  constexpr double third = 1.0 / 3;
  Number x{ops, value}, size = sizeOf(x);
  Value inside = logicalAnd(ops, is(mt::Compare::gt, size, 0), is(mt::Compare::lt, size, infinite));
  size = choose(inside, size, 1);
  Number root = apply<mt::ExpOp>(apply<mt::LogOp>(size) * third);
  root = root - (root - size / squared(root)) * third;
  return choose(inside, apply<mt::SignOp>(x) * root, x).value;
}

Value roundHalfEven(Ops &ops, const Value &value) {
  Number x{ops, value}, below = floored(x), rest = x - below, half = below * 0.5;
  Value odd = compare(ops, mt::Compare::ne, floored(half).value, half.value);
  Value up = logicalOr(ops, is(mt::Compare::gt, rest, 0.5), logicalAnd(ops, is(mt::Compare::eq, rest, 0.5), odd));
  return (below + x.with(cast(ops, up, ops.f32()))).value;
}

Value roundHalfAway(Ops &ops, const Value &value) {
  Number x{ops, value}, size = sizeOf(x), below = floored(size);
  Value up = is(mt::Compare::ge, size - below, 0.5);
  return signedAs(x, below + x.with(cast(ops, up, ops.f32()))).value;
}

Value productAlong(Ops &ops, Value value, size_t axis) {
  if (value.size(axis).batch)
    throw Refused("a product over the batch");
  int64_t size = value.size(axis).times;
  while (size > 1) {
    int64_t half = size / 2;
    Value made = binary<mt::MulOp>(ops, partOf(ops, value, axis, 0, half), partOf(ops, value, axis, half, 2 * half));
    value = size % 2 ? concat(ops, {made, partOf(ops, value, axis, size - 1, size)}, axis) : made;
    size -= half;
  }
  return squeeze(value, {static_cast<int64_t>(axis)});
}

// In steps of 1, 2, 4, ... places.
Value cumulativeProduct(Ops &ops, Value value, size_t axis, bool reverse) {
  if (value.size(axis).batch)
    throw Refused("a product over the batch");
  int64_t size = value.size(axis).times;
  for (int64_t step = 1; step < size; step *= 2) {
    int64_t first = reverse ? size - step : 0;
    Value kept = partOf(ops, value, axis, first, first + step);
    Value low = partOf(ops, value, axis, 0, size - step), high = partOf(ops, value, axis, step, size);
    Value made = binary<mt::MulOp>(ops, low, high);
    value = reverse ? concat(ops, {made, kept}, axis) : concat(ops, {kept, made}, axis);
  }
  return value;
}

} // namespace mtc::logical
