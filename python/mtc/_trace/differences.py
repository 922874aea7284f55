# SPDX-License-Identifier: Apache-2.0
"""How large arrays and their differences are, computed in float64 by blocks that fit a cache.

A difference of whole arrays would take 8 bytes for each weight of a model, and most of the time to have that memory
cleared. A NaN in an array makes its result NaN.
"""

from __future__ import annotations

from typing import Iterator

import numpy as np

from mtc._tensors import Array

_BLOCK = 1 << 15


def largest(array: Array) -> float:
    """The largest absolute value; 0 of no elements."""
    return float(np.maximum(array.max(), -array.min())) if array.size else 0.0


def largest_difference(a: Array, b: Array) -> float:
    """The largest absolute value of a - b, of one shape; 0 of no elements."""
    return float(np.max([largest(difference) for difference in _differences(a, b)], initial=0))


def norm(array: Array) -> float:
    """The square root of the sum of all squares."""
    return norm_of_difference(array, np.broadcast_to(array.dtype.type(0), array.shape))


def norm_of_difference(a: Array, b: Array) -> float:
    """The norm of a - b, of one shape."""
    return float(np.sqrt(sum(np.square(difference, out=difference).sum() for difference in _differences(a, b))))


def _differences(a: Array, b: Array) -> Iterator[Array]:
    if a.shape != b.shape:
        raise ValueError(f"expected arrays of one shape, found {a.shape} and {b.shape}")
    first, second = a.reshape(-1), b.reshape(-1)
    for start in range(0, first.size, _BLOCK):
        yield np.subtract(first[start:start + _BLOCK], second[start:start + _BLOCK], dtype=np.float64)
