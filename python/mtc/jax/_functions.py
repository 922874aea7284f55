# SPDX-License-Identifier: Apache-2.0
"""Rules of functions of numbers that `mt` has no operation for: powers, remainders, what is made of other functions."""

from __future__ import annotations

from typing import Any, Callable, Sequence

import numpy as np

from mtc._trace import Refused, Value, eigen, gradients, integers, linear, products
from mtc._trace import elementwise as e
from mtc.jax._reader import Reader, rule


@rule("integer_pow")
def _integer_pow(r: Reader, equation: Any, inputs: Sequence[Any]) -> Value:
    return _whole_power(r.value(inputs[0]), equation.params["y"])


def _whole_power(x: Value, exponent: int) -> Value:
    """A power by a number. By one below -1 the gradient is that of (1 / x)^n: a power of x may be too small."""
    made = e.integer_power(x, exponent)
    if exponent >= -1 or not x.learned:
        return made
    return gradients.following(made, e.integer_power(1.0 / x, -exponent))


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
        return gradients.with_singular_slope(made, number, 0.0 / number)
    if b.scalar == 0.5:
        return e.unary("sqrt", e.select(e.compare("eq", a, -np.inf), np.inf, a))  # as XLA has it
    if not b.learned or (a.constant is not None and (a.constant != 0).all()):
        return e.binary("pow", a, b)
    # Of the base 0 JAX' gradient to the exponent is 0 times the power; that of the formula has log(0).
    zero, one = e.compare("eq", a, 0.0), e.as_value(a, 1.0)
    at_zero = e.binary("pow", e.select(zero, a, one), b.graph.stop_gradient(b))
    at_zero = gradients.with_singular_slope(at_zero, b, at_zero * 0.0)
    return e.select(zero, at_zero, e.binary("pow", e.select(zero, one, a), b))


@rule("eq_to", "le_to", "lt_to")
def _total_order(r: Reader, equation: Any, inputs: Sequence[Any]) -> Value:
    """A comparison where a NaN is equal to others and above all numbers, as searches and sorts ask.

    They give it no negative zero, and no NaN with a sign, which the order of XLA would tell apart.
    """
    a, b = r.value(inputs[0]), r.value(inputs[1])
    name = equation.primitive.name.removesuffix("_to")
    made = e.compare(name, a, b)
    if a.dtype != "f32":
        return made
    last, first = e.compare("ne", b, b), e.compare("ne", a, a)
    return made | {"eq": first & last, "lt": ~first & last, "le": last}[name]


@rule("rem")
def _rem(r: Reader, equation: Any, inputs: Sequence[Any]) -> Value:
    a, b = r.value(inputs[0]), r.value(inputs[1])
    if a.dtype == "i32":
        return integers.divide(a, b)[1]
    made = e.binary("fmod", a, r.graph.stop_gradient(b))
    return gradients.with_singular_slope(made, b, -e.unary("trunc", a / b))


# The slopes of functions whose gradients JAX defines, of an argument and the result.
_SLOPES: dict[str, Callable[[Value, Value], Value]] = {
    "sinh": lambda x, y: e.unary("cosh", x),
    "cosh": lambda x, y: e.unary("sinh", x),
    "asin": lambda x, y: e.unary("rsqrt", 1.0 - x * x),
    "acos": lambda x, y: -e.unary("rsqrt", 1.0 - x * x),
    "atan": lambda x, y: 1.0 / (x * x + 1.0),
    "asinh": lambda x, y: e.unary("rsqrt", x * x + 1.0),
    "acosh": lambda x, y: e.unary("rsqrt", x * x - 1.0),
    "atanh": lambda x, y: 1.0 / (x + 1.0) * (1.0 / (1.0 - x)),
    "lgamma": lambda x, y: e.unary("digamma", x),
    "cbrt": lambda x, y: 1 / 3 / (y * y),
}


@rule(*_SLOPES)
def _defined(r: Reader, equation: Any, inputs: Sequence[Any]) -> Value:
    name, operand = equation.primitive.name, r.value(inputs[0])
    x = r.graph.stop_gradient(operand)
    made = e.unary(name, x)
    return gradients.with_singular_slope(made, operand, _SLOPES[name](x, made))


