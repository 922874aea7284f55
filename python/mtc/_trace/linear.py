# SPDX-License-Identifier: Apache-2.0
"""Linear algebra of matrices [..., n, n] of up to 64 rows."""

from __future__ import annotations

import dataclasses

import numpy as np

from mtc._trace import elementwise as e
from mtc._trace import gradients, layout, moves, products, reductions
from mtc._trace.elementwise import common_shape
from mtc._trace.values import Batch, Refused, Value

MOST_ROWS = 64  # of a matrix that is taken apart
_SMALL = 2.0**-50  # the squares of larger numbers are exact enough


def solve_triangular(matrix: Value, rhs: Value, *, left: bool = True, lower: bool = True, transposed: bool = False,
                     unit: bool = False) -> Value:
    """X of A X = B, or of X A = B; A is the triangle of the matrix, or its transpose."""
    if matrix.rank < 2 or rhs.rank < 2:
        raise Refused("expected matrices")
    lead = common_shape([matrix.shape[:-2], rhs.shape[:-2]])
    matrix = layout.broadcast(matrix, (*lead, *matrix.shape[-2:]))
    rhs = layout.broadcast(rhs, (*lead, *rhs.shape[-2:]))
    words = [(not left, "right_side"), (not lower, "upper"), (transposed, "transposed"), (unit, "unit_diagonal")]
    text = " ".join(["graph.solve_triangular {0}, {1}", *(word for said, word in words if said)])
    return matrix.graph.operation("solve_triangular", (matrix, rhs), text, rhs.shape, "f32")


def cholesky(matrix: Value, upper: bool = False) -> Value:
    """The lower triangle L of A = L L^T; `upper`: that triangle of A is read. NaN where A is not positive definite."""
    text = "graph.cholesky {0}" + " upper" * upper
    made = matrix.graph.operation("cholesky", (matrix,), text, matrix.shape, "f32")
    least = reductions.reduce("min", diagonal(matrix.graph.stop_gradient(made)), [made.rank - 2])
    return e.select(_right(_right(e.compare("gt", least, 0.0))), made, float("nan"))


def matrix_transpose(matrix: Value) -> Value:
    """The transpose of the last two axes."""
    return layout.transpose(matrix, [*range(matrix.rank - 2), matrix.rank - 1, matrix.rank - 2])


def _sizes(matrix: Value) -> tuple[int, int]:
    """Rows and columns."""
    if matrix.rank < 2 or any(isinstance(n, Batch) for n in matrix.shape[-2:]):
        raise Refused("expected matrices, of one size for all samples")
    m, n = int(matrix.shape[-2]), int(matrix.shape[-1])  # type: ignore[arg-type]
    if max(m, n) > MOST_ROWS:
        raise Refused(f"a decomposition of {m} x {n} matrices: expected at most {MOST_ROWS} rows and columns")
    return m, n


@dataclasses.dataclass
class Lu:
    """P A = L U by rows: `packed` has L below its diagonal of ones, and U.

    Attributes:
        places: which row of A each row of the product is: i32 [..., m].
        pivots: the row with which each row was exchanged: i32 [..., min(m, n)].
        sign: 1 or -1, the determinant of P: [...].
    """

    packed: Value
    places: Value
    pivots: Value
    sign: Value


def lu(matrix: Value) -> Lu:
    """By Gaussian elimination, with the first of the largest elements of a column as its pivot, as LAPACK has it.

    A matrix with a pivot of 0 has no gradient: it is not a number.
    """
    made = _eliminated(matrix)
    made.packed = _without_gradient(made.packed, matrix, diagonal(made.packed))
    return made


def _without_gradient(made: Value, matrix: Value, pivots: Value) -> Value:
    """A result with NaN as its gradient to the columns of the pivots, where one of these is 0."""
    if not matrix.learned:
        return made
    size = reductions.reduce("min", e.unary("abs", matrix.graph.stop_gradient(pivots)), [pivots.rank - 1])
    singular = _right(_right(e.compare("eq", size, 0.0)))
    ends = [None] * (matrix.rank - 1) + [pivots.shape[-1]]
    part = moves.slice_(matrix, [0] * matrix.rank, ends, [1] * matrix.rank)
    zero = e.select(singular, gradients.zero_without_slope(singular, part, e.as_value(part, 1.0)), 0.0)
    return e.binary("add", made, _right(_right(reductions.reduce("sum", zero, [zero.rank - 2, zero.rank - 1]))))


def determinant(matrix: Value, last: bool = False) -> Value:
    """Of square matrices. It has the gradient 0 where it is 0; `last`: only where the pivot that is 0 is not the last.

    The first is PyTorch's rule, the second that of JAX. Of matrices of one row both have the gradient 1.
    """
    made = _eliminated(matrix)
    pivots = diagonal(made.packed)
    found = e.binary("mul", reductions.product(pivots, [pivots.rank - 1]), made.sign)
    count = int(pivots.shape[-1])  # type: ignore[arg-type]
    if count == 1:
        return found
    zero = e.compare("eq", found, 0.0)
    if last:
        pivots = e.select(matrix.graph.constant(np.arange(count) < count - 1), e.unary("abs", pivots), 1.0)
        zero = e.compare("eq", reductions.reduce("min", pivots, [pivots.rank - 1]), 0.0)
    return e.select(zero, 0.0, found)


