# SPDX-License-Identifier: Apache-2.0
"""Logical shapes: broadcast, reshape, transpose. And `arrange`, which stores a value in an order."""

from __future__ import annotations

import math
from typing import Collection, Optional, Sequence

import numpy as np

from mtc._trace.values import BATCH, Axis, Batch, Node, Refused, Shape, Size, Stored, Value, batch_of, size_of

Parts = tuple[Axis, ...]


def transpose(value: Value, permutation: Sequence[int]) -> Value:
    """Logical axis i of the result is axis permutation[i]."""
    return Value(value.graph, value.node, tuple(value.axes[i] for i in permutation))


def expand_dims(value: Value, axes: Sequence[int]) -> Value:
    """Axes of size 1 at these places of the result."""
    rest = iter(value.axes)
    rank = len(value.axes) + len(axes)
    return Value(value.graph, value.node, tuple((Axis(1),) if i in axes else next(rest) for i in range(rank)))


def squeeze(value: Value, axes: Sequence[int]) -> Value:
    """Without these axes, of size 1."""
    for i in axes:
        if value.shape[i] != 1:
            raise Refused(f"expected an axis of size 1 to leave out, found {value.shape[i]}")
    return Value(value.graph, value.node, tuple(p for i, p in enumerate(value.axes) if i not in axes))


def broadcast(value: Value, shape: Shape, dims: Optional[Sequence[int]] = None) -> Value:
    """Axis i of the value is axis dims[i] of the result, the last ones without `dims`; sizes of 1 are repeated."""
    if dims is None:
        dims = range(len(shape) - len(value.axes), len(shape))
    axes: list[Parts] = [(Axis(n),) for n in shape]
    for parts, to in zip(value.axes, dims):
        size = size_of(parts)
        if size == shape[to]:
            axes[to] = parts
        elif size != 1:
            raise Refused(f"expected the size {shape[to]} or 1, found {size}")
    return Value(value.graph, value.node, tuple(axes))


def align(values: Sequence[Value]) -> list[Value]:
    """Values of one logical shape, each axis in the same parts in all of them."""
    columns: list[list[Parts]] = []
    for parts in zip(*(v.axes for v in values)):
        sizes = {size_of(p) for p in parts}
        if len(sizes) != 1:
            raise Refused(f"expected equal sizes, found {' and '.join(map(str, sorted(sizes, key=str)))}")
        decided = {tuple(a.size for a in p) for p in parts if not _open(p)}
        if len(decided) > 1:
            raise Refused("an operation that mixes samples: two values have the batch at different places of one axis")
        wanted = decided.pop() if decided else tuple(a.size for a in parts[0])
        columns.append([p if tuple(a.size for a in p) == wanted else tuple(Axis(n) for n in wanted) for p in parts])
    return [Value(v.graph, v.node, tuple(column[i] for column in columns)) for i, v in enumerate(values)]


def _open(parts: Parts) -> bool:
    """Whether it is a batch axis of which it is open how the batch lies in it."""
    return len(parts) == 1 and isinstance(parts[0].size, Batch) and parts[0].size.times != 1


def decide(value: Value) -> Value:
    """With the batch by itself in each axis: the first part where that is open."""
    axes = tuple((Axis(BATCH), Axis(size_of(p).times)) if _open(p) else p  # type: ignore[union-attr]
                 for p in value.axes)
    return Value(value.graph, value.node, axes)


def order_of(values: Sequence[Value]) -> list[int]:
    """Parts that some of the aligned values store, in the order in which a result should store them."""
    flats = [v.flat for v in values]
    count = len(flats[0])
    stored = {i for i in range(count) if any(f[i].place is not None for f in flats)}
    batch = batch_of(flats[0])
    for flat in flats:
        mine = sorted((i for i in range(count) if flat[i].place is not None), key=lambda i: flat[i].place or 0)
        if set(mine) == stored:
            return mine
    first = [batch] if batch is not None and batch in stored else []
    return first + [i for i in sorted(stored) if i not in first]