@rule("atan2")
def _atan2(r: Reader, equation: Any, inputs: Sequence[Any]) -> Value:
    operands = [r.value(i) for i in inputs]
    y, x = (r.graph.stop_gradient(v) for v in operands)
    made, squares = e.binary("atan2", y, x), e.unary("square", x) + e.unary("square", y)
    for operand, side in zip(operands, (x, -y)):
        made = gradients.with_singular_slope(made, operand, side / squares)
    return made


@rule("cholesky")
def _cholesky(r: Reader, equation: Any, inputs: Sequence[Any]) -> Value:
    """The gradient to what is not symmetric is that of JAX' rule, L phi(L^-1 dA L^-T).

    phi takes the lower triangle and half of the diagonal. `linear.cholesky` has the gradient to the symmetric part, and
    the rest is added.
    """
    matrix = r.value(inputs[0])
    made = linear.cholesky(matrix)
    if not matrix.learned or _is_symmetrized(matrix):
        return made
    change = e.binary("sub", matrix, r.graph.stop_gradient(matrix))
    change = e.binary("mul", e.binary("sub", change, linear.matrix_transpose(change)), 0.5)
    inner = linear.solve_triangular(made, linear.solve_triangular(made, change, left=False, transposed=True))
    n = int(matrix.shape[-1])  # type: ignore[arg-type]
    inner = e.binary("mul", inner, r.graph.constant(np.tri(n) - np.eye(n) / 2))
    return e.binary("add", made, products.matmul(made, inner))


def _is_symmetrized(matrix: Value) -> bool:
    """Whether it is (A + A^T) / 2, as jnp.linalg.cholesky makes it."""
    if matrix.op not in ("div", "mul") or matrix.operands[0].op != "add":
        return False
    a, b = matrix.operands[0].operands
    order = (*range(matrix.rank - 2), matrix.rank - 1, matrix.rank - 2)
    return any(y.op == "transpose" and y.operands[0] is x and tuple(y.dims) == order for x, y in ((a, b), (b, a)))


@rule("lu")
def _lu(r: Reader, equation: Any, inputs: Sequence[Any]) -> list[Value]:
    made = linear.lu(r.value(inputs[0]))
    return [made.packed, made.pivots, made.places]


@rule("qr")
def _qr(r: Reader, equation: Any, inputs: Sequence[Any]) -> list[Value]:
    if equation.params.get("pivoting"):
        raise Refused("a QR decomposition with pivots")
    return list(linear.qr(r.value(inputs[0]), equation.params["full_matrices"]))


@rule("eigh")
def _symmetric(r: Reader, equation: Any, inputs: Sequence[Any]) -> list[Value]:
    p = equation.params
    if p["subset_by_index"] not in (None, (0, equation.invars[0].aval.shape[-1])):
        raise Refused("some of the eigenvalues of a matrix")
    values, vectors = eigen.symmetric(r.value(inputs[0]), not p["lower"])
    return [vectors, values]


@rule("svd")
def _singular(r: Reader, equation: Any, inputs: Sequence[Any]) -> list[Value]:
    p, matrix = equation.params, r.value(inputs[0])
    if p["subset_by_index"] or p["compute_uv"] and p["full_matrices"] and matrix.shape[-1] != matrix.shape[-2]:
        raise Refused("some of the singular values, or all vectors of matrices that are not square: full_matrices="
                      "False has those of the singular values")
    if p["compute_uv"] and not r.own_keys:
        raise Refused("singular vectors, whose signs are not those of LAPACK: write a whole step, mtc.jax.step, whose "
                      "check finds whether the result depends on them")
    u, values, v = eigen.singular(matrix)
    return [values, u, v] if p["compute_uv"] else [values]


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

    # What solves is linear in the right-hand side, and JAX' gradient to this is that, whatever it stops itself.
    solve_of = [r.graph.stop_gradient(v) if isinstance(v, Value) else v for v in solve_of]

    def solved(values: Sequence[Value]) -> list[Value]:
        before, r.solves = r.solves, True
        try:
            return [r.value(v) for v in r.read(functions_of.solve, [*solve_of, *values])]
        finally:
            r.solves = before

    found = [r.graph.stop_gradient(v) for v in solved(right)]
    for _ in range(2):
        left = [b - r.value(v) for b, v in zip(right, r.read(functions_of.matvec, [*product_of, *found]))]
        found = [x + v for x, v in zip(found, solved(left))]
    return found
