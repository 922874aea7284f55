# SPDX-License-Identifier: Apache-2.0
"""ATen operations that look rows up by numbers, and that add to rows."""

from __future__ import annotations

from typing import Any, Sequence

import numpy as np

from mtc._trace import BATCH, Batch, Refused, Value, layout, moves, reductions
from mtc._trace import elementwise as e
from mtc._trace.values import Operand
from mtc.torch._convert import Converter
from mtc.torch._handlers import op
from mtc.torch._known import Known, is_numbers, product, within_samples
from mtc.torch._places import known, scattered, taken_of_own, to_own


@op("embedding")
def embedding(c: Converter, table: Any, ids: Any, padding: int = -1, by_frequency: bool = False, *_: Any) -> Value:
    weights = c.value(table)
    if by_frequency:
        raise Refused("gradients that are scaled by the frequency of an id")
    own = within_samples(ids, weights.shape[0]) if padding is None or padding < 0 else None
    if own is not None:
        return _of_own(c, weights, 0, own)
    places = c.value(ids)
    rows = moves.take(weights, places)
    if padding is None or padding < 0 or (places.constant is not None and not (places.constant == padding).any()):
        return rows
    there = layout.expand_dims(e.compare("eq", places, padding), (len(places.shape),))
    return e.select(there, c.graph.stop_gradient(rows), rows)  # the row of the padding has no gradient


@op("embedding_bag")
def embedding_bag(c: Converter, table: Any, ids: Any, starts: Any, by_frequency: bool = False, mode: int = 0,
                  sparse: bool = False, weights: Any = None, with_end: bool = False, padding: Any = None) -> Any:
    """Sums, means or maxima of rows. The bags of a matrix of ids are its lines, which PyTorch lays end to end."""
    places = c.value(ids)
    count = places.shape[0].times if isinstance(places.shape[0], Batch) else 0
    same = isinstance(starts, Known) and is_numbers(starts, count)
    if by_frequency or with_end or not same:
        raise Refused("an embedding bag other than of a matrix with the ids of a sample in each line")
    bags = layout.reshape(places, (BATCH, count))
    rows = moves.take(c.value(table), bags)
    number: Operand = count
    if weights is not None:
        rows = rows * layout.reshape(c.value(weights), (BATCH, count, 1))
    if padding is not None and padding >= 0:
        if mode == 2:
            raise Refused("maxima of an embedding bag with padding")
        there = e.compare("ne", bags, padding)
        rows = e.select(layout.expand_dims(there, (2,)), rows, e.as_value(rows, 0.0))
        found = reductions.reduce("sum", e.cast(there, "f32"), (1,))
        number = layout.expand_dims(e.binary("maximum", found, 1.0), (1,))
    made = reductions.reduce("max" if mode == 2 else "sum", rows, (1,))
    return [made / number if mode == 1 else made, None, None, None]


@op("index_select")
def index_select(c: Converter, value: Any, dim: int, ids: Any) -> Value:
    x = c.value(value)
    if x.shape and (own := within_samples(ids, x.shape[dim % len(x.shape)])) is not None:
        return _of_own(c, x, dim % len(x.shape), own)
    places = c.value(ids)
    if not x.shape:
        return x if not places.shape else layout.broadcast(x, c.shape())
    return moves.take(x, _from_start(c, places, x.shape[dim % len(x.shape)]), dim)


@op("index")
def index(c: Converter, value: Any, places: Sequence[Any]) -> Value:
    x = c.value(value)
    if any((isinstance(p, Value) and p.dtype == "i1") or (isinstance(p, Known) and p.tensor.dtype.itemsize == 1)
           for p in places if p is not None):
        raise Refused("as many elements as a mask is true for, which the data says")
    given = [(i, p) for i, p in enumerate(places) if p is not None]
    if len(given) > 1 and given[0][0] == 0 and _is_each_sample(given[0][1]) and x.shape[0] == BATCH:
        return layout.reshape(_of_each_sample(c, x, given[1:]), c.shape())
    if len(given) == 1 and (own := within_samples(given[0][1], x.shape[given[0][0]])) is not None:
        return _of_own(c, x, given[0][0], own)
    if len(given) > 1:
        if any(not isinstance(p, Known) for _, p in given) or [i for i, _ in given] != list(
                range(given[0][0], given[0][0] + len(given))):
            raise Refused("a lookup by several lists of places")
        x, ids = _joined(c, x, given)
    else:
        ids = _from_start(c, given[0][1], x.shape[given[0][0]])
    return moves.take(x, ids, given[0][0])


