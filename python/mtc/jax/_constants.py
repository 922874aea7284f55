# SPDX-License-Identifier: Apache-2.0
"""Lookups and updates at constant places, whatever their dimension numbers.

JAX itself looks up the numbers of the elements, along the axes that are not taken whole, once. The values are then
taken by these numbers.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Sequence

import jax
import numpy as np

from mtc._trace import Batch, Refused, Value, layout, moves
from mtc._trace import elementwise as e
from mtc.jax._modes import CLIP, FILL, PROMISED, fill_of
from mtc.jax._reader import ACROSS, Reader

NONE = -1  # the number of an element that is out of range


@dataclasses.dataclass
class _Numbers:
    """Which elements a lookup takes.

    Attributes:
        whole: axes of the operand that are taken whole.
        moved: its other axes.
        outer: the axes of the result that `whole` becomes.
        elements: numbers in the row major order of `moved`, for the other axes of the result.
    """

    whole: list[int]
    moved: list[int]
    outer: list[int]
    elements: Any

    def lines(self, operand: Value) -> Value:
        """The operand with the axes `moved` as one, the last one."""
        shape = operand.shape
        count = int(np.prod([int(shape[i]) for i in self.moved]))  # type: ignore[arg-type]
        return layout.reshape(layout.transpose(operand, [*self.whole, *self.moved]),
                              (*(shape[i] for i in self.whole), count))

    def inner(self, rank: int) -> list[int]:
        """The axes of a result of this rank that are not of `whole`."""
        return [i for i in range(rank) if i not in self.outer]


def _numbers(shape: Sequence[Any], indices: Any, dimensions: Any, sizes: Sequence[Any], mode: Any) -> _Numbers:
    """`sizes`: of the slices along each axis."""
    batching = list(dimensions.operand_batching_dims)
    looked_up = [*dimensions.start_index_map, *batching]
    for axis, n in enumerate(shape):
        if isinstance(n, Batch) and (axis in looked_up or sizes[axis] != n):
            raise Refused(f"a lookup of samples: {ACROSS}")
    whole = [i for i, (n, m) in enumerate(zip(shape, sizes)) if n == m and i not in looked_up
             and i not in dimensions.collapsed_slice_dims]
    moved = [i for i in range(len(shape)) if i not in whole]
    windows = [i for i in range(len(shape)) if i not in (*dimensions.collapsed_slice_dims, *batching)]
    outer = [dimensions.offset_dims[windows.index(i)] for i in whole]
    static = [1 if i in whole else int(n) for i, n in enumerate(shape)]
    found = jax.lax.gather(np.arange(int(np.prod(static)), dtype=np.int32).reshape(static), indices, dimensions,
                           [1 if i in whole else int(n) for i, n in enumerate(sizes)],
                           mode=CLIP if mode == PROMISED else mode, fill_value=NONE)
    return _Numbers(whole, moved, outer, np.asarray(found).squeeze(tuple(outer)))


def gather(r: Reader, equation: Any, operand: Value, indices: Any, sizes: Sequence[Any]) -> Value:
    """A lookup at constant places."""
    p = equation.params
    found = _numbers(operand.shape, indices, p["dimension_numbers"], sizes, p["mode"])
    lines, elements = found.lines(operand), found.elements
    graph, last = operand.graph, len(found.whole)
    if not elements.size:
        raise Refused("a value without elements")
    made = moves.take(lines, graph.constant(np.maximum(elements, 0), "i32"), last)
    if (elements == NONE).any():
        fill = graph.constant(np.asarray(fill_of(p["fill_value"], equation.invars[0].aval.dtype)), made.dtype)
        made = e.select(graph.constant(elements != NONE), made, fill)
    if p["mode"] == PROMISED and made.learned:
        inside = _numbers(operand.shape, indices, p["dimension_numbers"], sizes, FILL).elements != NONE
        if not inside.all():  # JAX reads the nearest one, and gives it no gradient
            made = e.select(graph.constant(inside), made, graph.stop_gradient(made))
    rank = made.rank
    order = [*found.outer, *found.inner(rank)]
    return layout.transpose(made, [order.index(i) for i in range(rank)])


def lookup_of(given: Any) -> Any:
    """The numbers of the lookup that has the axes of an update."""
    return jax.lax.GatherDimensionNumbers(
        given.update_window_dims, given.inserted_window_dims, given.scatter_dims_to_operand_dims,
        given.operand_batching_dims, given.scatter_indices_batching_dims)


def sizes_of(given: Any, shape: Sequence[Any], rank: int) -> list[Any]:
    """The sizes along the axes of the array of the parts that an update of this shape changes."""
    windows = iter(given.update_window_dims)
    return [1 if i in given.inserted_window_dims or i in given.operand_batching_dims else shape[next(windows)]
            for i in range(rank)]


def scatter(equation: Any, operand: Value, indices: Any, updates: Value, way: str) -> Value:
    """An update at constant places. Of several at one place the last is what "set" leaves."""
    given = equation.params["dimension_numbers"]
    numbers, sizes = lookup_of(given), sizes_of(given, updates.shape, operand.rank)
    mode = CLIP if equation.params["mode"] == CLIP else FILL
    found = _numbers(operand.shape, indices, numbers, sizes, mode)
    lines = found.lines(operand)
    new = layout.transpose(updates, [*found.outer, *found.inner(updates.rank)])
    elements = found.elements.reshape(-1)
    new = layout.reshape(new, (*new.shape[:len(found.outer)], elements.size))
    if equation.params["mode"] == PROMISED and way == "add" and new.learned and (elements == NONE).any():
        inside = new.graph.constant(elements != NONE)  # JAX drops the others, and gives them the nearest one's gradient
        new = e.select(inside, new, new - new.graph.stop_gradient(new))
        elements = _numbers(operand.shape, indices, numbers, sizes, CLIP).elements.reshape(-1)
    made = _updated(lines, new, elements, way)
    shape = operand.shape
    made = layout.reshape(made, tuple(shape[i] for i in (*found.whole, *found.moved)))
    order = [*found.whole, *found.moved]
    return layout.transpose(made, [order.index(i) for i in range(len(order))])


def _updated(lines: Value, new: Value, elements: Any, way: str) -> Value:
    """Elements of each line, by their numbers, changed by new ones."""
    graph, last = lines.graph, lines.rank - 1
    size = int(lines.shape[last])  # type: ignore[arg-type]
    rounds: list[Any] = []  # for each element of a line the number of the new one, in the order of these
    for i, element in enumerate(elements):
        if element == NONE:
            continue
        row = next((row for row in rounds if row[element] == NONE), None)
        if row is None or way == "set":
            row = rounds[0] if rounds and way == "set" else np.full(size, NONE)
            if not any(row is known for known in rounds):
                rounds.append(row)
        row[element] = i
    for row in rounds:
        taken = moves.take(new, graph.constant(np.maximum(row, 0), "i32"), last)
        changed = taken if way == "set" else e.binary(way, lines, taken)
        lines = e.select(graph.constant(row != NONE), changed, lines)
    return lines
