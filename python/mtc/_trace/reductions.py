# SPDX-License-Identifier: Apache-2.0
"""Sums and extremes over axes, and what is made of them."""

from __future__ import annotations

import math
from typing import Any, Optional, Sequence

import numpy as np

from mtc._trace import elementwise as e
from mtc._trace import integers, moves, patterns
from mtc._trace.layout import (
    align,
    arrange,
    broadcast,
    canonical,
    decide,
    expand_dims,
    replaced,
    stored_last,
    transpose,
)
from mtc._trace.values import Axis, Batch, Refused, Value, batch_of

MOST_MAXIMA = 32  # that top_k and sort find one after the other
_NUMPY: dict[str, Any] = {"sum": np.sum, "max": np.max, "min": np.min}


def reduce(kind: str, value: Value, axes: Sequence[int]) -> Value:
    """"sum", "max" or "min" over logical axes, which disappear. Over the batch there is a sum only.

    A sum over the batch and other axes is the sum of each sample's, so a loss can be found in it.
    """
    if value.dtype == "i1":
        raise Refused(f"{kind} of booleans")
    axes = [a % len(value.axes) for a in axes]
    if value.dtype == "i32" and value.constant is None:
        return integers.reduce(kind, value, axes, lambda v, over: reduce(kind, v, over))
    parts = [a for i in axes for a in value.axes[i]]
    rest = tuple(p for i, p in enumerate(value.axes) if i not in axes)
    graph, node = value.graph, value.node
    gone = sorted(a.place for a in parts if a.place is not None)
    if node.constant is not None:
        node = graph.constant_node(_NUMPY[kind](node.constant, axis=tuple(gone)) if gone else node.constant,
                                   value.dtype)
    else:
        over_batch = node.split and 0 in gone
        inner = gone[1:] if over_batch else gone
        if over_batch and kind != "sum":
            raise Refused(f"a {kind}imum over the batch")
        for places in (inner, [0] if over_batch else []):
            if places:
                shape = tuple(n for i, n in enumerate(node.shape) if i not in places)
                made = graph.node(f"reduce_{kind}", (node,), f"mt.reduce {kind}, {{0}} over {places} : {{t0}}", shape,
                                  "f32")
                made.info = places
                node = made
    kept = sorted(a.place for p in rest for a in p if a.place is not None)
    axes_left = tuple(tuple(Axis(a.size, kept.index(a.place) if a.place is not None else None) for a in p)
                      for p in rest)
    result = Value(graph, node, axes_left)
    if kind == "sum":
        for part in parts:
            if part.place is None and isinstance(part.size, Batch):
                result = e.binary("mul", result, e.cast(graph.count(part.size), value.dtype))
            elif part.place is None:
                result = e.binary("mul", result, part.size)  # type: ignore[arg-type]
    return result


def mean(value: Value, axes: Sequence[int]) -> Value:
    """The sum divided by the number of elements."""
    sizes = [value.shape[i] for i in axes]
    total = reduce("sum", value, axes)
    batches = [n for n in sizes if isinstance(n, Batch)]
    static = math.prod(n for n in sizes if not isinstance(n, Batch))
    divisor = value.graph.count(batches[0] * static) if batches else static
    return e.binary("div", total, divisor)


def reduce_logic(every: bool, value: Value, axes: Sequence[int]) -> Value:
    """Whether all are true, or any."""
    if value.constant is not None:
        return e.cast(reduce("min" if every else "max", e.cast(value, "i32"), axes), "i1")
    return e.compare("gt", reduce("min" if every else "max", e.cast(value, "f32"), axes), 0.5)


def argmax(value: Value, axis: int) -> Value:
    """The index of the first largest element along an axis, which disappears: i32."""
    axis %= len(value.axes)
    if value.shape[axis] == 1:
        rest = value.shape[:axis] + value.shape[axis + 1:]
        return broadcast(value.graph.constant(0, "i32"), rest)
    if not integers.exact_in_f32(value) and value.constant is None:
        top = expand_dims(reduce("max", value, (axis,)), (axis,))
        value = e.compare("eq", value, top)
    if value.constant is not None and batch_of(value.flat) is None:
        return value.graph.constant(np.argmax(value.array, axis=axis), "i32")  # type: ignore[arg-type]
    value = stored_last(e.cast(value, "f32"), axis)
    node = value.graph.node("argmax", (value.node,), "mt.argmax {0} : {t0}", value.node.shape[:-1], "i32")
    return Value(value.graph, node, value.axes[:axis] + value.axes[axis + 1:])


def top_k(values: Sequence[Value], count: Optional[int], axis: int, smallest: bool = False,
          keys: int = 1) -> list[Value]:
    """The elements along an axis where those of the first value are largest, or smallest, from the outermost on.

    Of equal ones the first comes first, or by the second value and so on with several `keys`. A NaN is the largest.
    `count`: None: all.
    """
    axis %= len(values[0].axes)
    size = values[0].shape[axis]
    if isinstance(size, Batch):
        raise Refused("the order of the samples")
    count = size if count is None else count
    if count > MOST_MAXIMA:
        raise Refused(f"the {count} largest elements along an axis: expected at most {MOST_MAXIMA}")
    order = [i for i in range(len(values[0].axes)) if i != axis] + [axis]
    lines = [transpose(v, order) for v in values]
    if size <= 2 * MOST_MAXIMA:
        chosen = _by_rank(lines[:keys], count, smallest)
    else:
        chosen = _one_by_one(lines[0], count, smallest)
    return [moves.concat([expand_dims(_only(line, hot), (axis,)) for hot in chosen], axis) for line in lines]


