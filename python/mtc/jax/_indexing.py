# SPDX-License-Identifier: Apache-2.0
"""Rules of lookups and of updates of parts."""

from __future__ import annotations

from typing import Any, Optional, Sequence

import numpy as np

from mtc._trace import Batch, Refused, Value, layout, lookups, moves, reductions
from mtc._trace import elementwise as e
from mtc._trace.indices import filled, places
from mtc.jax import _constants, _modes
from mtc.jax._modes import CLIP, FILL, PROMISED, fill_of
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
    if (window := _batches(operand, numbers, indices, sizes)) is not None:
        return window
    columns = _columns(r, indices)
    form = _form(operand.shape, numbers, columns, sizes)
    picked = _along_axis(equation, operand, form)
    if picked is not None:
        return picked
    return lookups.gather(operand, form, _modes.ours(equation.params["mode"]), _fill(equation))


def _form(shape: Sequence[Any], numbers: Any, columns: Sequence[Value], sizes: Sequence[Any]) -> lookups.Form:
    """A lookup by JAX' dimension numbers."""
    gone = (*numbers.collapsed_slice_dims, *numbers.operand_batching_dims)
    inner = [i for i in range(len(shape)) if i not in gone]
    return lookups.Form(list(numbers.operand_batching_dims), list(numbers.start_indices_batching_dims),
                        list(numbers.start_index_map), list(columns), sizes, inner, numbers.offset_dims).counting(shape)


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
            if not isinstance(sizes[axis], Batch) or int(index) != 0:
                raise Refused("one sample of a batch")
            continue
        last = limit - int(sizes[axis])
        if equation.params["mode"] == FILL and not 0 <= int(index) <= last:
            fill = operand.graph.constant(np.asarray(_fill(equation)), operand.dtype)
            return layout.broadcast(fill, r.out_shape(equation))
        starts[axis] = min(max(int(index), 0), last)
        if promised and starts[axis] != int(index):  # JAX gives it no gradient
            operand = r.graph.stop_gradient(operand)
    limits = [n if isinstance(n, Batch) else s + int(n) for s, n in zip(starts, sizes)]
    part = moves.slice_(operand, starts, limits, [1] * len(sizes))
    return layout.reshape(layout.squeeze(part, numbers.collapsed_slice_dims), r.out_shape(equation))


def _batches(operand: Value, numbers: Any, index: Value, sizes: Sequence[Any]) -> Optional[Value]:
    """Whole batches of several that are one after the other, as x[n:] of n samples; None: it is another lookup."""
    start = layout.unshaped(index) if isinstance(index, Value) else None
    axes = numbers.start_index_map
    if start is None or not start.count or len(axes) != 1 or numbers.collapsed_slice_dims or not isinstance(
            sizes[axes[0]], Batch) or numbers.operand_batching_dims:
        return None
    starts = [Batch(start.count) if axis == axes[0] else 0 for axis in range(operand.rank)]
    limits = [Batch(start.count + n.times) if axis == axes[0] else n for axis, n in enumerate(sizes)]
    return moves.slice_(operand, starts, limits, [1] * operand.rank)


def _along_axis(equation: Any, operand: Value, form: lookups.Form) -> Optional[Value]:
    """An element of each line: jnp.take_along_axis, labels. None: it is another lookup."""
    batching, theirs, axes = form.batching, form.theirs, form.axes
    rest = [i for i in range(operand.rank) if i not in batching and i not in axes]
    if not batching or len(axes) != 1 or axes[0] in form.inner or any(form.sizes[i] != operand.shape[i] for i in rest):
        return None
    ids = form.columns[0]
    order = [*theirs, *(i for i in range(ids.rank) if i not in theirs)]
    ids, first, kept = layout.transpose(ids, order), len(theirs), len(theirs) + len(rest)
    lines = layout.transpose(operand, [*batching, *rest, *axes])
    if rest:
        ids = layout.broadcast(layout.expand_dims(ids, range(first, kept)), (*lines.shape[:-1], *ids.shape[first:]))
    made = _picked(equation, lines, ids, kept)
    slices = iter(range(first, kept))
    others = iter(place if place < first else place + len(rest) for place in map(order.index, range(len(order))))
    return layout.transpose(made, [next(slices) if i in form.outer else next(others) for i in range(made.rank)])


