# SPDX-License-Identifier: Apache-2.0
"""Products of matrices, in general: contracted axes, axes in common, free axes."""

from __future__ import annotations

import math
from typing import Any, Optional, Sequence

import numpy as np

from mtc._trace import elementwise as e
from mtc._trace import integers, reductions
from mtc._trace.layout import align, arrange, broadcast, decide, expand_dims, transpose
from mtc._trace.values import Axis, Batch, Node, Refused, Stored, Value

Pair = tuple[Sequence[int], Sequence[int]]
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def dot_general(lhs: Value, rhs: Value, contract: Pair, batch: Pair = ((), ())) -> Value:
    """Sums of products over the `contract` axes of both; `batch` axes are in common.

    Axes of the result: those in common, the free ones of lhs, the free ones of rhs. A batch axis of the trace may be in
    common, free in one of the two, or contracted in both, which is a sum over the samples.
    """
    if lhs.dtype != "f32" or rhs.dtype != "f32":
        dtype = next(d for d in ("f32", "i32", "i1") if d in (lhs.dtype, rhs.dtype))
        terms = math.prod(n.times if isinstance(n, Batch) else n for n in (lhs.shape[i] for i in contract[0]))
        if dtype == "i32" and integers.largest(lhs.node) * integers.largest(rhs.node) * terms > integers.EXACT:
            return _of_integers(e.cast(lhs, "i32"), e.cast(rhs, "i32"), contract, batch)
        return e.cast(dot_general(e.cast(lhs, "f32"), e.cast(rhs, "f32"), contract, batch), dtype)
    folded = _fold(lhs, rhs, contract, batch)
    if folded is not None:
        return folded
    if lhs.scalar == 0 or rhs.scalar == 0:
        free = [n for i, n in enumerate(lhs.shape) if i not in contract[0] and i not in batch[0]]
        free += [n for i, n in enumerate(rhs.shape) if i not in contract[1] and i not in batch[1]]
        return broadcast(lhs.graph.constant(0.0), (*(lhs.shape[i] for i in batch[0]), *free))
    return _Product(lhs, rhs, contract, batch).build()


def _of_integers(lhs: Value, rhs: Value, contract: Pair, batch: Pair) -> Value:
    """The same of integers that f32 may round: all products, and their sums."""
    free = [[i for i in range(len(v.axes)) if i not in (*contract[n], *batch[n])] for n, v in enumerate((lhs, rhs))]
    left = transpose(lhs, [*batch[0], *free[0], *contract[0]])
    right = transpose(rhs, [*batch[1], *free[1], *contract[1]])
    common, first, second = len(batch[0]), len(free[0]), len(free[1])
    left = expand_dims(left, range(common + first, common + first + second))
    right = expand_dims(right, range(common, common + first))
    made = e.binary("mul", left, right)
    return reductions.reduce("sum", made, range(common + first + second, len(made.axes)))


def matmul(a: Value, b: Value) -> Value:
    """The product of the last two axes, of [..., M, K] and [K, N], or of [..., M, K] and [..., K, N]."""
    rank = len(a.axes)
    if len(b.axes) == 2:
        return dot_general(a, b, ((rank - 1,), (0,)))
    common = list(range(rank - 2))
    return dot_general(a, b, ((rank - 1,), (rank - 2,)), (common, common))


def _fold(lhs: Value, rhs: Value, contract: Pair, batch: Pair) -> Optional[Value]:
    if lhs.array is None or rhs.array is None:
        return None
    letters = iter(LETTERS)
    left = [next(letters) for _ in lhs.axes]
    right = [next(letters) for _ in rhs.axes]
    for i, j in [*zip(*contract), *zip(*batch)]:
        right[j] = left[i]
    free = [left[i] for i in batch[0]]
    free += [x for i, x in enumerate(left) if i not in contract[0] and i not in batch[0]]
    free += [x for i, x in enumerate(right) if i not in contract[1] and i not in batch[1]]
    text = f"{''.join(left)},{''.join(right)}->{''.join(free)}"
    return lhs.graph.constant(np.einsum(text, lhs.array, rhs.array).astype(np.float32))


Part = tuple[str, int]  # ("l", number of a part of lhs) or ("r", of rhs)


