# SPDX-License-Identifier: Apache-2.0
"""Sums and extremes over axes, and what is made of them."""

from __future__ import annotations

import math
from typing import Any, Optional, Sequence

import numpy as np

from mtc._trace import elementwise as e
from mtc._trace import moves, patterns, products
from mtc._trace.layout import align, arrange, canonical, expand_dims, replaced, stored_last, transpose
from mtc._trace.values import Axis, Batch, Refused, Value, batch_of

MOST_MAXIMA = 32  # that top_k and sort find one after the other
_NUMPY: dict[str, Any] = {"sum": np.sum, "max": np.max, "min": np.min}


def reduce(kind: str, value: Value, axes: Sequence[int]) -> Value:
    """"sum", "max" or "min" over logical axes, which disappear. Over the batch there is a sum only.

    A sum over the batch and other axes is the sum of each sample's, so a loss can be found in it.
    """
    if value.dtype == "i1":
        raise Refused(f"{kind} of booleans")
    if value.dtype == "i32" and value.constant is None:
        return e.cast(reduce(kind, e.cast(value, "f32"), axes), "i32")
    axes = [a % len(value.axes) for a in axes]
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
        return e.as_value(e.cast(value, "i32"), 0)
    if value.constant is not None and batch_of(value.flat) is None:
        return value.graph.constant(np.argmax(value.array, axis=axis), "i32")  # type: ignore[arg-type]
    value = stored_last(e.cast(value, "f32"), axis)
    node = value.graph.node("argmax", (value.node,), "mt.argmax {0} : {t0}", value.node.shape[:-1], "i32")
    return Value(value.graph, node, value.axes[:axis] + value.axes[axis + 1:])


def top_k(values: Sequence[Value], count: Optional[int], axis: int, smallest: bool = False) -> list[Value]:
    """The elements along an axis where those of the first value are largest, or smallest, from the outermost on.

    Of equal ones the first comes first. Each is the maximum of what the ones before it leave. `count`: None: all.
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
    key = e.cast(lines[0], "f32")
    left = e.binary("maximum", e.unary("neg", key) if smallest else key, float(np.finfo(np.float32).min))
    found: list[list[Value]] = [[] for _ in values]
    for _ in range(count):
        hot = e.cast(moves.one_hot(argmax(left, -1), size), "i1")
        for line, columns in zip(lines, found):
            columns.append(expand_dims(reduce("sum", e.select(hot, line, e.as_value(line, 0)), (-1,)), (axis,)))
        left = e.select(hot, e.as_value(left, -np.inf), left)  # below all that is left
    return [moves.concat(columns, axis) for columns in found]


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
    hot = moves.one_hot(at, int(value.shape[-1]))  # type: ignore[arg-type]
    return reduce("sum", e.binary("mul", value, hot), (len(value.axes) - 1,))


def cumsum(value: Value, axis: int, reverse: bool = False) -> Value:
    """Sums of what comes before and at each place along an axis: a product with a triangle of ones."""
    axis %= len(value.axes)
    size = value.shape[axis]
    if isinstance(size, Batch):
        raise Refused("a cumulative sum along the batch")
    ones = np.tri(size, dtype="f4") if reverse else np.tri(size, dtype="f4").T
    return e.cast(products.along_axis(e.cast(value, "f32"), ones, axis), value.dtype)
