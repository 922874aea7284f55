# SPDX-License-Identifier: Apache-2.0
"""Convolutions and pools. Images are stored as [batch, H, W, C] and kernels as [KH, KW, C / groups, F]."""

from __future__ import annotations

from typing import Optional, Sequence, Union

import numpy as np

from mtc._trace import elementwise as e
from mtc._trace import moves, products
from mtc._trace.layout import arrange, decide, expand_dims, squeeze, transpose
from mtc._trace.values import BATCH, Axis, Batch, Node, Refused, Stored, Value

Pads = Sequence[tuple[int, int]]


def convolution(images: Value, kernel: Value, strides: Sequence[int], padding: Pads, dilation: Sequence[int] = (),
                input_dilation: Sequence[int] = (), groups: int = 1) -> Value:
    """A convolution without a flip: images [BATCH, spatial..., C], kernel [spatial..., C / groups, F].

    One or two spatial axes; transpose the logical axes of values that have another order. `input_dilation` puts zeros
    between the elements of the images.
    """
    spatial = len(kernel.axes) - 2
    dilation, input_dilation = dilation or [1] * spatial, input_dilation or [1] * spatial
    if spatial not in (1, 2):
        raise Refused(f"a convolution over {spatial} axes")
    pointwise = all(n == 1 for n in (*kernel.shape[:spatial], *strides, *input_dilation, groups))
    if images.shape[0] != BATCH and pointwise and not any(n for pair in padding for n in pair):
        return products.matmul(images, squeeze(kernel, range(spatial)))  # such as a table of positions
    if images.shape[0] != BATCH:
        raise Refused(f"a convolution of images whose first axis is {images.shape[0]}, not the samples")
    if spatial == 1:
        made = convolution(expand_dims(images, (1,)), expand_dims(kernel, (0,)), [1, *strides], [(0, 0), *padding],
                           [1, *dilation], [1, *input_dilation], groups)
        return squeeze(made, (1,))
    images, pads = _padded(images, padding, input_dilation, 0.0,
                           [(int(kernel.shape[i]) - 1) * dilation[i] + 1 for i in (0, 1)])  # type: ignore[arg-type]
    a, k = _whole(images), _whole(kernel)
    sizes = [_out(a.shape[i + 1], k.shape[i], strides[i], pads[i], dilation[i]) for i in (0, 1)]
    shape: Stored = (None, *sizes, k.shape[3])
    graph = images.graph
    text = _attributes(strides, pads, dilation, groups)
    node = graph.node("conv2d", (a, k), f"mt.conv2d {{0}}, {{1}}{text} : {{t0}}, {{t1}}", shape, "f32")
    return graph.value(node)


def pool(kind: str, images: Value, window: Sequence[int], strides: Sequence[int], padding: Pads) -> Value:
    """"max" or "sum" of windows of images [BATCH, H, W, C]; the padding takes no part."""
    images, pads = _padded(images, padding, (1, 1), 0.0 if kind == "sum" else -3.4028235e38, window)
    a = _whole(images)
    sizes = [_out(a.shape[i + 1], window[i], strides[i], pads[i], 1) for i in (0, 1)]
    flat = [n for pair in pads for n in pair]
    strided = f" strides = {list(strides)}" if tuple(strides) != (1, 1) else ""
    padded = f" padding = {flat}" if any(flat) else ""
    node = images.graph.node("pool", (a,), f"mt.pool {kind}, {{0}} window = {list(window)}{strided}{padded} : {{t0}}",
                             (None, *sizes, a.shape[3]), "f32")
    return images.graph.value(node)