class _Product:
    """One product: its parts by what becomes of them."""

    def __init__(self, lhs: Value, rhs: Value, contract: Pair, batch: Pair) -> None:
        left, right = _aligned(decide(lhs), decide(rhs), [*zip(*contract), *zip(*batch)])
        self.sides = {"l": left, "r": right}
        self.graph = lhs.graph
        self.common: list[tuple[Part, Part]] = []  # stored in both
        self.inner: list[tuple[Part, Part]] = []  # contracted
        self.free: dict[str, list[Part]] = {"l": [], "r": []}  # stored in one
        self.factor: list[Axis] = []  # contracted and stored in none
        numbers = {side: _numbers(value) for side, value in self.sides.items()}
        for i, j in zip(*batch):
            for a, b in zip(numbers["l"][i], numbers["r"][j]):
                self._place_common(("l", a), ("r", b))
        for i, j in zip(*contract):
            for a, b in zip(numbers["l"][i], numbers["r"][j]):
                self._place_inner(("l", a), ("r", b))
        taken = {"l": [*contract[0], *batch[0]], "r": [*contract[1], *batch[1]]}
        self.logical: list[list[Part]] = [[("l", a) if self._stored(("l", a)) else ("r", b) for a, b in
                                           zip(numbers["l"][i], numbers["r"][j])] for i, j in zip(*batch)]
        for side, value in self.sides.items():
            for i in range(len(value.axes)):
                if i not in taken[side]:
                    parts = [(side, n) for n in numbers[side][i]]
                    self.logical.append(parts)
                    self.free[side] += [p for p in parts if self._stored(p)]

    def _axis(self, part: Part) -> Axis:
        return self.sides[part[0]].flat[part[1]]

    def _stored(self, part: Part) -> bool:
        return self._axis(part).place is not None

    def _is_batch(self, part: Part) -> bool:
        return isinstance(self._axis(part).size, Batch)

    def _place_common(self, a: Part, b: Part) -> None:
        if self._stored(a) and self._stored(b):
            self.common.append((a, b))
        elif self._stored(a) or self._stored(b):
            part = a if self._stored(a) else b
            self.free[part[0]].append(part)

    def _place_inner(self, a: Part, b: Part) -> None:
        if self._stored(a) or self._stored(b):
            self.inner.append((a, b))
        else:
            self.factor.append(self._axis(a))

    def build(self) -> Value:
        in_free = [side for side in "lr" if any(map(self._is_batch, self.free[side]))]
        if len(in_free) == 2:
            raise Refused("a product of every sample with every other")
        first = in_free[0] if in_free else "l"
        summed = next((pair for pair in self.inner if self._is_batch(pair[0])), None)
        if summed is not None and not (len(self.inner) == 1 and not self.common and self._both(summed)):
            # The products of each sample, and then their sum.
            self.inner.remove(summed)
            self.common.insert(0, summed)
            return self._finish(*self._multiply(first, summed), summed)
        return self._finish(*self._multiply(first, None), None)

    def _both(self, pair: tuple[Part, Part]) -> bool:
        return all(map(self._stored, pair))

    def _multiply(self, first: str, summed: Optional[tuple[Part, Part]]) -> tuple[Node, list[Part]]:
        """The product's tensor, and the part of each of its axes. `first`: the side that is the left operand."""
        second = "r" if first == "l" else "l"
        common = sorted(self.common, key=lambda pair: not self._is_batch(pair[0]))
        rows, columns = list(self.free[first]), list(self.free[second])
        batch = next((p for p in rows if self._is_batch(p)), None)
        if batch is not None:
            rows.remove(batch)
        lead = [pair[0] for pair in common]
        if batch is not None:
            lead.insert(0, batch)
        over_batch = any(self._is_batch(pair[0]) for pair in self.inner)
        whole = bool(common)  # both operands have the leading axes
        side_lead = {first: [*([batch] if batch else []), *(p[first == "r"] for p in common)],
                     second: [*([batch] if batch and whole else []), *(p[second == "r"] for p in common)]}
        inner = {first: [p[first == "r"] for p in self.inner], second: [p[second == "r"] for p in self.inner]}
        split = batch is not None or any(self._is_batch(p[0]) for p in common)
        groups = math.prod(self._size(p[0]) for p in common if not self._is_batch(p[0])) if whole else 0
        head: list[Optional[int]] = ([None] if split else []) + ([groups] if groups > 1 or (whole and not split)
                                                                  else [])
        m, n, k = (math.prod(self._size(p) for p in parts) for parts in (rows, columns, inner[first]))
        if over_batch:  # [?, M]^T [?, N]
            a = self._operand(first, inner[first] + rows, (None, m))
            b = self._operand(second, inner[second] + columns, (None, n))
            node = self._node(a, b, " transpose_a", (m, n))
            return self._unmerged(node, rows + columns)
        merged_rows = not whole and split and m == 1 and not rows
        a_shape: Stored = (*head, k) if merged_rows else (*head, m, k)
        a = self._operand(first, side_lead[first] + rows + inner[first], a_shape)
        b_head = head if whole else []
        transposed = self._is_after(second, inner[second], columns)
        b_parts = columns + inner[second] if transposed else inner[second] + columns
        b = self._operand(second, side_lead[second] + b_parts, (*b_head, n, k) if transposed else (*b_head, k, n),
                          batch)
        shape: Stored = (*head, n) if merged_rows else (*head, m, n)
        node = self._node(a, b, " transpose_b" if transposed else "", shape)
        return self._unmerged(node, lead + rows + columns)

    def _size(self, part: Part) -> int:
        size = self._axis(part).size
        return 1 if isinstance(size, Batch) else size

    def _is_after(self, side: str, inner: list[Part], columns: list[Part]) -> bool:
        """Whether the contracted parts are stored behind the free ones."""
        first, last = ([self._axis(p).place for p in parts] for parts in (inner, columns))
        if not first or not last or None in first or None in last:
            return False
        return min(p or 0 for p in first) > max(p or 0 for p in last)

    def _operand(self, side: str, parts: list[Part], shape: Stored, batch: Optional[Part] = None) -> Node:
        """An operand with these parts in this order, as a tensor of this shape."""
        value = self.sides[side]
        foreign = [p for p in parts if p[0] != side]  # the batch axis of the other operand
        order = [p[1] for p in parts if p[0] == side]
        node = arrange(value, order, order)
        node = self.graph.reshape_node(node, (1, *shape[1:]) if foreign else shape)
        if foreign:
            node = self.graph.node("broadcast", (node,), "mt.broadcast {0} : {t0} to {t}", shape, "f32")
        return node

    def _node(self, a: Node, b: Node, flags: str, shape: Stored) -> Node:
        node = self.graph.node("matmul", (a, b), f"mt.matmul {{0}}, {{1}}{flags} : {{t0}}, {{t1}}", shape, "f32")
        node.info = flags
        return node

    def _unmerged(self, node: Node, parts: list[Part]) -> tuple[Node, list[Part]]:
        kept = [p for p in parts if self._axis(p).size != 1]
        shape = tuple(None if self._is_batch(p) else self._size(p) for p in kept)
        return self.graph.reshape_node(node, shape), kept

    def _finish(self, node: Node, parts: list[Part], summed: Optional[tuple[Part, Part]]) -> Value:
        if summed is not None:
            shape = node.shape[1:]
            node = self.graph.node("reduce_sum", (node,), "mt.reduce sum, {0} over [0] : {t0}", shape, "f32")
            node.info = [0]
            parts = parts[1:]
        places = {p: i for i, p in enumerate(parts)}
        same = {b: a for a, b in self.common}
        axes = tuple(tuple(Axis(self._axis(p).size, places.get(same.get(p, p))) for p in row) for row in self.logical)
        value = Value(self.graph, node, axes)
        for axis in self.factor:
            times = self.graph.count(axis.size) if isinstance(axis.size, Batch) else axis.size
            value = e.binary("mul", value, times)
        return value


def _numbers(value: Value) -> list[list[int]]:
    """The numbers of the parts of each axis."""
    counter = iter(range(len(value.flat)))
    return [[next(counter) for _ in parts] for parts in value.axes]


def _aligned(lhs: Value, rhs: Value, pairs: Sequence[tuple[int, int]]) -> tuple[Value, Value]:
    """Both with the same parts in each pair of axes."""
    left, right = list(lhs.axes), list(rhs.axes)
    for i, j in pairs:
        a, b = align([Value(lhs.graph, lhs.node, (left[i],)), Value(rhs.graph, rhs.node, (right[j],))])
        left[i], right[j] = a.axes[0], b.axes[0]
    return Value(lhs.graph, lhs.node, tuple(left)), Value(rhs.graph, rhs.node, tuple(right))


def along_axis(value: Value, matrix: Any, axis: int) -> Value:
    """The product of each line along a logical axis with a matrix of numbers: [..., n, ...] and [n, m]."""
    made = dot_general(value, value.graph.constant(matrix), ((axis,), (0,)))
    last = len(value.axes) - 1
    return transpose(made, [*range(axis), last, *range(axis, last)])