def arrange(value: Value, order: Sequence[int], expand: Collection[int] = ()) -> Node:
    """The tensor whose axes are these parts of the value, in this order.

    Parts that are not stored have the size 1, but those of `expand`, which are repeated. All stored parts must be in
    `order`, the batch first.
    """
    graph, flat = value.graph, value.flat
    kept = [i for i in order if flat[i].place is not None]
    node = transpose_node(value, [flat[i].place for i in kept])  # type: ignore[misc]
    node = graph.reshape_node(node, tuple(_stored(flat[i].size) if flat[i].place is not None else 1 for i in order))
    full = tuple(_stored(flat[i].size) if flat[i].place is not None or i in expand else 1 for i in order)
    return broadcast_node(value, node, full)


def _stored(size: Size) -> Optional[int]:
    if isinstance(size, Batch):
        if size != BATCH:
            raise Refused("a batch axis whose parts are not known")
        return None
    return size


def broadcast_node(value: Value, node: Node, shape: Stored) -> Node:
    """The tensor repeated along axes of size 1."""
    if node.shape == shape:
        return node
    graph = value.graph
    if node.constant is not None and None not in shape:
        return graph.constant_node(np.broadcast_to(node.constant, shape), node.dtype)  # type: ignore[arg-type]
    if not node.split:  # axes that are missing in front are repeated
        first = next((i for i, n in enumerate(node.shape) if n != 1), len(node.shape))
        node = graph.reshape_node(node, node.shape[first:])
    return graph.node("broadcast", (node,), "mt.broadcast {0} : {t0} to {t}", shape, node.dtype)


def transpose_node(value: Value, permutation: Sequence[int]) -> Node:
    """The stored tensor with its axes in another order."""
    node, graph = value.node, value.graph
    if list(permutation) == list(range(len(node.shape))):
        return node
    if node.constant is not None:
        return graph.constant_node(np.transpose(node.constant, permutation), node.dtype)
    if node.split and permutation[0] != 0:
        raise Refused("a batch axis that is not stored first")
    if node.op == "transpose":
        inner = [node.info[i] for i in permutation]
        node = node.operands[0]
        if inner == list(range(len(node.shape))):
            return node
        permutation = inner
    made = graph.node("transpose", (node,), f"mt.transpose {{0}} by {list(permutation)} : {{t0}}",
                      tuple(node.shape[i] for i in permutation), node.dtype)
    made.info = list(permutation)
    return made


def canonical(value: Value, expand: bool = False) -> Value:
    """Stored with the batch first and the rest in logical order; with `expand` every part is stored but those of 1."""
    value = decide(value)
    flat = value.flat
    wanted = [i for i, a in enumerate(flat) if a.place is not None or (expand and a.size != 1)]
    batch = batch_of(flat)
    order = ([batch] if batch in wanted else []) + [i for i in wanted if i != batch]
    return replaced(value, arrange(value, order, order if expand else ()), order)


def replaced(value: Value, node: Node, order: Sequence[int]) -> Value:
    """The value with another stored tensor, whose axes are the parts `order`."""
    places = {part: place for place, part in enumerate(order)}
    counter = iter(range(len(value.flat)))
    axes = []
    for parts in value.axes:
        row = []
        for part in parts:
            i = next(counter)
            row.append(Axis(part.size, places.get(i)))
        axes.append(tuple(row))
    return Value(value.graph, node, tuple(axes))


def stored_last(value: Value, axis: int) -> Value:
    """Stored with this logical axis last, and all parts of it."""
    value = decide(value)
    flat = value.flat
    first = sum(len(p) for p in value.axes[:axis])
    if len(value.axes[axis]) != 1 or isinstance(flat[first].size, Batch):
        raise Refused("an operation along the batch")
    stored = [i for i, a in enumerate(flat) if a.place is not None and i != first]
    order = sorted(stored, key=lambda i: flat[i].place or 0) + [first]
    return replaced(value, arrange(value, order, [first]), order)


# Reshape


