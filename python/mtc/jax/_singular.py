# SPDX-License-Identifier: Apache-2.0
"""Functions of JAX with a gradient of their own, which is not that of the formula at singular points."""

from __future__ import annotations

from typing import Callable

import numpy as np

from mtc._trace import Value, gradients, linear
from mtc._trace import elementwise as e
from mtc.jax._rules import extremum


def log_add_exp(a: Value, b: Value) -> Value:
    """log(e^a + e^b). Each of two equal numbers has half of the gradient: that of |a - b| is 0 there."""
    if not (a.learned or b.learned) or a.scalar is not None or b.scalar is not None:
        return _log_add_exp(a, b)
    # Where the result is infinite, an infinite one has the gradient 1, a finite one e^it.
    stop = a.graph.stop_gradient
    endless = e.compare("eq", stop(e.binary("maximum", a, b)), np.inf)
    zero = e.as_value(a, 0.0)
    above = [e.select(e.compare("eq", stop(x), np.inf), x, gradients.with_singular_slope(
        zero, x, e.select(endless, e.unary("exp", stop(x)), zero))) for x in (a, b)]
    return e.select(endless, e.binary("add", *above), _log_add_exp(*(e.select(endless, zero, x) for x in (a, b))))


def _log_add_exp(a: Value, b: Value) -> Value:
    difference = e.binary("sub", a, b)
    rest = e.unary("log1p", e.unary("exp", e.unary("neg", e.unary("abs", difference))))
    made = e.binary("add", extremum("maximum", a, b), rest)
    return e.select(e.compare("ne", difference, difference), e.binary("add", a, b), made)


def _log_add_exp2(a: Value, b: Value) -> Value:
    a, b = (e.binary("mul", x, float(np.log(2))) for x in (a, b))
    return e.binary("mul", log_add_exp(a, b), float(1 / np.log(2)))


def _logit(x: Value) -> Value:
    """log(x / (1 - x)) with the gradient 1 / (x (1 - x)), which is infinite at 0 and 1."""
    def formula(x: Value) -> Value:
        return e.unary("log", e.binary("div", x, e.binary("sub", 1.0, x)))

    fixed = x.graph.stop_gradient(x)
    slope = e.binary("div", 1.0, e.binary("mul", fixed, e.binary("sub", 1.0, fixed)))
    value = formula(fixed)
    finite = e.compare("lt", e.unary("abs", value), np.inf)
    return e.select(finite, formula(e.select(finite, x, 0.5)), gradients.with_singular_slope(value, x, slope))


def _x_log_y(x: Value, y: Value, kind: str, lowest: float) -> Value:
    """x log(y), 0 where x is 0, with the gradients log(y) and x / y there too. The logarithm of `lowest` is -inf."""
    stop = x.graph.stop_gradient
    fixed = stop(y)
    zero = e.logical_and(e.compare("eq", x, 0.0), e.compare("eq", fixed, fixed))
    made = e.binary("mul", x, e.unary(kind, e.select(zero, e.as_value(y, 1.0), y)))
    at_zero = e.as_value(x, 0.0)
    for operand, slope in ((x, e.unary(kind, fixed)), (y, e.binary("div", stop(x), e.binary("sub", fixed, lowest)))):
        at_zero = gradients.with_singular_slope(at_zero, operand, e.select(zero, slope, 0.0))
    return e.select(zero, at_zero, made)


def _x_log_x(x: Value) -> Value:
    """x log(x), whose gradient is log(x) + 1 at 0 and of infinities too."""
    zero, one = e.as_value(x, 0.0), e.as_value(x, 1.0)
    at_zero, endless = e.compare("eq", x, 0.0), e.compare("eq", x, np.inf)
    inside = e.select(e.logical_or(at_zero, endless), one, x)
    made = e.binary("mul", inside, e.unary("log", inside))
    made = e.select(endless, e.binary("mul", x, e.select(endless, np.inf, one)), made)
    return e.select(at_zero, gradients.with_singular_slope(zero, x, e.select(at_zero, -np.inf, zero)), made)


SINGULAR: dict[str, Callable[..., Value]] = {
    "logaddexp": log_add_exp, "logaddexp2": _log_add_exp2, "logit": _logit, "_xlogx": _x_log_x,
    "_det": lambda matrix: linear.determinant(matrix, last=True),
    "xlogy": lambda x, y: _x_log_y(x, y, "log", 0.0), "xlog1py": lambda x, y: _x_log_y(x, y, "log1p", -1.0),
}
