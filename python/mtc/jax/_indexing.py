# SPDX-License-Identifier: Apache-2.0
"""Rules of lookups and of updates of parts."""

from __future__ import annotations

from typing import Any, Optional, Sequence

import numpy as np

from mtc._trace import BATCH, Batch, Refused, Value, layout, moves, reductions
from mtc._trace import elementwise as e
from mtc.jax._reader import Reader, is_concrete, rule


def without_wrap(ids: Value) -> Value:
    """Indices before JAX adds the size to those below 0: data has none."""
    node = ids.node
    if node.op != "select":
        return ids
    condition, wrapped, plain = node.operands
    if condition.op == "compare" and condition.operands[0] is plain and plain.shape == node.shape and (
            wrapped.op == "add" and plain in wrapped.operands):
        return Value(ids.graph, plain, ids.axes)
    return ids


@rule("gather")
def _gather(r: Reader, equation: Any, inputs: Sequence[Any]) -> Value:
    numbers = equation.params["dimension_numbers"]
    operand = r.value(inputs[0])
    sizes = [r.size(n) for n in equation.params["slice_sizes"]]
    indices = inputs[1]
    if is_concrete(indices) and int(np.prod(indices.shape[:-1])) == 1 and not numbers.operand_batching_dims:
        return _one_window(r, equation, operand, indices.reshape(-1), sizes)
    if numbers.operand_batching_dims:
        return _along_axis(r, equation, operand, without_wrap(r.value(indices)), sizes)
    columns = _columns(r, indices)
    if columns is not None and operand.shape[0] == BATCH and _is_place(columns[0]):
        return _each_own(operand, columns[1:], numbers, sizes)
    if len(numbers.start_index_map) == 1:
        return _lookup(r, equation, operand, without_wrap(r.value(indices)), sizes)
    raise Refused("a lookup by several indices that depend on the data")


def _one_window(r: Reader, equation: Any, operand: Value, start: Any, sizes: Sequence[Any]) -> Value:
    """The part of a fixed place."""
    numbers = equation.params["dimension_numbers"]
    starts = [0] * len(sizes)
    for axis, index in zip(numbers.start_index_map, start):
        limit = operand.shape[axis]
        if isinstance(limit, Batch):
            if sizes[axis] != limit:
                raise Refused("one sample of a batch")
            continue
        starts[axis] = min(max(int(index), 0), limit - int(sizes[axis]))
    limits = [None if isinstance(n, Batch) else s + int(n) for s, n in zip(starts, sizes)]
    part = moves.slice_(operand, starts, limits, [1] * len(sizes))
    return layout.reshape(layout.squeeze(part, numbers.collapsed_slice_dims), r.out_shape(equation))


def _lookup(r: Reader, equation: Any, operand: Value, indices: Value, sizes: Sequence[Any]) -> Value:
    """Whole slices by one index."""
    numbers = equation.params["dimension_numbers"]
    (axis,) = numbers.start_index_map
    whole = all(n == m for i, (n, m) in enumerate(zip(sizes, operand.shape)) if i != axis)
    if tuple(numbers.collapsed_slice_dims) != (axis,) or not whole:
        raise Refused("a lookup of parts of slices")
    ids = layout.squeeze(indices, (len(indices.axes) - 1,))
    made = moves.take(operand, ids, axis)
    count = len(ids.axes)
    slices = [i for i in range(len(made.axes)) if not axis <= i < axis + count]
    ids_axes = iter(range(axis, axis + count))
    rest = iter(slices)
    order = [next(rest) if i in numbers.offset_dims else next(ids_axes) for i in range(len(made.axes))]
    return layout.transpose(made, order)


def _along_axis(r: Reader, equation: Any, operand: Value, indices: Value, sizes: Sequence[Any]) -> Value:
    """jnp.take_along_axis: an element of each line."""
    numbers = equation.params["dimension_numbers"]
    batching, theirs = list(numbers.operand_batching_dims), list(numbers.start_indices_batching_dims)
    if len(numbers.start_index_map) != 1 or any(n != 1 for n in sizes) or numbers.offset_dims:
        raise Refused("a lookup along several axes")
    (axis,) = numbers.start_index_map
    ids = layout.squeeze(indices, (len(indices.axes) - 1,))
    others = [i for i in range(len(ids.axes)) if i not in theirs]
    lines = layout.transpose(operand, [*batching, *(i for i in range(len(operand.axes)) if i not in batching
                                                    and i != axis), axis])
    lines = layout.squeeze(lines, list(range(len(batching), len(lines.axes) - 1)))
    ids = layout.transpose(ids, [*theirs, *others])
    shape = ids.shape
    kept = len(theirs)
    if all(n == 1 for n in shape[kept:]):
        made = reductions.pick(lines, layout.squeeze(ids, range(kept, len(shape))))
        made = layout.expand_dims(made, range(kept, len(shape)))
    else:
        wide = layout.expand_dims(lines, range(kept, len(shape)))
        wide = layout.broadcast(wide, (*shape, lines.shape[-1]))
        made = reductions.pick(wide, ids)
    order = [*theirs, *others]
    return layout.transpose(made, [order.index(i) for i in range(len(order))])


