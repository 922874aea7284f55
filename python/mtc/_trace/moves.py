# SPDX-License-Identifier: Apache-2.0
"""Parts of values, and values put together: slices, padding, concatenation, lookup."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Optional, Sequence

import numpy as np

from mtc._trace import elementwise as e
from mtc._trace.layout import align, arrange, broadcast, canonical, decide, expand_dims, order_of, replaced, reshape
from mtc._trace.values import BATCH, Axis, Batch, Node, Refused, Shape, Stored, Value, batch_of, size_of

if TYPE_CHECKING:
    from mtc._trace.graph import Graph


def stored_axis(value: Value, axis: int) -> int:
    """The number of the only part of a logical axis, which must not be the batch."""
    if isinstance(value.shape[axis], Batch):
        raise Refused("a part of the samples of a batch, or samples beside those of the batch")
    return sum(len(p) for p in value.axes[:axis])


def with_stored(value: Value, axes: Sequence[int]) -> Value:
    """The value with these parts stored, whatever their size."""
    value = decide(value)
    flat = value.flat
    missing = [i for i in axes if flat[i].place is None]
    if not missing:
        return value
    order = sorted((i for i, a in enumerate(flat) if a.place is not None), key=lambda i: flat[i].place or 0) + missing
    return replaced(value, arrange(value, order, missing), order)


def _resized(value: Value, node: Node, sizes: dict[int, int]) -> Value:
    """The value of a node that has other sizes along some parts."""
    counter = iter(range(len(value.flat)))
    axes = tuple(tuple(Axis(sizes.get(i, part.size), part.place) for part, i in zip(parts, counter))
                 for parts in value.axes)
    return value.graph.tidy(Value(value.graph, node, axes))


def _lists(value: Value, rows: Sequence[dict[int, int]], fill: Sequence[int]) -> list[list[int]]:
    """For each dict of numbers by part a list by stored axis, without the batch axis."""
    flat = value.flat
    places = {a.place: i for i, a in enumerate(flat) if a.place is not None}
    axes = [places[p] for p in range(len(value.node.shape)) if value.node.shape[p] is not None]
    return [[row.get(i, default) for i in axes] for row, default in zip(rows, fill)]


# A product of so many columns makes the logits of a vocabulary.
_VOCABULARY = 1024


def _slice_node(graph: Graph, node: Node, starts: list[int], sizes: list[int], strides: list[int]) -> Node:
    """A part of a stored tensor; the lists are for all of its axes but the batch."""
    if node.constant is not None:
        return graph.constant_node(node.constant[tuple(
            slice(a, a + (n - 1) * s + 1, s) for a, n, s in zip(starts, sizes, strides))], node.dtype)
    shape: Stored = (*((None,) if node.split else ()), *sizes)
    product = _product_of(node)
    if product is not None and sizes[-1] == product.shape[-1] and _is_most(sizes, node):
        # Logits of some tokens, say of all but the last: only these are computed, and so a loss of them reads the
        # result of the product, as it must for logits that are not stored (docs/ir.md, "Losses over many classes").
        first = node.operands.index(product) if node is not product else 0  # where the tokens come from
        lines = node.operands[first]
        columns = lines.shape[-1]
        assert columns is not None
        operands = list(node.operands)
        operands[first] = _slice_node(graph, lines, [*starts[:-1], 0], [*sizes[:-1], columns], [*strides[:-1], 1])
        made = graph.node(node.op, operands, node.template, shape, node.dtype)
        made.info, made.location = node.info, node.location
        return made
    strided = f" strides = {strides}" if any(s != 1 for s in strides) else ""
    return graph.node("slice", (node,), f"mt.slice {{0}} starts = {starts} sizes = {sizes}{strided} : {{t0}}", shape,
                      node.dtype)


def _product_of(node: Node) -> Optional[Node]:
    """The product with a matrix of a vocabulary's columns that a node is, with a bias or without."""
    if node.op == "add":
        products = [o for o in node.operands if o.op == "matmul" and o.shape == node.shape]
        biases = [o for o in node.operands if o.shape == node.shape[-1:]]
        return _product_of(products[0]) if products and biases else None
    many = node.op == "matmul" and node.split and (node.shape[-1] or 0) >= _VOCABULARY
    return node if many and len(node.operands[1].shape) == 2 and "transpose_a" not in node.info else None


