# SPDX-License-Identifier: Apache-2.0
"""Parts of values, and values put together: slices, padding, concatenation, lookup."""

from __future__ import annotations

from typing import TYPE_CHECKING, Optional, Sequence, Union

import numpy as np

from mtc._trace import elementwise as e
from mtc._trace.layout import broadcast, expand_dims, reshape, squeeze
from mtc._trace.text import number
from mtc._trace.values import BATCH, Batch, Refused, Shape, Size, Value, has_batch

if TYPE_CHECKING:
    from mtc._trace.graph import Graph


def _static(value: Value, axis: int) -> int:
    size = value.shape[axis]
    if isinstance(size, Batch):
        raise Refused("a part of the samples of a batch, or samples beside those of the batch")
    return size


def slice_(value: Value, starts: Sequence[Size], limits: Sequence[Optional[Size]],
           strides: Sequence[int]) -> Value:
    """Elements from starts to limits (exclusive; None: all) with strides of 1 or more. Of the batch axis whole
    batches."""
    shape, begins, steps = list(value.shape), [0] * value.rank, [1] * value.rank
    for axis, (start, limit, stride) in enumerate(zip(starts, limits, strides)):
        if start == 0 and stride == 1 and (limit is None or limit == value.shape[axis]):
            continue
        if isinstance(start, Batch) or isinstance(limit, Batch):
            value = _slice_batches(value, axis, start, limit, stride)
            shape[axis] = value.shape[axis]
            continue
        size = _static(value, axis)
        begins[axis], steps[axis] = int(start), int(stride)
        shape[axis] = max(0, -(-(int(size if limit is None else limit) - begins[axis]) // steps[axis]))
    if tuple(shape) == value.shape:
        return value
    if 0 in shape:
        raise Refused("a value without elements")
    if value.constant is not None:
        places = tuple(slice(a, a + (int(n) - 1) * s + 1, s) if size != 1 else slice(None)  # type: ignore[arg-type]
                       for a, n, s, size in zip(begins, shape, steps, value.constant.shape))
        return value.graph.repeated(value.constant[places], tuple(shape), value.dtype)
    return value.graph.operation("slice", (value,), f"graph.slice {{0}} starts {begins} strides {steps}", tuple(shape),
                                 value.dtype)


def _slice_batches(value: Value, axis: int, start: Union[int, Batch], limit: Union[None, int, Batch],
                   stride: int) -> Value:
    """Whole batches of several that are one after the other."""
    size = value.shape[axis]
    if not isinstance(size, Batch) or stride != 1 or isinstance(limit, int) or isinstance(start, int) and start:
        raise Refused("a part of the samples of a batch")
    ends = [0 if isinstance(start, int) else start.times, size.times if limit is None else limit.times]
    apart = reshape(value, (*value.shape[:axis], size.times, BATCH, *value.shape[axis + 1:]))
    apart = part(apart, axis, *ends)
    return reshape(apart, (*value.shape[:axis], BATCH * (ends[1] - ends[0]), *value.shape[axis + 1:]))


def split_batches(value: Value, axis: int, sizes: Sequence[Size]) -> list[Value]:
    """The batches of several that are one after the other, in parts of so many samples each."""
    made, before = [], 0
    for size in sizes:
        if not isinstance(size, Batch):
            raise Refused("a part of the samples of a batch")
        made.append(_slice_batches(value, axis, BATCH * before if before else 0, BATCH * (before + size.times), 1))
        before += size.times
    return made


def part(value: Value, axis: int, start: int, stop: Optional[int], step: int = 1) -> Value:
    """Elements from start to stop along an axis, which counts from the end where negative."""
    before, after = axis % value.rank, value.rank - 1 - axis % value.rank
    return slice_(value, [*[0] * before, start, *[0] * after], [*[None] * before, stop, *[None] * after],
                  [*[1] * before, step, *[1] * after])


def at(value: Value, axis: int, index: int) -> Value:
    """The elements at one index of an axis, which disappears."""
    return squeeze(part(value, axis, index, index + 1), (axis % value.rank,))


def pad(value: Value, fill: float, low: Sequence[int], high: Sequence[int], interior: Sequence[int] = ()) -> Value:
    """Elements of `fill` before, after and between the value's along each axis; negative numbers cut off."""
    low, high, interior = [int(n) for n in low], [int(n) for n in high], [int(n) for n in interior or [0] * len(low)]
    moved = [i for i in range(value.rank) if low[i] or high[i] or interior[i]]
    if not moved:
        return value
    if not np.isfinite(fill):
        there = pad(broadcast(value.graph.constant(np.float32(1)), value.shape), 0.0, low, high, interior)
        return e.select(e.compare("ne", there, 0.0), pad(value, 0.0, low, high, interior), fill)
    shape = list(value.shape)
    for i in moved:
        size = _static(value, i)
        shape[i] = size + low[i] + high[i] + max(size - 1, 0) * interior[i]
        if shape[i] < 1:  # type: ignore[operator]
            raise Refused("a value without elements")
    if value.scalar == fill:
        return broadcast(value.graph.constant(np.asarray(fill), value.dtype), tuple(shape))
    folded = _padded(value, fill, low, high, interior)
    if folded is not None:
        return folded
    if value.dtype == "i1":
        return e.cast(pad(e.cast(value, "i32"), fill, low, high, interior), "i1")
    return value.graph.operation("pad", (value,), f"graph.pad {{0}} value = {number(fill)} low {low} high {high} "
                                 f"interior {interior}", tuple(shape), value.dtype)


def _padded(value: Value, fill: float, low: list[int], high: list[int], interior: list[int]) -> Optional[Value]:
    """The same of a constant; None: it is none, or has a batch."""
    array = value.array
    if array is None:
        return None
    sizes = [n + max(n - 1, 0) * k for n, k in zip(array.shape, interior)]
    spread = np.full([n + max(a, 0) + max(b, 0) for n, a, b in zip(sizes, low, high)], fill, array.dtype)
    spread[tuple(slice(max(a, 0), max(a, 0) + n, k + 1) for n, a, k in zip(sizes, low, interior))] = array
    return value.graph.constant(spread[tuple(slice(max(-a, 0), n - max(-b, 0)) for n, a, b in
                                             zip(spread.shape, low, high))], value.dtype)


def pad_from(value: Value, axis: int, low: int, high: int, mode: str) -> Value:
    """Elements of the value itself before and after: "reflect", "replicate" or "circular". Negative numbers cut off."""
    if low == high == 0:
        return value
    size = value.shape[axis]
    if isinstance(size, Batch):
        raise Refused("padding of the batch")

    if min(low, high) < 0:
        cut = part(value, axis, max(-low, 0), size - max(-high, 0))
        return pad_from(cut, axis, max(low, 0), max(high, 0), mode)
    most = {"reflect": size - 1, "replicate": low + high, "circular": size}.get(mode)
    if most is None or max(low, high) > most:
        raise Refused(f"padding of the mode {mode} by {low} and {high} of an axis of {size}")
    if mode == "replicate":
        wide = [n if i != axis else 1 for i, n in enumerate(value.shape)]
        ends = [(part(value, axis, 0, 1), low), (part(value, axis, size - 1, size), high)]
        before, after = ([broadcast(end, tuple(n if i != axis else count for i, n in enumerate(wide)))]
                         if count else [] for end, count in ends)
    elif mode == "reflect":
        before = [reverse(part(value, axis, 1, low + 1), [axis])] if low else []
        after = [reverse(part(value, axis, size - 1 - high, size - 1), [axis])] if high else []
    else:
        before = [part(value, axis, size - low, size)] if low else []
        after = [part(value, axis, 0, high)] if high else []
    return concat([*before, value, *after], axis)


def concat(values: Sequence[Value], axis: int) -> Value:
    """One after the other along an axis."""
    values = [v for v in values if v.shape[axis] != 0] or values[:1]
    if len(values) == 1:
        return values[0]
    graph, dtype = values[0].graph, values[0].dtype
    if all(v.array is not None for v in values):
        return graph.constant(np.concatenate([v.array for v in values], axis), dtype)
    sizes = [v.shape[axis] for v in values]
    if has_batch(sizes):
        if not all(isinstance(n, Batch) for n in sizes):
            raise Refused("samples beside those of the batch: a concatenation along the batch axis")
        return _concat_batches(values, axis)
    for v in values:
        if v.shape[:axis] + v.shape[axis + 1:] != values[0].shape[:axis] + values[0].shape[axis + 1:]:
            raise Refused(f"expected equal sizes, found {list(v.shape)} and {list(values[0].shape)}")
    shape = (*values[0].shape[:axis], sum(sizes), *values[0].shape[axis + 1:])  # type: ignore[arg-type]
    names = ", ".join(f"{{{i}}}" for i in range(len(values)))
    return graph.operation("concat", values, f"graph.concat {names} dim = {axis}", shape, dtype)


def _concat_batches(values: Sequence[Value], axis: int) -> Value:
    """Batches one after the other, as one whose samples are as many times the batch: an axis in front of that of the
    samples counts them."""
    parts = []
    for v in values:
        times = v.shape[axis].times  # type: ignore[union-attr]
        parts.append(reshape(v, (*v.shape[:axis], times, BATCH, *v.shape[axis + 1:])))
    made = concat(parts, axis)
    shape = made.shape
    made.graph.stacked.add(int(shape[axis]))  # type: ignore[arg-type]
    return reshape(made, (*shape[:axis], BATCH * int(shape[axis]), *shape[axis + 2:]))  # type: ignore[arg-type]


def reverse(value: Value, axes: Sequence[int]) -> Value:
    """The last element first along axes."""
    places = sorted(i for i in axes if _static(value, i) != 1)
    if not places:
        return value
    if value.constant is not None:
        return value.graph.repeated(np.flip(value.constant, tuple(places)), value.shape, value.dtype)
    return value.graph.operation("reverse", (value,), f"graph.reverse {{0}} over {places}", value.shape, value.dtype)


def iota(graph: Graph, shape: Shape, axis: int, dtype: str) -> Value:
    """0, 1, 2 ... along an axis. Along a batch axis they are the places in the batch, times a factor."""
    size = shape[axis]
    if not isinstance(size, Batch):
        return broadcast(graph.constant(np.arange(size), dtype), shape, (axis,))
    line = graph.tensor("iota", (), "mt.iota dim = 0 : {t}", (BATCH,), "i32")
    if size.times in graph.stacked:  # it will be used beside such a value
        outer = graph.constant(np.arange(size.times)[:, None], "i32") * graph.count(BATCH, "i32")
        line = reshape(outer + expand_dims(line, (0,)), (size,))
    elif size.times != 1:
        inner = graph.constant(np.arange(size.times), "i32")
        line = expand_dims(line, (1,)) * size.times + expand_dims(inner, (0,))
        line = reshape(line, (size,))
    return broadcast(e.cast(line, dtype), shape, (axis,))


def indices(like: Value, axis: int) -> Value:
    """0, 1, 2 ... along an axis of a value's shape."""
    return iota(like.graph, like.shape, axis % like.rank, "i32")


def one_hot(ids: Value, depth: int, dtype: str = "f32") -> Value:
    """1 at the place of the id along a new last axis, else 0."""
    if depth == 1 or ids.constant is not None:
        line = ids.graph.constant(np.arange(depth), "i32")
        return e.cast(e.compare("eq", expand_dims(ids, (ids.rank,)), line), dtype)
    made = ids.graph.operation("one_hot", (ids,), "graph.one_hot {0}", (*ids.shape, depth), "f32")
    return e.cast(made, dtype)


def take(value: Value, ids: Value, axis: int = 0) -> Value:
    """Slices by index along an axis, whose place the axes of `ids` take; ids out of range are clamped.

    The value is a table, without the batch, and the ids are any; or the ids are the same for all samples; or both have
    the batch as their first axis, which the result has once: each sample has ids of its own.
    """
    axis %= value.rank
    size = _static(value, axis)
    own = axis > 0 and value.shape[0] == BATCH and ids.rank > 0 and ids.shape[0] == BATCH
    lead = ids.shape[1:] if own else ids.shape
    shape = (*value.shape[:axis], *lead, *value.shape[axis + 1:])
    if ids.array is not None:
        places = np.clip(ids.array, 0, size - 1)
        if value.array is not None:
            return value.graph.constant(np.take(value.array, places, axis), value.dtype)
        if places.size == 1:
            first = int(places.reshape(-1)[0])
            return reshape(part(value, axis, first, first + 1), shape)
        ids = value.graph.constant(places, "i32")
    return value.graph.operation("take", (value, ids), f"graph.take {{0}}, {{1}} dim = {axis}", shape, value.dtype)


def take_along(value: Value, ids: Value, axis: int) -> Value:
    """Elements by ids along an axis, where every line of the value has ids of its own; ids out of range are clamped."""
    axis %= value.rank
    _static(value, axis)
    if value.array is not None and ids.array is not None:
        places = np.clip(ids.array, 0, value.array.shape[axis] - 1)
        return value.graph.constant(np.take_along_axis(value.array, places, axis), value.dtype)
    shape = (*value.shape[:axis], ids.shape[axis], *value.shape[axis + 1:])
    return value.graph.operation("take_along", (value, ids), f"graph.take_along {{0}}, {{1}} dim = {axis}", shape,
                                 value.dtype)


def scatter_rows(rows: int, ids: Value, updates: Value) -> Value:
    """Sums of samples by id, over the batch: [rows, D...] of ids [I...] and updates [I..., D...], with the batch in I.

    Row v is the sum of the updates whose id is v; ids out of range are clamped.
    """
    if updates.shape[:ids.rank] != ids.shape or not has_batch(ids.shape):
        raise Refused("an update by ids that are not of the samples")
    return updates.graph.operation("scatter_rows", (ids, updates), "graph.scatter_rows {0}, {1}",
                                   (rows, *updates.shape[ids.rank:]), "f32")
