# SPDX-License-Identifier: Apache-2.0
"""Convolutions and pools. Images are [BATCH, C, spatial...], kernels [F, C / groups, spatial...]."""

from __future__ import annotations

from typing import Optional, Sequence

import numpy as np

from mtc._trace import elementwise as e
from mtc._trace import moves, products
from mtc._trace.layout import broadcast, expand_dims, squeeze, transpose
from mtc._trace.values import BATCH, Batch, Refused, Size, Value

Pads = Sequence[tuple[int, int]]


def convolution(images: Value, kernel: Value, strides: Sequence[int], padding: Pads, dilation: Sequence[int] = (),
                input_dilation: Sequence[int] = (), groups: int = 1) -> Value:
    """A convolution without a flip, over one or two spatial axes.

    `input_dilation` puts zeros between the elements of the images.
    """
    spatial = kernel.rank - 2
    dilation, input_dilation = list(dilation) or [1] * spatial, list(input_dilation) or [1] * spatial
    if spatial not in (1, 2):
        raise Refused(f"a convolution over {spatial} axes")
    pointwise = all(n == 1 for n in (*kernel.shape[2:], *strides, *input_dilation, groups))
    if images.shape[0] != BATCH and pointwise and not any(n for pair in padding for n in pair):
        # Such as a table of positions.
        made = products.dot_general(images, squeeze(kernel, range(2, kernel.rank)), ((1,), (1,)))
        return transpose(made, [0, made.rank - 1, *range(1, made.rank - 1)])
    _check_images(images)
    if any(n != 1 for n in input_dilation):
        none = [0] * images.rank
        images = moves.pad(images, 0.0, none, none, [0, 0, *(n - 1 for n in input_dilation)])
    sizes = [_windows(images.shape[i + 2], kernel.shape[i + 2], strides[i], padding[i], dilation[i])
             for i in range(spatial)]
    return images.graph.operation("convolution", (images, kernel),
                                  f"graph.convolution {{0}}, {{1}}{_attributes(strides, padding, dilation, groups)}",
                                  (BATCH, kernel.shape[0], *sizes), "f32")


def transposed_convolution(images: Value, kernel: Value, strides: Sequence[int], padding: Pads,
                           dilation: Sequence[int], groups: int, sizes: Sequence[Size]) -> Value:
    """The gradient of a convolution to its images, of these sizes. Kernels are [C, F / groups, spatial...]."""
    _check_images(images)
    text = f"graph.transposed_convolution {{0}}, {{1}}{_attributes(strides, padding, dilation, groups)}"
    channels = int(kernel.shape[1]) * groups  # type: ignore[arg-type]
    return images.graph.operation("transposed_convolution", (images, kernel), text, (BATCH, channels, *sizes), "f32")


def pool(kind: str, images: Value, window: Sequence[int], strides: Sequence[int], padding: Pads) -> Value:
    """"max" or "sum" of windows; the padding takes no part."""
    _check_images(images)
    sizes = [_windows(images.shape[i + 2], window[i], strides[i], padding[i], 1) for i in range(len(window))]
    text = (f"graph.pool {kind}, {{0}} window {list(window)} strides {list(strides)} padding "
            f"{[n for pair in padding for n in pair]}")
    return images.graph.operation("pool", (images,), text, (*images.shape[:2], *sizes), "f32")


def window_reduce(kind: str, value: Value, window: Sequence[int], strides: Sequence[int], padding: Pads) -> Value:
    """A pool over any two axes of a value [BATCH, ...] of up to four, the window being 1 along the others."""
    if value.scalar is not None and kind == "sum":
        return _counts(value, window, strides, padding)
    moved = [i for i in range(len(window)) if window[i] != 1 or strides[i] != 1 or tuple(padding[i]) != (0, 0)]
    if isinstance(value.shape[0], Batch) and 0 in moved:
        raise Refused("windows over the samples")
    if len(moved) > 2 or value.shape[0] != BATCH:
        raise Refused(f"windows over {len(moved)} axes of {list(value.shape)}")
    if value.rank > 4:
        raise Refused(f"windows of a value of {value.rank} axes")
    rest = [i for i in range(1, len(window)) if i not in moved]
    while len(moved) < 2 and len(rest) > 1:
        moved.append(rest.pop())
    moved.sort()
    order = [0, *rest, *moved]
    images = transpose(value, order)
    missing = range(1, 5 - images.rank)  # axes of size 1 for channels and the first spatial axis
    images = expand_dims(images, missing)
    along = [1] * (2 - len(moved)), [(0, 0)] * (2 - len(moved))
    made = pool(kind, images, [*along[0], *(window[i] for i in moved)], [*along[0], *(strides[i] for i in moved)],
                [*along[1], *(tuple(padding[i]) for i in moved)])  # type: ignore[list-item]
    made = squeeze(made, missing)
    return transpose(made, [order.index(i) for i in range(len(order))])


def _counts(value: Value, window: Sequence[int], strides: Sequence[int], padding: Pads) -> Value:
    """A sum of windows of equal numbers: the numbers of elements in each."""
    result: Optional[Value] = None
    shape: list[Size] = list(value.shape)
    for i, n in enumerate(value.shape):
        if isinstance(n, Batch):
            continue
        size = shape[i] = _windows(n, window[i], strides[i], padding[i], 1)
        starts = np.arange(size) * strides[i] - padding[i][0]
        inside = np.minimum(starts + window[i], n) - np.maximum(starts, 0)
        line = value.graph.constant(inside.reshape([-1 if j == i else 1 for j in range(value.rank)]), value.dtype)
        result = line if result is None else e.binary("mul", result, line)
    assert result is not None
    return broadcast(e.binary("mul", result, value.scalar or 0.0), tuple(shape))


def _check_images(images: Value) -> None:
    if images.shape[0] != BATCH:
        raise Refused(f"a convolution of images whose first axis is {images.shape[0]}, not the samples")
    if any(isinstance(n, Batch) for n in images.shape[1:]):
        raise Refused("windows over the samples")


def _windows(size: Size, taps: Size, stride: int, pads: tuple[int, int], dilation: int) -> int:
    """How many windows there are on an axis."""
    assert isinstance(size, int) and isinstance(taps, int)
    count = (size + sum(pads) - (taps - 1) * dilation - 1) // stride + 1
    if count < 1:
        raise Refused(f"windows of {taps} on an axis of {size}")
    return count


def _attributes(strides: Sequence[int], padding: Pads, dilation: Sequence[int], groups: int) -> str:
    return (f" strides {list(strides)} padding {[n for pair in padding for n in pair]} dilation {list(dilation)} "
            f"groups = {groups}")


def batch_normalization(images: Value, parameters: Sequence[Value], momentum: float, epsilon: float) -> Value:
    """With the statistics of the batch. `parameters`: scale, centre, moving mean and variance, [C] each."""
    last = transpose(images, [0, *range(2, images.rank), 1])
    made = images.graph.tensor("batch_normalization", (last, *parameters),
                               f"mt.batch_normalization {{0}}, {{1}}, {{2}}, {{3}}, {{4}} momentum = {momentum:.9e} "
                               f"epsilon = {epsilon:.9e} : {{t0}}, {{t1}}, {{t2}}, {{t3}}, {{t4}}", last.shape, "f32")
    return transpose(made, [0, images.rank - 1, *range(1, images.rank - 1)])


