# SPDX-License-Identifier: Apache-2.0
"""Where the gradient of a framework is not that of the formula: at ties, at bounds, and at singular points."""

from __future__ import annotations

import math
from typing import Optional, Union

from mtc._trace import elementwise as e
from mtc._trace import moves, reductions
from mtc._trace.layout import expand_dims
from mtc._trace.values import Batch, Value


def with_slope(value: Value, operand: Value, slope: Value) -> Value:
    """The value, which has no gradient to the operand, with this one: a product of the slope with 0 is added to it.

    The 0 is the operand less itself, so the slope and the operand must be finite.
    """
    if not operand.learned:
        return value
    graph = value.graph
    nothing = operand - graph.stop_gradient(operand)
    return value + nothing * graph.stop_gradient(slope)


def extremum(op: str, a: Value, b: Value) -> Value:
    """The larger one or, with `minimum`, the smaller one. Two that are equal get half of the gradient each."""
    if a.dtype == "i1":
        return a | b if op == "maximum" else a & b
    made = e.binary(op, a, b)
    if made.op != op or made.dtype != "f32" or not made.learned:
        return made
    half = a * 0.5 + b * 0.5
    tied = e.select(e.compare("eq", a, b), half, made)
    tied.info = ("tied", made)
    return tied


Bound = Optional[Union[Value, float, int]]


def clamp(x: Value, low: Bound, high: Bound) -> Value:
    """At a bound that is a number there is no gradient; with one that is a tensor x shares it."""
    if isinstance(low, Value) and isinstance(high, Value):
        return _between(x, low, high)
    for op, bound in (("maximum", low), ("minimum", high)):
        if isinstance(bound, Value):
            x = extremum(op, x, bound)
        elif bound is not None:
            x = e.binary(op, e.as_value(x, bound), x)  # the gradient of equal ones goes to the first
    return x


def _between(x: Value, low: Value, high: Value) -> Value:
    """Within two tensors. Where x is equal to both, all of the gradient is its own."""
    made = e.binary("minimum", high, e.binary("maximum", low, x))
    if made.dtype != "f32" or not made.learned:
        return made
    at_low = e.compare("eq", x, low) & e.compare("le", x, high)
    at_high = e.compare("eq", x, high) & e.compare("ge", x, low)
    for here, bound in ((at_low, low), (at_high, high)):
        half = x * 0.5 + bound * 0.5
        made = e.select(here, half, made)
    return e.select(at_low & at_high, x, made)


def of_first(kind: str, x: Value, axis: int) -> tuple[Value, Value]:
    """The "max" or "min" along an axis and its place, the first one of equals, which alone gets the gradient."""
    axis %= x.rank
    size = x.shape[axis]
    found = reductions.reduce(kind, x, [axis])
    place = reductions.argmax(x if kind == "max" else -x, axis)
    if not found.learned or size == 1 or isinstance(size, Batch):
        return found, place
    hot = e.compare("eq", expand_dims(place, (axis,)), moves.indices(x, axis))
    alone = e.select(hot, x, e.as_value(x, 0.0))
    alone.info = ("picked", found)
    return reductions.reduce("sum", alone, [axis]), place


def root(value: Value) -> Value:
    """The square root with the gradient 0 at 0, which norms and deviations have there."""
    zero = e.compare("eq", value, 0.0)
    return e.select(zero, e.as_value(value, 0.0), e.unary("sqrt", e.select(zero, e.as_value(value, 1.0), value)))


def with_singular_slope(value: Value, operand: Value, slope: Value) -> Value:
    """The value, which has no gradient to the operand, with this one, which may be infinite or no number.

    To what is added to the value, 0, an infinite gradient is that of a root at 0, a NaN that of the root of a square.
    Where the value is a number, an infinite operand has no gradient. The slope must be finite where the value is not
    used: 0 times it is taken.
    """
    if not operand.learned:
        return value
    graph = value.graph
    x, slope = graph.stop_gradient(operand), graph.stop_gradient(slope)
    one, zero = e.as_value(x, 1.0), e.as_value(x, 0.0)
    endless = e.compare("eq", e.unary("abs", x), math.inf) & e.compare("eq", value, value)
    nothing = e.select(endless, zero, operand - x)
    size = e.unary("abs", slope)
    made = value + nothing * e.select(e.compare("lt", size, math.inf), slope, zero)
    sign = e.select(e.compare("lt", slope, 0.0), -1.0, one)
    for where, squared in ((e.compare("eq", size, math.inf), False), (e.compare("ne", slope, slope), True)):
        inner = e.select(where, nothing, one)
        root = e.unary("sqrt", e.unary("square", inner) if squared else inner)
        made = made + e.select(where, root, zero) * sign
    return made


def following(value: Value, other: Value) -> Value:
    """A value with the gradient of another formula for it, with which it agrees where that is not finite."""
    if not other.learned:
        return value
    graph = value.graph
    fixed = graph.stop_gradient(other)
    made = graph.stop_gradient(value) + (other - fixed)
    return e.select(e.compare("lt", e.unary("abs", fixed), math.inf), made, other)


def zero_without_slope(where: Value, operand: Value, one: Value) -> Value:
    """0 where this is true, with the gradient NaN to the operand; elsewhere `one`, without a gradient.

    It is the root of the square of the operand less itself.
    """
    zero = operand - operand.graph.stop_gradient(operand)
    return e.unary("sqrt", e.unary("square", e.select(where, zero, one)))


def power(base: Value, exponent: Value) -> Value:
    """base ^ exponent, where powers of negative numbers by whole ones are numbers too.

    Of the base 0 there is no gradient to an exponent that is not negative, of a negative one it is not a number.
    """
    below = e.compare("lt", base, 0.0)
    at_zero = e.compare("eq", base, 0.0) & e.compare("ge", exponent, 0.0)
    size = base if _never_negative(base) else e.select(below, -base, base)
    one, nothing = e.as_value(base, 1.0), e.as_value(base, 0.0)
    made = e.binary("pow", e.select(at_zero, one, size), exponent)
    if not _never_negative(base):
        half = exponent * 0.5
        odd = e.compare("ne", e.unary("floor", half), half)
        whole = e.compare("eq", e.unary("floor", exponent), exponent)
        without = below & ~whole
        signed = e.select(odd, -made, made) * e.select(without, e.as_value(base, float("nan")), one)
        if exponent.learned:
            signed = signed + zero_without_slope(below, exponent, one)
        made = e.select(below, signed, made)
    inner = at_zero & (e.compare("gt", exponent, 0.0) & e.compare("lt", exponent, 1.0))
    zero = e.select(e.compare("eq", exponent, 1.0), base,
                    e.select(inner, e.unary("sqrt", e.select(inner, base, one)), nothing))
    return e.select(at_zero, e.select(e.compare("eq", exponent, 0.0), one, zero), made)


def _never_negative(value: Value) -> bool:
    """Whether it is by its operation no negative number."""
    return value.op in ("abs", "exp", "sigmoid", "relu", "square", "sqrt", "softplus", "softmax") or (
        value.constant is not None and bool((value.constant >= 0).all()))
