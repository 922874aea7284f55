# SPDX-License-Identifier: Apache-2.0
"""Rules of functions of numbers that `mt` has no operation for: powers, remainders, what is made of other functions."""

from __future__ import annotations

from typing import Any, Callable, Sequence

import jax
import numpy as np

from mtc._trace import Refused, Value, functions, gradients, integers, linear
from mtc._trace import elementwise as e
from mtc.jax._reader import Reader, rule


@rule("erfc")
def _erfc(r: Reader, equation: Any, inputs: Sequence[Any]) -> Value:
    return e.binary("sub", 1.0, e.unary("erf", r.value(inputs[0])))


@rule("ceil")
def _ceil(r: Reader, equation: Any, inputs: Sequence[Any]) -> Value:
    return e.ceil(r.value(inputs[0]))


@rule("round")
def _round(r: Reader, equation: Any, inputs: Sequence[Any]) -> Value:
    even = equation.params["rounding_method"] == jax.lax.RoundingMethod.TO_NEAREST_EVEN
    return (e.round_half_even if even else e.round_half_away)(r.value(inputs[0]))


@rule("exp2")
def _exp2(r: Reader, equation: Any, inputs: Sequence[Any]) -> Value:
    return e.unary("exp", e.binary("mul", r.value(inputs[0]), float(np.log(2))))


@rule("tan")
def _tan(r: Reader, equation: Any, inputs: Sequence[Any]) -> Value:
    return functions.tan(r.value(inputs[0]))


@rule("integer_pow")
def _integer_pow(r: Reader, equation: Any, inputs: Sequence[Any]) -> Value:
    return _whole_power(r.value(inputs[0]), equation.params["y"])


def _whole_power(x: Value, exponent: int) -> Value:
    """A power by a number. By one below -1 the gradient is that of (1 / x)^n: a power of x may be too small."""
    made = e.integer_power(x, exponent)
    if exponent >= -1 or not x.learned:
        return made
    return gradients.following(made, e.integer_power(e.binary("div", e.as_value(x, 1.0), x), -exponent))


@rule("pow")
def _pow(r: Reader, equation: Any, inputs: Sequence[Any]) -> Value:
    a, given = r.value(inputs[0]), r.value(inputs[1])
    b = e.cast(given, "f32")
    if b.scalar is not None and b.scalar == int(b.scalar) and abs(b.scalar) <= 64:
        made = _whole_power(a, int(b.scalar))
        whole = b.scalar != 0 or given.dtype != "f32"  # JAX' gradient of the power by 0.0 is 0 / x
        if whole:
            return made
        number = e.select(e.compare("eq", a, a), a, 1.0)  # of a NaN too it is 1
        return gradients.with_singular_slope(made, number, e.binary("div", e.as_value(a, 0.0), number))
    if b.scalar == 0.5:
        return e.unary("sqrt", e.select(e.compare("eq", a, -np.inf), np.inf, a))  # as XLA has it
    if not b.learned or (a.constant is not None and (a.constant != 0).all()):
        return e.binary("pow", a, b)
    # Of the base 0 JAX' gradient to the exponent is 0 times the power; that of the formula has log(0).
    zero, one = e.compare("eq", a, 0.0), e.as_value(a, 1.0)
    at_zero = e.binary("pow", e.select(zero, a, one), b.graph.stop_gradient(b))
    at_zero = gradients.with_singular_slope(at_zero, b, e.binary("mul", at_zero, 0.0))
    return e.select(zero, at_zero, e.binary("pow", e.select(zero, one, a), b))


@rule("rem")
def _rem(r: Reader, equation: Any, inputs: Sequence[Any]) -> Value:
    a, b = r.value(inputs[0]), r.value(inputs[1])
    if a.dtype == "i32":
        return integers.divide(a, b)[1]
    made = e.remainder(a, r.graph.stop_gradient(b))
    return gradients.with_singular_slope(made, b, e.unary("neg", e.truncate(e.binary("div", a, b))))


def _one_less_square(x: Value) -> Value:
    return e.binary("sub", 1.0, e.unary("square", x))


