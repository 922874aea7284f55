# SPDX-License-Identifier: Apache-2.0
"""Rules of lookups and of updates of parts."""

from __future__ import annotations

from typing import Any, Optional, Sequence

import numpy as np

from mtc._trace import BATCH, Batch, Refused, Value, layout, moves, reductions
from mtc._trace import elementwise as e
from mtc.jax import _constants, _scatters
from mtc.jax._places import CLIP, FILL, PROMISED, Places, fill_of, filled, is_sample, joined, places
from mtc.jax._reader import ACROSS, Reader, is_concrete, rule


@rule("gather")
def _gather(r: Reader, equation: Any, inputs: Sequence[Any]) -> Value:
    numbers = equation.params["dimension_numbers"]
    operand = r.value(inputs[0])
    sizes = [r.size(n) for n in equation.params["slice_sizes"]]
    indices = inputs[1]
    if is_concrete(indices):
        if int(np.prod(indices.shape[:-1])) == 1 and not numbers.operand_batching_dims:
            return _one_window(r, equation, operand, indices.reshape(-1), sizes)
        return _constants.gather(r, equation, operand, indices, sizes)
    if numbers.operand_batching_dims:
        return _along_axis(equation, operand, r.value(indices), sizes)
    columns = _columns(r, indices)
    if columns is not None and operand.shape[0] == BATCH and is_sample(columns[0]):
        return _each_own(equation, operand, columns[1:], sizes)
    if len(numbers.start_index_map) == 1:
        return _lookup(equation, operand, r.value(indices), sizes)
    if columns is not None:
        return _lookup_of_several(equation, operand, columns, sizes)
    raise Refused("a lookup by several indices that depend on the data")


def _fill(equation: Any) -> Any:
    return fill_of(equation.params["fill_value"], equation.invars[0].aval.dtype)


def _one_window(r: Reader, equation: Any, operand: Value, start: Any, sizes: Sequence[Any]) -> Value:
    """The part of a fixed place."""
    numbers = equation.params["dimension_numbers"]
    starts = [0] * len(sizes)
    promised = equation.params["mode"] == PROMISED
    for axis, index in zip(numbers.start_index_map, start):
        limit = operand.shape[axis]
        if isinstance(limit, Batch):
            if sizes[axis] != limit:
                raise Refused("one sample of a batch")
            continue
        last = limit - int(sizes[axis])
        if equation.params["mode"] == FILL and not 0 <= int(index) <= last:
            fill = operand.graph.constant(np.asarray(_fill(equation)), operand.dtype)
            return layout.broadcast(fill, r.out_shape(equation))
        starts[axis] = min(max(int(index), 0), last)
        if promised and starts[axis] != int(index):  # JAX gives it no gradient
            operand = r.graph.stop_gradient(operand)
    limits = [None if isinstance(n, Batch) else s + int(n) for s, n in zip(starts, sizes)]
    part = moves.slice_(operand, starts, limits, [1] * len(sizes))
    return layout.reshape(layout.squeeze(part, numbers.collapsed_slice_dims), r.out_shape(equation))


def _lookup(equation: Any, operand: Value, indices: Value, sizes: Sequence[Any]) -> Value:
    """Whole slices by one index."""
    numbers = equation.params["dimension_numbers"]
    (axis,) = numbers.start_index_map
    whole = all(n == m for i, (n, m) in enumerate(zip(sizes, operand.shape)) if i != axis)
    if tuple(numbers.collapsed_slice_dims) != (axis,) or not whole:
        raise Refused("a lookup of parts of slices")
    ids = layout.squeeze(indices, (indices.rank - 1,))
    size = operand.shape[axis]
    if isinstance(size, Batch):
        raise Refused(f"a lookup of samples: {ACROSS}")
    found = places(ids, size, equation.params["mode"], checked=operand.constant is None)
    made = moves.take(operand, found.ids, axis)
    return _placed(filled(made, found, _fill(equation), operand.rank - axis - 1), axis, ids.rank,
                   numbers.offset_dims)


