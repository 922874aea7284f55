# SPDX-License-Identifier: Apache-2.0
"""Convolutions and pools. Images are [BATCH, C, spatial...], kernels [F, C / groups, spatial...]."""

from __future__ import annotations

from typing import Optional, Sequence

import numpy as np

from mtc._trace import elementwise as e
from mtc._trace import moves, products
from mtc._trace.layout import broadcast, expand_dims, move_axis, reshape, squeeze, transpose
from mtc._trace.text import number
from mtc._trace.values import BATCH, Batch, Refused, Size, Value, has_batch

Pads = Sequence[tuple[int, int]]
LOWEST = float(np.finfo(np.float32).min)


def convolution(images: Value, kernel: Value, strides: Sequence[int], padding: Pads, dilation: Sequence[int] = (),
                spread: Sequence[int] = (), groups: int = 1, sample_groups: int = 1) -> Value:
    """A convolution without a flip, over one spatial axis or more.

    `spread` puts zeros between the elements of the images. With the batch as the second axis of both operands it is the
    gradient of a convolution to its kernel, whose groups `sample_groups` are.
    """
    spatial = kernel.rank - 2
    dilation, spread = list(dilation) or [1] * spatial, list(spread) or [1] * spatial
    if spatial < 1 or images.rank != kernel.rank:
        raise Refused(f"a convolution of {list(images.shape)} by {list(kernel.shape)}")
    pointwise = all(n == 1 for n in (*kernel.shape[2:], *strides, *spread, groups))
    over_samples = isinstance(images.shape[1], Batch) or has_batch(kernel.shape)
    if over_samples:
        _check_over_samples(images, kernel, groups)
    elif sample_groups != 1:
        raise Refused("a convolution in groups of samples")
    elif images.shape[0] != BATCH and pointwise and not any(n for pair in padding for n in pair):
        # Such as a table of positions.
        made = products.dot_general(images, squeeze(kernel, range(2, kernel.rank)), ((1,), (1,)))
        return move_axis(made, -1, 1)
    else:
        _check_images(images)
    spaced = [(int(n) - 1) * s + 1 for n, s in zip(images.shape[2:], spread)]  # type: ignore[arg-type]
    sizes = [_windows(spaced[i], kernel.shape[i + 2], strides[i], padding[i], dilation[i]) for i in range(spatial)]
    text = (f"graph.convolution {{0}}, {{1}} strides {list(strides)} padding {[n for pair in padding for n in pair]} "
            f"dilation {dilation} spread {spread} groups = {groups} sample_groups = {sample_groups}")
    first = int(images.shape[0]) // sample_groups if over_samples else images.shape[0]  # type: ignore[arg-type]
    return images.graph.operation("convolution", (images, kernel), text, (first, kernel.shape[0], *sizes), "f32")


def gradients_of_samples(images: Value, gradient: Value, strides: Sequence[int], padding: Pads,
                         dilation: Sequence[int], spread: Sequence[int]) -> Value:
    """The gradient of a convolution to its kernel, for each sample by itself: [C, F * BATCH, taps...].

    Of images [C, BATCH, spatial...] and gradients of the outputs [F * BATCH, 1, spatial...]. Each tap is a product.
    """
    many = gradient.shape[0]
    if images.shape[1] != BATCH or not isinstance(many, Batch) or gradient.shape[1] != 1 or has_batch(
            [images.shape[0], *images.shape[2:], *gradient.shape[2:]]):
        raise Refused("a convolution that has a kernel of its own for each sample")
    spatial = images.rank - 2
    inside = list(range(2, images.rank))
    x = moves.pad(transpose(images, [1, 0, *inside]), 0.0, [0, 0, *(low for low, _ in padding)],
                  [0, 0, *(high for _, high in padding)], [0, 0, *(n - 1 for n in spread)])
    dy = reshape(gradient, (BATCH, many.times, *gradient.shape[2:]))
    taps = [_windows(x.shape[i + 2], dy.shape[i + 2], strides[i], (0, 0), dilation[i]) for i in range(spatial)]
    reach = [(int(n) - 1) * d + 1 for n, d in zip(dy.shape[2:], dilation)]  # type: ignore[arg-type]
    parts = []
    for tap in np.ndindex(*taps):
        starts = [int(t) * s for t, s in zip(tap, strides)]
        part = moves.slice_(x, [0, 0, *starts], [None, None, *(a + n for a, n in zip(starts, reach))],
                            [1, 1, *dilation])
        parts.append(expand_dims(products.dot_general(part, dy, (inside, inside), ([0], [0])), (3,)))
    made = reshape(moves.concat(parts, 3), (BATCH, images.shape[0], many.times, *taps))
    return reshape(transpose(made, [1, 0, *range(2, made.rank)]), (images.shape[0], many, *taps))


