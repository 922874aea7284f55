# SPDX-License-Identifier: Apache-2.0
"""Linear algebra of matrices [..., n, n] of up to 64 rows."""

from __future__ import annotations

from mtc._trace import layout
from mtc._trace.elementwise import common_shape
from mtc._trace.values import Refused, Value


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
    """The lower triangle L of A = L L^T; `upper`: that triangle of A is read."""
    text = "graph.cholesky {0}" + " upper" * upper
    return matrix.graph.operation("cholesky", (matrix,), text, matrix.shape, "f32")


def turned(matrix: Value) -> Value:
    """The transpose of the last two axes."""
    return layout.transpose(matrix, [*range(matrix.rank - 2), matrix.rank - 1, matrix.rank - 2])
