# SPDX-License-Identifier: Apache-2.0
"""ATen operations of linear algebra."""

from __future__ import annotations

from typing import Any

import numpy as np

from mtc._trace import Value, linear, products
from mtc.torch._convert import Converter, op


@op("linalg_cholesky_ex", "linalg_cholesky", "cholesky")
def cholesky(c: Converter, matrix: Any, upper: bool = False, *_: Any) -> Any:
    made = linear.cholesky(c.value(matrix), upper)
    made = linear.turned(made) if upper else made
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


@op("cholesky_solve")
def cholesky_solve(c: Converter, rhs: Any, factor: Any, upper: bool = False) -> Value:
    """By both triangles."""
    triangle, b = c.value(factor), c.value(rhs)
    half = linear.solve_triangular(triangle, b, lower=not upper, transposed=upper)
    return linear.solve_triangular(triangle, half, lower=not upper, transposed=not upper)


@op("cholesky_inverse")
def cholesky_inverse(c: Converter, factor: Any, upper: bool = False) -> Value:
    triangle = c.value(factor)
    ones = c.graph.constant(np.eye(int(triangle.shape[-1]), dtype="float32"))  # type: ignore[arg-type]
    inverse = linear.solve_triangular(triangle, ones, lower=not upper)
    other = linear.turned(inverse)
    return products.matmul(inverse, other) if upper else products.matmul(other, inverse)