def _of_own(c: Converter, x: Value, axis: int, places: Any) -> Value:
    """Lookups along an axis that has a part for each sample, such as the atoms of molecules, at places in this part."""
    parts = layout.reshape(x, (*x.shape[:axis], BATCH, x.shape[axis].times, *x.shape[axis + 1:]))  # type: ignore
    return layout.reshape(moves.take(parts, c.graph.constant(places, "i32"), axis + 1), c.shape())


def _from_start(c: Converter, places: Any, size: Any) -> Value:
    """Places in an axis of this size, where those that are known may count from its end."""
    ids = c.value(places)
    if ids.array is None or isinstance(size, Batch) or (ids.array >= 0).all():
        return ids
    return c.graph.constant(np.where(ids.array < 0, ids.array + size, ids.array))


def _is_each_sample(places: Any) -> bool:
    """Whether they are 0, 1, 2 ... along the batch."""
    return isinstance(places, Known) and places.shape.count(BATCH) == 1 and is_numbers(places)


def _of_each_sample(c: Converter, x: Value, given: Sequence[tuple[int, Any]]) -> Value:
    """x[sample, ids]: a lookup within each sample."""
    if len(given) != 1 or given[0][0] != 1:
        raise Refused("a lookup by several lists of places in each sample")
    ids = _from_start(c, given[0][1], x.shape[1])
    if ids.array is not None:
        return moves.take(x, ids, 1)
    return take_in_samples(x, ids, 1)


def take_in_samples(x: Value, ids: Value, axis: int) -> Value:
    """Slices of each sample by ids [BATCH, ...] of its own, along an axis; the axes of the ids take its place."""
    return moves.take(x, layout.broadcast(ids, (BATCH, *ids.shape[1:])), axis)


def _joined(c: Converter, x: Value, given: Sequence[tuple[int, Any]]) -> tuple[Value, Value]:
    """Neighbouring axes as one, and places in it."""
    first, last = given[0][0], given[-1][0]
    sizes = x.shape[first:last + 1]
    if any(isinstance(n, Batch) for n in sizes):
        raise Refused("a lookup among the samples")
    whole: Any = 0
    for size, (_, places) in zip(sizes, given):
        whole = whole * size + places.tensor % size
    total = product(sizes)
    return layout.reshape(x, (*x.shape[:first], total, *x.shape[last + 1:])), c.graph.constant(whole.numpy())


@op("gather")
def gather(c: Converter, value: Any, dim: int, ids: Any, *_: Any) -> Value:
    """Elements of each line by their places in it, whatever else is in the line: infinities too."""
    x = c.value(value)
    if not x.shape:
        return layout.broadcast(x, c.shape())
    axis = dim % len(x.shape)
    own = within_samples(ids, x.shape[0]) if axis == 0 else None
    if own is not None:
        return layout.reshape(taken_of_own(x, own), c.shape())
    places = c.value(ids)
    size = x.shape[axis]
    same = all(a == b for i, (a, b) in enumerate(zip(x.shape, places.shape)) if i != axis)
    if not same or isinstance(size, Batch):
        raise Refused("a gather of some of the lines, or of samples")
    if places.shape[axis] != 1:
        return moves.take_along(x, places, axis)
    lines = layout.move_axis(e.cast(x, "f32"), axis, -1)
    found = reductions.pick(lines, layout.squeeze(places, (axis,)))
    return e.cast(layout.expand_dims(found, (axis,)), x.dtype)


