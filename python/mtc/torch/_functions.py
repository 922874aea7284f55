# SPDX-License-Identifier: Apache-2.0
"""ATen functions of an element that `mt` has no operation for: angles, hyperbolic functions, remainders, signs.

Where the gradient of the formula is inexact, the value has none, and the derivative is a second formula.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mtc._trace import Refused, Value, gradients, integers, layout, reals, reductions
from mtc._trace import elementwise as e
from mtc.torch._convert import Converter
from mtc.torch._elements import as_result, numbers, of_divisor, promoted, rounded_quotient
from mtc.torch._handlers import op

# Numerical Recipes' erfc, of t = 1 / (1 + x / 2), with a relative error of 1.2e-7.
_ERFC = (-1.26551223, 1.00002368, 0.37409196, 0.09678418, -0.18628806, 0.27886807, -1.13520398, 1.48851587, -0.82215223,
         0.17087277)


def sloped(value: Value, *slopes: tuple[Value, Value], singular: bool = False) -> Value:
    """The value with these derivatives to operands. At an operand that is infinite there is none.

    `singular`: a derivative that is not a number stays one, where the value is a number.
    """
    for operand, slope in slopes:
        if not operand.learned:
            continue
        nothing, endless = e.as_value(operand, 0.0), e.compare("eq", e.unary("abs", operand), math.inf)
        lost = e.compare("ne", slope, slope)
        largest = float(np.finfo(reals.real()).max)
        slope = e.binary("minimum", e.binary("maximum", slope, -largest), largest)
        slope = e.select(lost | endless if singular else endless, nothing, slope)
        value = gradients.with_slope(value, e.select(endless, nothing, operand), slope)
        if singular:
            value = e.select(lost, value + _without_slope(lost, endless, operand), value)
    return value


def _without_slope(where: Value, endless: Value, operand: Value) -> Value:
    """0 without a derivative to the operand, which may be infinite."""
    one = e.as_value(operand, 1.0)
    share = 1.0 / e.select(endless, operand, one)
    zero = e.select(endless, share, e.select(endless, one, operand))
    return gradients.zero_without_slope(where, zero, one)


def _pole(where: Value, distance: Value) -> Value:
    """0, whose derivative to a distance that is 0 is infinite, where this is true."""
    return e.select(where, e.unary("sqrt", e.select(where, distance, e.as_value(distance, 1.0))), 0.0)


def _fixed(c: Converter, value: Any) -> tuple[Value, Value]:
    """An operand, and the same without a gradient."""
    x = as_result(c, value)
    return x, c.graph.stop_gradient(x)


def _signed(x: Value, size: Value) -> Value:
    return e.select(e.compare("lt", x, 0.0), -size, size)


@op("atan", "arctan")
def atan(c: Converter, value: Any) -> Value:
    x, fixed = _fixed(c, value)
    return sloped(e.unary("atan", fixed), (x, 1.0 / (e.unary("square", fixed) + 1.0)))


@op("asin", "arcsin", "acos", "arccos")
def asin(c: Converter, value: Any) -> Value:
    """Infinite derivatives at -1 and 1, as in PyTorch."""
    x, fixed = _fixed(c, value)
    leg = e.unary("sqrt", (fixed + 1.0) * (1.0 - fixed))
    sine = c.name().endswith("sin")
    made = sloped(e.unary("asin" if sine else "acos", fixed), (x, (1.0 if sine else -1.0) / leg))
    for sign in (1.0, -1.0) if x.learned else ():
        pole = _pole(e.compare("eq", fixed, sign), 1.0 - x * sign)
        made = e.binary("sub" if sine == (sign > 0) else "add", made, pole)
    return made


@op("atan2", "arctan2")
def atan2(c: Converter, value: Any, other: Any) -> Value:
    """The angle of (x, y), without a derivative at (0, 0)."""
    (y, top), (x, right) = _fixed(c, value), _fixed(c, other)
    size = e.unary("square", top) + e.unary("square", right)
    turn = e.select(e.compare("eq", size, 0.0), e.as_value(size, 0.0), 1.0 / size)
    angle = e.binary("atan2", top, right)
    return sloped(angle, (y, right * turn), (x, -top * turn), singular=True)


@op("lgamma")
def lgamma(c: Converter, value: Any) -> Value:
    x, fixed = _fixed(c, value)
    return gradients.with_singular_slope(e.unary("lgamma", fixed), x, _digamma(fixed))


def _digamma(x: Value) -> Value:
    """The derivative of lgamma, which is infinite at 0 in PyTorch, and no number at whole numbers below."""
    return e.select(e.compare("eq", x, 0.0), -math.inf, e.unary("digamma", x))


@op("digamma", "special_digamma")
def digamma(c: Converter, value: Any) -> Value:
    return _digamma(as_result(c, value))


_ORDERS, _TERMS = 8, 9
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30)


@op("polygamma")
def polygamma(c: Converter, order: int, value: Any) -> Value:
    x = as_result(c, value)
    if order == 0:
        return _digamma(x)
    if order > _ORDERS:
        raise Refused(f"polygamma of order {order}: at most {_ORDERS}")
    return _zeta(order + 1, x) * float((-1) ** (order + 1) * math.factorial(order))


def _zeta(power: int, x: Value) -> Value:
    """The sum of (x + k)^-power for k from 0 on. Below 1/2 it is the sum for all whole k, without those below 0."""
    small = e.compare("lt", x, 0.5)
    shift = x.graph.stop_gradient(e.unary("round_nearest_even", x))
    near, sign = x - shift, float((-1) ** power)
    pole = e.compare("eq", near, 0.0)
    near = e.select(small & e.logical_not(pole), near, e.as_value(x, 1.0))
    above = _zeta_above(power, e.select(small, 1.0 - x, x))
    every = e.integer_power(1.0 / near, power) + _zeta_above(power, near + 1.0)
    every = every + _zeta_above(power, 1.0 - e.select(small, near, 0.0)) * sign
    made = e.select(small, every - above * sign, above)
    return e.select(small & pole, e.as_value(x, math.inf), made)


def _zeta_above(power: int, x: Value) -> Value:
    """For x from 1/2 on: some terms, and the formula of Euler and Maclaurin for the rest."""
    total = e.integer_power(1.0 / x, power)  # powers of quotients do not overflow where x is large
    for k in range(1, _TERMS):
        total = total + e.integer_power(1.0 / (x + float(k)), power)
    end = 1.0 / (x + float(_TERMS))
    total = total + e.integer_power(end, power - 1) / float(power - 1) + e.integer_power(end, power) * 0.5
    factor = float(power)
    for j, bernoulli in enumerate(_BERNOULLI, 1):
        total = total + e.integer_power(end, power - 1 + 2 * j) * (bernoulli / math.factorial(2 * j) * factor)
        factor *= (power + 2 * j - 1) * (power + 2 * j)
    return total


@op("log_sigmoid_forward")
def log_sigmoid(c: Converter, value: Any) -> list[Any]:
    return [e.unary("log_sigmoid", as_result(c, value)), None]


@op("sinh", "cosh")
def sinh(c: Converter, value: Any) -> Value:
    x, fixed = _fixed(c, value)
    size = e.unary("abs", fixed)
    less = e.unary("expm1", size)
    grown = less + 1.0
    root = e.unary("exp", size * 0.5)  # which is a number where e^size is none
    huge, large = e.compare("gt", size, 80.0), root * 0.5 * root
    sine = e.select(huge, large, (less + less / grown) * 0.5)
    sine = _signed(fixed, e.select(e.compare("eq", less, math.inf), large, sine))
    cosine = e.select(huge, large, (grown + 1.0 / grown) * 0.5)
    return sloped(*((sine, (x, cosine)) if c.name() == "sinh" else (cosine, (x, sine))))


@op("asinh", "arcsinh", "acosh", "arccosh")
def asinh(c: Converter, value: Any) -> Value:
    """The derivative of acosh at 1 is infinite."""
    x, fixed = _fixed(c, value)
    sine = c.name().endswith("sinh")
    if sine:
        made, leg = e.unary("asinh", fixed), e.unary("sqrt", e.unary("square", fixed) + 1.0)
    else:
        legs = (e.unary("sqrt", e.binary(way, fixed, 1.0)) for way in ("sub", "add"))
        made, leg = e.unary("acosh", fixed), e.binary("mul", *legs)
    made = sloped(made, (x, 1.0 / leg))
    if sine or not x.learned:
        return made
    return made + _pole(e.compare("eq", fixed, 1.0), x - 1.0)


@op("hypot")
def hypot(c: Converter, a: Any, b: Any) -> Value:
    """The derivative is not a number at (0, 0)."""
    (x, fixed), (y, other) = _fixed(c, a), _fixed(c, b)
    wide, high = e.unary("abs", fixed), e.unary("abs", other)
    less, more = e.binary("minimum", wide, high), e.binary("maximum", wide, high)
    zero, endless = e.compare("eq", more, 0.0), e.compare("eq", more, math.inf)
    share = less / e.select(zero, e.as_value(more, 1.0), more)
    made = more * e.unary("sqrt", e.unary("square", share) + 1.0)
    made = e.select(endless, more, made)
    return sloped(made, (x, fixed / made), (y, other / made), singular=True)


def _erfcx(x: Value) -> Value:
    """erfc(x) e^(x^2)."""
    if reals.double():
        raise Refused("erfc and erfcx in float64: take 1 - torch.erf(x), or compile with precision=\"f32\"")
    size = e.unary("abs", x)
    t = 1.0 / (size * 0.5 + 1.0)
    scaled = t * e.unary("exp", e.polynomial(t, _ERFC))
    left = e.unary("exp", e.unary("square", x)) * 2.0 - scaled
    return e.select(e.compare("lt", x, 0.0), left, scaled)


def _erfc(x: Value) -> Value:
    """1 - erf(x) without its cancellation."""
    right = _erfcx(e.unary("abs", x)) * e.unary("exp", -e.unary("square", x))
    return e.select(e.compare("lt", x, 0.0), 2.0 - right, right)


@op("erfc", "special_erfc", "special_erfcx")
def erfc(c: Converter, value: Any) -> Value:
    x, fixed = _fixed(c, value)
    if not c.name().endswith("x"):
        power = e.unary("exp", -e.unary("square", fixed))
        return sloped(_erfc(fixed), (x, power * (-2 / math.sqrt(math.pi))))
    made = _erfcx(fixed)
    slope = fixed * 2.0 * made - 2 / math.sqrt(math.pi)
    return sloped(made, (x, slope))


@op("special_log_ndtr")
def log_ndtr(c: Converter, value: Any) -> Value:
    """The logarithm of the normal distribution's probability of less than x."""
    x, fixed = _fixed(c, value)
    t = fixed * math.sqrt(0.5)
    scaled = _erfcx(-t)
    left = e.unary("log", scaled * 0.5) - e.unary("square", t)
    right = e.unary("log1p", _erfc(t) * -0.5)
    made = e.select(e.compare("lt", fixed, -1.0), left, right)
    return sloped(made, (x, math.sqrt(2 / math.pi) / scaled))