def _picked(equation: Any, lines: Value, ids: Value, kept: int) -> Value:
    """Elements of each line at ids, whose first `kept` axes are those of the lines."""
    size = lines.shape[-1]
    if isinstance(size, Batch):
        raise Refused(f"a lookup of samples: {ACROSS}")
    logs = lines.op == "log_softmax"  # what is picked becomes a cross-entropy, whose labels MTC checks
    mode = _modes.ours(equation.params["mode"])
    found = places(ids, size, mode, checked=logs)
    made = filled(_pick(lines, found.ids, kept), found, _fill(equation))
    plain = places(ids, size, mode, checked=True)
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
    count: Any = 1
    for size in shape[kept:]:
        count = count * size
    if isinstance(count, int):
        return layout.reshape(moves.take_along(lines, layout.reshape(ids, (*shape[:kept], count)), kept), shape)
    wide = layout.expand_dims(lines, range(kept, len(shape)))
    return reductions.pick(layout.broadcast(wide, (*shape, lines.shape[-1])), ids)


def _columns(r: Reader, indices: Any) -> list[Value]:
    """The index along each axis: those that were put together along the last axis, or its parts."""
    value = r.value(indices)
    last = value.rank - 1
    known = r.columns.get(id(indices)) if isinstance(indices, Value) else None
    if known is not None and all(c.shape[last] == 1 for c in known):
        return [layout.squeeze(c, (last,)) for c in known]
    return lookups.columns_of(value)


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
    sizes = [r.size(n) for n in equation.params["slice_sizes"]]
    if any(isinstance(n, Batch) and m != n for n, m in zip(value.shape, sizes)):
        raise Refused("a part of the samples of a batch")
    starts = _starts(inputs[1:])
    if starts is None:
        form = _part(r, inputs[1:], value, sizes)
        return lookups.gather(value, form, _modes.ours(CLIP), None)
    starts = [0 if isinstance(n, Batch) else min(max(s, 0), int(n) - int(m))  # type: ignore[arg-type]
              for s, n, m in zip(starts, value.shape, sizes)]
    limits = [None if isinstance(n, Batch) else s + n for s, n in zip(starts, sizes)]
    return moves.slice_(value, starts, limits, [1] * len(sizes))


def _starts(given: Sequence[Any]) -> Optional[list[int]]:
    """Where a part starts; None: the data says it."""
    starts = []
    for g in given:
        number = g.scalar if isinstance(g, Value) else int(g) if is_concrete(g) else None
        if number is None:
            return None
        starts.append(int(number))
    return starts


def _part(r: Reader, starts: Sequence[Any], value: Value, sizes: Sequence[Any]) -> lookups.Form:
    """A part of these sizes, whose place the data says."""
    axes = [i for i, (n, m) in enumerate(zip(value.shape, sizes)) if n != m]
    everywhere = list(range(value.rank))
    return lookups.Form([], [], axes, [r.value(starts[i]) for i in axes], sizes, everywhere, everywhere)


@rule("dynamic_update_slice")
def _dynamic_update(r: Reader, equation: Any, inputs: Sequence[Any]) -> Value:
    value, part = r.value(inputs[0]), r.value(inputs[1])
    starts = _starts(inputs[2:])
    if 0 in part.shape:
        return value
    if starts is not None:
        return _update(value, part, starts, "set")
    if part.shape == value.shape:
        return part
    return lookups.replace(value, _part(r, inputs[2:], value, part.shape), _modes.ours(CLIP), part)


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
    if 0 in updates.shape:
        return value
    if not is_concrete(indices):
        if way == "mul":
            raise Refused("products at places that depend on the data: take part by part what is multiplied")
        changed = _constants.sizes_of(numbers, updates.shape, value.rank)
        form = _form(value.shape, _constants.lookup_of(numbers), _columns(r, indices), changed)
        ours = _modes.ours(mode if mode == CLIP else FILL)
        if way in ("minimum", "maximum"):
            return lookups.extremum(value, form, ours, updates, way)
        return (lookups.add if way == "add" else lookups.replace)(value, form, ours, updates)
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
