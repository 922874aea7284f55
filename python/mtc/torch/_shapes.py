# SPDX-License-Identifier: Apache-2.0
"""ATen operations that move elements: views, slices, concatenations."""

from __future__ import annotations

from typing import Any, Optional, Sequence

import numpy as np

from mtc._trace import Batch, Refused, Value, layout, linear, moves, products, reductions
from mtc._trace import elementwise as e
from mtc.torch._convert import Converter
from mtc.torch._framework import torch
from mtc.torch._handlers import op
from mtc.torch._known import Known


@op("view", "reshape", "_unsafe_view", "flatten", "unflatten", "squeeze", "unsqueeze", "view_as", "reshape_as",
    "_reshape_alias")
def reshape(c: Converter, value: Any, *_: Any) -> Value:
    return layout.reshape(c.value(value), c.shape())


@op("atleast_1d", "atleast_2d", "atleast_3d")
def at_least(c: Converter, value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [layout.reshape(c.value(v), shape) for v, shape in zip(value, c.shapes())]
    return layout.reshape(c.value(value), c.shape())


@op("meshgrid")
def mesh(c: Converter, values: Sequence[Any], indexing: str = "ij") -> list[Value]:
    """Each line along its own axis; with "xy" the first two change places."""
    made = []
    for i, (value, shape) in enumerate(zip(values, c.shapes())):
        axis = 1 - i if indexing == "xy" and len(shape) > 1 and i < 2 else i
        line = layout.reshape(c.value(value), tuple(n if k == axis else 1 for k, n in enumerate(shape)))
        made.append(layout.broadcast(line, shape))
    return made


@op("diagonal")
def diagonal(c: Converter, value: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Value:
    return _diagonal(c, value, offset, dim1, dim2)


def _diagonal(c: Converter, value: Any, offset: int, first: int, second: int) -> Value:
    """Of two axes that are not the batch: of each row the element that belongs to it."""
    x = c.value(value)
    axes = [first % len(x.shape), second % len(x.shape)]
    rest = [i for i in range(len(x.shape)) if i not in axes]
    x = layout.transpose(x, [*rest, *axes])
    rows, columns = x.shape[-2:]
    if isinstance(rows, Batch) or isinstance(columns, Batch):
        raise Refused("a diagonal along the batch")
    begin, length = max(-offset, 0), int(c.shape()[-1])  # type: ignore[arg-type]
    if length == 0:
        raise Refused("a value without elements")
    seen = np.eye(int(rows), int(columns), offset, dtype=bool)
    made = reductions.reduce("sum", e.select(x.graph.constant(seen), x, e.as_value(x, 0)), [len(x.shape) - 1])
    return moves.part(made, len(rest), begin, begin + length)


@op("linalg_diagonal")
def last_diagonal(c: Converter, value: Any, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Value:
    return _diagonal(c, value, offset, dim1, dim2)


@op("expand", "expand_as", "broadcast_to")
def expand(c: Converter, value: Any, *_: Any) -> Value:
    return layout.broadcast(c.value(value), c.shape())


@op("broadcast_tensors")
def broadcast_all(c: Converter, values: Sequence[Any]) -> list[Value]:
    return [layout.broadcast(c.value(v), shape) for v, shape in zip(values, c.shapes())]


@op("permute")
def permute(c: Converter, value: Any, dims: Sequence[int]) -> Value:
    x = c.value(value)
    return layout.transpose(x, [d % len(x.shape) for d in dims])


@op("transpose", "swapaxes")
def transpose(c: Converter, value: Any, a: int, b: int) -> Value:
    x = c.value(value)
    order = list(range(len(x.shape)))
    if not order:
        return x
    order[a % len(order)], order[b % len(order)] = order[b % len(order)], order[a % len(order)]
    return layout.transpose(x, order)


@op("t", "numpy_T", "mT", "mH", "adjoint")
def matrix_transpose(c: Converter, value: Any) -> Value:
    x = c.value(value)
    return linear.matrix_transpose(x) if x.rank > 1 else layout.transpose(x, [0])


@op("movedim", "moveaxis")
def movedim(c: Converter, value: Any, source: Any, destination: Any) -> Value:
    x = c.value(value)
    rank = len(x.shape)
    froms, tos = ([d % rank for d in ([ds] if isinstance(ds, int) else ds)] for ds in (source, destination))
    order: list[Optional[int]] = [None] * rank
    for a, b in zip(froms, tos):
        order[b] = a
    rest = iter(i for i in range(rank) if i not in froms)
    return layout.transpose(x, [next(rest) if i is None else i for i in order])


@op("slice", "narrow")
def slice_(c: Converter, value: Any, dim: int = 0, start: Any = None, stop: Any = None, step: int = 1) -> Value:
    x = c.value(value)
    axis = dim % len(x.shape)
    size = x.shape[axis]
    if c.name() == "narrow":
        stop = start + stop
    if isinstance(size, Batch):
        if (start or 0) == 0 and step == 1 and c.shape()[axis] == size:
            return x
        raise Refused("a part of the samples of a batch")
    begin, end, _ = slice(start, stop, step).indices(size)
    return moves.part(x, axis, begin, end, step)


@op("select")
def select(c: Converter, value: Any, dim: int, index: int) -> Value:
    x = c.value(value)
    axis = dim % len(x.shape)
    size = x.shape[axis]
    if isinstance(size, Batch) or isinstance(index, Batch):
        raise Refused("one sample of a batch")
    return moves.at(x, axis, index % size)


@op("split", "split_with_sizes", "chunk", "tensor_split", "unbind", "unsafe_split", "unsafe_split_with_sizes",
    "unsafe_chunk")
def split(c: Converter, value: Any, sizes: Any = 0, dim: int = 0, *_: Any) -> list[Value]:
    x = c.value(value)
    if c.name() == "unbind":
        dim = sizes
    axis = dim % len(x.shape)
    if isinstance(x.shape[axis], Batch):
        raise Refused("parts of the samples of a batch")
    begin, parts = 0, []
    for shape in c.shapes():
        size = 1 if c.name() == "unbind" else int(shape[axis])  # type: ignore[arg-type]
        made = moves.part(x, axis, begin, begin + size)
        parts.append(layout.squeeze(made, (axis,)) if c.name() == "unbind" else made)
        begin += size
    return parts


@op("cat", "concat", "concatenate")
def cat(c: Converter, values: Sequence[Any], dim: int = 0) -> Value:
    made = [e.cast(c.value(v), c.dtype()) for v in values if not isinstance(v, Known) or v.tensor.numel()]
    return moves.concat(made, dim % len(made[0].shape))


@op("stack")
def stack(c: Converter, values: Sequence[Any], dim: int = 0) -> Value:
    made = [e.cast(c.value(v), c.dtype()) for v in values]
    axis = dim % (len(made[0].shape) + 1)
    return moves.concat([layout.expand_dims(v, (axis,)) for v in made], axis)


@op("flip")
def flip(c: Converter, value: Any, dims: Sequence[int]) -> Value:
    x = c.value(value)
    return moves.reverse(x, [d % len(x.shape) for d in dims])


@op("roll")
def roll(c: Converter, value: Any, shifts: Any, dims: Any = ()) -> Value:
    x = c.value(value)
    if not dims:
        raise Refused("a roll of all elements")
    for shift, dim in zip(shifts, dims):
        axis = dim % len(x.shape)
        size = x.shape[axis]
        if isinstance(size, Batch):
            raise Refused("a roll of the samples")
        at = -shift % size
        if at:
            x = moves.concat([moves.part(x, axis, at, size), moves.part(x, axis, 0, at)], axis)
    return x


@op("constant_pad_nd", "pad")
def pad(c: Converter, value: Any, widths: Sequence[int], *rest: Any) -> Value:
    x = c.value(value)
    mode, fill = ("constant", *rest, 0)[:2] if c.name() == "constant_pad_nd" else (*rest, None)[:2]
    rank = len(x.shape)
    low, high = [0] * rank, [0] * rank
    for i in range(len(widths) // 2):
        low[rank - 1 - i], high[rank - 1 - i] = widths[2 * i], widths[2 * i + 1]
    if mode == "constant":
        return moves.pad(x, float(fill or 0), low, high)
    for axis in range(rank):
        x = moves.pad_from(x, axis, low[axis], high[axis], mode)
    return x


@op("repeat", "tile")
def repeat(c: Converter, value: Any, times: Sequence[Any]) -> Value:
    """A broadcast along a new axis in front of each."""
    x = c.value(value)
    times = [1] * (len(x.shape) - len(times)) + list(times)
    x = layout.expand_dims(x, range(len(times) - len(x.shape)))
    spread = layout.expand_dims(x, range(0, 2 * len(times), 2))
    full = [n for pair in zip(times, x.shape) for n in pair]
    return layout.reshape(layout.broadcast(spread, tuple(full)), c.shape())


@op("repeat_interleave")
def repeat_interleave(c: Converter, value: Any, times: Any, dim: Any = None, *_: Any) -> Value:
    x = c.value(value)
    if not isinstance(times, int) and isinstance(times, Known) and dim is not None:
        places = np.repeat(np.arange(len(times.tensor)), times.tensor.numpy())
        return moves.take(x, x.graph.constant(places.astype("i4")), dim)
    if not isinstance(times, int):
        raise Refused("repeats of different lengths that the data say, or of all elements: give dim= and known repeats")
    axis = x.rank - 1 if dim is None else dim % x.rank  # None: of all elements, one after the other
    spread = layout.expand_dims(x, (axis + 1,))
    return layout.reshape(layout.broadcast(spread, (*x.shape[:axis + 1], times, *x.shape[axis + 1:])), c.shape())


@op("tril", "triu")
def triangle(c: Converter, value: Any, diagonal: int = 0) -> Value:
    x = c.value(value)
    rows, columns = x.shape[-2:]
    if isinstance(rows, Batch) or isinstance(columns, Batch):
        raise Refused("a triangle along the batch")
    seen = getattr(np, c.name())(np.ones((rows, columns), bool), diagonal)
    return e.select(x.graph.constant(seen), x, e.as_value(x, 0))


@op("copy")
def copy(c: Converter, value: Any, source: Any, *_: Any) -> Value:
    return layout.broadcast(e.cast(c.value(source), c.dtype()), c.shape())


@op("fill")
def fill(c: Converter, value: Any, number: Any) -> Value:
    return layout.broadcast(e.cast(c.value(number), c.dtype()), c.shape())


@op("slice_scatter", "select_scatter")
def scatter(c: Converter, value: Any, source: Any, dim: int = 0, start: Any = None, stop: Any = None,
            step: int = 1) -> Value:
    """The value with a part of it replaced."""
    x, new = c.value(value), e.cast(c.value(source), c.dtype())
    axis = dim % len(x.shape)
    size = x.shape[axis]
    if c.name() == "select_scatter":
        new, stop = layout.expand_dims(new, (axis,)), start + 1 if start != -1 else None
    if isinstance(size, Batch):
        if new.shape == x.shape:
            return new
        raise Refused("a change of a part of the samples of a batch")
    begin, end, _ = slice(start, stop, step).indices(size)
    if step != 1:
        raise Refused("a change of elements that are not neighbours")
    parts = [moves.part(x, axis, 0, begin)] if begin else []
    parts.append(new)
    parts += [moves.part(x, axis, end, size)] if end < size else []
    return moves.concat(parts, axis)


@op("pixel_shuffle")
def pixel_shuffle(c: Converter, value: Any, factor: int) -> Value:
    x = c.value(value)
    batch, channels, height, width = x.shape
    x = layout.reshape(x, (batch, channels // factor**2, factor, factor, height, width))  # type: ignore[operator]
    return layout.reshape(layout.transpose(x, (0, 1, 4, 2, 5, 3)), c.shape())


@op("upsample_nearest1d", "upsample_nearest2d", "upsample_nearest3d", "_upsample_nearest_exact1d",
    "_upsample_nearest_exact2d", "_upsample_nearest_exact3d")
def upsample(c: Converter, value: Any, _size: Any, *factors: Any) -> Value:
    """Along each axis the elements that the operation takes of a line of places; by a whole number, repeated ones."""
    x = c.value(value)
    count = len(x.shape) - 2
    factors = tuple(factors[0]) if factors and isinstance(factors[0], (list, tuple)) else factors
    for i, new in enumerate(c.shape()[2:]):
        axis, old = i + 2, x.shape[i + 2]
        if isinstance(old, Batch) or isinstance(new, Batch):
            raise Refused("an upsampling along the batch")
        line = torch.arange(old, dtype=torch.float32).reshape(1, 1, *(old if k == i else 1 for k in range(count)))
        scales = [factors[k] if k == i and k < len(factors) else None for k in range(count)]
        target = getattr(torch.ops.aten, c.name()).default
        places = target(line, [new if k == i else 1 for k in range(count)], *scales).flatten().int().numpy()
        if new % old == 0 and (places == np.arange(new) // (new // old)).all():
            spread = layout.expand_dims(x, (axis + 1,))
            shape = (*x.shape[:axis + 1], new // old, *x.shape[axis + 1:])
            x = layout.reshape(layout.broadcast(spread, shape), (*x.shape[:axis], new, *x.shape[axis + 1:]))
        else:
            x = moves.take(x, x.graph.constant(places), axis)
    return x


@op("upsample_linear1d", "upsample_bilinear2d", "upsample_bicubic2d", "_upsample_bilinear2d_aa",
    "_upsample_bicubic2d_aa")
def interpolate(c: Converter, value: Any, size: Any, align_corners: bool, *factors: Any) -> Value:
    """A product with a matrix along each axis, which is the operation of the identity along that axis."""
    made = c.value(value)
    factors = tuple(factors[0]) if factors and isinstance(factors[0], (list, tuple)) else factors
    for i, new in enumerate(c.shape()[2:]):
        axis, old = i + 2, made.shape[i + 2]
        if isinstance(old, Batch) or isinstance(new, Batch):
            raise Refused("an interpolation along the batch")
        factor = factors[i] if i < len(factors) else None
        plane = len(made.shape) == 4  # then the identity is an image, whose width stays
        given = torch.eye(old).reshape(1, 1 if plane else old, *[old] * (len(made.shape) - 2))
        target = getattr(torch.ops.aten, c.name()).default
        found = target(given, (new, old) if plane else (new,), align_corners, factor, *[None] * plane)
        matrix = found.reshape(new, old).T if plane else found.reshape(old, new)
        made = products.along_axis(made, np.ascontiguousarray(matrix.numpy()), axis)
    return made