def log_determinant(matrix: Value) -> tuple[Value, Value]:
    """The sign of the determinant of square matrices and the logarithm of its size."""
    made = _eliminated(matrix)
    pivots = diagonal(made.packed)
    signs = reductions.product(e.unary("sign", pivots), [pivots.rank - 1])
    log = reductions.reduce("sum", e.unary("log", e.unary("abs", pivots)), [pivots.rank - 1])
    return e.binary("mul", signs, made.sign), log


def _eliminated(matrix: Value) -> Lu:
    """`lu` with a gradient that is finite: below a pivot of 0 are zeros alone, which are not divided."""
    m, n = _sizes(matrix)
    graph, lead = matrix.graph, matrix.shape[:-2]
    rows, columns = np.arange(m), np.arange(n)
    places = layout.broadcast(graph.constant(rows.astype("i4")), (*lead, m))
    sign = layout.broadcast(graph.constant(np.float32(1)), lead)
    pivots = []
    for k in graph.unroll(min(m, n)):
        column = e.unary("abs", graph.stop_gradient(_element(matrix, k)))
        pivot = reductions.argmax(e.select(graph.constant(rows >= k), column, -1.0), -1)
        pivots.append(layout.expand_dims(pivot, (pivot.rank,)))
        hot = e.cast(moves.one_hot(pivot, m), "i1") if m > 1 else graph.repeated(np.ones((), "?"), (*lead, 1), "i1")
        chosen = reductions.reduce("sum", e.select(_right(hot), matrix, 0.0), [matrix.rank - 2])
        here = graph.constant(rows == k)
        matrix = e.select(_right(hot), _down(_row(matrix, k)), matrix)
        matrix = e.select(_right(here), _down(chosen), matrix)
        places = _exchanged(places, k, hot)
        sign = e.select(e.compare("eq", pivot, k), sign, e.unary("neg", sign))
        below = graph.constant(rows > k)
        divisor = _element(chosen, k)
        divisor = e.select(e.compare("eq", divisor, 0.0), 1.0, divisor)
        factors = e.select(below, e.binary("div", _element(matrix, k), _right(divisor)), 0.0)
        rest = e.select(graph.constant(columns > k), chosen, 0.0)
        matrix = e.binary("sub", matrix, e.binary("mul", _right(factors), _down(rest)))
        matrix = e.select(graph.constant((rows > k)[:, None] & (columns == k)), _right(factors), matrix)
    return Lu(matrix, places, moves.concat(pivots, len(lead)), sign)


def _exchanged(places: Value, k: int, hot: Value) -> Value:
    """With the k-th and the one where `hot` is in each other's place."""
    other = reductions.reduce("sum", e.select(hot, places, e.as_value(places, 0)), [places.rank - 1])
    here = places.graph.constant(np.arange(int(places.shape[-1])) == k)  # type: ignore[arg-type]
    return e.select(here, _right(other), e.select(hot, _right(_element(places, k)), places))


def places_of(pivots: Value, rows: int) -> Value:
    """Which row each row is after exchanges with `pivots` one after the other."""
    places = layout.broadcast(pivots.graph.constant(np.arange(rows, dtype="i4")), (*pivots.shape[:-1], rows))
    for k in range(int(pivots.shape[-1])):  # type: ignore[arg-type]
        places = _exchanged(places, k, e.cast(moves.one_hot(_element(pivots, k), rows), "i1"))
    return places


def solve_packed(packed: Value, places: Value, rhs: Value) -> Value:
    """X of A X = B by what `lu` makes of A."""
    moved = products.matmul(e.cast(moves.one_hot(places, int(packed.shape[-1])), "f32"), rhs)  # type: ignore[arg-type]
    return solve_triangular(packed, solve_triangular(packed, moved, unit=True), lower=False)


def solve(matrix: Value, rhs: Value) -> Value:
    """X of A X = B, of square matrices."""
    m, n = _sizes(matrix)
    if m != n:
        raise Refused(f"expected square matrices, found {m} x {n}")
    made = lu(matrix)
    return solve_packed(made.packed, made.places, rhs)


def inverse(matrix: Value) -> Value:
    """A^-1 of square matrices."""
    return solve(matrix, matrix.graph.constant(np.eye(_sizes(matrix)[1], dtype="f4")))


def diagonal(matrix: Value) -> Value:
    """The elements of the main diagonal, as a last axis."""
    m, n = _sizes(matrix)
    square = e.select(matrix.graph.constant(np.eye(m, n, dtype="?")), matrix, 0.0)
    made = reductions.reduce("sum", square, [matrix.rank - 1])
    ends = [None] * (made.rank - 1) + [min(m, n)]
    return moves.slice_(made, [0] * made.rank, ends, [1] * made.rank)


