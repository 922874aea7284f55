# SPDX-License-Identifier: Apache-2.0
"""Sums and extremes over axes, and what is made of them."""

from __future__ import annotations

import math
import operator
from typing import Any, Optional, Sequence

import numpy as np

from mtc._trace import elementwise as e
from mtc._trace import integers, layout, patterns
from mtc._trace.layout import broadcast, expand_dims, transpose
from mtc._trace.text import number
from mtc._trace.values import BATCH, Batch, Refused, Size, Value, has_batch

_NUMPY: dict[str, Any] = {"sum": np.sum, "max": np.max, "min": np.min}


def reduce(kind: str, value: Value, axes: Sequence[int]) -> Value:
    """"sum", "max" or "min" over axes, which disappear. Over the batch there is a sum only.

    A sum over the batch and other axes is the sum of each sample's, so a loss can be found in it.
    """
    if value.dtype == "i1":
        raise Refused(f"{kind} of booleans")
    axes = sorted({int(a) % value.rank for a in axes})
    if not axes:
        return value
    if value.constant is not None:
        return _of_constant(kind, value, axes)
    if value.dtype == "i32":
        return integers.reduce(kind, value, axes, _of_values)
    return _of_values(kind, value, axes)


def _of_values(kind: str, value: Value, axes: Sequence[int]) -> Value:
    """Of f32 or i32."""
    repeated = layout.repeats(value)
    if any(i in repeated for i in axes):
        return _of_repeated(kind, value, axes, repeated)
    if not has_batch([value.shape[i] for i in axes]):
        return _reduced(kind, value, axes)
    if kind != "sum":
        raise Refused(f"a {kind}imum over the batch")
    return _reduced(kind, _within_samples(value, axes), [0])


def _reduced(kind: str, value: Value, axes: Sequence[int]) -> Value:
    """Over axes of which one may be the batch, if it is alone."""
    rest = tuple(n for i, n in enumerate(value.shape) if i not in axes)
    return value.graph.operation(f"reduce_{kind}", (value,), f"graph.reduce {kind}, {{0}} over {list(axes)}", rest,
                                 value.dtype, axes)


def _within_samples(value: Value, axes: Sequence[int]) -> Value:
    """The sums over these axes in each sample: [BATCH, ...] with the other axes."""
    batch = next(i for i in axes if isinstance(value.shape[i], Batch))
    rest = [i for i in range(value.rank) if i not in axes]
    if value.shape[batch] != BATCH:
        return value.graph.operation("reduce_sum", (value,),
                                     f"graph.reduce sum, {{0}} over {list(axes)} within_samples",
                                     (BATCH, *(value.shape[i] for i in rest)), value.dtype, axes)
    inner = [i for i in axes if i != batch]
    made = _reduced("sum", value, inner) if inner else value
    kept = [i for i in range(value.rank) if i not in inner]
    return transpose(made, [kept.index(batch), *(kept.index(i) for i in rest)])


def _of_constant(kind: str, value: Value, axes: Sequence[int]) -> Value:
    array = value.constant
    assert array is not None
    made = _NUMPY[kind](array, axis=tuple(axes))
    shape = tuple(n for i, n in enumerate(value.shape) if i not in axes)
    result = value.graph.repeated(np.asarray(made, array.dtype), shape, value.dtype)
    return _times(kind, result, [value.shape[i] for i in axes if array.shape[i] == 1])


def _of_repeated(kind: str, value: Value, axes: Sequence[int], repeated: dict[int, Size]) -> Value:
    """The same of the operand of a broadcast, times the numbers of its equal elements."""
    inner = value.operands[0]
    over = [i for i, to in enumerate(value.dims) if to in axes]
    made = reduce(kind, inner, over)
    kept = [i for i in range(value.rank) if i not in axes]
    dims = [kept.index(to) for i, to in enumerate(value.dims) if i not in over]
    made = broadcast(made, tuple(value.shape[i] for i in kept), dims)
    return _times(kind, made, [n for i, n in repeated.items() if i in axes])


def _times(kind: str, value: Value, sizes: Sequence[Size]) -> Value:
    """The sum of so many equal values."""
    for size in sizes if kind == "sum" else ():
        count = e.cast(value.graph.count(size), value.dtype) if isinstance(size, Batch) else size
        value = value * count
    return value


def product(value: Value, axes: Sequence[int]) -> Value:
    """The product of elements along axes: of halves, so that the gradient to each is the product of the others."""
    for axis in sorted((int(a) % value.rank for a in axes), reverse=True):
        rest = value.shape[:axis] + value.shape[axis + 1:]
        if isinstance(value.shape[axis], Batch) or value.shape[axis] == 0:
            raise Refused("a product over the batch" if value.shape[axis] else "a value without elements")
        if value.array is not None:
            value = value.graph.constant(np.prod(value.array, axis=axis, dtype=value.array.dtype), value.dtype)
        else:
            value = value.graph.operation("product", (value,), f'graph.along "product"({{0}}) dim = {axis}', rest,
                                          value.dtype, (axis,))
    return value


def mean(value: Value, axes: Sequence[int]) -> Value:
    """The sum divided by the number of elements."""
    sizes = [value.shape[i] for i in axes]
    total = reduce("sum", value, axes)
    batches = [n for n in sizes if isinstance(n, Batch)]
    static = math.prod(n for n in sizes if not isinstance(n, Batch))
    divisor = value.graph.count(batches[0] * static) if batches else static
    return total / divisor


