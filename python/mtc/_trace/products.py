# SPDX-License-Identifier: Apache-2.0
"""Products of matrices, in general: contracted axes, axes in common, free axes."""

from __future__ import annotations

from typing import Any, Optional, Sequence

import numpy as np

from mtc._trace import elementwise as e
from mtc._trace import integers
from mtc._trace.layout import broadcast, transpose
from mtc._trace.values import Batch, Refused, Shape, Value, elements

Pair = tuple[Sequence[int], Sequence[int]]
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def dot_general(lhs: Value, rhs: Value, contract: Pair, batch: Pair = ((), ())) -> Value:
    """Sums of products over the `contract` axes of both; `batch` axes are in common.

    Axes of the result: those in common, the free ones of lhs, the free ones of rhs. A batch axis of the trace may be in
    common, free in one of the two, or contracted in both, which is a sum over the samples.
    """
    contract, batch = (([int(i) for i in pair[0]], [int(i) for i in pair[1]]) for pair in (contract, batch))
    free = [n for i, n in enumerate(lhs.shape) if i not in contract[0] and i not in batch[0]]
    free += [n for i, n in enumerate(rhs.shape) if i not in contract[1] and i not in batch[1]]
    shape: Shape = (*(lhs.shape[i] for i in batch[0]), *free)
    if sum(isinstance(n, Batch) for n in free) > 1:
        raise Refused("a product of every sample with every other")
    dtype = next(d for d in ("f32", "i32", "i1") if d in (lhs.dtype, rhs.dtype))
    if lhs.dtype != "f32" or rhs.dtype != "f32":
        terms = elements([lhs.shape[i] for i in contract[0]])
        exact = dtype != "i32" or integers.largest(lhs) * integers.largest(rhs) * terms <= integers.EXACT
        between = "f32" if exact else "i32"
        lhs, rhs = e.cast(lhs, between), e.cast(rhs, between)
        if exact:
            return e.cast(dot_general(lhs, rhs, contract, batch), dtype)
    folded = _fold(lhs, rhs, contract, batch)
    if folded is not None:
        return folded
    if lhs.scalar == 0 or rhs.scalar == 0 or 0 in [lhs.shape[i] for i in contract[0]]:
        return broadcast(lhs.graph.constant(0, lhs.dtype), shape)
    text = f"graph.dot_general {{0}}, {{1}} contract {contract[0]} x {contract[1]} common {batch[0]} x {batch[1]}"
    return lhs.graph.operation("dot_general", (lhs, rhs), text, shape, lhs.dtype)


def matmul(a: Value, b: Value) -> Value:
    """The product of the last two axes, of [..., M, K] and [..., K, N], whose other axes broadcast."""
    if b.rank == 2:
        return dot_general(a, b, ((a.rank - 1,), (0,)))
    lead = e.common_shape([a.shape[:-2], b.shape[:-2]])
    a, b = (broadcast(v, (*lead, *v.shape[-2:])) for v in (a, b))
    common = list(range(a.rank - 2))
    return dot_general(a, b, ((a.rank - 1,), (a.rank - 2,)), (common, common))


def _fold(lhs: Value, rhs: Value, contract: Pair, batch: Pair) -> Optional[Value]:
    if lhs.array is None or rhs.array is None:
        return None
    letters = iter(LETTERS)
    left = [next(letters) for _ in lhs.shape]
    right = [next(letters) for _ in rhs.shape]
    for i, j in [*zip(*contract), *zip(*batch)]:
        right[j] = left[i]
    free = [left[i] for i in batch[0]]
    free += [x for i, x in enumerate(left) if i not in contract[0] and i not in batch[0]]
    free += [x for i, x in enumerate(right) if i not in contract[1] and i not in batch[1]]
    text = f"{''.join(left)},{''.join(right)}->{''.join(free)}"
    return lhs.graph.constant(np.einsum(text, lhs.array, rhs.array), lhs.dtype)


def along_axis(value: Value, matrix: Any, axis: int) -> Value:
    """The product of each line along an axis with a matrix of numbers: [..., n, ...] and [n, m]."""
    made = dot_general(value, value.graph.constant(matrix), ((axis,), (0,)))
    last = value.rank - 1
    return transpose(made, [*range(axis), last, *range(axis, last)])