def convolution_of_samples(images: Value, kernel: Value, strides: Sequence[int], padding: Pads,
                           dilation: Sequence[int], spread: Sequence[int], groups: int) -> Value:
    """A convolution with a kernel for each sample: of images [N, BATCH * groups * C, spatial...].

    Kernels are [BATCH * F, C, spatial...], results [N, BATCH * F, spatial...]. Each place in a window is a slice.
    """
    rank, (many, all_filters) = images.rank, (images.shape[1], kernel.shape[0])
    if not isinstance(many, Batch) or not isinstance(all_filters, Batch) or has_batch(
            [images.shape[0], *images.shape[2:], *kernel.shape[1:]]):
        raise Refused("a convolution that has a kernel of its own for each sample")
    each, filters = int(kernel.shape[1]), all_filters.times // groups  # type: ignore[arg-type]
    inside = list(range(3, rank + 1))
    x = transpose(reshape(images, (images.shape[0], BATCH, many.times, *images.shape[2:])), [1, 0, 2, *inside])
    x = moves.pad(x, 0.0, [0, 0, 0, *(low for low, _ in padding)], [0, 0, 0, *(high for _, high in padding)],
                  [0, 0, 0, *(n - 1 for n in spread)])
    taps = [int(n) for n in kernel.shape[2:]]  # type: ignore[arg-type]
    counts = [_windows(x.shape[i + 3], taps[i], strides[i], (0, 0), dilation[i]) for i in range(rank - 2)]
    parts = []
    for tap in np.ndindex(*taps):
        starts = [int(t) * d for t, d in zip(tap, dilation)]
        ends = [a + (n - 1) * s + 1 for a, n, s in zip(starts, counts, strides)]
        part = moves.slice_(x, [0, 0, 0, *starts], [None, None, None, *ends], [1, 1, 1, *strides])
        parts.append(expand_dims(part, (3,)))
    columns = reshape(moves.concat(parts, 3), (BATCH, images.shape[0], groups, each * len(parts), *counts))
    weights = reshape(kernel, (BATCH, groups, filters, each * len(parts)))
    made = products.dot_general(columns, weights, ((3,), (3,)), ((0, 2), (0, 1)))  # [b, groups, N, windows..., F]
    made = transpose(made, [2, 0, 1, made.rank - 1, *range(3, made.rank - 1)])
    return reshape(made, (images.shape[0], all_filters, *counts))


def transposed_convolution(images: Value, kernel: Value, strides: Sequence[int], padding: Pads,
                           dilation: Sequence[int], groups: int, sizes: Sequence[Size]) -> Value:
    """The gradient of a convolution to its images, of these sizes. Kernels are [C, F / groups, spatial...]."""
    if images.rank != kernel.rank or images.rank < 3:
        raise Refused(f"a transposed convolution of {list(images.shape)} by {list(kernel.shape)}")
    _check_images(images)
    text = (f"graph.transposed_convolution {{0}}, {{1}} strides {list(strides)} padding "
            f"{[n for pair in padding for n in pair]} dilation {list(dilation)} groups = {groups}")
    channels = int(kernel.shape[1]) * groups  # type: ignore[arg-type]
    return images.graph.operation("transposed_convolution", (images, kernel), text,
                                  (images.shape[0], channels, *sizes), "f32")