def reduce_logic(every: bool, value: Value, axes: Sequence[int]) -> Value:
    """Whether all are true, or any."""
    if value.constant is not None:
        return e.cast(reduce("min" if every else "max", e.cast(value, "i32"), axes), "i1")
    if has_batch([value.shape[i] for i in axes]):  # over samples there are sums alone
        found = reduce("sum", e.cast(~value if every else value, "f32"), axes)
        return e.compare("eq" if every else "gt", found, 0.0)
    return e.compare("gt", reduce("min" if every else "max", e.cast(value, "f32"), axes), 0.5)


def argmax(value: Value, axis: int) -> Value:
    """The index of the first largest element along an axis, which disappears: i32."""
    axis %= value.rank
    rest = value.shape[:axis] + value.shape[axis + 1:]
    if value.shape[axis] == 1:
        return broadcast(value.graph.constant(0, "i32"), rest)
    if isinstance(value.shape[axis], Batch):
        raise Refused("an operation along the batch")
    if value.array is not None:
        return value.graph.constant(np.argmax(value.array, axis=axis), "i32")
    if not integers.exact_in_f32(value):
        top = expand_dims(reduce("max", value, (axis,)), (axis,))
        value = e.compare("eq", value, top)
    value = e.cast(value, "f32")
    return value.graph.operation("argmax", (value,), f'graph.along "argmax"({{0}}) dim = {axis}', rest, "i32", (axis,))


def sort(keys: Sequence[Value], count: Optional[int], axis: int, largest: bool = False) -> Value:
    """The places along an axis of the first `count` elements (None: all) in rising order, or from the largest one on.

    Later keys decide between elements whose earlier keys are equal; the place decides last. A NaN is the largest.
    """
    axis %= keys[0].rank
    size = keys[0].shape[axis]
    if isinstance(size, Batch):
        raise Refused("the order of the samples")
    count = size if count is None else count
    if not 0 < count <= size:
        raise Refused(f"expected 1 to {size} elements of a line, found {count}")
    if len(keys) == 1 and keys[0].array is not None:
        return keys[0].graph.constant(_sorted(keys[0].array, count, axis, largest), "i32")
    template = f"graph.sort {', '.join(f'{{{i}}}' for i in range(len(keys)))} dim = {axis}"
    return keys[0].graph.operation("sort", keys, template + (" descending" if largest else ""),
                                   (*keys[0].shape[:axis], count, *keys[0].shape[axis + 1:]), "i32", (axis, size))


def _sorted(array: Any, count: int, axis: int, largest: bool) -> Any:
    if not largest:
        return np.argsort(array, axis, kind="stable").take(range(count), axis)
    turned = np.flip(np.argsort(np.flip(array, axis), axis, kind="stable"), axis)
    return (array.shape[axis] - 1 - turned).take(range(count), axis)


def softmax(value: Value, axis: int = -1, log: bool = False) -> Value:
    """softmax, or its logarithm, along an axis."""
    return e.along("log_softmax" if log else "softmax", value, axis)


def normalize(value: Value, axes: Sequence[int], epsilon: float) -> Value:
    """(x - mean) / sqrt(variance + epsilon) over axes of a sample: a layer norm without scale and centre."""
    axes = sorted(int(i) % value.rank for i in axes)
    if has_batch([value.shape[i] for i in axes]):
        raise Refused("a normalisation over the batch")
    if all(value.shape[i] == 1 for i in axes):  # an element alone is its mean
        return value * 0.0
    text = f"graph.normalize {{0}} over {axes} epsilon = {number(epsilon)}"
    return value.graph.operation("normalize", (value,), text, value.shape, "f32", axes)


def pick(value: Value, ids: Value) -> Value:
    """The element at an id of each line along the last axis: [..., C] and [...] of i32 to [...]."""
    last = value.rank - 1
    if isinstance(value.shape[last], Batch):
        raise Refused("an operation along the batch")
    logits = patterns.logits_of(value)
    if logits is not None and ids.constant is None and not layout.repeats(ids) and not layout.repeats(value):
        return -patterns.cross_entropy(logits, ids)
    line = value.graph.constant(np.arange(int(value.shape[last])), "i32")  # type: ignore[arg-type]
    hot = e.compare("eq", expand_dims(ids, (ids.rank,)), line)
    hot.info = ("place", ids)
    # No product with 0 and 1, in which an infinity that is not picked would be a NaN.
    return reduce("sum", e.select(hot, value, e.as_value(value, 0)), (last,))


def cumsum(value: Value, axis: int, reverse: bool = False) -> Value:
    """Sums of what comes before and at each place along an axis."""
    axis %= value.rank
    size = value.shape[axis]
    if isinstance(size, Batch):
        raise Refused("a cumulative sum along the batch")
    if value.dtype == "i1":
        raise Refused("a cumulative sum of booleans")
    if value.array is not None:
        array = np.flip(value.array, axis) if reverse else value.array
        array = np.cumsum(array, axis, dtype=array.dtype)
        return value.graph.constant(np.flip(array, axis) if reverse else array)
    if value.dtype == "i32":
        return integers.cumulative(operator.add, value, axis, reverse, 0)
    if size == 1:
        return value
    return value.graph.operation("cumsum", (value,), f"graph.cumsum {{0}} dim = {axis}{' reverse' if reverse else ''}",
                                 value.shape, "f32")
