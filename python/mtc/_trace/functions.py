# SPDX-License-Identifier: Apache-2.0
"""Values of functions that `mt` has no operation for, made of those that it has.

Their gradients are those of the formulas, which are not good everywhere: who calls them gives others.
"""

from __future__ import annotations

import functools
import math
from typing import Sequence

import numpy as np

from mtc._trace import elementwise as e
from mtc._trace import layout, moves
from mtc._trace.values import Batch, Refused, Value

_LN2 = math.log(2)
# (atan(t) / t - 1) / t^2 as a polynomial of t^2 for t up to tan(pi / 8): 3e-9 of the whole, by Chebyshev's points.
_ATAN = (-0.33333331814569955, 0.19999550165336424, -0.14264234429320932, 0.10746313015272946, -0.06459414048771496)
_FAR = 1e15  # 1 added to the square is lost


def _add(*values: Value) -> Value:
    return functools.reduce(functools.partial(e.binary, "add"), values)


def _times(value: Value, number: float) -> Value:
    return e.binary("mul", value, number)


def below_zero(x: Value) -> Value:
    """Whether a number has the sign of negative ones: -0 too."""
    return e.logical_or(e.compare("lt", x, 0.0), e.compare("eq", e.binary("div", 1.0, x), -np.inf))


def sinh(x: Value) -> Value:
    """(e^x - e^-x) / 2."""
    small = e.compare("lt", e.unary("abs", x), 1.0)
    t = e.unary("expm1", e.select(small, x, 0.0))
    near = _times(_add(t, e.binary("div", t, e.binary("add", t, 1.0))), 0.5)
    up, down = (e.unary("exp", e.binary("sub", v, _LN2)) for v in (x, e.unary("neg", x)))
    return e.select(small, near, e.binary("sub", up, down))


def cosh(x: Value) -> Value:
    """(e^x + e^-x) / 2."""
    return _add(*(e.unary("exp", e.binary("sub", v, _LN2)) for v in (x, e.unary("neg", x))))


def tan(x: Value) -> Value:
    """sin(x) / cos(x)."""
    return e.binary("div", e.unary("sin", x), e.unary("cos", x))


def asinh(x: Value) -> Value:
    """log(x + sqrt(x^2 + 1))."""
    size = e.unary("abs", x)
    squared = e.unary("square", x)
    near = e.binary("div", squared, e.binary("add", e.unary("sqrt", e.binary("add", squared, 1.0)), 1.0))
    near = e.unary("log1p", _add(size, near))
    made = e.select(e.compare("gt", size, _FAR), e.binary("add", e.unary("log", size), _LN2), near)
    return e.select(e.compare("lt", x, 0.0), e.unary("neg", made), made)


def acosh(x: Value) -> Value:
    """log(x + sqrt(x^2 - 1))."""
    t = e.binary("sub", x, 1.0)
    near = e.unary("log1p", _add(t, e.unary("sqrt", e.binary("mul", t, e.binary("add", x, 1.0)))))
    return e.select(e.compare("gt", x, _FAR), e.binary("add", e.unary("log", x), _LN2), near)


def atanh(x: Value) -> Value:
    """log((1 + x) / (1 - x)) / 2."""
    return _times(e.binary("sub", e.unary("log1p", x), e.unary("log1p", e.unary("neg", x))), 0.5)


def _atan_to_1(t: Value) -> Value:
    """Of numbers from 0 to 1."""
    far = e.compare("gt", t, math.tan(math.pi / 8))
    turned = e.binary("div", e.binary("sub", t, 1.0), e.binary("add", t, 1.0))
    t = e.select(far, turned, t)
    z = e.unary("square", t)
    made = _add(t, e.binary("mul", e.binary("mul", t, z), polynomial(z, _ATAN)))
    return e.select(far, e.binary("add", made, math.pi / 4), made)


def atan(x: Value) -> Value:
    """The angle whose tangent it is."""
    size = e.unary("abs", x)
    far = e.compare("gt", size, 1.0)
    made = _atan_to_1(e.select(far, e.binary("div", 1.0, size), size))
    made = e.select(far, e.binary("sub", math.pi / 2, made), made)
    return e.select(e.compare("lt", x, 0.0), e.unary("neg", made), made)


def atan2(y: Value, x: Value) -> Value:
    """The angle of a point."""
    a, b = e.unary("abs", y), e.unary("abs", x)
    more, less = e.binary("maximum", a, b), e.binary("minimum", a, b)
    quotient = e.binary("div", less, e.select(e.compare("eq", more, 0.0), 1.0, more))
    both = e.logical_and(e.compare("eq", a, np.inf), e.compare("eq", b, np.inf))
    made = _atan_to_1(e.select(both, 1.0, quotient))
    made = e.select(e.compare("gt", a, b), e.binary("sub", math.pi / 2, made), made)
    made = e.select(below_zero(x), e.binary("sub", math.pi, made), made)
    return e.select(below_zero(y), e.unary("neg", made), made)