def pool(kind: str, images: Value, window: Sequence[int], strides: Sequence[int], padding: Pads,
         dilation: Sequence[int] = ()) -> Value:
    """"max" or "sum" of windows; the padding takes no part. An axis of the samples has a window of one element."""
    dilation = list(dilation) or [1] * len(window)
    sizes = [n if isinstance(n, Batch) else _windows(n, window[i], strides[i], padding[i], dilation[i])
             for i, n in enumerate(images.shape[2:])]
    text = (f"graph.pool {kind}, {{0}} window {list(window)} strides {list(strides)} padding "
            f"{[n for pair in padding for n in pair]} dilation {dilation}")
    return images.graph.operation("pool", (images,), text, (*images.shape[:2], *sizes), "f32")


def window_reduce(kind: str, value: Value, window: Sequence[int], strides: Sequence[int], padding: Pads,
                  dilation: Sequence[int] = (), by_slices: bool = False) -> Value:
    """A pool over any axes but that of the samples. Two axes of [BATCH, ...] with up to four have kernels.

    `by_slices`: also of these a slice for each place in the window is taken.
    """
    if any(isinstance(n, Batch) and (w, s, tuple(p)) != (1, 1, (0, 0))
           for n, w, s, p in zip(value.shape, window, strides, padding)):
        raise Refused("windows over the samples")
    plain = all(d == 1 for d in dilation)
    if value.scalar is not None and kind == "sum" and plain:
        return _counts(value, window, strides, padding)
    moved = sum((w, s, tuple(p)) != (1, 1, (0, 0)) for w, s, p in zip(window, strides, padding))
    many = sum(n != 1 for n in value.shape[1:])
    if by_slices or not plain or value.shape[:1] != (BATCH,) or moved > 2 or many > 3:
        return squeeze(pool(kind, expand_dims(value, (0, 1)), window, strides, padding, dilation), (0, 1))
    windows = _Windows(value, window, strides, padding)
    return windows.back(pool(kind, windows.images(value), windows.taps, windows.strides, windows.padding))


def maximum_gradient(gradient: Value, value: Value, window: Sequence[int], strides: Sequence[int],
                     padding: Pads) -> Value:
    """The gradient of a maximum of windows, which goes to the first of equal elements; as `window_reduce`."""
    windows = _Windows(value, window, strides, padding)
    x, dy = windows.images(value), windows.images(gradient)
    text = (f"graph.pool_gradient {{0}} at {{1}} window {windows.taps} strides {windows.strides} padding "
            f"{[n for pair in windows.padding for n in pair]}")
    return windows.back(x.graph.operation("pool_gradient", (dy, x), text, x.shape, "f32"))


