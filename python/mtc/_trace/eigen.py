# SPDX-License-Identifier: Apache-2.0
"""Eigenvalues of symmetric matrices [..., n, n], and singular values, by Jacobi's rotations.

In each round every row has one partner, the one whose number differs by the bits of the round, so that all rotations of
a round are made at once: rows are padded to a power of two. The signs of vectors, and the vectors of equal values, are
not those of LAPACK.
"""

from __future__ import annotations

from typing import Sequence

import numpy as np

from mtc._trace import elementwise as e
from mtc._trace import gradients, layout, linear, moves, products, reductions
from mtc._trace.values import Batch, Refused, Value

MOST_ROWS = 16
_SWEEPS = 7  # of all pairs of rows, after which f32 does not change


def symmetric(matrix: Value, upper: bool = False) -> tuple[Value, Value]:
    """The eigenvalues of symmetric matrices, the smallest first, and the vectors as columns. `upper`: the triangle of
    which they are read.

    Both triangles have the gradient, also the one that is not read, as in PyTorch and JAX: dw = diag(V^T dA V) and
    dV = V (F * (V^T (dA + dA^T) V)) / 2, F[i, j] = 1 / (w[j] - w[i]) and 0 for i = j. Vectors of equal values have none
    (NaN).
    """
    n, _ = _sizes(matrix)
    graph, size = matrix.graph, _power(n)
    read = np.triu(np.ones((n, n), "?")) if upper else np.tril(np.ones((n, n), "?"))
    change = matrix - graph.stop_gradient(matrix)  # 0, with the gradient of the whole matrix
    matrix = graph.stop_gradient(e.select(graph.constant(read), matrix, linear.matrix_transpose(matrix)))
    given = matrix + change
    made = _padded(matrix, size, size)
    vectors = _identity(made, size)
    for bits in _rounds(size):
        along, other = linear.diagonal(made), graph.constant(np.arange(size) ^ bits, "i32")
        hot = e.cast(moves.one_hot(other, size), "i1")
        across = reductions.reduce("sum", e.select(hot, made, 0.0), [made.rank - 1])
        c, s = _rotation(along, _partners(along, bits, -1), across, bits)
        made, vectors = _turned(made, c, s, bits), _turned(vectors, c, s, bits)
        made = linear.matrix_transpose(_turned(linear.matrix_transpose(made), c, s, bits))
    vectors = moves.part(vectors, -1, 0, n)
    values = e.select(graph.constant(np.arange(size) < n), linear.diagonal(made), np.inf)
    vectors = _sorted(values, vectors, n, smallest=True)
    left = products.matmul(vectors, given)
    found = reductions.reduce("sum", left * vectors, [left.rank - 1])
    columns = linear.matrix_transpose(vectors)
    if not change.learned:
        return found, columns
    eye, values = np.eye(n, dtype="f4"), graph.stop_gradient(found)
    apart = layout.expand_dims(values, (values.rank - 1,)) - layout.expand_dims(values, (values.rank,)) + eye
    change = (change + linear.matrix_transpose(change)) * 0.5
    turn = _over(products.matmul(products.matmul(vectors, change), columns) * (1 - eye), apart)
    return found, columns + products.matmul(columns, turn)


def singular(matrix: Value) -> tuple[Value, Value, Value]:
    """U [..., m, k], the singular values, the largest first, and V^T [..., k, n]; k is the smaller of m and n.

    A matrix of zeros has the vectors of LAPACK, which are those of the identity. Else the vectors of a value of 0 are 0
    on the side that is longer. The gradients are those of PyTorch's linalg.svd: with P = U^T dA V and
    F[i, j] = 1 / (s[j]^2 - s[i]^2), 0 for i = j, dU = U (F * (P S + S P^T)), ds = diag(P) and
    dV = V (F * (S P + P^T S)) + (1 - V V^T) dA^T U / S. Vectors of equal values have none (NaN).
    """
    m, n = _sizes(matrix)
    if m > n:
        v, values, u = singular(linear.matrix_transpose(matrix))
        return linear.matrix_transpose(u), values, linear.matrix_transpose(v)
    graph, size = matrix.graph, _power(m)
    plain = graph.stop_gradient(matrix)
    scale = reductions.reduce("max", e.unary("abs", plain), [plain.rank - 2, plain.rank - 1])
    scale = layout.expand_dims(scale, (scale.rank, scale.rank + 1))
    empty = e.compare("eq", scale, 0.0)
    scale = e.select(empty, 1.0, scale)
    rows = _padded(e.binary("div", plain, scale), size, n)
    vectors = _identity(rows, size)
    for bits in _rounds(size):
        partners = _partners(rows, bits, -2)
        squares = reductions.reduce("sum", e.unary("square", rows), [rows.rank - 1])
        across = reductions.reduce("sum", rows * partners, [rows.rank - 1])
        c, s = _rotation(squares, _partners(squares, bits, -1), across, bits)
        rows, vectors = _turned(rows, c, s, bits), _turned(vectors, c, s, bits)
    squares = reductions.reduce("sum", e.unary("square", rows), [rows.rank - 1])
    squares = e.select(graph.constant(np.arange(size) < m), squares, -1.0)
    left = _sorted(squares, moves.part(vectors, -1, 0, m), m, smallest=False)  # rows are those of U^T
    right = _sorted(squares, rows, m, smallest=False)
    length = e.unary("sqrt", reductions.reduce("sum", e.unary("square", right), [right.rank - 1]))
    nonzero = e.select(e.compare("gt", length, 0.0), length, 1.0)
    right = e.binary("div", right, layout.expand_dims(nonzero, (nonzero.rank,)))
    right = e.select(empty, graph.constant(np.eye(m, n, dtype="f4")), right)
    found = reductions.reduce("sum", products.matmul(left, matrix) * right, [right.rank - 1])
    columns = linear.matrix_transpose(left)
    if not matrix.learned:
        return columns, found, right
    eye, values = np.eye(m, dtype="f4"), graph.stop_gradient(found)
    row, column = layout.expand_dims(values, (values.rank - 1,)), layout.expand_dims(values, (values.rank,))
    apart = e.unary("square", row) - e.unary("square", column) + eye
    moved = products.matmul(left, matrix - plain)
    inner = products.matmul(moved, linear.matrix_transpose(right))
    turned = linear.matrix_transpose(inner)
    u_turn, v_turn = (_over((a + b) * (1 - eye), apart) for a, b in ((inner * row, turned * column),
                                                                     (inner * column, turned * row)))
    outside = _over(moved - products.matmul(inner, right), column) if n > m else 0.0
    return (columns + products.matmul(columns, u_turn), found,
            right + products.matmul(linear.matrix_transpose(v_turn), right) + outside)