# Functions whose gradients JAX defines: what they are, and their slopes, of an argument and the result.
_Slope = Callable[[Value, Value], Value]
_DEFINED: dict[str, tuple[Callable[[Value], Value], _Slope]] = {
    "sinh": (functions.sinh, lambda x, y: functions.cosh(x)),
    "cosh": (functions.cosh, lambda x, y: functions.sinh(x)),
    "asin": (functions.asin, lambda x, y: e.unary("rsqrt", _one_less_square(x))),
    "acos": (functions.acos, lambda x, y: e.unary("neg", e.unary("rsqrt", _one_less_square(x)))),
    "atan": (functions.atan, lambda x, y: e.binary("div", 1.0, e.binary("add", e.unary("square", x), 1.0))),
    "asinh": (functions.asinh, lambda x, y: e.unary("rsqrt", e.binary("add", e.unary("square", x), 1.0))),
    "acosh": (functions.acosh, lambda x, y: e.unary("rsqrt", e.binary("sub", e.unary("square", x), 1.0))),
    "atanh": (functions.atanh, lambda x, y: e.binary("mul", e.binary("div", 1.0, e.binary("add", x, 1.0)), e.binary(
        "div", 1.0, e.binary("sub", 1.0, x)))),
    "lgamma": (functions.lgamma, lambda x, y: functions.digamma(x)),
    "cbrt": (functions.cbrt, lambda x, y: e.binary("div", 1 / 3, e.unary("square", y))),
}


@rule(*_DEFINED)
def _defined(r: Reader, equation: Any, inputs: Sequence[Any]) -> Value:
    function, slope = _DEFINED[equation.primitive.name]
    operand = r.value(inputs[0])
    x = r.graph.stop_gradient(operand)
    made = function(x)
    return gradients.with_singular_slope(made, operand, slope(x, made))


@rule("digamma")
def _digamma(r: Reader, equation: Any, inputs: Sequence[Any]) -> Value:
    return functions.digamma(r.value(inputs[0]))


@rule("atan2")
def _atan2(r: Reader, equation: Any, inputs: Sequence[Any]) -> Value:
    operands = [r.value(i) for i in inputs]
    y, x = (r.graph.stop_gradient(v) for v in operands)
    made, squares = functions.atan2(y, x), e.binary("add", e.unary("square", x), e.unary("square", y))
    for operand, side in zip(operands, (x, e.unary("neg", y))):
        made = gradients.with_singular_slope(made, operand, e.binary("div", side, squares))
    return made


@rule("cholesky")
def _cholesky(r: Reader, equation: Any, inputs: Sequence[Any]) -> Value:
    return linear.cholesky(r.value(inputs[0]))


@rule("triangular_solve")
def _triangular_solve(r: Reader, equation: Any, inputs: Sequence[Any]) -> Value:
    p = equation.params
    return linear.solve_triangular(r.value(inputs[0]), r.value(inputs[1]), left=p["left_side"], lower=p["lower"],
                                   transposed=p["transpose_a"], unit=p["unit_diagonal"])


@rule("lu")
def _lu(r: Reader, equation: Any, inputs: Sequence[Any]) -> list[Value]:
    made = linear.lu(r.value(inputs[0]))
    return [made.packed, made.pivots, made.places]


@rule("lu_pivots_to_permutation")
def _permutation(r: Reader, equation: Any, inputs: Sequence[Any]) -> Value:
    return linear.places_of(r.value(inputs[0]), equation.params["permutation_size"])


@rule("qr")
def _qr(r: Reader, equation: Any, inputs: Sequence[Any]) -> list[Value]:
    if equation.params.get("pivoting"):
        raise Refused("a QR decomposition with pivots")
    return list(linear.qr(r.value(inputs[0]), equation.params["full_matrices"]))


@rule("custom_linear_solve")
def _linear_solve(r: Reader, equation: Any, inputs: Sequence[Any]) -> list[Any]:
    """The solution, refined twice by what is left of the right-hand side.

    JAX has no gradient through what solves, whose matrix is another value to it, but one through the product. Each
    refinement gives the solution one more derivative.
    """
    counts, functions_of = equation.params["const_lengths"], equation.params["jaxprs"]
    first = counts.matvec + counts.vecmat
    product_of, solve_of = inputs[:counts.matvec], inputs[first:first + counts.solve]
    right = [r.value(v) for v in inputs[sum(counts):]]

    def solved(values: Sequence[Value]) -> list[Value]:
        return [r.value(v) for v in r.read(functions_of.solve, [*solve_of, *values])]

    found = [r.graph.stop_gradient(v) for v in solved(right)]
    for _ in range(2):
        left = [e.binary("sub", b, r.value(v)) for b, v in
                zip(right, r.read(functions_of.matvec, [*product_of, *found]))]
        found = [e.binary("add", x, v) for x, v in zip(found, solved(left))]
    return found