def at_maximum(tangents: Value, value: Value, window: Sequence[int], strides: Sequence[int], padding: Pads) -> Value:
    """Of each window the tangent at the first of the largest elements of the value: tap by tap, the larger one."""
    if any(isinstance(n, Batch) and (w, s, tuple(p)) != (1, 1, (0, 0))
           for n, w, s, p in zip(value.shape, window, strides, padding)):
        raise Refused("windows over the samples")
    low, high = [p[0] for p in padding], [p[1] for p in padding]
    x, dx = moves.pad(value, LOWEST, low, high), moves.pad(tangents, 0.0, low, high)
    counts = [1 if isinstance(n, Batch) else (n - w) // s + 1 for n, w, s in zip(x.shape, window, strides)]
    largest: Optional[Value] = None
    for tap in np.ndindex(*window):
        limits = [None if isinstance(n, Batch) else int(t) + (c - 1) * s + 1
                  for n, t, c, s in zip(x.shape, tap, counts, strides)]
        here, tangent = (moves.slice_(v, [int(t) for t in tap], limits, list(strides)) for v in (x, dx))
        if largest is None:
            largest, chosen = here, tangent
        else:
            chosen = e.select(e.compare("gt", here, largest), tangent, chosen)
            largest = e.binary("maximum", here, largest)
    return chosen


class _Windows:
    """Windows over any two axes of a value [BATCH, ...] of up to four, whose channels come first as images."""

    def __init__(self, value: Value, window: Sequence[int], strides: Sequence[int], padding: Pads) -> None:
        moved = [i for i in range(len(window)) if window[i] != 1 or strides[i] != 1 or tuple(padding[i]) != (0, 0)]
        if isinstance(value.shape[0], Batch) and 0 in moved:
            raise Refused("windows over the samples")
        if len(moved) > 2 or value.shape[0] != BATCH:
            raise Refused(f"windows over {len(moved)} axes of {list(value.shape)}")
        # Axes of size 1, as functions of single samples have them, are left out where there are too many.
        ones = [i for i in range(1, value.rank) if value.shape[i] == 1 and i not in moved]
        self._ones = ones[:max(value.rank - 4, 0)]
        rank = value.rank - len(self._ones)
        if rank > 4:
            raise Refused(f"windows of a value of {value.rank} axes")
        kept = [i for i in range(value.rank) if i not in self._ones]
        window, strides, padding = [window[i] for i in kept], [strides[i] for i in kept], [padding[i] for i in kept]
        moved = [kept.index(i) for i in moved]
        rest = [i for i in range(1, rank) if i not in moved]
        while len(moved) < 2 and len(rest) > 1:
            moved.append(rest.pop())
        moved.sort()
        self._order = [0, *rest, *moved]
        self._missing = range(1, 5 - rank)  # axes of size 1 for channels and the first spatial axis
        more = 2 - len(moved)
        self.taps = [1] * more + [window[i] for i in moved]
        self.strides = [1] * more + [strides[i] for i in moved]
        self.padding: list[tuple[int, int]] = [(0, 0)] * more + [(padding[i][0], padding[i][1]) for i in moved]

    def images(self, value: Value) -> Value:
        """The value as images."""
        return expand_dims(transpose(squeeze(value, self._ones), self._order), self._missing)

    def back(self, images: Value) -> Value:
        """Images in the order of the value."""
        made = squeeze(images, self._missing)
        return expand_dims(transpose(made, [self._order.index(i) for i in range(len(self._order))]), self._ones)


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
        result = line if result is None else result * line
    assert result is not None
    return broadcast(result * (value.scalar or 0.0), tuple(shape))


def _check_over_samples(images: Value, kernel: Value, groups: int) -> None:
    if groups != 1 or any((n == BATCH) != (i == 1) for v in (images, kernel) for i, n in enumerate(v.shape)) or any(
            n != BATCH for v in (images, kernel) for n in v.shape if isinstance(n, Batch)):
        raise Refused(f"a convolution of {list(images.shape)} by {list(kernel.shape)}, which mixes samples; a sum over "
                      "the samples has them as the second axis of both")


def _check_images(images: Value) -> None:
    if any(isinstance(n, Batch) for n in images.shape[1:]):
        raise Refused("windows over the samples")


def _windows(size: Size, taps: Size, stride: int, pads: tuple[int, int], dilation: int) -> int:
    """How many windows there are on an axis."""
    assert isinstance(size, int) and isinstance(taps, int)
    count = (size + sum(pads) - (taps - 1) * dilation - 1) // stride + 1
    if count < 1:
        raise Refused(f"windows of {taps} on an axis of {size}")
    return count


def batch_normalization(images: Value, parameters: Sequence[Value], momentum: float, epsilon: float) -> Value:
    """With the statistics of the batch. `parameters`: scale, centre, moving mean and variance, [C] each."""
    last = move_axis(images, 1, -1)
    made = images.graph.tensor("batch_normalization", (last, *parameters),
                               f"mt.batch_normalization {{0}}, {{1}}, {{2}}, {{3}}, {{4}} momentum = "
                               f"{number(momentum)} epsilon = {number(epsilon)} : {{t0}}, {{t1}}, {{t2}}, {{t3}}, "
                               "{t4}", last.shape, "f32")
    return move_axis(made, -1, 1)
