# SPDX-License-Identifier: Apache-2.0
"""The same elements in another shape: broadcast, reshape, transpose. How values are stored is the compiler's affair."""

from __future__ import annotations

from typing import Optional, Sequence

import numpy as np

from mtc._trace.values import BATCH, Batch, Refused, Shape, Size, Value, elements, has_batch


def transpose(value: Value, permutation: Sequence[int]) -> Value:
    """Axis i of the result is axis permutation[i]."""
    permutation = tuple(int(i) for i in permutation)
    if permutation == tuple(range(value.rank)):
        return value
    shape = tuple(value.shape[i] for i in permutation)
    if value.constant is not None:
        return value.graph.repeated(np.transpose(value.constant, permutation), shape, value.dtype)
    if value.op == "transpose":
        return transpose(value.operands[0], [value.dims[i] for i in permutation])
    return value.graph.operation("transpose", (value,), f"graph.transpose {{0}} by {list(permutation)}", shape,
                                 value.dtype, permutation)


def move_axis(value: Value, source: int, target: int) -> Value:
    """One axis at another place, the others in their order. Both count from the end where negative."""
    order = list(range(value.rank))
    order.insert(target % value.rank, order.pop(source))
    return transpose(value, order)


def expand_dims(value: Value, axes: Sequence[int]) -> Value:
    """Axes of size 1 at these places of the result."""
    rank = value.rank + len(axes)
    dims = [i for i in range(rank) if i not in axes]
    shape: list[Size] = [1] * rank
    for i, n in zip(dims, value.shape):
        shape[i] = n
    return broadcast(value, tuple(shape), dims)


def squeeze(value: Value, axes: Sequence[int]) -> Value:
    """Without these axes, of size 1."""
    for i in axes:
        if value.shape[i] != 1:
            raise Refused(f"expected an axis of size 1 to leave out, found {value.shape[i]}")
    return reshape(value, tuple(n for i, n in enumerate(value.shape) if i not in axes))


def broadcast(value: Value, shape: Shape, dims: Optional[Sequence[int]] = None) -> Value:
    """Axis i of the value is axis dims[i] of the result, the last ones without `dims`; sizes of 1 are repeated."""
    shape = tuple(shape)
    if dims is None:
        dims = range(len(shape) - value.rank, len(shape))
    dims = tuple(int(i) for i in dims)
    for n, to in zip(value.shape, dims):
        if n not in (1, shape[to]):
            raise Refused(f"expected the size {shape[to]} or 1, found {n}")
    if value.shape == shape:
        return value
    if value.constant is not None:
        sizes = [1] * len(shape)
        for n, to in zip(value.constant.shape, dims):
            sizes[to] = n
        return value.graph.repeated(value.constant.reshape(sizes), shape, value.dtype)
    if value.op == "broadcast":
        return broadcast(value.operands[0], shape, [dims[i] for i in value.dims])
    return value.graph.operation("broadcast", (value,), f"graph.broadcast {{0}} dims {list(dims)}", shape, value.dtype,
                                 dims)


def reshape(value: Value, shape: Shape) -> Value:
    """The same elements, row major, in another shape."""
    shape = tuple(shape)
    if value.shape == shape:
        return value
    if elements(value.shape) != elements(shape) or has_batch(value.shape) != has_batch(shape):
        raise Refused(f"expected as many elements in {list(shape)} as in {list(value.shape)}")
    if value.constant is not None:
        return _constant(value, shape)
    if value.op == "reshape":
        return reshape(value.operands[0], shape)
    kept = _without_ones(value, shape)
    if kept is not None:
        return kept
    return value.graph.operation("reshape", (value,), "graph.reshape {0}", shape, value.dtype)


def _without_ones(value: Value, shape: Shape) -> Optional[Value]:
    """The operand of a broadcast that adds axes of size 1 alone, where the shape has none of these either."""
    if value.op != "broadcast" or [n for n in value.shape if n != 1] != [n for n in shape if n != 1]:
        return None
    operand = value.operands[0]
    if [n for n in operand.shape if n != 1] != [n for n in shape if n != 1]:
        return None
    return reshape(operand, shape)


def _constant(value: Value, shape: Shape) -> Value:
    """Reshaped at once, but where the batch is folded with other axes."""
    array, graph = value.constant, value.graph
    assert array is not None
    if array.size == 1:
        return graph.repeated(array.reshape([1] * len(shape)), shape, value.dtype)
    if not has_batch(shape):
        whole = np.broadcast_to(array, value.shape)  # type: ignore[arg-type]
        return graph.repeated(whole.reshape(shape), shape, value.dtype)  # type: ignore[arg-type]
    if BATCH in shape and BATCH in value.shape:
        old, new = value.shape.index(BATCH), shape.index(BATCH)
        if elements(shape[:new]) == elements(value.shape[:old]) and array.shape[old] == 1:
            static = [1 if isinstance(n, Batch) else n for n in value.shape]
            whole = np.broadcast_to(array, static)
            return graph.repeated(whole.reshape([1 if isinstance(n, Batch) else n for n in shape]), shape, value.dtype)
    return graph.operation("reshape", (value,), "graph.reshape {0}", shape, value.dtype)


def unshaped(value: Value) -> Value:
    """The value that this one is but for axes of size 1 and for axes that are folded or unfolded."""
    while value.op in ("reshape", "broadcast") and elements(value.operands[0].shape) == elements(value.shape):
        value = value.operands[0]
    return value


def without_repeats(value: Value) -> Value:
    """With the size 1 along axes that repeat its elements."""
    repeated = repeats(value)
    if not repeated:
        return value
    shape = tuple(1 if i in repeated else n for i, n in enumerate(value.shape))
    return broadcast(value.operands[0], shape, value.dims)


def from_stored(value: Value, shape: Shape) -> Value:
    """A value whose batch is first, if there is one, as of `values.stored`, in the shape that has it elsewhere or
    folded."""
    if not has_batch(shape):
        return value
    at = next(i for i, n in enumerate(shape) if isinstance(n, Batch))
    order = [*range(1, at + 1), 0, *range(at + 1, value.rank)]
    return reshape(transpose(value, order), shape)


def repeats(value: Value) -> dict[int, Size]:
    """The axes along which a broadcast repeats its operand, and how often."""
    if value.op != "broadcast":
        return {}
    kept = {to for n, to in zip(value.operands[0].shape, value.dims) if n == value.shape[to]}
    return {i: n for i, n in enumerate(value.shape) if i not in kept and n != 1}
