# SPDX-License-Identifier: Apache-2.0
"""Lookups and updates at places that depend on the data, whatever their dimension numbers.

The axes of the array that are looked up along become one, and the indices along them one number, in row major order. A
part of several elements has a number for each of them. Samples have indices of their own (`mt.take`, `mt.index_add`),
or all of them read one table (`graph.take`, `graph.scatter_rows`).
"""

from __future__ import annotations

import dataclasses
from typing import Any, Optional, Sequence

import numpy as np

from mtc._trace import elementwise as e
from mtc._trace import integers, layout, moves, reductions
from mtc._trace.indices import CLIP, Places, filled, is_sample, joined, places, unwrapped
from mtc._trace.values import BATCH, Batch, Refused, Value, has_batch

MOST = 256  # of so large integers the sums of 2^16 are exact in f32
Label = tuple[str, int]  # an axis of the indices, or an axis of the array that the slices have too


@dataclasses.dataclass
class Form:
    """The dimension numbers of a lookup, or of an update, with the index along each axis.

    Attributes:
        batching: axes of the array whose places are those along the axes `theirs` of the indices.
        axes, columns: axes that have an index, and these.
        sizes: of the slices along each axis.
        inner: axes of the array that the slices have too.
        outer: the axes of these in the result.
    """

    batching: list[int]
    theirs: list[int]
    axes: list[int]
    columns: list[Value]
    sizes: Sequence[Any]
    inner: list[int]
    outer: Sequence[int]

    def counting(self, shape: Sequence[Any]) -> Form:
        """The same lookup, where an index that counts along an axis of the indices is an axis that they share with the
        array of this shape."""
        form = dataclasses.replace(self, batching=list(self.batching), theirs=list(self.theirs), axes=list(self.axes),
                                   columns=list(self.columns))
        for axis, column in zip(list(form.axes), list(form.columns)):
            shared = _counts_along(column, shape[axis], form.theirs)
            if len(form.axes) > 1 and axis not in form.inner and shared is not None:
                place = form.axes.index(axis)
                del form.axes[place], form.columns[place]
                form.batching.append(axis)
                form.theirs.append(shared)
        return form

    def result(self) -> list[Label]:
        """The axes of what is looked up."""
        inner = iter(("slice", i) for i in self.inner)
        rank = self.columns[0].rank + len(self.inner)
        others = iter(("index", i) for i in range(rank))
        return [next(inner) if i in self.outer else next(others) for i in range(rank)]


def columns_of(indices: Value) -> list[Value]:
    """The indices along each axis, which stand along the last axis."""
    return [moves.at(indices, -1, i) for i in range(int(indices.shape[-1]))]  # type: ignore[arg-type]


def _counts_along(column: Value, size: Any, taken: Sequence[int]) -> Optional[int]:
    """The axis along which a column is 0, 1, 2, ... of so many."""
    for axis, n in enumerate(column.shape):
        if n != size or axis in taken:
            continue
        if isinstance(n, Batch):
            if is_sample(column):
                return axis
            continue
        plain = unwrapped(column, size)
        constant = (column if plain is None else plain).constant
        line = [1] * column.rank
        line[axis] = n
        if constant is not None and constant.shape == tuple(line) and (constant.reshape(-1) == np.arange(n)).all():
            return axis
    return None