def triangle(matrix: Value, lower: bool, unit: bool = False) -> Value:
    """One triangle of a matrix, with its diagonal, which is 1 if `unit`."""
    m, n = _sizes(matrix)
    whole = np.ones((m, n), "?")
    made = e.select(matrix.graph.constant(np.tril(whole) if lower else np.triu(whole)), matrix, 0.0)
    return e.select(matrix.graph.constant(np.eye(m, n, dtype="?")), 1.0, made) if unit else made


def qr(matrix: Value, complete: bool = False) -> tuple[Value, Value]:
    """Q and R of A = Q R, by reflections with the signs of LAPACK; Q has min(m, n) columns, or all m if `complete`.

    LAPACK leaves a column as it is that is 0 below its diagonal. Such a column is reflected here, which changes its
    sign, and turned back: so the gradient is that of Q and R with these signs. A matrix with a 0 on the diagonal of R
    has no gradient.
    """
    m, n = _sizes(matrix)
    graph, rows, given = matrix.graph, np.arange(m), matrix
    q = layout.broadcast(graph.constant(np.eye(m, dtype="f4")), (*matrix.shape[:-2], m, m))
    for k in graph.unroll(min(m - 1, n)):
        column = e.select(graph.constant(rows >= k), _element(matrix, k), 0.0)
        sizes = e.unary("abs", graph.stop_gradient(column))
        largest = reductions.reduce("max", sizes, [sizes.rank - 1])
        zero = e.compare("eq", largest, 0.0)
        squared = e.logical_and(e.compare("gt", largest, _SMALL), e.compare("lt", largest, 1 / _SMALL))
        column = e.binary("div", column, _right(e.select(e.logical_or(zero, squared), 1.0, largest)))
        first, square = _element(column, k), reductions.reduce("sum", e.unary("square", column), [column.rank - 1])
        size = e.unary("sqrt", e.select(zero, 1.0, square))
        end = e.select(e.compare("ge", first, 0.0), e.unary("neg", size), size)
        mirror = e.binary("sub", column, e.select(graph.constant(rows == k), _right(end), 0.0))
        square = reductions.reduce("sum", e.unary("square", mirror), [mirror.rank - 1])
        mirror2 = e.binary("mul", mirror, _right(e.binary("div", 2.0, square)))
        matrix = e.binary("sub", matrix, e.binary("mul", _right(mirror2), _down(_sum_down(matrix, mirror))))
        along = reductions.reduce("sum", e.binary("mul", q, _down(mirror)), [q.rank - 1])
        q = e.binary("sub", q, e.binary("mul", _right(along), _down(mirror2)))
        below = e.select(graph.constant(rows > k), sizes, 0.0)
        kept = _right(e.compare("eq", reductions.reduce("max", below, [below.rank - 1]), 0.0))
        sign = e.select(e.logical_and(kept, graph.constant(rows == k)), -1.0, graph.constant(np.float32(1)))
        matrix, q = e.binary("mul", matrix, _right(sign)), e.binary("mul", q, _down(sign))
    count = m if complete else min(m, n)
    r = triangle(matrix, lower=False)
    r, q = (_without_gradient(made, given, diagonal(r)) for made in (r, q))
    free = [0] * q.rank
    q = moves.slice_(q, free, [None] * (q.rank - 1) + [count], [1] * q.rank)
    return q, moves.slice_(r, free, [None] * (r.rank - 2) + [count, None], [1] * r.rank)


def householder_product(reflectors: Value, factors: Value) -> Value:
    """The first columns of H_1 H_2 ... with H_i = I - t_i v_i v_i^T: v_i is column i of `reflectors` below the
    diagonal, 1 on it and 0 above it, and t_i is element i of `factors`, of which there may be fewer than columns.

    LAPACK's orgqr: https://www.netlib.org/lapack/lug/node40.html
    """
    m, n = _sizes(reflectors)
    count, graph, rows = int(factors.shape[-1]), reflectors.graph, np.arange(m)  # type: ignore[arg-type]
    made = layout.broadcast(graph.constant(np.eye(m, n, dtype="f4")), reflectors.shape)
    for i in graph.unroll(count):
        k = count - 1 - i
        vector = e.select(graph.constant(rows > k), _element(reflectors, k), graph.constant((rows == k).astype("f4")))
        along = _right(vector * _right(_element(factors, k)))
        made = made - along * _down(_sum_down(made, vector))
    return made


def _sum_down(matrix: Value, weights: Value) -> Value:
    return reductions.reduce("sum", e.binary("mul", matrix, _right(weights)), [matrix.rank - 2])


def _row(matrix: Value, k: int) -> Value:
    return _element(matrix_transpose(matrix), k)


def _element(value: Value, k: int) -> Value:
    """Those at a place along the last axis."""
    lead = value.rank - 1
    part = moves.slice_(value, [0] * lead + [k], [None] * lead + [k + 1], [1] * value.rank)
    return layout.squeeze(part, (value.rank - 1,))


def _right(value: Value) -> Value:
    """[..., m] as [..., m, 1], and a number of each matrix, [...], as [..., 1]."""
    return layout.expand_dims(value, (value.rank,))


def _down(value: Value) -> Value:
    """[..., n] as [..., 1, n]."""
    return layout.expand_dims(value, (value.rank - 1,))