def _columns(r: Reader, indices: Any) -> Optional[list[Any]]:
    """The single indices that were put together along the last axis."""
    return r.columns.get(id(indices.node)) if isinstance(indices, Value) else None


def _is_place(value: Any) -> bool:
    """Whether it is the place of each sample in the batch."""
    return isinstance(value, Value) and without_wrap(value).node.op == "iota"


def _each_own(operand: Value, columns: Sequence[Any], numbers: Any, sizes: Sequence[Any]) -> Value:
    """x[arange(b), ids]: an element of each sample."""
    if len(columns) != 1 or len(operand.axes) != 2 or tuple(numbers.start_index_map) != (0, 1) or list(sizes) != [1, 1]:
        raise Refused("a lookup in each sample by several indices")
    ids = without_wrap(columns[0])
    return reductions.pick(operand, layout.squeeze(ids, (len(ids.axes) - 1,)))


@rule("concatenate")
def _concatenate(r: Reader, equation: Any, inputs: Sequence[Any]) -> Value:
    axis = equation.params["dimension"]
    values = [r.value(i) for i in inputs]
    made = moves.concat(values, axis)
    if axis == len(made.axes) - 1 and made.dtype == "i32":
        r.columns[id(made.node)] = values
    return _keep_parts(r, made, values)


def _keep_parts(r: Reader, made: Value, values: Sequence[Value]) -> Value:
    """Notes the scalars that a vector was put together of."""
    if made.constant is None and len(made.axes) == 1 and all(v.shape in ((1,), ()) for v in values):
        r.parts[id(made.node)] = [layout.squeeze(v, range(len(v.axes))) for v in values]
    return made


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
        return e.binary("add", value, padded)
    if way == "mul":
        padded = e.binary("mul", value, padded)
    if mask.all():
        return padded
    return e.select(value.graph.constant(mask), padded, value)


@rule("scatter", "scatter-add", "scatter_add", "scatter-mul", "scatter_mul")
def _scatter(r: Reader, equation: Any, inputs: Sequence[Any]) -> Value:
    value, updates = r.value(inputs[0]), r.value(inputs[2])
    numbers = equation.params["dimension_numbers"]
    indices = inputs[1]
    if not is_concrete(indices) and equation.primitive.name in ("scatter-add", "scatter_add"):
        return _scatter_samples(r, value, r.value(indices), updates, numbers)
    if not is_concrete(indices) or int(np.prod(indices.shape[:-1])) != 1 or numbers.operand_batching_dims:
        raise Refused("an update at places that depend on the data, or at several")
    starts = [0] * len(value.axes)
    for axis, index in zip(numbers.scatter_dims_to_operand_dims, indices.reshape(-1)):
        starts[axis] = int(index)
    window = [i for i in range(len(value.axes)) if i not in numbers.inserted_window_dims]
    shape = [updates.shape[i] for i in numbers.update_window_dims]
    sizes: list[Any] = [1] * len(value.axes)
    for axis, n in zip(window, shape):
        sizes[axis] = n
    part = layout.reshape(updates, tuple(sizes))
    return _update(value, part, starts, equation.primitive.name[8:] or "set")


def _scatter_samples(r: Reader, value: Value, indices: Value, updates: Value, numbers: Any) -> Value:
    """Samples that are added to the rows of a table: `table.at[ids].add(x)`, `jax.ops.segment_sum`."""
    leading = len(indices.axes) - 1
    windows = tuple(range(leading, len(updates.axes)))
    if (tuple(numbers.inserted_window_dims) != (0,) or tuple(numbers.scatter_dims_to_operand_dims) != (0,)
            or tuple(numbers.update_window_dims) != windows or indices.shape[-1] != 1
            or not isinstance(value.shape[0], int) or updates.shape[leading:] != value.shape[1:]):
        raise Refused("an update at places that depend on the data, or at several")
    made = moves.scatter_rows(value.shape[0], layout.squeeze(indices, (leading,)), updates)
    return e.binary("add", value, made)
