# SPDX-License-Identifier: Apache-2.0
"""ATen operations that read or replace elements at places that are known when the module is compiled.

Such an operation is a lookup in what is there before, followed by what is new: each place takes the last element that
goes to it, or a sum or another function of all of them.
"""

from __future__ import annotations

import functools
from typing import Any, Optional, Sequence

import numpy as np

from mtc._trace import BATCH, Batch, Refused, Value, gradients, layout, moves, reals, reductions
from mtc._trace import elementwise as e
from mtc._trace.values import elements
from mtc.torch import _known
from mtc.torch._convert import Converter
from mtc.torch._handlers import op
from mtc.torch._known import Known, product, within_samples

MOST_TO_A_PLACE = 64  # elements, which are combined one after the other
add = functools.partial(e.binary, "add")
NEUTRAL = {"sum": 0.0, "mean": 0.0, "prod": 1.0, "amax": -np.inf, "amin": np.inf}
COMBINE = {"sum": "add", "mean": "add", "prod": "mul", "amax": "maximum", "amin": "minimum"}


def put(x: Value, places: Any, source: Value, how: str = "set", with_own: bool = True) -> Value:
    """x with elements of the source at places: numbers of elements of x, or of a sample of it if x has a batch first.

    `places` is an array of the shape of the source, but for the batch, which the source need not have. `how`: "set",
    or how all that goes to a place is combined, with what is there before if `with_own`.
    """
    places = np.asarray(places)
    batch: tuple[Any, ...] = (BATCH,) if x.rank and x.shape[0] == BATCH else ()
    if any(isinstance(n, Batch) for n in x.shape[len(batch):]):
        raise Refused("elements that are replaced among the samples")
    size, count = product([int(n) for n in x.shape[len(batch):]]), places.size  # type: ignore[arg-type]
    lines = layout.reshape(x, (*batch, size))
    new = layout.reshape(layout.broadcast(source, (*batch, *places.shape)), (*batch, count))
    new, flat = e.cast(new, x.dtype), places.reshape(-1)
    if how == "set":
        if source.learned and len(np.unique(flat)) != count:
            raise Refused("several elements that replace one, of which PyTorch's gradient counts all")
        last = np.arange(size)
        last[flat] = size + np.arange(count)  # of equal places the last one counts, as in PyTorch on CPUs
        made = _taken(moves.concat([lines, new], len(batch)), last, len(batch))
        return layout.reshape(made, x.shape)
    order = np.argsort(flat, kind="stable")
    sorted_places = flat[order]
    turns = np.arange(count) - np.searchsorted(sorted_places, sorted_places)
    if count and turns.max() >= MOST_TO_A_PLACE:
        raise Refused(f"{turns.max() + 1} elements that go to one place; {MOST_TO_A_PLACE} can")
    found = np.bincount(flat, minlength=size)
    neutral = e.as_value(lines, NEUTRAL[how])
    own = lines
    if not with_own and found.any():
        own = e.select(lines.graph.constant(found > 0), layout.broadcast(neutral, lines.shape), lines)
    padded = moves.concat([new, layout.broadcast(neutral, (*batch, 1))], len(batch))
    parts = [own]
    for turn in range(int(turns.max()) + 1 if count else 0):
        at = np.full(size, count)
        at[sorted_places[turns == turn]] = order[turns == turn]
        parts.append(_taken(padded, at, len(batch)))
        own = e.binary(COMBINE[how], own, parts[-1])
    if how in ("amax", "amin"):
        own = _shared(own, parts, lines)
    if how == "mean":
        own = own / lines.graph.constant(np.maximum(found + with_own, 1).astype(reals.real()))
    return layout.reshape(own, x.shape)


def _numbers_of_own(x: Value, places: Any) -> Any:
    """The numbers in a sample of the elements of x, whose first axis has a part for each sample, at places in it."""
    if any(isinstance(n, Batch) for n in x.shape[1:]):
        raise Refused("places among the samples")
    shape: Any = (x.shape[0].times, *x.shape[1:])  # type: ignore[union-attr]
    index = list(np.indices(places.shape))
    index[0] = places
    return np.arange(product(shape)).reshape(shape)[tuple(index)]


def taken_of_own(x: Value, places: Any) -> Value:
    """Elements of x along its first axis, which has a part for each sample, by places in it."""
    numbers = _numbers_of_own(x, places)
    return _taken(layout.reshape(x, (BATCH, product((x.shape[0].times, *x.shape[1:])))), numbers, 1)  # type: ignore