def _placed(made: Value, axis: int, count: int, offset_dims: Sequence[int]) -> Value:
    """With the axes of the slices, which stand around those of the ids, at their places."""
    slices = [i for i in range(made.rank) if not axis <= i < axis + count]
    ids_axes = iter(range(axis, axis + count))
    rest = iter(slices)
    return layout.transpose(made, [next(rest) if i in offset_dims else next(ids_axes) for i in range(made.rank)])


def _lookup_of_several(equation: Any, operand: Value, columns: Sequence[Any], sizes: Sequence[Any]) -> Value:
    """Whole slices of a table by several indices: by the number that they are in row major order."""
    numbers = equation.params["dimension_numbers"]
    axes = list(numbers.start_index_map)
    shape = operand.shape
    if any(isinstance(n, Batch) for n in shape) or tuple(numbers.collapsed_slice_dims) != tuple(sorted(axes)) or any(
            n != m for i, (n, m) in enumerate(zip(sizes, shape)) if i not in axes):
        raise Refused("a lookup by several indices that depend on the data")
    rest = [i for i in range(len(shape)) if i not in axes]
    lines = layout.transpose(operand, [*axes, *rest])
    lines = layout.reshape(lines, (int(np.prod([shape[i] for i in axes])), *(shape[i] for i in rest)))
    found = _number(columns, [int(shape[i]) for i in axes], equation.params["mode"])
    made = filled(moves.take(lines, found.ids, 0), found, _fill(equation), len(rest))
    return _placed(made, 0, found.ids.rank, numbers.offset_dims)


def _number(columns: Sequence[Any], sizes: Sequence[int], mode: Any) -> Places:
    """Places by several indices as one, their row major number."""
    found = [places(layout.squeeze(c, (c.rank - 1,)), n, mode, checked=False) for c, n in zip(columns, sizes)]
    number = found[0].ids
    for place, size in zip(found[1:], sizes[1:]):
        number = number * size + place.ids
    return joined(number, found)


def _along_axis(equation: Any, operand: Value, indices: Value, sizes: Sequence[Any]) -> Value:
    """jnp.take_along_axis, and whole slices of each part of a batch by its own index."""
    numbers = equation.params["dimension_numbers"]
    batching, theirs = list(numbers.operand_batching_dims), list(numbers.start_indices_batching_dims)
    axes = tuple(numbers.start_index_map)
    rest = [i for i in range(operand.rank) if i not in batching and i not in axes]
    if len(axes) != 1 or tuple(numbers.collapsed_slice_dims) != axes or any(sizes[i] != operand.shape[i] for i in rest):
        raise Refused("a lookup along several axes")
    ids = layout.squeeze(indices, (indices.rank - 1,))
    order = [*theirs, *(i for i in range(ids.rank) if i not in theirs)]
    ids, first, kept = layout.transpose(ids, order), len(theirs), len(theirs) + len(rest)
    lines = layout.transpose(operand, [*batching, *rest, *axes])
    if rest:
        ids = layout.broadcast(layout.expand_dims(ids, range(first, kept)), (*lines.shape[:-1], *ids.shape[first:]))
    made = _picked(equation, lines, ids, kept)
    slices = iter(range(first, kept))
    others = iter(place if place < first else place + len(rest) for place in map(order.index, range(len(order))))
    return layout.transpose(made, [next(slices) if i in numbers.offset_dims else next(others)
                                   for i in range(made.rank)])


def _picked(equation: Any, lines: Value, ids: Value, kept: int) -> Value:
    """Elements of each line at ids, whose first `kept` axes are those of the lines."""
    size = lines.shape[-1]
    if isinstance(size, Batch):
        raise Refused(f"a lookup of samples: {ACROSS}")
    logs = lines.op == "log_softmax"  # what is picked becomes a cross-entropy, whose labels MTC checks
    found = places(ids, size, equation.params["mode"], checked=logs)
    made = filled(_pick(lines, found.ids, kept), found, _fill(equation))
    plain = places(ids, size, equation.params["mode"], checked=True)
    other = made if plain == found else _pick(lines, plain.ids, kept)
    nan = _fill(equation) is np.nan or plain.valid is None or plain.clamped
    if other is not made and made.info is None and nan:
        made.info = ("picked", other, None if plain.clamped else plain.valid)
    return made