def asin(x: Value) -> Value:
    """The angle whose sine it is."""
    root = e.unary("sqrt", e.binary("mul", e.binary("sub", 1.0, x), e.binary("add", x, 1.0)))
    return _times(atan(e.binary("div", x, e.binary("add", root, 1.0))), 2.0)


def acos(x: Value) -> Value:
    """The angle whose cosine it is."""
    quotient = e.binary("div", e.binary("sub", 1.0, x), e.binary("add", x, 1.0))
    return _times(atan(e.unary("sqrt", quotient)), 2.0)


def cbrt(x: Value) -> Value:
    """The cube root: e^(log|x| / 3), and a step of Newton's."""
    size = e.unary("abs", x)
    inside = e.logical_and(e.compare("gt", size, 0.0), e.compare("lt", size, np.inf))
    size = e.select(inside, size, 1.0)
    root = e.unary("exp", _times(e.unary("log", size), 1 / 3))
    error = e.binary("sub", root, e.binary("div", size, e.unary("square", root)))
    root = e.binary("sub", root, _times(error, 1 / 3))
    return e.select(inside, e.binary("mul", e.unary("sign", x), root), x)


def _stirling(x: Value) -> tuple[Value, Value]:
    """Of numbers of 8 or more: (the logarithm of the gamma function, its derivative)."""
    log, inverse = e.unary("log", x), e.binary("div", 1.0, x)
    z = e.unary("square", inverse)
    value = e.binary("sub", e.binary("mul", e.binary("sub", x, 0.5), log), x)
    value = _add(e.binary("add", value, 0.5 * math.log(2 * math.pi)),
                 e.binary("mul", inverse, polynomial(z, (1 / 12, -1 / 360, 1 / 1260))))
    slope = e.binary("sub", log, _times(inverse, 0.5))
    return value, e.binary("sub", slope, e.binary("mul", z, polynomial(z, (1 / 12, -1 / 120, 1 / 252))))


def polynomial(z: Value, factors: Sequence[float]) -> Value:
    """By Horner's rule; the factor of the lowest power comes first."""
    made = e.as_value(z, factors[-1])
    for factor in factors[-2::-1]:
        made = e.binary("add", e.binary("mul", made, z), factor)
    return made


def _turns(x: Value) -> Value:
    """The part of x beside the nearest whole number, which is all that sin(pi x) depends on but for its sign."""
    return e.binary("sub", x, e.round_half_even(x))


def lgamma(x: Value) -> Value:
    """The logarithm of the size of the gamma function, of numbers below 1/2 by that of 1 - x."""
    below = e.compare("lt", x, 0.5)
    y = e.select(below, e.binary("sub", 1.0, x), x)
    near = e.compare("lt", y, 8.0)
    factors = [e.select(near, e.binary("add", y, float(k)), 1.0) for k in range(8)]
    over = functools.reduce(functools.partial(e.binary, "mul"), factors)
    made = _stirling(e.select(near, e.binary("add", y, 8.0), y))[0]
    made = e.select(near, e.binary("sub", made, e.unary("log", over)), made)
    made = e.select(e.compare("eq", y, np.inf), y, made)  # inf - inf in the formula
    sine = e.unary("abs", e.unary("sin", _times(_turns(x), math.pi)))
    other = e.binary("sub", e.binary("sub", math.log(math.pi), e.unary("log", sine)), made)
    other = e.select(e.compare("eq", x, -np.inf), np.inf, other)
    return e.select(below, other, made)


def digamma(x: Value) -> Value:
    """The derivative of lgamma; at 0 and whole numbers below no number."""
    below = e.compare("lt", x, 0.5)
    y = e.select(below, e.binary("sub", 1.0, x), x)
    near = e.compare("lt", y, 8.0)
    made = _stirling(e.select(near, e.binary("add", y, 8.0), y))[1]
    terms = [e.binary("div", 1.0, e.binary("add", e.select(near, y, 1.0), float(k))) for k in range(8)]
    made = e.select(near, e.binary("sub", made, _add(*terms)), made)
    angle = _times(_turns(e.select(below, x, 0.25)), math.pi)
    pole = e.compare("eq", angle, 0.0)
    angle = e.select(pole, 1.0, angle)
    other = e.binary("sub", made, e.binary("div", math.pi, tan(angle)))
    return e.select(below, e.select(pole, np.nan, other), made)


def product(value: Value, axes: Sequence[int]) -> Value:
    """The product of elements along axes: of halves, so that the gradient to each is the product of the others."""
    for axis in sorted(axes, reverse=True):
        size = value.shape[axis]
        if isinstance(size, Batch):
            raise Refused("a product over the batch")
        if size == 0:
            raise Refused("a value without elements")
        while size > 1:
            half = size // 2
            made = e.binary("mul", _part(value, axis, 0, half), _part(value, axis, half, 2 * half))
            value = moves.concat([made, _part(value, axis, size - 1, size)], axis) if size % 2 else made
            size -= half
        value = layout.squeeze(value, (axis,))
    return value


def _part(value: Value, axis: int, start: int, end: int) -> Value:
    here = [i == axis for i in range(value.rank)]
    return moves.slice_(value, [start * h for h in here], [end if h else None for h in here], [1] * len(here))
