# SPDX-License-Identifier: Apache-2.0
"""x[...] and x[...] = y with tensors of places.

The tensors are broadcast against each other, and each says the place along one axis. A tensor that counts the samples,
torch.arange(len(x)), means that each sample has places of its own.
"""

from __future__ import annotations

from typing import Any, Optional, Sequence

from mtc._trace import Batch, Refused, Value, integers, layout, lookups, moves
from mtc._trace import elementwise as e
from mtc._trace.indices import FILL, PROMISED
from mtc.torch._convert import Converter
from mtc.torch._handlers import op
from mtc.torch._known import Known, product, within_samples
from mtc.torch._lookups import from_start, of_own, placed
from mtc.torch._places import known, numbers_of, put, to_own

Given = Sequence[tuple[int, Any]]  # axes with their places
_COUNT = "as many elements as a mask is true for, which the data says"


@op("index")
def index(c: Converter, value: Any, places: Sequence[Any]) -> Value:
    x, given = c.value(value), _given(places)
    if any(_is_mask(p) for _, p in given):
        raise Refused(_COUNT)
    if len(given) == 1:
        axis, ids = given[0]
        if (own := within_samples(ids, x.shape[axis])) is not None:
            return of_own(c, x, axis, own)
        return moves.take(x, from_start(c, ids, x.shape[axis]), axis)
    if not _is_one_list(x, given):
        return layout.reshape(lookups.gather(x, _form(c, x, given), PROMISED, None), c.shape())
    x, ids = _joined(c, x, given)
    return moves.take(x, ids, given[0][0])


@op("index_put")
def index_put(c: Converter, value: Any, places: Sequence[Any], source: Any, accumulate: bool = False) -> Value:
    x, given = c.value(value), _given(places)
    own = within_samples(given[0][1], x.shape[0]) if x.rank and [i for i, _ in given] == [0] else None
    if own is not None and own.ndim == 1:
        return to_own(x, own, e.cast(c.value(source, x), x.dtype), "sum" if accumulate else "set")
    at = _known_places(x, given)
    if at is not None:
        return put(x, at, c.value(source, x), "sum" if accumulate else "set")
    if any(_is_mask(p) for _, p in given):
        return _where(c, x, given, c.value(source, x), accumulate)
    form = _form(c, x, given)
    shape = tuple(form.columns[0].shape[i] if kind == "index" else x.shape[i] for kind, i in form.result())
    new = layout.broadcast(e.cast(c.value(source, x), x.dtype), shape)
    if accumulate:
        return lookups.add(x, form, FILL, new)
    form_shape = form.columns[0].shape
    if all(n == 1 for i, n in enumerate(form_shape) if i not in form.theirs):
        return lookups.replace(x, form, FILL, new)
    lined = lookups.Lined.of(x, form, FILL, new)
    first = lined.ids.rank - 1  # of the places, which become the last axis
    lines, elements = (layout.move_axis(v, first, -1) for v in (lined.lines, lined.new))
    ids = layout.broadcast(layout.expand_dims(lined.ids, range(first, lines.rank - 1)), elements.shape)
    return lined.array(layout.move_axis(placed(lines, ids, elements, False), -1, first))


def _given(places: Sequence[Any]) -> Given:
    return [(i, p) for i, p in enumerate(places) if p is not None]


def _is_mask(places: Any) -> bool:
    """Whether it is a tensor of booleans, or of bytes, which PyTorch takes for them."""
    return (isinstance(places, Value) and places.dtype == "i1") or (
        isinstance(places, Known) and places.tensor.dtype.itemsize == 1)


def _where(c: Converter, x: Value, given: Given, source: Value, add: bool) -> Value:
    """x[mask] = y, or + y, where y has no axis for the elements of the mask, whose number the data says."""
    mask = c.value(given[0][1])
    if len(given) > 1 or given[0][0] or mask.dtype != "i1" or source.rank > x.rank - mask.rank:
        raise Refused(_COUNT)
    mask = layout.broadcast(mask, x.shape, range(mask.rank))
    new = layout.broadcast(e.cast(source, x.dtype), x.shape)
    return e.select(mask, x + new if add else new, x)


def _is_one_list(x: Value, given: Given) -> bool:
    """Whether all places are known, along neighbouring axes that are not the samples."""
    axes = [i for i, _ in given]
    return (all(isinstance(p, Known) for _, p in given) and axes == list(range(axes[0], axes[0] + len(axes)))
            and not any(isinstance(x.shape[i], Batch) for i in axes))


def _joined(c: Converter, x: Value, given: Given) -> tuple[Value, Value]:
    """Neighbouring axes as one, and places in it."""
    first, last = given[0][0], given[-1][0]
    sizes = x.shape[first:last + 1]
    whole: Any = 0
    for size, (_, places) in zip(sizes, given):
        whole = whole * size + places.tensor % size
    return (layout.reshape(x, (*x.shape[:first], product(sizes), *x.shape[last + 1:])),
            c.graph.constant(whole.numpy()))


def _known_places(x: Value, given: Given) -> Optional[Any]:
    """The numbers of the elements x[given], if all places are known and none is a sample."""
    arrays = [known(p) for _, p in given]  # a mask for several axes takes the place of all
    if any(a is None for a in arrays) or any(isinstance(x.shape[i], Batch) for i, _ in given):
        return None
    numbers, skipped = numbers_of(x)
    at: list[Any] = [slice(None)] * numbers.ndim
    for (axis, _), array in zip(given, arrays):
        at[axis - skipped] = array
    return numbers[tuple(at)]


def _form(c: Converter, x: Value, given: Given) -> lookups.Form:
    """The lookup by places of which some depend on the data."""
    axes = [axis for axis, _ in given]
    columns = [_from_0(from_start(c, p, x.shape[axis]), x.shape[axis]) for axis, p in given]
    rank = max(column.rank for column in columns)
    whole: list[Any] = [1] * rank
    for column in columns:
        for i, n in enumerate(column.shape, rank - column.rank):
            whole[i] = n if whole[i] == 1 else whole[i]
    columns = [layout.broadcast(column, tuple(whole)) for column in columns]
    inner = [i for i in range(x.rank) if i not in axes]
    first = axes[0] if axes == list(range(axes[0], axes[0] + len(axes))) else 0
    outer = [i if i < first else i + rank for i in range(len(inner))]
    sizes = [1 if i in axes else n for i, n in enumerate(x.shape)]
    return lookups.Form([], [], axes, columns, sizes, inner, outer).counting(x.shape)


def _from_0(ids: Value, size: Any) -> Value:
    """Places of which those below 0 count from the end."""
    if isinstance(size, Batch) or integers.bounds(ids)[0] >= 0:
        return ids
    return e.select(e.compare("lt", ids, 0), ids + int(size), ids)