def _is_most(sizes: list[int], node: Node) -> bool:
    """Whether a part has more than half of the elements: of small parts, say each token's, one product is less work."""
    return 2 * math.prod(sizes) > node.elements


def slice_(value: Value, starts: Sequence[int], limits: Sequence[Optional[int]], strides: Sequence[int]) -> Value:
    """Elements from starts to limits (exclusive; None: all) with strides of 1 or more. The batch axis is whole."""
    begin: dict[int, int] = {}
    step: dict[int, int] = {}
    size: dict[int, int] = {}
    value = decide(value)
    for axis, (start, limit, stride) in enumerate(zip(starts, limits, strides)):
        whole = value.shape[axis]
        if start == 0 and stride == 1 and (limit is None or limit == whole):
            continue
        part = stored_axis(value, axis)
        start, limit, stride = int(start), int(whole if limit is None else limit), int(stride)  # type: ignore[arg-type]
        begin[part], step[part], size[part] = start, stride, max(0, -(-(limit - start) // stride))
    if not size:
        return value
    if 0 in size.values():
        raise Refused("a value without elements")
    flat = value.flat
    node = value.node
    if any(flat[i].place is not None for i in size):
        sizes = {i: int(a.size) for i, a in enumerate(flat) if a.place is not None and a.size != BATCH}  # type: ignore
        sizes.update({i: n for i, n in size.items() if flat[i].place is not None})
        node = _slice_node(value.graph, node, *_lists(value, (begin, sizes, step), (0, 1, 1)))
    return _resized(value, node, size)


def pad(value: Value, fill: float, low: Sequence[int], high: Sequence[int], interior: Sequence[int] = ()) -> Value:
    """Elements of `fill` before, after and between the value's along each axis; negative numbers cut off."""
    low, high, interior = [int(n) for n in low], [int(n) for n in high], [int(n) for n in interior or [0] * len(low)]
    if value.dtype != "f32" and any((*low, *high, *interior)):
        return e.cast(pad(e.cast(value, "f32"), fill, low, high, interior), value.dtype)
    if not np.isfinite(fill):
        there = pad(broadcast(value.graph.constant(np.float32(1)), value.shape), 0.0, low, high, interior)
        return e.select(e.compare("ne", there, 0.0), pad(value, 0.0, low, high, interior), fill)
    grows = [max(n, 0) for n in low], [max(n, 0) for n in high]
    moved = [i for i in range(len(low)) if grows[0][i] or grows[1][i] or interior[i]]
    if moved and value.scalar != fill:
        value = with_stored(value, [stored_axis(value, i) for i in moved])
        parts = [stored_axis(value, i) for i in range(len(low)) if i in moved]
        rows = [dict(zip(parts, (numbers[i] for i in moved))) for numbers in (*grows, interior)]
        lows, highs, inner = _lists(value, rows, (0, 0, 0))
        old = value.node.shape[value.node.split:]
        sizes = [a + n + max(n - 1, 0) * i + b for n, a, b, i in zip(old, lows, highs, inner)]  # type: ignore
        spread = f" interior = {inner}" if any(inner) else ""
        filled = f" value = {fill:.9e}" if fill else ""
        node = value.graph.node("pad", (value.node,), f"mt.pad {{0}} low = {lows} high = {highs}{spread}{filled} : "
                                "{t0}", (*((None,) if value.node.split else ()), *sizes), "f32")
        flat = value.flat
        value = _resized(value, node, {i: int(node.shape[flat[i].place]) for i in parts})  # type: ignore
    elif moved:
        shape = [n if isinstance(n, Batch) else n + grows[0][i] + grows[1][i] + max(n - 1, 0) * interior[i]
                 for i, n in enumerate(value.shape)]
        value = broadcast(value.graph.constant(np.float32(fill)), tuple(shape))
    starts = [max(-n, 0) for n in low]
    limits = [None if isinstance(n, Batch) else n - max(-h, 0) for n, h in zip(value.shape, high)]
    return slice_(value, starts, limits, [1] * len(low))


def concat(values: Sequence[Value], axis: int) -> Value:
    """One after the other along a logical axis."""
    if len(values) == 1:
        return values[0]
    graph = values[0].graph
    if all(v.array is not None for v in values):
        return graph.constant(np.concatenate([v.array for v in values], axis), values[0].dtype)
    sizes = [v.shape[axis] for v in values]
    if any(isinstance(n, Batch) for n in sizes):
        raise Refused("samples beside those of the batch: a concatenation along the batch axis")
    total = sum(sizes)  # type: ignore[arg-type]
    rest = align([Value(graph, v.node, v.axes[:axis] + v.axes[axis + 1:]) for v in map(decide, values)])
    parts = [Value(graph, r.node, (*r.axes[:axis], v.axes[axis], *r.axes[axis:])) for r, v in zip(rest, values)]
    part = sum(len(p) for p in parts[0].axes[:axis])
    order = order_of(parts)
    if part not in order:  # where it is in logical order, so that what follows it stays together
        batch = batch_of(parts[0].flat)
        order.insert(next((n for n, i in enumerate(order) if i > part and i != batch), len(order)), part)
    nodes = [arrange(v, order, order) for v in parts]
    place = order.index(part)
    # An axis of size 1 in all of them is not stored: arrange gives it the size 1.
    shape = tuple(total if i == place else n for i, n in enumerate(nodes[0].shape))
    types = ", ".join(f"{{t{i}}}" for i in range(len(nodes)))
    names = ", ".join(f"{{{i}}}" for i in range(len(nodes)))
    node = graph.node("concat", nodes, f"mt.concat {names} dim = {place} : {types}", shape, values[0].dtype)
    made = replaced(parts[0], node, order)
    axes = tuple((Axis(total, place),) if i == axis else p for i, p in enumerate(made.axes))
    return Value(graph, node, axes)


def reverse(value: Value, axes: Sequence[int]) -> Value:
    """The last element first along logical axes."""
    parts = [stored_axis(value, i) for i in axes]
    value = decide(value)
    places = sorted(p for p in (value.flat[i].place for i in parts) if p is not None)
    if not places:
        return value
    if value.constant is not None:
        node = value.graph.constant_node(np.flip(value.constant, tuple(places)), value.dtype)
    else:
        node = value.graph.node("reverse", (value.node,), f"mt.reverse {{0}} over {places} : {{t0}}", value.node.shape,
                                value.dtype)
    return Value(value.graph, node, value.axes)


def iota(graph: Graph, shape: Shape, axis: int, dtype: str) -> Value:
    """0, 1, 2 ... along a logical axis. Along a batch axis they are the places in the batch, times a factor."""
    size = shape[axis]
    if not isinstance(size, Batch):
        line = graph.constant(np.arange(size), dtype)
        return broadcast(line, shape, (axis,))
    node = graph.node("iota", (), "mt.iota dim = 0 : {t}", (None,), "i32")
    line = graph.value(node)
    if size.times != 1:
        inner = graph.constant(np.arange(size.times), "i32")
        line = e.binary("add", e.binary("mul", expand_dims(line, (1,)), size.times), expand_dims(inner, (0,)))
        line = Value(graph, line.node, (line.flat,))
    return broadcast(e.cast(line, dtype), shape, (axis,))


def indices(like: Value, axis: int) -> Value:
    """0, 1, 2 ... along a logical axis of a value's shape."""
    return iota(like.graph, like.shape, axis % len(like.axes), "i32")


def one_hot(ids: Value, depth: int, dtype: str = "f32") -> Value:
    """1 at the place of the id along a new last axis, else 0."""
    if depth == 1 or ids.constant is not None:
        line = ids.graph.constant(np.arange(depth), "i32")
        return e.cast(e.compare("eq", expand_dims(ids, (len(ids.axes),)), line), dtype)
    node = ids.graph.node("one_hot", (ids.node,), "mt.one_hot {0} : {t0} to {t}", (*ids.node.shape, depth), "f32")
    made = Value(ids.graph, node, (*ids.axes, (Axis(depth, len(ids.node.shape)),)))
    return e.cast(made, dtype)


def take(value: Value, ids: Value, axis: int = 0) -> Value:
    """Slices by index along an axis, whose place the axes of `ids` take; ids out of range are clamped.

    The value is a table, without the batch, and the ids are any; or the ids are the same for all samples.
    """
    axis %= len(value.axes)
    part = stored_axis(value, axis)
    if batch_of(value.flat) is None or value.flat[batch_of(value.flat) or 0].place is None:
        return _rows(value, ids, axis, part)
    if ids.array is None:
        raise Refused("a lookup in values that differ between samples, by ids that do too")
    value = with_stored(value, [part])
    flat_ids = np.clip(ids.array.reshape(-1), 0, int(value.shape[axis]) - 1)  # type: ignore[arg-type]
    if flat_ids.size == 1:
        limits = [None] * len(value.axes)
        limits[axis] = int(flat_ids[0]) + 1  # type: ignore[call-overload]
        starts = [int(flat_ids[0]) if i == axis else 0 for i in range(len(value.axes))]
        made = slice_(value, starts, limits, [1] * len(value.axes))
    else:
        place = value.flat[part].place
        shape = tuple(flat_ids.size if i == place else n for i, n in enumerate(value.node.shape))
        node = value.graph.node("take", (value.node, value.graph.constant_node(flat_ids, "i32")),
                                f"mt.take {{0}}, {{1}} dim = {place} : {{t0}}, {{t1}}", shape, value.dtype)
        made = _resized(value, node, {part: flat_ids.size})
    return reshape(made, (*made.shape[:axis], *ids.shape, *made.shape[axis + 1:]))


def _rows(table: Value, ids: Value, axis: int, part: int) -> Value:
    """Rows of a table that all samples share."""
    graph = table.graph
    if any(isinstance(size_of(p), Batch) for p in table.axes):
        table = decide(table)
    flat = table.flat
    rest = sorted((i for i, a in enumerate(flat) if a.place is not None and i != part),
                  key=lambda i: flat[i].place or 0)
    node = arrange(table, [part, *rest], [part])
    if ids.constant is not None and node.constant is not None:
        made = graph.constant_node(node.constant[np.clip(ids.constant, 0, node.constant.shape[0] - 1)], table.dtype)
    else:
        made = graph.node("gather", (node, ids.node), "mt.gather {0}, {1} : {t0}, {t1}",
                          (*ids.node.shape, *node.shape[1:]), table.dtype)
    places = {i: len(ids.node.shape) + n for n, i in enumerate(rest)}
    counter = iter(range(len(flat)))
    rows = [tuple(Axis(a.size, places.get(next(counter))) for a in parts) for parts in table.axes]
    return Value(graph, made, (*rows[:axis], *ids.axes, *rows[axis + 1:]))


def scatter_rows(rows: int, ids: Value, updates: Value) -> Value:
    """Sums of samples by id, over the batch: [rows, D...] of ids [I...] and updates [I..., D...], with the batch in I.

    Row v is the sum of the updates whose id is v; ids out of range are clamped.
    """
    graph = updates.graph
    places, values = canonical(ids, expand=True), canonical(updates, expand=True)
    count = len(places.node.shape)
    if values.node.shape[:count] != places.node.shape or batch_of(places.flat) is None:
        raise Refused("an update by ids that are not of the samples")
    rest = values.node.shape[count:]
    node = graph.node("scatter_add", (places.node, values.node), "mt.scatter_add {0}, {1} : {t0}, {t1} to {t}",
                      (rows, *rest), "f32")
    return graph.value(node)