@dataclasses.dataclass
class _Numbers:
    """The axes of an array, and places in those that became one.

    Attributes:
        own: the axis of the array that is the batch, if each sample has places of its own.
        moved: the axes that become one, the place `at` among the others.
        rest: the others.
        found: the places, of the axes `labels`.
    """

    shape: Sequence[Any]
    own: list[int]
    moved: list[int]
    rest: list[int]
    found: Places
    labels: list[Label]

    @property
    def at(self) -> int:
        return sum(i < min(self.moved) for i in self.rest)

    @property
    def order(self) -> list[int]:
        return [*self.own, *self.rest[:self.at], *self.moved, *self.rest[self.at:]]

    @property
    def size(self) -> int:
        return int(np.prod([int(self.shape[i]) for i in self.moved]))

    @property
    def made(self) -> list[Label]:
        """The axes of what is taken of the lines."""
        rest = [("slice", i) for i in self.rest]
        own = self.labels[:len(self.own)]
        return [*own, *rest[:self.at], *self.labels[len(self.own):], *rest[self.at:]]

    def lines(self, array: Value) -> Value:
        sizes = [array.shape[i] for i in self.order if i not in self.moved]
        sizes.insert(len(self.own) + self.at, self.size)
        return layout.reshape(layout.transpose(array, self.order), tuple(sizes))

    def valid(self, shape: Sequence[Any], labels: Sequence[Label]) -> Places:
        """The places with what is in range for each element of a value of these axes."""
        valid = self.found.valid
        if valid is not None:
            valid = layout.broadcast(valid, tuple(shape), [labels.index(label) for label in self.labels])
        return dataclasses.replace(self.found, valid=valid)


def _numbered(shape: Sequence[Any], form: Form, mode: str, checked: bool) -> _Numbers:
    own = [i for i in form.batching if isinstance(shape[i], Batch)]
    if own and shape[own[0]] != BATCH or any(isinstance(shape[i], Batch) for i in form.axes):
        raise Refused("a lookup among the samples of a batch")
    moved = [*(i for i in form.batching if i not in own), *form.axes]
    rest = [i for i in range(len(shape)) if i not in own and i not in moved]
    if any(form.sizes[i] != shape[i] for i in rest):
        raise Refused("a lookup of parts of the slices")
    graph, rank = form.columns[0].graph, form.columns[0].rank
    windows = [i for i in form.axes if i in form.inner]
    if 0 in form.sizes or 0 in form.columns[0].shape or 0 in shape:
        raise Refused("a value without elements")
    whole = (*form.columns[0].shape, *(int(form.sizes[i]) for i in windows))
    labels: list[Label] = [*(("index", i) for i in range(rank)), *(("slice", i) for i in windows)]
    if not own and has_batch(whole) and has_batch([shape[i] for i in rest]):
        raise Refused("a lookup among the samples of a batch")
    number, found = graph.constant(np.int32(0)), []
    for axis in moved:
        size = int(shape[axis])
        if axis in form.axes:
            last = size - int(form.sizes[axis]) + 1
            is_data = checked and len(moved) == 1 and last == size
            place = places(form.columns[form.axes.index(axis)], last, mode, is_data)
            along = list(range(rank))
            found.append(Places(place.ids, None if place.valid is None else layout.broadcast(
                place.valid, whole, along), place.clamped))
            ids = layout.broadcast(place.ids, whole, along)
            if axis in windows:
                line = graph.constant(np.arange(int(form.sizes[axis])), "i32")
                ids = ids + layout.broadcast(line, whole, [labels.index(("slice", axis))])
        else:
            line = graph.constant(np.arange(size), "i32")
            ids = layout.broadcast(line, whole, [form.theirs[form.batching.index(axis)]])
        number = ids if axis == moved[0] else number * size + ids
    made = joined(number, found)
    if own:
        first = form.theirs[form.batching.index(own[0])]
        turn = [first, *(i for i in range(len(labels)) if i != first)]
        labels = [labels[i] for i in turn]
        made = dataclasses.replace(made, ids=layout.transpose(made.ids, turn),
                                   valid=None if made.valid is None else layout.transpose(made.valid, turn))
    return _Numbers(shape, own, moved, rest, made, labels)


def gather(array: Value, form: Form, mode: str, fill: Any) -> Value:
    """What is at the places, in JAX' order of axes."""
    numbers = _numbered(array.shape, form, mode, array.constant is None)
    made = moves.take(numbers.lines(array), numbers.found.ids, len(numbers.own) + numbers.at)
    made = filled(made, numbers.valid(made.shape, numbers.made), fill)
    return layout.transpose(made, [numbers.made.index(label) for label in form.result()])