def _pick(lines: Value, ids: Value, kept: int) -> Value:
    shape = ids.shape
    if all(n == 1 for n in shape[kept:]):
        made = reductions.pick(lines, layout.squeeze(ids, range(kept, len(shape))))
        return layout.expand_dims(made, range(kept, len(shape)))
    wide = layout.expand_dims(lines, range(kept, len(shape)))
    return reductions.pick(layout.broadcast(wide, (*shape, lines.shape[-1])), ids)


def _columns(r: Reader, indices: Any) -> Optional[list[Any]]:
    """The single indices that were put together along the last axis."""
    return r.columns.get(id(indices)) if isinstance(indices, Value) else None


def _each_own(equation: Any, operand: Value, columns: Sequence[Any], sizes: Sequence[Any]) -> Value:
    """x[arange(b), ids]: an element of each sample, by one index or several."""
    numbers = equation.params["dimension_numbers"]
    rank = operand.rank
    if len(columns) != rank - 1 or tuple(numbers.start_index_map) != tuple(range(rank)) or any(n != 1 for n in sizes):
        raise Refused("a lookup in each sample by several indices")
    if len(columns) == 1:
        ids = columns[0]
        return _picked(equation, operand, layout.squeeze(ids, (ids.rank - 1,)), 1)
    shape = [int(n) for n in operand.shape[1:]]  # type: ignore[arg-type]
    found = _number(columns, shape, equation.params["mode"])
    lines = layout.reshape(operand, (operand.shape[0], int(np.prod(shape))))
    return filled(_pick(lines, found.ids, 1), found, _fill(equation))


@rule("concatenate")
def _concatenate(r: Reader, equation: Any, inputs: Sequence[Any]) -> Value:
    axis = equation.params["dimension"]
    values = [r.value(i) for i in inputs]
    made = moves.concat(values, axis)
    if axis == made.rank - 1 and made.dtype == "i32":
        r.columns[id(made)] = values
    return _keep_parts(r, made, values)


def _keep_parts(r: Reader, made: Value, values: Sequence[Value]) -> Value:
    """Notes the scalars that a vector was put together of."""
    if made.constant is None and made.rank == 1 and all(v.shape in ((1,), ()) for v in values):
        r.parts[id(made)] = [layout.squeeze(v, range(v.rank)) for v in values]
    return made


@rule("unstack")
def _unstack(r: Reader, equation: Any, inputs: Sequence[Any]) -> list[Value]:
    value, axis = r.value(inputs[0]), equation.params["axis"]
    return [moves.at(value, axis, i) for i in range(len(equation.outvars))]


@rule("stack")
def _stack(r: Reader, equation: Any, inputs: Sequence[Any]) -> Value:
    axis = equation.params["axis"]
    values = [layout.expand_dims(r.value(i), (axis,)) for i in inputs]
    return _keep_parts(r, moves.concat(values, axis), values)


@rule("tile")
def _tile(r: Reader, equation: Any, inputs: Sequence[Any]) -> Value:
    value = r.value(inputs[0])
    for axis, count in enumerate(map(r.size, equation.params["reps"])):
        if count != 1:
            value = layout.expand_dims(value, (axis,))
            shape = (*value.shape[:axis], count, *value.shape[axis + 1:])
            folded = shape[axis + 1] * count  # type: ignore[operator]
            value = layout.reshape(layout.broadcast(value, shape), (*shape[:axis], folded, *shape[axis + 2:]))
    return value


