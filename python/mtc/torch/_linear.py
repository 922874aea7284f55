# SPDX-License-Identifier: Apache-2.0
"""ATen operations of linear algebra."""

from __future__ import annotations

from typing import Any

import numpy as np

from mtc._trace import Refused, Value, eigen, layout, linear, moves, products, reals, reductions
from mtc._trace import elementwise as e
from mtc.torch._convert import Converter
from mtc.torch._handlers import op
from mtc.torch._known import Known


@op("linalg_cholesky_ex", "linalg_cholesky", "cholesky")
def cholesky(c: Converter, matrix: Any, upper: bool = False, *_: Any) -> Any:
    made = linear.cholesky(c.value(matrix), upper)
    made = linear.matrix_transpose(made) if upper else made
    return [made, None] if c.name().endswith("_ex") else made


@op("linalg_solve_triangular")
def solve_triangular(c: Converter, matrix: Any, rhs: Any, upper: bool, left: bool = True,
                     unitriangular: bool = False) -> Value:
    return linear.solve_triangular(c.value(matrix), c.value(rhs), left=left, lower=not upper, unit=unitriangular)


@op("triangular_solve")
def old_solve_triangular(c: Converter, rhs: Any, matrix: Any, upper: bool = True, transpose: bool = False,
                         unitriangular: bool = False) -> list[Value]:
    a = c.value(matrix)
    return [linear.solve_triangular(a, c.value(rhs), lower=not upper, transposed=transpose, unit=unitriangular), a]


def _solved_by_factor(factor: Value, rhs: Value, upper: bool) -> Value:
    """X of L L^T X = B by the triangle of L. The gradient is that of the whole L, as in PyTorch.

    The change of the product, 0, is solved for: each time gives one more derivative.
    """
    stop, other = factor.graph.stop_gradient, linear.matrix_transpose(factor)
    triangle = stop(factor)

    def solved(b: Value) -> Value:
        half = linear.solve_triangular(triangle, b, lower=not upper, transposed=upper)
        return linear.solve_triangular(triangle, half, lower=not upper, transposed=not upper)

    found = first = solved(rhs)
    if factor.learned:
        square = products.matmul(other, factor) if upper else products.matmul(factor, other)
        change = e.binary("sub", square, stop(square))
        for _ in range(2):
            found = e.binary("sub", first, solved(products.matmul(change, found)))
    return found


@op("cholesky_solve")
def cholesky_solve(c: Converter, rhs: Any, factor: Any, upper: bool = False) -> Value:
    return _solved_by_factor(c.value(factor), c.value(rhs), upper)


@op("cholesky_inverse")
def cholesky_inverse(c: Converter, factor: Any, upper: bool = False) -> Value:
    triangle = c.value(factor)
    ones = c.graph.constant(np.eye(int(triangle.shape[-1]), dtype=reals.real()))  # type: ignore[arg-type]
    return _solved_by_factor(triangle, layout.broadcast(ones, triangle.shape), upper)


@op("linalg_inv_ex", "linalg_inv", "inverse")
def inverse(c: Converter, matrix: Any, *_: Any) -> Any:
    made = linear.inverse(c.value(matrix))
    return [made, None] if c.name().endswith("_ex") else made


@op("linalg_solve", "linalg_solve_ex", "_linalg_solve_ex")
def solve(c: Converter, matrix: Any, rhs: Any, left: bool = True, *_: Any) -> Any:
    a, b = c.value(matrix), c.value(rhs)
    vectors = b.rank == 1 or (b.rank == a.rank - 1 and b.shape == a.shape[:-1])
    b = layout.expand_dims(b, (b.rank,)) if vectors else b
    if left:
        made = linear.solve(a, b)
    else:
        made = linear.matrix_transpose(linear.solve(linear.matrix_transpose(a), linear.matrix_transpose(b)))
    made = layout.squeeze(made, (made.rank - 1,)) if vectors else made
    return [made, None, None, None] if c.name().endswith("_ex") else made


@op("linalg_lu_factor", "linalg_lu_factor_ex")
def lu_factor(c: Converter, matrix: Any, pivot: bool = True, *_: Any) -> list[Any]:
    if not pivot:
        raise Refused("a decomposition without pivots")
    made = linear.lu(c.value(matrix))
    return [made.packed, e.binary("add", made.pivots, 1), None]


@op("linalg_lu")
def lu(c: Converter, matrix: Any, pivot: bool = True) -> list[Any]:
    if not pivot:
        raise Refused("a decomposition without pivots")
    a = c.value(matrix)
    made, (m, n) = linear.lu(a), a.shape[-2:]
    count = min(int(m), int(n))  # type: ignore[arg-type]
    order = linear.matrix_transpose(e.cast(moves.one_hot(made.places, int(m)), "f32"))  # type: ignore[arg-type]
    return [order, *_triangles(made.packed, count)]


@op("linalg_lu_solve")
def lu_solve(c: Converter, packed: Any, pivots: Any, rhs: Any, left: bool = True, adjoint: bool = False) -> Value:
    """By the packed triangles of the matrix; of its transpose they are the other way round."""
    both, b = c.value(packed), c.value(rhs)
    rows = int(both.shape[-1])  # type: ignore[arg-type]
    places = linear.places_of(e.binary("sub", c.value(pivots), 1), rows)
    b = b if left else linear.matrix_transpose(b)
    if adjoint == left:  # A^T X = B
        half = linear.solve_triangular(both, b, lower=False, transposed=True)
        half = linear.solve_triangular(both, half, transposed=True, unit=True)
        made = products.matmul(linear.matrix_transpose(e.cast(moves.one_hot(places, rows), "f32")), half)
    else:
        made = linear.solve_packed(both, places, b)
    return made if left else linear.matrix_transpose(made)