def add(array: Value, form: Form, mode: str, updates: Value) -> Value:
    """The array with updates added at the places."""
    numbers = _numbered(array.shape, form, mode, False)
    result, ids = form.result(), numbers.found.ids
    if updates.dtype != "f32" and integers.largest(updates) > MOST:
        raise Refused("sums of large integers by ids: cast them to float32")
    labels = [*numbers.labels, *(("slice", i) for i in numbers.rest)]
    new = layout.transpose(updates, [result.index(label) for label in labels])
    new = e.cast(filled(new, numbers.valid(new.shape, labels), 0), "f32")
    rest = tuple(array.shape[i] for i in numbers.rest)
    if numbers.own:
        count = int(np.prod([int(n) for n in ids.shape[1:]]))  # type: ignore[arg-type]
        ids, new = layout.reshape(ids, (BATCH, count)), layout.reshape(new, (BATCH, count, *rest))
        made = array.graph.tensor("index_add", (ids, new), "mt.index_add {0}, {1} dim = 1 : {t0}, {t1} to {t}",
                                  (BATCH, numbers.size, *rest), "f32")
    elif has_batch(ids.shape):
        made = moves.scatter_rows(numbers.size, ids, new)
    else:
        raise Refused("an update at places that depend on the data, but are not of the samples")
    order = [*numbers.own, *numbers.moved, *numbers.rest]
    made = layout.reshape(made, tuple(array.shape[i] for i in order))
    made = e.cast(layout.transpose(made, [order.index(i) for i in range(array.rank)]), array.dtype)
    return made if array.scalar == 0 else array + made


@dataclasses.dataclass(frozen=True)
class Lined:
    """An update of lines at places in them.

    Attributes:
        lines: the array as [lead, places, rest]; `lead` is the batch, if each sample has places of its own.
        ids: [lead, count]. -1: out of range.
        new: the updates, [lead, count, rest].
    """

    lines: Value
    ids: Value
    new: Value
    _shape: Sequence[Any]
    _order: Sequence[int]

    @staticmethod
    def of(array: Value, form: Form, mode: str, updates: Value) -> Lined:
        numbers = _numbered(array.shape, form, mode, False)
        result, ids = form.result(), numbers.found.ids
        if has_batch(ids.shape) and not numbers.own:
            raise Refused("an update of one array at places of the samples of a batch, of which two may be the same")
        labels = [*numbers.labels, *(("slice", i) for i in numbers.rest)]
        new = layout.transpose(updates, [result.index(label) for label in labels])
        first = len(numbers.own)
        lead, rest = ids.shape[:first], tuple(array.shape[i] for i in numbers.rest)
        count = int(np.prod([int(n) for n in ids.shape[first:]]))  # type: ignore[arg-type]
        order = [*numbers.own, *numbers.moved, *numbers.rest]
        shape = tuple(array.shape[i] for i in order)
        if numbers.found.valid is not None:
            ids = e.select(numbers.found.valid, ids, -1)
        return Lined(layout.reshape(layout.transpose(array, order), (*lead, numbers.size, *rest)),
                     layout.reshape(ids, (*lead, count)), layout.reshape(new, (*lead, count, *rest)), shape, order)

    def array(self, lines: Value) -> Value:
        """Lines as the array that they come from."""
        return layout.transpose(layout.reshape(lines, tuple(self._shape)), np.argsort(self._order).tolist())