def to_own(x: Value, places: Any, source: Value, how: str, with_own: bool = True) -> Value:
    """x, whose first axis has a part for each sample, with slices of the source at places in this part.

    `places`: [n], of the n slices that each sample has in the source; or [n, ...], of as many of their elements.
    """
    if places.ndim == 1:
        places = np.broadcast_to(places.reshape(-1, *[1] * (x.rank - 1)), (len(places), *x.shape[1:]))  # type: ignore
    if not source.rank or not isinstance(source.shape[0], Batch):
        source = layout.broadcast(source, (Batch(len(places)), *x.shape[1:]))
    if any(isinstance(n, Batch) for n in source.shape[1:]):
        raise Refused("elements that are replaced among the samples")
    rest = [int(n) for n in source.shape[1:]]  # type: ignore[arg-type]
    parts = layout.reshape(source, (BATCH, len(places), *rest))
    if list(places.shape[1:]) != rest:  # the rest of it is not used
        parts = moves.slice_(parts, [0] * parts.rank, [None, *places.shape], [1] * parts.rank)
    count = x.shape[0].times  # type: ignore[union-attr]
    if how == "sum" and count == 1 and places.shape[1:] == x.shape[1:]:
        total = reductions.reduce("sum", parts, (1,))
        return x + total if with_own else total
    numbers = _numbers_of_own(x, places)
    made = put(layout.reshape(x, (BATCH, count, *x.shape[1:])), numbers, parts, how, with_own)
    return layout.reshape(made, x.shape)


def _shared(found: Value, parts: Sequence[Value], before: Value) -> Value:
    """The largest or smallest of parts, of which equal ones have equal gradients.

    What was there before counts as one of them, as in PyTorch, also where it is replaced and has no gradient.
    """
    if not found.learned:
        return found
    best = found.graph.stop_gradient(found)
    hits = [e.compare("eq", part, best) for part in parts]
    counted = [e.cast(hit, "f32") for hit in (e.compare("eq", before, best), *hits[1:])]
    total = functools.reduce(add, (e.select(hit, part, 0.0) for hit, part in zip(hits, parts)))
    return gradients.following(best, e.binary("div", total, functools.reduce(add, counted)))


def _taken(value: Value, places: Any, axis: int) -> Value:
    return moves.take(value, value.graph.constant(places.astype("i4")), axis)


def numbers_of(x: Value) -> tuple[Any, int]:
    """The numbers of the elements of x, or of a sample of it, in its shape; and how many axes the batch is."""
    shape = x.shape[1:] if x.rank and x.shape[0] == BATCH else x.shape
    if any(isinstance(n, Batch) for n in shape):
        raise Refused("places among the samples")
    sizes = [int(n) for n in shape]  # type: ignore[arg-type]
    return np.arange(product(sizes)).reshape(sizes), len(x.shape) - len(shape)


def known(given: Any, skipped: int = 0) -> Optional[Any]:
    """An array of what PyTorch knows; along a batch, which is its first axis if `skipped`, all elements are equal."""
    if not isinstance(given, Known):
        return None
    if not any(isinstance(n, Batch) for n in given.shape):
        return given.tensor.numpy()
    return _known.of_each(given) if skipped else None


@op("masked_scatter")
def masked_scatter(c: Converter, value: Any, mask: Any, source: Any) -> Value:
    x, given = layout.broadcast(c.value(value), c.shape()), c.value(source)
    numbers, skipped = numbers_of(x)
    array = known(mask, skipped)
    if array is None:
        raise Refused("as many elements as a mask is true for, which the data says")
    places = numbers[np.broadcast_to(array, numbers.shape)]
    if skipped:
        if elements(given.shape) != elements((BATCH, len(places))):
            raise Refused("a source of another number of elements than a mask is true for in the samples of a batch")
        return put(x, places, layout.reshape(given, (BATCH, len(places))))
    line = layout.reshape(given, (product([int(n) for n in given.shape]),))  # type: ignore[arg-type]
    return put(x, places, moves.slice_(line, [0], [len(places)], [1]))


@op("index_copy", "index_fill", "index_reduce")
def along(c: Converter, value: Any, dim: int, ids: Any, source: Any, reduce: str = "set",
          include_self: bool = True) -> Value:
    """Slices along an axis at known places."""
    x = c.value(value)
    x = x if x.shape else layout.reshape(x, (1,))
    own = within_samples(ids, x.shape[0]) if dim % len(x.shape) == 0 else None
    if own is not None and own.ndim == 1 and c.name() != "index_reduce":
        return to_own(x, own, c.value(source, x), "set")
    how = {"set": "set", "prod": "prod", "mean": "mean", "amax": "amax", "amin": "amin"}[reduce]
    return _along(c, x, dim, ids, c.value(source, x), how, include_self)