def reshape(value: Value, shape: Shape) -> Value:
    """The same elements, row major, in another logical shape. The batch stays by itself."""
    if value.shape == shape:
        return value
    if not value.node.shape:  # all elements are equal
        return Value(value.graph, value.node, tuple((Axis(n),) for n in shape))
    value = decide(value)
    old = [a for a in value.flat if a.size != 1]
    at = next((i for i, a in enumerate(old) if isinstance(a.size, Batch)), None)
    groups = _split_batch(shape, None if at is None else math.prod(int(a.size) for a in old[:at]))  # type: ignore
    new = [n for sizes in groups for n in sizes if n != 1]
    there = next((i for i, n in enumerate(new) if isinstance(n, Batch)), None)
    if (at is None) != (there is None):
        raise Refused(f"expected as many elements in {list(shape)} as in {list(value.shape)}")
    chunks = _chunks(old[:at], new[:there])
    if at is not None:
        chunks.append(([old[at]], [BATCH]))
        chunks += _chunks(old[at + 1:], new[there + 1:])  # type: ignore[operator]
    if any(not _simple(parts, sizes) for parts, sizes in chunks):
        expand = {id(a) for parts, sizes in chunks if len(parts) != 1 or len(sizes) != 1
                  if any(a.place is not None for a in parts) for a in parts}
        value, old = _rearranged(value, old, expand)
        return reshape(value, shape)
    return _reshaped(value, chunks, groups)


def _split_batch(shape: Shape, before: Optional[int]) -> list[list[Size]]:
    """The parts of each axis of a new shape; `before`: elements in front of the batch."""
    groups: list[list[Size]] = []
    for n in shape:
        if not isinstance(n, Batch):
            groups.append([n])
            if before is not None and before > 0:
                before = before // n if n and before % n == 0 else -before
            continue
        if before is None or before < 1 or n.times % before:
            raise Refused("a reshape that mixes samples: it folds a part of another axis with the batch")
        groups.append([m for m in (before, BATCH, n.times // before) if m != 1])
        before = 0
    return groups


def _chunks(old: list[Axis], new: list[Size]) -> list[tuple[list[Axis], list[Size]]]:
    """Pairs of the fewest parts and sizes that have equal products, in order."""
    chunks: list[tuple[list[Axis], list[Size]]] = []
    i = j = 0
    while i < len(old) or j < len(new):
        parts, sizes = old[i:i + 1], new[j:j + 1]
        i, j = i + 1, j + 1
        while _product([a.size for a in parts]) != _product(sizes):
            if _product([a.size for a in parts]) < _product(sizes) and i < len(old):
                parts, i = [*parts, old[i]], i + 1
            elif j < len(new):
                sizes, j = [*sizes, new[j]], j + 1
            else:
                raise Refused("a reshape that mixes samples, or one to another number of elements")
        chunks.append((parts, sizes))
    return chunks


def _product(sizes: Sequence[Size]) -> int:
    return math.prod(int(n) for n in sizes)  # type: ignore


def _simple(parts: list[Axis], sizes: list[Size]) -> bool:
    """Whether the parts are equal to the sizes, or not stored, or stored one after the other."""
    places = [a.place for a in parts]
    if (len(parts) == 1 and len(sizes) == 1) or all(p is None for p in places):
        return True
    return None not in places and places == list(range(places[0], places[0] + len(places)))  # type: ignore


def _rearranged(value: Value, old: list[Axis], expand: set[int]) -> tuple[Value, list[Axis]]:
    flat = value.flat
    wanted = [i for i, a in enumerate(flat) if a.place is not None or id(a) in expand]
    batch = batch_of(flat)
    order = ([batch] if batch in wanted else []) + [i for i in wanted if i != batch]
    made = replaced(value, arrange(value, order, [i for i in order if id(flat[i]) in expand]), order)
    return made, [a for a in made.flat if a.size != 1]


def _reshaped(value: Value, chunks: list[tuple[list[Axis], list[Size]]], groups: list[list[Size]]) -> Value:
    """The result where all chunks are simple."""
    runs = sorted((parts[0].place, parts, sizes) for parts, sizes in chunks if parts and parts[0].place is not None)
    stored: list[Optional[int]] = []
    starts: dict[int, int] = {}  # the first new place of the chunk whose first old place is the key
    for place, _, sizes in runs:
        starts[place] = len(stored)
        stored += [_stored(n) for n in sizes]
    node = value.graph.reshape_node(value.node, tuple(stored))
    made: list[Axis] = []
    for parts, sizes in chunks:
        first = parts[0].place if parts else None
        made += [Axis(n, None if first is None else starts[first] + i) for i, n in enumerate(sizes)]
    rest = iter(made)
    axes = tuple(tuple(Axis(1) if n == 1 else next(rest) for n in sizes) for sizes in groups)
    return Value(value.graph, node, axes)