@rule("dynamic_slice")
def _dynamic_slice(r: Reader, equation: Any, inputs: Sequence[Any]) -> Value:
    value = r.value(inputs[0])
    starts = _starts(inputs[1:])
    sizes = [r.size(n) for n in equation.params["slice_sizes"]]
    if any(isinstance(n, Batch) and m != n for n, m in zip(value.shape, sizes)):
        raise Refused("a part of the samples of a batch")
    starts = [0 if isinstance(n, Batch) else min(max(s, 0), int(n) - int(m))  # type: ignore[arg-type]
              for s, n, m in zip(starts, value.shape, sizes)]
    limits = [None if isinstance(n, Batch) else s + n for s, n in zip(starts, sizes)]
    return moves.slice_(value, starts, limits, [1] * len(sizes))


def _starts(given: Sequence[Any]) -> list[int]:
    starts = []
    for g in given:
        number = g.scalar if isinstance(g, Value) else int(g) if is_concrete(g) else None
        if number is None:
            raise Refused("a part whose place depends on the data")
        starts.append(int(number))
    return starts


@rule("dynamic_update_slice")
def _dynamic_update(r: Reader, equation: Any, inputs: Sequence[Any]) -> Value:
    return _update(r.value(inputs[0]), r.value(inputs[1]), _starts(inputs[2:]), "set")


def _update(value: Value, part: Value, starts: Sequence[int], way: str) -> Value:
    """The value with a part at a place replaced ("set"), added to ("add") or multiplied ("mul")."""
    low, high, mask = [], [], np.ones([1] * len(starts), bool)
    for i, (n, m) in enumerate(zip(value.shape, part.shape)):
        if isinstance(n, Batch):
            if m != n:
                raise Refused("a part of the samples of a batch")
            low.append(0)
            high.append(0)
            continue
        start = min(max(starts[i], 0), n - int(m))  # type: ignore[arg-type]
        low.append(start)
        high.append(n - int(m) - start)  # type: ignore[arg-type]
        inside = (np.arange(n) >= start) & (np.arange(n) < start + int(m))  # type: ignore[arg-type]
        mask = mask & inside.reshape([-1 if j == i else 1 for j in range(len(starts))])
    padded = moves.pad(part, 0.0, low, high)
    if way == "add":
        return value + padded
    if way == "mul":
        padded = value * padded
    if mask.all():
        return padded
    return e.select(value.graph.constant(mask), padded, value)


WAYS = {"scatter": "set", "scatter-add": "add", "scatter_add": "add", "scatter-mul": "mul", "scatter_mul": "mul",
        "scatter-min": "minimum", "scatter_min": "minimum", "scatter-max": "maximum", "scatter_max": "maximum"}


@rule(*WAYS)
def _scatter(r: Reader, equation: Any, inputs: Sequence[Any]) -> Value:
    value, updates = r.value(inputs[0]), r.value(inputs[2])
    numbers, mode = equation.params["dimension_numbers"], equation.params["mode"]
    indices = inputs[1]
    way = WAYS[equation.primitive.name]
    if not is_concrete(indices):
        if way != "add":
            raise Refused("an update at places that depend on the data")
        return _scatters.add(value, r.value(indices), updates, numbers, mode, _columns(r, indices))
    if int(np.prod(indices.shape[:-1])) != 1 or numbers.operand_batching_dims or way in ("minimum", "maximum"):
        return _constants.scatter(equation, value, indices, updates, way)
    starts = [0] * value.rank
    for axis, index in zip(numbers.scatter_dims_to_operand_dims, indices.reshape(-1)):
        starts[axis] = int(index)
    window = [i for i in range(value.rank) if i not in numbers.inserted_window_dims]
    shape = [updates.shape[i] for i in numbers.update_window_dims]
    sizes: list[Any] = [1] * value.rank
    for axis, n in zip(window, shape):
        sizes[axis] = n
    inside = all(isinstance(n, Batch) or 0 <= s <= n - int(m) for s, n, m in zip(starts, value.shape, sizes))
    if not inside and mode != CLIP:
        return value  # JAX drops it
    return _update(value, layout.reshape(updates, tuple(sizes)), starts, way)
