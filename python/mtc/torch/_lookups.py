# SPDX-License-Identifier: Apache-2.0
"""ATen operations that look rows up by numbers, and that add to rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from mtc._trace import BATCH, Batch, Refused, Value, gradients, layout, moves, reductions
from mtc._trace import elementwise as e
from mtc._trace.values import Operand
from mtc.torch._convert import Converter
from mtc.torch._handlers import op
from mtc.torch._known import Known, is_numbers, product, within_samples
from mtc.torch._places import NEUTRAL, added_along, known, scattered, taken_of_own, to_own


@op("embedding")
def embedding(c: Converter, table: Any, ids: Any, padding: int = -1, by_frequency: bool = False, *_: Any) -> Value:
    weights = c.value(table)
    if by_frequency:
        raise Refused("gradients that are scaled by the frequency of an id")
    own = within_samples(ids, weights.shape[0]) if padding is None or padding < 0 else None
    if own is not None:
        return of_own(c, weights, 0, own)
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
        return of_own(c, x, dim % len(x.shape), own)
    places = c.value(ids)
    if not x.shape:
        return x if not places.shape else layout.broadcast(x, c.shape())
    return moves.take(x, from_start(c, places, x.shape[dim % len(x.shape)]), dim)


def of_own(c: Converter, x: Value, axis: int, places: Any) -> Value:
    """Lookups along an axis that has a part for each sample, such as the atoms of molecules, at places in this part."""
    parts = layout.reshape(x, (*x.shape[:axis], BATCH, x.shape[axis].times, *x.shape[axis + 1:]))  # type: ignore
    return layout.reshape(moves.take(parts, c.graph.constant(places, "i32"), axis + 1), c.shape())


def from_start(c: Converter, places: Any, size: Any) -> Value:
    """Places in an axis of this size, where those that are known may count from its end."""
    ids = c.value(places)
    if ids.array is None or isinstance(size, Batch) or (ids.array >= 0).all():
        return ids
    return c.graph.constant(np.where(ids.array < 0, ids.array + size, ids.array))


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
    if known(ids) is not None and (dim % x.rank or isinstance(x.shape[0], Batch)):
        return added_along(c, x, dim, ids, e.cast(c.value(source), x.dtype) * alpha)
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
    if number:
        made = e.select(reductions.reduce_logic(False, _hot(lines, at), [rank - 1]), e.as_value(lines, source), lines)
    else:
        new = layout.move_axis(_used(e.cast(c.value(source), x.dtype), places), axis, -1)
        made = placed(lines, at, new, add)
    return layout.move_axis(made, -1, axis)


def _hot(lines: Value, at: Value) -> Value:
    """Which elements of each line the places are: [..., places, elements]."""
    line = lines.graph.constant(np.arange(product([lines.shape[-1]])), "i32")
    return e.compare("eq", layout.expand_dims(at, (at.rank,)), line)


def _used(given: Value, places: Value) -> Value:
    """The part of a source that has places."""
    ends = [n if isinstance(n, int) else None for n in places.shape]
    return moves.slice_(given, [0] * given.rank, ends, [1] * given.rank)


def placed(lines: Value, at: Value, given: Value, add: bool) -> Value:
    """Lines [..., n] with `given` [..., places] at places in them: of equal ones the last, or all added."""
    rank, hot = lines.rank, _hot(lines, at)
    elements = layout.expand_dims(given, (rank,))
    if not add and at.shape[-1] != 1:
        elements = _last_of_each(at, elements)
    new = reductions.reduce("sum", e.select(hot, elements, e.as_value(elements, 0)), [rank - 1])
    return lines + new if add else e.select(reductions.reduce_logic(False, hot, [rank - 1]), new, lines)


@op("scatter_reduce")
def scatter_reduce(c: Converter, value: Any, dim: int, ids: Any, source: Any, reduce: str,
                   include_self: bool = True) -> Value:
    """Each element combined with all that has its place. The gradient of equal extrema is divided among them."""
    x = c.value(value)
    own = within_samples(ids, x.shape[0]) if x.shape and dim % x.rank == 0 else None
    if own is not None:
        return to_own(x, own, c.value(source, x), reduce, include_self)
    if isinstance(ids, Known) and (not x.shape or known(ids, int(x.shape[0] == BATCH)) is not None):
        return scattered(c, x, dim, ids, source, reduce, include_self)
    places, axis = c.value(ids), dim % max(x.rank, 1)
    if not x.rank or isinstance(x.shape[axis], Batch) or isinstance(places.shape[axis], Batch):
        raise Refused("a scatter_reduce among the samples")
    if any(a != b for i, (a, b) in enumerate(zip(x.shape, places.shape)) if i != axis):
        raise Refused("a scatter_reduce to some of the lines")
    lines, at, given = (layout.move_axis(v, axis, -1)
                        for v in (x, places, _used(e.cast(c.value(source), x.dtype), places)))
    hot = _hot(lines, at)
    there = reductions.reduce_logic(False, hot, [x.rank - 1])
    own = lines if include_self else e.select(there, e.as_value(lines, NEUTRAL[reduce]), lines)
    parts = e.select(hot, layout.expand_dims(given, (x.rank,)), e.as_value(given, NEUTRAL[reduce]))
    if reduce in ("sum", "mean"):
        made = own + reductions.reduce("sum", parts, [x.rank - 1])
        count = reductions.reduce("sum", e.cast(hot, "f32"), [x.rank - 1])
        count = count + 1.0 if include_self else e.binary("maximum", count, 1.0)
        made = made / count if reduce == "mean" else made
    else:
        both = moves.concat([layout.expand_dims(own, (x.rank - 1,)), parts], x.rank - 1)
        made = (reductions.product(both, [x.rank - 1]) if reduce == "prod"
                else _of_equal(reductions.reduce(reduce[1:], both, [x.rank - 1]), both, lines))
    return layout.move_axis(made, -1, axis)


def _of_equal(found: Value, parts: Value, before: Value) -> Value:
    """The extremum of parts along the axis before the last; what was there before counts as one of them, as in PyTorch,
    also where it is replaced."""
    best = found.graph.stop_gradient(found)
    axis = parts.rank - 2
    hit = e.compare("eq", parts, layout.expand_dims(best, (axis,)))
    others = reductions.reduce("sum", e.cast(moves.part(hit, axis, 1, None), "f32"), [axis])
    count = others + e.cast(e.compare("eq", before, best), "f32")
    total = reductions.reduce("sum", e.select(hit, parts, e.as_value(parts, 0.0)), [axis])
    return gradients.following(best, e.binary("div", total, count))