def extremum(array: Value, form: Form, mode: str, updates: Value, way: str) -> Value:
    """The "maximum" or the "minimum" of each element and of the updates at its place."""
    lined = Lined.of(array, form, mode, updates)
    first, (size, count) = lined.ids.rank - 1, (lined.lines.shape[lined.ids.rank - 1], lined.ids.shape[-1])
    lead, rest = lined.ids.shape[:-1], lined.lines.shape[first + 1:]
    line = array.graph.constant(np.arange(size)[:, None], "i32")  # type: ignore[arg-type]
    there = e.compare("eq", layout.reshape(lined.ids, (*lead, 1, count)), line)
    whole = (*lead, size, count, *rest)
    new = layout.reshape(lined.new, (*lead, 1, count, *rest))
    ends = (-np.inf, np.inf) if array.dtype == "f32" else (-2**31, 2**31 - 1)
    none = ends[way == "minimum"]
    nothing = layout.broadcast(array.graph.constant(np.asarray(none), array.dtype), whole)
    there = layout.broadcast(layout.expand_dims(there, range(first + 2, len(whole))), whole)
    given = e.select(there, layout.broadcast(new, whole), nothing)
    both = moves.concat([layout.expand_dims(lined.lines, (first + 1,)), given], first + 1)
    return lined.array(reductions.reduce(way[:3], both, [first + 1]))


def replace(array: Value, form: Form, mode: str, updates: Value) -> Value:
    """The array with one part replaced, or one of each sample: each element reads the update at its distance from the
    part's start."""
    ids_axes = form.columns[0].shape
    shared = [i for i in range(len(ids_axes)) if i in form.theirs]
    if any(n != 1 for i, n in enumerate(ids_axes) if i not in shared):
        raise Refused("several updates at places that depend on the data, of which two may be the same")
    if any(isinstance(array.shape[i], Batch) for i in form.axes):
        raise Refused("an update among the samples of a batch")
    if has_batch(ids_axes) and not has_batch(array.shape):
        raise Refused("an update of one array at places of the samples, of which two may be the same")
    result, rank = form.result(), array.rank
    start_axes = [form.batching[form.theirs.index(i)] for i in shared]  # of the array
    labels = [("index", form.theirs[form.batching.index(i)]) if i in form.batching else ("slice", i)
              for i in range(rank) if i in form.batching or i in form.inner]
    new = layout.transpose(updates, [result.index(label) for label in labels] + [
        result.index(("index", i)) for i in range(len(ids_axes)) if i not in shared])
    new = layout.reshape(new, tuple(array.shape[i] if i in form.batching else form.sizes[i] if i in form.inner else 1
                                    for i in range(rank)))
    if any(new.shape[i] != array.shape[i] for i in range(rank) if i not in form.axes):
        raise Refused("an update of parts of the slices")
    mask = array.graph.constant(np.bool_(True))
    for axis, column in zip(form.axes, form.columns):
        size, width = int(array.shape[axis]), int(form.sizes[axis])  # type: ignore[arg-type]
        place = places(column, size - width + 1, mode, False)
        start = layout.reshape(place.ids, tuple(ids_axes[i] for i in shared))
        shape = [array.shape[i] if i in start_axes or i == axis else 1 for i in range(rank)]
        line = array.graph.constant(np.arange(size), "i32")
        away = layout.broadcast(line, tuple(shape), [axis]) - layout.broadcast(start, tuple(shape), start_axes)
        inside = e.compare("ge", away, 0) & e.compare("lt", away, width)
        if place.valid is not None:
            valid = layout.reshape(place.valid, start.shape)
            inside = inside & layout.broadcast(valid, tuple(shape), start_axes)
        mask = mask & inside
        new = _shifted(new, away, axis, width, start_axes)
    return e.select(layout.broadcast(mask, array.shape), new, array)


def _shifted(new: Value, away: Value, axis: int, width: int, start_axes: Sequence[int]) -> Value:
    """For each place along an axis the element of the update at its distance, the nearest one for those outside."""
    shape = tuple(away.shape[i] if i == axis else n for i, n in enumerate(new.shape))
    if width == 1:
        return layout.broadcast(new, shape)
    places_axes = sorted([*start_axes, axis])
    others = [i for i in range(new.rank) if i not in places_axes]
    column = layout.squeeze(away, others)
    form = Form(list(start_axes), [places_axes.index(i) for i in start_axes], [axis], [column],
                [1 if i in places_axes else n for i, n in enumerate(new.shape)], others, others)
    return gather(new, form, CLIP, None)