def _only(line: Value, hot: Value) -> Value:
    """The element of each line where `hot` is."""
    if line.dtype == "i1":
        return e.cast(_only(e.cast(line, "i32"), hot), "i1")
    return reduce("sum", e.select(hot, line, e.as_value(line, 0)), (-1,))


def _by_rank(keys: Sequence[Value], count: int, smallest: bool) -> list[Value]:
    """Where the first, second ... element of each line is: each is compared with each other one."""
    rank = len(keys[0].axes)
    size = int(keys[0].shape[-1])  # type: ignore[arg-type]
    graph = keys[0].graph
    number = np.arange(size)
    # before[i, j]: whether element j comes before element i, of equal ones that which stands before it.
    before = graph.constant(number[None, :] < number[:, None])
    for key in reversed(keys):
        if key.dtype == "i1":
            key = e.cast(key, "i32")
        mine, other = expand_dims(key, (rank,)), expand_dims(key, (rank - 1,))
        first, second = (other, mine) if smallest else (mine, other)
        less, same = e.compare("lt", first, second), e.compare("eq", first, second)
        if key.dtype == "f32":
            a, b = (e.compare("ne", v, v) for v in (first, second))
            less = e.logical_or(less, e.logical_and(b, e.logical_not(a)))
            same = e.logical_or(same, e.logical_and(a, b))
        before = e.logical_or(less, e.logical_and(same, before))
    place = reduce("sum", e.cast(before, "f32"), (-1,))
    return [e.compare("eq", place, float(i)) for i in range(count)]


def _one_by_one(key: Value, count: int, smallest: bool) -> list[Value]:
    """The same for long lines: each is the maximum of what the ones before it leave."""
    if not integers.exact_in_f32(key):
        raise Refused("an order of integers above 2^24 along more than 64: cast them to float32")
    key = e.cast(key, "f32")
    if smallest:
        key = e.unary("neg", key)
        key = e.select(e.compare("ne", key, key), float(np.finfo(np.float32).min), key)  # NaNs come last
    left = e.binary("maximum", key, float(np.finfo(np.float32).min))
    found = []
    for _ in range(count):
        hot = e.cast(moves.one_hot(argmax(left, -1), int(key.shape[-1])), "i1")  # type: ignore[arg-type]
        left = e.select(hot, e.as_value(left, -np.inf), left)  # below all that is left
        found.append(hot)
    return found


def softmax(value: Value, axis: int = -1, log: bool = False) -> Value:
    """softmax, or its logarithm, along an axis."""
    made = e.along_last("log_softmax" if log else "softmax", value, axis)
    assert made is not None
    return made


def normalize(value: Value, axes: Sequence[int], epsilon: float) -> Value:
    """(x - mean) / sqrt(variance + epsilon) over logical axes of a sample: a layer norm without scale and centre."""
    value = canonical(value, expand=True)
    places = sorted(a.place for i in axes for a in value.axes[i % len(value.axes)] if a.place is not None)
    if value.node.split and 0 in places:
        raise Refused("a normalisation over the batch")
    if not places:  # an element alone is its mean
        return e.binary("mul", value, 0.0)
    node = value.graph.node("normalize", (value.node,),
                            f"mt.normalize {{0}} over {places} epsilon = {epsilon:.9e} : {{t0}}", value.node.shape,
                            "f32")
    return Value(value.graph, node, value.axes)


def pick(value: Value, ids: Value) -> Value:
    """The element at an id of each line along the last axis: [..., C] and [...] of i32 to [...]."""
    value = stored_last(value, len(value.axes) - 1)
    lines = Value(value.graph, value.node, value.axes[:-1])
    _, aligned = align([lines, ids])
    order = sorted((i for i, a in enumerate(lines.flat) if a.place is not None), key=lambda i: lines.flat[i].place or 0)
    repeated = any(a.place is None and b.place is not None for a, b in zip(lines.flat, aligned.flat))
    at = ids if repeated else replaced(aligned, arrange(aligned, order, order), order)  # several ids of each line
    whole = at.node.shape == value.node.shape[:-1]
    if whole and value.node.op == "log_softmax":
        x = Value(value.graph, value.node.operands[0], value.axes)
        return e.unary("neg", patterns.cross_entropy(x, at.node, lines.axes))
    line = value.graph.constant(np.arange(int(value.shape[-1])), "i32")  # type: ignore[arg-type]
    hot = e.compare("eq", expand_dims(at, (len(at.axes),)), line)
    hot.node.info = ("place", at.node)
    # No product with 0 and 1, in which an infinity that is not picked would be a NaN.
    return reduce("sum", e.select(hot, value, e.as_value(value, 0)), (len(value.axes) - 1,))


def cumsum(value: Value, axis: int, reverse: bool = False) -> Value:
    """Sums of what comes before and at each place along an axis."""
    axis %= len(value.axes)
    size = value.shape[axis]
    if isinstance(size, Batch):
        raise Refused("a cumulative sum along the batch")
    if value.dtype == "i1":
        raise Refused("a cumulative sum of booleans")
    if value.constant is not None and value.array is not None:
        array = np.flip(value.array, axis) if reverse else value.array
        array = np.cumsum(array, axis, dtype=array.dtype)
        return value.graph.constant(np.flip(array, axis) if reverse else array)
    if value.dtype == "i32":
        return integers.cumulative("add", value, axis, reverse, 0)
    if size == 1:
        return value
    value = decide(value)
    value = moves.with_stored(value, [moves.stored_axis(value, axis)])
    place = value.flat[moves.stored_axis(value, axis)].place
    node = value.graph.node("cumsum", (value.node,), f"mt.cumsum {{0}} dim = {place}{' reverse' if reverse else ''} : "
                            "{t0}", value.node.shape, "f32")
    return Value(value.graph, node, value.axes)