def added_along(c: Converter, x: Value, dim: int, ids: Any, source: Value) -> Value:
    """`index_add` at known places."""
    return _along(c, x, dim, ids, source, "sum", True)


def _along(c: Converter, x: Value, dim: int, ids: Any, given: Value, how: str, with_own: bool) -> Value:
    numbers, skipped = numbers_of(x)
    axis, array = dim % len(x.shape) - skipped, known(ids)
    if array is None or axis < 0:
        raise Refused(f"{c.name()}: places that depend on the data, or samples")
    places = np.take(numbers, array.reshape(-1), axis)
    if c.name() != "index_fill":
        given = layout.reshape(given, (*(given.shape[:1] if skipped and given.shape[0] == BATCH else ()),
                                       *places.shape))
    return layout.reshape(put(x, places, given, how, with_own), c.shape())


def scattered(c: Converter, x: Value, dim: int, ids: Any, source: Any, how: str, with_own: bool = True) -> Value:
    """`scatter` and its kin with known places; None where they are not known."""
    numbers, skipped = numbers_of(x)
    array = known(ids, skipped)
    axis = dim % max(x.rank, 1) - skipped
    if array is None or axis < 0:
        raise Refused(f"{c.name()}: places that depend on the data, or samples")
    if not x.rank:
        return layout.reshape(put(layout.reshape(x, (1,)), np.zeros(1, "i8"), layout.reshape(
            c.value(source, x), (1,)), how, with_own), ())
    index = list(np.indices(array.shape))
    index[axis] = array
    given = c.value(source, x)
    if given.shape and given.shape[skipped:] != array.shape:  # the rest of it is not used
        ends: list[Any] = [None] * (given.rank - array.ndim) + list(array.shape)
        given = moves.slice_(given, [0] * given.rank, ends, [1] * given.rank)
    return put(x, numbers[tuple(index)], given, how, with_own)


@op("diagonal_scatter")
def diagonal_scatter(c: Converter, value: Any, source: Any, offset: int = 0, first: int = 0, second: int = 1) -> Value:
    x = c.value(value)
    numbers, skipped = numbers_of(x)
    axes = [axis % x.rank - skipped for axis in (first, second)]
    if min(axes) < 0:
        raise Refused("a diagonal among the samples")
    return put(x, np.diagonal(numbers, offset, *axes), c.value(source))


def _strided(sizes: Sequence[int], strides: Sequence[int], offset: int) -> Any:
    places = np.full(tuple(sizes), int(offset or 0))
    for i, (size, stride) in enumerate(zip(sizes, strides)):
        places += (np.arange(size) * stride).reshape([-1 if k == i else 1 for k in range(len(sizes))])
    return places


@op("as_strided")
def as_strided(c: Converter, value: Any, sizes: Sequence[int], strides: Sequence[int], offset: Any = None) -> Value:
    x = c.value(value)
    numbers, skipped = numbers_of(x)
    if skipped or any(isinstance(n, Batch) for n in (*sizes, *strides)) or not c.is_contiguous():
        raise Refused("as_strided of samples: use slices, unfold and transpose")
    flat = layout.reshape(x, (numbers.size,))
    return _taken(flat, _strided(sizes, strides, offset), 0)


@op("put")
def put_(c: Converter, value: Any, ids: Any, source: Any, accumulate: bool = False) -> Value:
    x, array = c.value(value), known(ids)
    numbers, skipped = numbers_of(x)
    if array is None or skipped:
        raise Refused("put: places that depend on the data, or samples")
    places = array % numbers.size
    return put(x, places, layout.reshape(c.value(source), places.shape), "sum" if accumulate else "set")


@op("take")
def take(c: Converter, value: Any, ids: Any) -> Value:
    x, array = c.value(value), known(ids)
    numbers, skipped = numbers_of(x)
    if array is None or skipped:
        raise Refused("take: places that depend on the data, or samples: use gather")
    return _taken(layout.reshape(x, (numbers.size,)), array % numbers.size, 0)


@op("unfold", "unfold_copy")
def unfold(c: Converter, value: Any, dim: int, size: int, step: int) -> Value:
    """Windows along an axis, which become the last one."""
    x = c.value(value)
    if not x.shape:
        return layout.broadcast(x, c.shape())
    axis = dim % x.rank
    if isinstance(x.shape[axis], Batch):
        raise Refused("windows over the samples of the batch")
    count = (int(x.shape[axis]) - size) // step + 1  # type: ignore[arg-type]
    places = np.arange(count)[:, None] * step + np.arange(size)
    made = moves.take(x, x.graph.constant(places.astype("i4")), axis)  # [..., count, size, ...]
    return layout.transpose(made, [i for i in range(made.rank) if i != axis + 1] + [axis + 1])