def window_reduce(kind: str, value: Value, window: Sequence[int], strides: Sequence[int], padding: Pads) -> Value:
    """A pool over any two axes of a value [BATCH, ...] of up to four, the window being 1 along the others."""
    if value.constant is not None and value.scalar is not None and kind == "sum":
        return _counts(value, window, strides, padding)
    moved = [i for i in range(len(window)) if window[i] != 1 or strides[i] != 1 or padding[i] != (0, 0)]
    if isinstance(value.shape[0], Batch) and 0 in moved:
        raise Refused("windows over the samples")
    rest = [i for i in range(1, len(window)) if i not in moved]
    if len(moved) > 2 or value.shape[0] != BATCH:
        raise Refused(f"windows over {len(moved)} axes of {list(value.shape)}")
    while len(moved) < 2:
        if rest:
            moved.append(rest.pop(0))
        else:
            value = expand_dims(value, (len(value.axes),))
            made = window_reduce(kind, value, [*window, 1], [*strides, 1], [*padding, (0, 0)])
            return squeeze(made, (len(value.axes) - 1,))
    moved.sort()
    order = [0, *moved, *rest]
    images = transpose(value, order)
    while len(images.axes) < 4:
        images = expand_dims(images, (len(images.axes),))
    if len(images.axes) > 4:
        raise Refused(f"windows of a value of {len(value.axes)} axes")
    made = pool(kind, images, [window[i] for i in moved], [strides[i] for i in moved], [padding[i] for i in moved])
    made = squeeze(made, range(len(order), 4))
    back = [order.index(i) for i in range(len(order))]
    return transpose(made, back)


def _counts(value: Value, window: Sequence[int], strides: Sequence[int], padding: Pads) -> Value:
    """A sum of windows of equal numbers: the numbers of elements in each."""
    result: Optional[Value] = None
    for i, n in enumerate(value.shape):
        if isinstance(n, Batch):
            continue
        size = _out(n, window[i], strides[i], padding[i], 1)
        starts = np.arange(size) * strides[i] - padding[i][0]
        inside = np.minimum(starts + window[i], n) - np.maximum(starts, 0)
        line = value.graph.constant(inside, value.dtype)
        line = Value(value.graph, line.node, tuple(line.axes[0] if j == i else (Axis(1),)
                                                   for j in range(len(value.axes))))
        result = line if result is None else e.binary("mul", result, line)
    assert result is not None
    result = e.binary("mul", result, value.scalar or 0.0)
    axes = tuple(v if isinstance(n, Batch) else r for v, n, r in zip(value.axes, value.shape, result.axes))
    return Value(value.graph, result.node, axes)


def _padded(images: Value, padding: Pads, spread: Sequence[int], fill: float,
            reach: Sequence[int]) -> tuple[Value, list[tuple[int, int]]]:
    """The images with the padding that the ops of `mt` do not take, and the padding that is left."""
    pads = [tuple(p) for p in padding]
    own = [(0, 0) if lo < 0 or hi < 0 or max(lo, hi) >= r or s != 1 else (lo, hi)
           for (lo, hi), r, s in zip(pads, reach, spread)]
    extra = [(lo - a, hi - b) for (lo, hi), (a, b) in zip(pads, own)]
    if any(p != (0, 0) for p in extra) or any(s != 1 for s in spread):
        images = moves.pad(images, fill, [0, *(p[0] for p in extra), 0], [0, *(p[1] for p in extra), 0],
                           [0, *(s - 1 for s in spread), 0])
    return images, own


def _whole(value: Value) -> Node:
    """Stored in logical order with axes of size 1."""
    value = decide(value)
    every = range(len(value.flat))
    return arrange(value, every, every)


def _out(size: Union[int, Batch, None], taps: Optional[int], stride: int, pads: tuple[int, int], dilation: int) -> int:
    assert isinstance(size, int) and isinstance(taps, int)
    outputs = (size + sum(pads) - (taps - 1) * dilation - 1) // stride + 1
    if outputs < 1:
        raise Refused(f"windows of {taps} on an axis of {size}")
    return outputs


def _attributes(strides: Sequence[int], pads: Pads, dilation: Sequence[int], groups: int) -> str:
    text = ""
    if tuple(strides) != (1, 1):
        text += f" strides = {list(strides)}"
    if any(p != (0, 0) for p in pads):
        text += f" padding = {[n for pair in pads for n in pair]}"
    if tuple(dilation) != (1, 1):
        text += f" dilation = {list(dilation)}"
    if groups != 1:
        text += f" groups = {groups}"
    return text