@op("lu_unpack")
def lu_unpack(c: Converter, packed: Any, pivots: Any, *_: Any) -> list[Any]:
    both = c.value(packed)
    m, n = (int(size) for size in both.shape[-2:])  # type: ignore[arg-type]
    places = linear.places_of(e.binary("sub", c.value(pivots), 1), m)
    return [linear.matrix_transpose(e.cast(moves.one_hot(places, m), "f32")), *_triangles(both, min(m, n))]


def _triangles(packed: Value, count: int) -> list[Value]:
    free = [0] * packed.rank
    low = moves.slice_(packed, free, [None] * (packed.rank - 1) + [count], [1] * packed.rank)
    up = moves.slice_(packed, free, [None] * (packed.rank - 2) + [count, None], [1] * packed.rank)
    return [linear.triangle(low, True, unit=True), linear.triangle(up, False)]


@op("_linalg_det", "linalg_det", "det")
def determinant(c: Converter, matrix: Any) -> Any:
    found = linear.determinant(c.value(matrix))
    return [found, None, None] if c.name().startswith("_") else found


@op("_linalg_slogdet", "linalg_slogdet", "slogdet")
def log_determinant(c: Converter, matrix: Any) -> list[Any]:
    return [*linear.log_determinant(c.value(matrix)), None, None]


@op("linalg_qr", "qr")
def qr(c: Converter, matrix: Any, mode: Any = "reduced", *_: Any) -> list[Any]:
    q, r = linear.qr(c.value(matrix), complete=mode == "complete" or mode is False)
    return [None if mode == "r" else q, r]


@op("linalg_householder_product", "orgqr")
def householder_product(c: Converter, reflectors: Any, factors: Any) -> Value:
    return linear.householder_product(c.value(reflectors), c.value(factors))


@op("_linalg_eigh", "linalg_eigh")
def symmetric_eigenvalues(c: Converter, matrix: Any, uplo: str = "L", compute_v: bool = True) -> list[Any]:
    a = c.value(matrix)
    values, vectors = eigen.symmetric(a, uplo.upper() == "U")
    return [values, vectors if c.name() == "linalg_eigh" or compute_v else None]


@op("linalg_eigvalsh")
def symmetric_eigenvalues_alone(c: Converter, matrix: Any, uplo: str = "L") -> Value:
    return eigen.symmetric(c.value(matrix), uplo.upper() == "U")[0]


@op("_linalg_svd", "linalg_svd")
def singular_values(c: Converter, matrix: Any, full_matrices: bool = False, compute_uv: bool = True,
                    *_: Any) -> list[Any]:
    a = c.value(matrix)
    u, values, v = eigen.singular(a)
    if c.name() != "linalg_svd" and not compute_uv:
        return [None, values, None]
    if full_matrices and a.shape[-2] != a.shape[-1]:
        raise Refused("all singular vectors of matrices that are not square: full_matrices=False has those of the "
                      "singular values")
    return [u, values, v]


@op("linalg_svdvals")
def singular_values_alone(c: Converter, matrix: Any, *_: Any) -> Value:
    return eigen.singular(c.value(matrix))[1]


@op("linalg_pinv", "pinverse")
def pseudoinverse(c: Converter, matrix: Any, *options: Any) -> Value:
    """V diag(1/s) U^T. The gradient is that of matrices of this rank: Golub and Pereyra, The differentiation of
    pseudo-inverses, 1973, formula 4.12."""
    a = c.value(matrix)
    *bounds, hermitian = options if c.name() == "linalg_pinv" else (*options, False)  # rtol, or atol and rtol
    atol, rtol = bounds if len(bounds) == 2 else (None, *bounds)
    if hermitian:
        raise Refused("hermitian=True: leave it out, a symmetric matrix has the same inverse without it")
    if isinstance(atol, (Value, Known)):
        raise Refused("a tensor as atol: give a number")
    plain = c.graph.stop_gradient(a)
    u, values, v = eigen.singular(plain)
    share = 0.0 if atol else float(np.finfo("f4").eps) * max(int(n) for n in a.shape[-2:])  # type: ignore[arg-type]
    share = share if rtol is None else rtol
    least = e.binary("mul", reductions.reduce("max", values, [values.rank - 1]), c.value(share))
    least = least if atol is None else e.binary("maximum", least, c.value(atol))
    kept = e.compare("gt", values, layout.expand_dims(least, (least.rank,)))
    inverse = e.select(kept, e.binary("div", 1.0, e.select(kept, values, 1.0)), 0.0)
    scaled = e.binary("mul", linear.matrix_transpose(v), layout.expand_dims(inverse, (inverse.rank - 1,)))
    p = products.matmul(scaled, linear.matrix_transpose(u))
    change = a - plain
    if not change.learned:
        return p
    turned, p_turned = linear.matrix_transpose(change), linear.matrix_transpose(p)
    left = products.matmul(turned, _rest(products.matmul(plain, p)))  # dA^T (1 - A P)
    right = products.matmul(_rest(products.matmul(p, plain)), turned)  # (1 - P A) dA^T
    moved = products.matmul(p, products.matmul(p_turned, left)) + products.matmul(products.matmul(right, p_turned), p)
    return p + moved - products.matmul(p, products.matmul(change, p))


def _rest(projection: Value) -> Value:
    """1 less a projection."""
    return np.eye(int(projection.shape[-1]), dtype="f4") - projection  # type: ignore[arg-type, no-any-return]