@op("index_add")
def index_add(c: Converter, value: Any, dim: int, ids: Any, source: Any, alpha: Any = 1) -> Value:
    """Samples that are added to rows of a table. With the places 0, 1, ... of the batch these are all samples."""
    x = c.value(value)
    if not x.shape:
        new = e.cast(c.value(source), x.dtype) * alpha
        return x + reductions.reduce("sum", new, range(len(new.shape)))
    own = within_samples(ids, x.shape[0]) if dim % len(x.shape) == 0 else None
    if own is not None and own.ndim == 1:
        return to_own(x, own, e.cast(c.value(source), x.dtype) * alpha, "sum")
    places = c.value(ids)
    if dim % len(x.shape) != 0 or not isinstance(x.shape[0], int):
        raise Refused("samples that are added to another axis than the first one of a table")
    new = e.cast(c.value(source), "f32") * alpha
    return x + moves.scatter_rows(x.shape[0], places, new)


def _last_of_each(at: Value, given: Value) -> Value:
    """Elements without those whose place a later one has too. PyTorch's gradient goes to them all."""
    rank, count = at.rank, int(at.shape[-1])  # type: ignore[arg-type]
    same = e.compare("eq", layout.expand_dims(at, (rank - 1,)), layout.expand_dims(at, (rank,)))
    later = at.graph.constant(np.triu(np.ones((count, count), bool), 1))
    lost = layout.expand_dims(reductions.reduce_logic(False, same & later, [rank]), (rank,))
    nothing = e.as_value(given, 0)
    slope = e.binary("sub", given, at.graph.stop_gradient(given)) if given.learned else nothing
    return e.select(lost, slope, given)


@op("scatter", "scatter_add")
def scatter(c: Converter, value: Any, dim: int, ids: Any, source: Any, reduction: Any = None, *_: Any) -> Value:
    """Elements of each line are replaced, or added to, at their places in it."""
    x = c.value(value)
    add = c.name() == "scatter_add"
    own = within_samples(ids, x.shape[0]) if x.shape and dim % len(x.shape) == 0 else None
    if own is not None and (reduction is not None or add or isinstance(source, Value)):
        return to_own(x, own, c.value(source, x), {None: "sum" if add else "set", "add": "sum", "multiply": "prod"}[
            reduction])
    if isinstance(ids, Known) and (not x.shape or known(ids, int(x.shape[0] == BATCH)) is not None):
        how = {None: "sum" if add else "set", "add": "sum", "multiply": "prod"}[reduction]
        return scattered(c, x, dim, ids, source, how)
    places = c.value(ids)
    axis, rank = dim % max(len(x.shape), 1), len(x.shape)
    number = isinstance(source, (int, float))
    if not rank or isinstance(x.shape[axis], Batch) or isinstance(places.shape[axis], Batch):
        raise Refused(f"a {c.name()} among the samples")
    if any(a != b for i, (a, b) in enumerate(zip(x.shape, places.shape)) if i != axis):
        raise Refused(f"a {c.name()} to some of the lines")
    if reduction is not None:
        raise Refused("a scatter with reduce= to places that the data say: see scatter_add and scatter_reduce")
    lines, at = (layout.move_axis(v, axis, -1) for v in (x, places))
    line = c.graph.constant(np.arange(product([x.shape[axis]])), "i32")
    hot = e.compare("eq", layout.expand_dims(at, (rank,)), line)  # [..., places, elements]
    if number:
        made = e.select(reductions.reduce_logic(False, hot, [rank - 1]), e.as_value(lines, source), lines)
    else:
        given = c.value(source)
        if given.shape != places.shape:  # the rest of it is not used
            ends = [n if isinstance(n, int) else None for n in places.shape]
            given = moves.slice_(given, [0] * rank, ends, [1] * rank)
        given = layout.expand_dims(layout.move_axis(e.cast(given, x.dtype), axis, -1), (rank,))
        one = add or places.shape[axis] == 1
        elements = given if one else _last_of_each(at, given)
        new = reductions.reduce("sum", e.select(hot, elements, e.as_value(elements, 0)), [rank - 1])
        there = reductions.reduce_logic(False, hot, [rank - 1])
        made = lines + new if add else e.select(there, new, lines)
    return layout.move_axis(made, -1, axis)