# Remainders


@op("fmod", "remainder")
def remainder(c: Converter, a: Any, b: Any) -> Value:
    """`fmod` has the sign of the first operand, `remainder` that of the second one."""
    left, right = numbers(c, a, b)
    fixed = c.graph.stop_gradient(right)
    found = integers.divide(left, right)[1] if left.dtype == "i32" else e.binary("fmod", left, fixed)
    whole = c.name() == "fmod"
    found = found if whole else of_divisor(found, fixed)[0]
    if not right.learned:
        return found
    return sloped(found, (right, -rounded_quotient(c, left, fixed, "trunc" if whole else "floor")))


# Signs, and the rest


@op("copysign")
def copysign(c: Converter, a: Any, b: Any) -> Value:
    size = e.unary("abs", as_result(c, a))
    return e.select(e.below_zero(as_result(c, b)), -size, size)


@op("signbit")
def signbit(c: Converter, value: Any) -> Value:
    x = c.value(value)
    return e.below_zero(x) if x.dtype == "f32" else e.compare("lt", e.cast(x, "i32"), 0)


@op("angle")
def angle(c: Converter, value: Any) -> Value:
    """Of a real number: pi below 0, else 0."""
    x = c.graph.stop_gradient(as_result(c, value))
    made = e.select(e.compare("lt", x, 0.0), e.as_value(x, math.pi), e.as_value(x, 0.0))
    return e.select(e.compare("eq", x, x), made, x)


@op("conj_physical", "resolve_conj", "resolve_neg")
def conjugate(c: Converter, value: Any) -> Value:
    return c.value(value)


@op("ldexp")
def ldexp(c: Converter, value: Any, exponent: Any) -> Value:
    power = e.unary("exp", e.cast(c.value(exponent), "f32") * math.log(2))
    return as_result(c, value) * power


@op("bucketize", "searchsorted")
def bucketize(c: Converter, a: Any, b: Any, in_32: bool = False, right: bool = False, side: Any = None,
              sorter: Any = None) -> Value:
    """How many of the limits are below each element; `right`: below or equal. Of a NaN all are."""
    value, limits = (a, b) if c.name() == "bucketize" else (b, a)
    x, bounds = promoted(c, value, limits)
    if len(bounds.shape) != 1 or sorter is not None:
        raise Refused("places among limits that are not one sorted list for all")
    shape = tuple(x.shape)
    after = e.compare("le" if right or side == "right" else "lt", bounds, layout.expand_dims(x, (len(shape),)))
    if x.dtype == "f32":
        after = after | layout.expand_dims(e.compare("ne", x, x), (len(shape),))
    return e.cast(reductions.reduce("sum", e.cast(after, "f32"), (-1,)), "i32")