def _over(change: Value, divisor: Value) -> Value:
    """A change, which is 0 and has a gradient, divided by numbers: for those of 0 it is 0 without a gradient (NaN)."""
    empty = layout.broadcast(e.compare("eq", divisor, 0.0), change.shape)
    made = e.binary("div", change, e.select(empty, 1.0, divisor))
    return e.select(empty, gradients.zero_without_slope(empty, change, e.as_value(change, 0.0)), made)


def _sizes(matrix: Value) -> tuple[int, int]:
    if matrix.rank < 2 or any(isinstance(n, Batch) for n in matrix.shape[-2:]):
        raise Refused("expected matrices, of one size for all samples")
    m, n = int(matrix.shape[-2]), int(matrix.shape[-1])  # type: ignore[arg-type]
    if min(m, n) > MOST_ROWS:
        raise Refused(f"eigenvalues or singular values of {m} x {n} matrices: expected at most {MOST_ROWS} rows or "
                      "columns")
    return m, n


def _power(n: int) -> int:
    return 1 << (n - 1).bit_length()


def _rounds(size: int) -> Sequence[int]:
    """The bits by which partners differ, in each round of all sweeps."""
    return list(range(1, size)) * (_SWEEPS if size > 2 else 2)


def _padded(matrix: Value, rows: int, columns: int) -> Value:
    more = [rows - int(matrix.shape[-2]), columns - int(matrix.shape[-1])]  # type: ignore[arg-type]
    zeros = [0] * matrix.rank
    return moves.pad(matrix, 0.0, zeros, [*zeros[2:], *more]) if any(more) else matrix


def _identity(like: Value, size: int) -> Value:
    return layout.broadcast(like.graph.constant(np.eye(size, dtype="f4")), (*like.shape[:-2], size, size))


def _partners(value: Value, bits: int, axis: int) -> Value:
    """Along an axis of 2^k elements the element whose number differs by these bits."""
    axis %= value.rank
    count = int(value.shape[axis]).bit_length() - 1  # type: ignore[arg-type]
    split = (*value.shape[:axis], *[2] * count, *value.shape[axis + 1:])
    axes = [axis + count - 1 - i for i in range(count) if bits >> i & 1]
    return layout.reshape(moves.reverse(layout.reshape(value, split), axes), value.shape)


def _rotation(mine: Value, other: Value, across: Value, bits: int) -> tuple[Value, Value]:
    """The cosine and the sine by which a row is turned towards its partner, so that the element of both becomes 0."""
    first = np.arange(int(mine.shape[-1])) & (bits & -bits) == 0  # type: ignore[arg-type]
    zero = e.compare("eq", across, 0.0)
    tau = e.binary("div", other - mine, e.select(zero, 1.0, across) * 2.0)
    ahead = e.logical_or(e.compare("gt", tau, 0.0), e.logical_and(
        e.compare("eq", tau, 0.0), mine.graph.constant(first)))
    size = e.unary("abs", tau) + e.unary("sqrt", e.unary("square", tau) + 1.0)
    tangent = e.binary("div", e.select(ahead, mine.graph.constant(np.float32(1)), -1.0), size)
    tangent = e.select(zero, 0.0, tangent)
    cosine = e.binary("div", 1.0, e.unary("sqrt", e.unary("square", tangent) + 1.0))
    return cosine, tangent * cosine


def _turned(rows: Value, cosine: Value, sine: Value, bits: int) -> Value:
    c, s = (layout.expand_dims(v, (v.rank,)) for v in (cosine, sine))
    return c * rows - s * _partners(rows, bits, -2)


def _sorted(keys: Value, rows: Value, count: int, smallest: bool) -> Value:
    """So many of the rows, in the order of their keys."""
    order = reductions.sort([keys], count, -1, largest=not smallest)
    return products.matmul(e.cast(moves.one_hot(order, int(keys.shape[-1])), "f32"), rows)  # type: ignore[arg-type]
