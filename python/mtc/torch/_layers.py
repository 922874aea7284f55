# SPDX-License-Identifier: Apache-2.0
"""ATen operations of layers: products, convolutions, pools, normalisation and dropout."""

from __future__ import annotations

from typing import Any, Optional, Sequence

import numpy as np

from mtc._trace import Batch, Refused, Value, layout, losses, moves, products, reals, reductions, spatial, text
from mtc._trace import elementwise as e
from mtc._trace.text import quoted
from mtc.torch._convert import Converter, State
from mtc.torch._handlers import op
from mtc.torch._known import product

# Products


@op("linear")
def linear(c: Converter, value: Any, weight: Any, bias: Any = None) -> Value:
    x, w = c.value(value), c.value(weight)
    made = products.dot_general(x, w, ((len(x.shape) - 1,), (1,)))
    return made if bias is None else made + c.value(bias)


@op("bilinear")
def bilinear(c: Converter, first: Any, second: Any, weight: Any, bias: Any = None) -> Value:
    x, y, w = c.value(first), c.value(second), c.value(weight)
    made = products.dot_general(x, w, ((len(x.shape) - 1,), (1,)))  # [..., out, in2]
    made = made * layout.expand_dims(y, (len(y.shape) - 1,))
    made = reductions.reduce("sum", made, (len(made.shape) - 1,))
    return made if bias is None else made + c.value(bias)


@op("matmul", "mm", "bmm", "mv", "dot")
def matmul(c: Converter, a: Any, b: Any, *_: Any) -> Value:
    left, right = c.value(a), c.value(b)
    if left.shape[-1] == 0:  # a sum of nothing
        return layout.broadcast(c.graph.constant(0.0, "f32"), c.shape())
    if len(left.shape) == 1:
        left = layout.expand_dims(left, (0,))
    if len(right.shape) == 1:
        right = layout.expand_dims(right, (1,))
    lead = e.common_shape([left.shape[:-2], right.shape[:-2]])
    if len(right.shape) > 2:
        left = layout.broadcast(left, (*lead, *left.shape[-2:]))
        right = layout.broadcast(right, (*lead, *right.shape[-2:]))
    return layout.reshape(products.matmul(left, right), c.shape())


@op("addmm", "baddbmm", "addbmm", "addmv")
def addmm(c: Converter, start: Any, a: Any, b: Any, beta: Any = 1, alpha: Any = 1) -> Value:
    made: Value = products.matmul(c.value(a), c.value(b)) if c.name() == "addbmm" else matmul(c, a, b)
    made = reductions.reduce("sum", made, [0]) if c.name() == "addbmm" else made
    made = made if alpha == 1 else made * alpha
    first = c.value(start)
    return made + (first if beta == 1 else first * beta) if beta else made


@op("einsum")
def einsum(c: Converter, equation: str, operands: Sequence[Any], *_: Any) -> Value:
    inputs, arrow, output = equation.replace(" ", "").partition("->")
    terms = inputs.split(",")
    if "." in equation or not arrow or len(terms) > 2 or any(len(set(t)) != len(t) for t in terms):
        raise Refused(f"the product {equation}")
    values = []
    for i, term in enumerate(terms):
        others = output + "".join(t for j, t in enumerate(terms) if j != i)
        alone = [n for n, letter in enumerate(term) if letter not in others]
        values.append(reductions.reduce("sum", c.value(operands[i]), alone) if alone else c.value(operands[i]))
        terms[i] = "".join(letter for letter in term if letter in others)
    if len(terms) == 1:
        return layout.transpose(values[0], [terms[0].index(letter) for letter in output])
    a, b = terms
    contract = [x for x in a if x in b and x not in output]
    common = [x for x in a if x in b and x in output]
    made = products.dot_general(values[0], values[1], ([a.index(x) for x in contract], [b.index(x) for x in contract]),
                                ([a.index(x) for x in common], [b.index(x) for x in common]))
    have = common + [x for x in a + b if (x in a) != (x in b)]
    return layout.transpose(made, [have.index(letter) for letter in output])


# Images: the logical axes are PyTorch's, [batch, channels, spatial...]; what is stored has the channels last.


def per_channel(x: Value, rank: int) -> Value:
    """[C] as [C, 1, ...], which broadcasts to images."""
    return layout.expand_dims(x, range(1, rank - 1))


@op("conv1d", "conv2d", "conv3d", "convolution")
def convolution(c: Converter, images: Any, kernel: Any, bias: Any = None, strides: Any = 1, padding: Any = 0,
                dilation: Any = 1, *rest: Any) -> Value:
    groups = rest[-1] if rest else 1
    if len(rest) > 1 and rest[0]:
        return _transposed(c, images, kernel, bias, strides, padding, groups, dilation)
    w = c.value(kernel)
    x = _with_first_axis(c.value(images), w)
    count = len(x.shape) - 2
    steps, spread = _each(strides, count), _each(dilation, count)
    taps = [int(n) for n in w.shape[2:]]  # type: ignore[arg-type]
    if isinstance(padding, str):
        reaches = [(k - 1) * d if padding == "same" else 0 for k, d in zip(taps, spread)]
        pads = [(r // 2, r - r // 2) for r in reaches]
    else:
        pads = [(p, p) for p in _each(padding, count)]
    made = spatial.convolution(x, w, steps, pads, spread, (), groups)
    made = made if bias is None else made + per_channel(c.value(bias), len(x.shape))
    return layout.reshape(made, c.shape())


def _with_first_axis(x: Value, kernel: Value) -> Value:
    """Images [C, spatial...] as [1, C, spatial...]."""
    return layout.expand_dims(x, (0,)) if x.rank == kernel.rank - 1 else x


@op("conv_transpose1d", "conv_transpose2d", "conv_transpose3d")
def transposed_convolution(c: Converter, images: Any, kernel: Any, bias: Any = None, strides: Any = 1,
                           padding: Any = 0, _more: Any = 0, groups: int = 1, dilation: Any = 1) -> Value:
    """The gradient of a convolution to its images."""
    return _transposed(c, images, kernel, bias, strides, padding, groups, dilation)


def _transposed(c: Converter, images: Any, kernel: Any, bias: Any, strides: Any, padding: Any, groups: int,
                dilation: Any) -> Value:
    w = c.value(kernel)
    x = _with_first_axis(c.value(images), w)
    rank, sizes = len(x.shape), c.shape()[2 - len(x.shape):]
    made = spatial.transposed_convolution(x, w, _each(strides, rank - 2), [(p, p) for p in _each(padding, rank - 2)],
                                          _each(dilation, rank - 2), groups, sizes)
    made = made if bias is None else made + per_channel(c.value(bias), rank)
    return layout.reshape(made, c.shape())


@op("col2im")
def fold(c: Converter, columns: Any, sizes: Sequence[int], window: Any, dilation: Any, padding: Any,
         strides: Any) -> Value:
    """Sums of windows where they overlap: for each place in the window, the elements there, spread and shifted."""
    (height, width), (kh, kw), (dh, dw) = sizes, _each(window, 2), _each(dilation, 2)
    (ph, pw), (sh, sw) = _each(padding, 2), _each(strides, 2)
    rows, lines = ((n + 2 * p - d * (k - 1) - 1) // s + 1
                   for n, p, d, k, s in ((height, ph, dh, kh, sh), (width, pw, dw, kw, sw)))
    x = c.value(columns)
    channels = int(x.shape[1]) // (kh * kw)  # type: ignore[arg-type]
    x = layout.reshape(x, (x.shape[0], channels, kh, kw, rows, lines))
    made: Optional[Value] = None
    for i in range(kh):
        for j in range(kw):
            part = moves.slice_(x, (0, 0, i, j, 0, 0), (None, None, i + 1, j + 1, None, None), (1,) * 6)
            top, left = i * dh - ph, j * dw - pw
            part = moves.pad(layout.squeeze(part, (2, 3)), 0.0, (0, 0, top, left),
                             (0, 0, height - top - (rows - 1) * sh - 1, width - left - (lines - 1) * sw - 1),
                             (0, 0, sh - 1, sw - 1))
            made = part if made is None else made + part
    assert made is not None
    return made


def _each(given: Any, count: int) -> list[int]:
    """A number for each spatial axis."""
    numbers = [given] if isinstance(given, int) else list(given)
    return numbers * count if len(numbers) == 1 else numbers


@op("max_pool2d", "max_pool1d", "max_pool3d", "max_pool1d_with_indices", "max_pool2d_with_indices",
    "max_pool3d_with_indices")
def max_pool(c: Converter, images: Any, window: Any, strides: Any = (), padding: Any = 0, dilation: Any = 1,
             ceil_mode: bool = False) -> Any:
    x, sizes = _with_channels(c, images)
    made = layout.reshape(_pool("max", x, sizes, window, strides, padding, dilation), c.shape())
    return [made, None] if c.name().endswith("indices") else made


def _with_channels(c: Converter, images: Any) -> tuple[Value, Any]:
    """Images with an axis of channels, and the shape of the result with it. A pool may leave one of the axes out."""
    x, sizes = c.value(images), c.shape()
    count = next(n for n in (1, 2, 3) if f"{n}d" in c.name())
    if len(x.shape) == count + 1:
        x, sizes = layout.expand_dims(x, (1,)), (*sizes[:1], 1, *sizes[1:])
    return x, sizes


@op("avg_pool2d", "avg_pool1d", "avg_pool3d")
def average_pool(c: Converter, images: Any, window: Any, strides: Any = (), padding: Any = 0, ceil_mode: bool = False,
                 count_padding: bool = True, divisor: Optional[int] = None) -> Value:
    x, shape = _with_channels(c, images)
    count = len(x.shape) - 2
    taps, steps, pads = _each(window, count), _each(strides or window, count), _each(padding, count)
    made = _pool("sum", x, shape, window, strides, padding)
    if divisor:
        return layout.reshape(made / float(divisor), c.shape())
    counts = np.ones([1] * count, reals.real())
    for i, (k, s, p) in enumerate(zip(taps, steps, pads)):
        size, results = x.shape[i + 2], shape[i + 2]
        begins = np.arange(int(results)) * s - p
        ends = np.minimum(begins + k, int(size) + (p if count_padding else 0))  # type: ignore[arg-type]
        inside = ends - (begins if count_padding else np.maximum(begins, 0))
        counts = counts * inside.reshape([-1 if j == i else 1 for j in range(count)])
    return layout.reshape(made * c.graph.constant((1 / counts).astype(reals.real())), c.shape())


def _pool(kind: str, x: Value, shape: Any, window: Any, strides: Any, padding: Any, dilation: Any = 1) -> Value:
    count = len(x.shape) - 2
    taps, steps, pads = _each(window, count), _each(strides or window, count), _each(padding, count)
    spread = _each(dilation, count)
    both = []
    for i in range(count):
        reach = (taps[i] - 1) * spread[i] + 1
        needed = (int(shape[i + 2]) - 1) * steps[i] + reach - int(x.shape[i + 2])  # type: ignore[arg-type]
        both.append((pads[i], max(needed - pads[i], 0)))
    return spatial.pool(kind, x, taps, steps, both, spread)


@op("adaptive_max_pool1d", "adaptive_max_pool2d", "adaptive_max_pool3d")
def adaptive_max_pool(c: Converter, images: Any, _sizes: Any) -> list[Any]:
    """The maximum of each part, whose gradient goes to the first of the largest elements."""
    x, _ = _with_channels(c, images)
    shape, rank = c.shape(), len(x.shape)
    counts = [int(n) for n in shape[len(shape) - rank + 2:]]  # type: ignore[arg-type]
    sizes = [int(n) for n in x.shape[2:]]  # type: ignore[arg-type]
    parts = []
    for place in np.ndindex(*counts):
        begins = [i * size // count for i, size, count in zip(place, sizes, counts)]
        ends = [-(-(i + 1) * size // count) for i, size, count in zip(place, sizes, counts)]
        part = moves.slice_(x, [0, 0, *map(int, begins)], [None, None, *map(int, ends)], [1] * rank)
        line = layout.reshape(part, (*x.shape[:2], product(part.shape[2:])))
        parts.append(layout.expand_dims(reductions.pick(line, reductions.argmax(line, 2)), (2,)))
    return [layout.reshape(moves.concat(parts, 2), shape), None]


@op("adaptive_avg_pool2d", "adaptive_avg_pool1d", "_adaptive_avg_pool2d", "adaptive_avg_pool3d",
    "_adaptive_avg_pool3d")
def adaptive_average_pool(c: Converter, images: Any, _sizes: Any) -> Value:
    """The mean, or along each axis a product with the shares of the elements in each result."""
    x, shape = _with_channels(c, images)
    rank = len(x.shape)
    if all(n == 1 for n in shape[2:]):
        return layout.reshape(reductions.mean(x, range(2, rank)), c.shape())
    for axis in range(2, rank):
        size, results = int(x.shape[axis]), int(shape[axis])  # type: ignore[arg-type]
        shares = np.zeros((size, results), reals.real())
        for i in range(results):
            begin, end = i * size // results, -(-(i + 1) * size // results)
            shares[begin:end, i] = 1 / (end - begin)
        if size == results:
            continue
        x = products.along_axis(x, shares, axis)
    return layout.reshape(x, c.shape())


# Normalisation


@op("_native_batch_norm_legit_functional", "_native_batch_norm_legit", "_native_batch_norm_legit_no_training")
def batch_norm(c: Converter, images: Any, weight: Any, bias: Any, *rest: Any) -> Any:
    x = c.value(images)
    shape = (x.shape[1],)
    gamma = c.value(weight) if weight is not None else layout.broadcast(c.graph.constant(1.0, "f32"), shape)
    beta = c.value(bias) if bias is not None else layout.broadcast(c.graph.constant(0.0, "f32"), shape)
    if c.name().endswith("no_training"):
        mean, variance, _, epsilon = rest
        return [_scaled(x, gamma, beta, c.value(mean), c.value(variance), epsilon), None, None]
    if isinstance(rest[0], bool):  # no running statistics: those of the batch alone
        return [_scaled(x, gamma, beta, *_statistics(x), rest[-1]), None, None]
    mean, variance, training, momentum, epsilon = rest[:5]
    if isinstance(mean, Value) and training:
        running = mean, c.value(variance)
        made, *_, new_mean, new_variance = _with_new_statistics(x, (gamma, beta), running, momentum, epsilon)
        if c.has_evaluation:
            made = losses.while_training(made, _scaled(x, gamma, beta, *running, epsilon))
            new_mean, new_variance = (losses.while_training(new, old) for new, old in zip((new_mean, new_variance),
                                                                                          running))
        return [made, None, None, new_mean, new_variance]
    if not isinstance(mean, State):
        return [_scaled(x, gamma, beta, c.value(mean), c.value(variance), epsilon), None, None, mean, variance]
    if momentum is None:
        raise Refused("batch normalisation with momentum=None, which counts all batches the same")
    return [_trained(c, x, gamma, beta, mean.name, variance.name, momentum, epsilon), None, None, None, None]


def _statistics(x: Value) -> tuple[Value, Value]:
    """The mean and the variance of each channel of the batch."""
    axes = [0, *range(2, len(x.shape))]
    mean = reductions.mean(x, axes)
    return mean, reductions.mean(e.unary("square", x - per_channel(mean, len(x.shape))), axes)


def _with_new_statistics(x: Value, scales: tuple[Value, Value], running: tuple[Value, Value], momentum: float,
                         epsilon: float) -> list[Any]:
    """With the statistics of the batch, where the running ones are a state of the step: they come back as results."""
    mean, spread = _statistics(x)
    count = x.shape[0] if isinstance(x.shape[0], Batch) else None
    each = product(x.shape[2:])
    if count is not None:
        n: Any = x.graph.count(Batch(count.times * each))
        unbiased = spread * (n / (n - 1.0))
    else:
        n = product(x.shape[:1]) * each
        unbiased = spread * (n / (n - 1))
    after = [old * (1 - momentum) + x.graph.stop_gradient(new) * momentum
             for old, new in zip(running, (mean, unbiased))]
    return [_scaled(x, *scales, mean, spread, epsilon), None, None, *after]


def _scaled(x: Value, gamma: Value, beta: Value, mean: Value, variance: Value, epsilon: float) -> Value:
    rank = len(x.shape)
    scale = gamma * e.unary("rsqrt", variance + epsilon)
    made = (x - per_channel(mean, rank)) * per_channel(scale, rank)
    return made + per_channel(beta, rank)


def _trained(c: Converter, x: Value, gamma: Value, beta: Value, mean: str, variance: str, momentum: float,
             epsilon: float) -> Value:
    """With the statistics of the batch while training.

    PyTorch's running variance is an average of unbiased variances, that of `mt` of biased ones: the plan's variable is
    the share (n - 1) / n of PyTorch's, where n is what a channel has in a full batch.
    """
    if not isinstance(x.shape[0], Batch):
        raise Refused(f"batch normalisation over a first axis of {x.shape[0]}, which is not the samples")
    channels = int(x.shape[1])  # type: ignore[arg-type]
    count = c.batch_size * product(x.shape[2:])
    share = (count - 1) / count if count > 1 else 1.0
    biased = variance + "_biased"
    if mean in c.statistics:
        raise Refused("batch normalisation that runs twice in a step")
    c.statistics[mean], c.statistics[variance] = (mean, 1.0), (biased, share)
    running = [c.graph.variable(name, (channels,), frozen=True) for name in (mean, biased)]
    training = spatial.batch_normalization(x, (gamma, beta, *running), 1 - momentum, epsilon)
    unbiased = running[1] * (1 / share)
    return losses.while_training(training, _scaled(x, gamma, beta, running[0], unbiased, epsilon))


@op("layer_norm", "native_layer_norm")
def layer_norm(c: Converter, value: Any, shape: Sequence[int], weight: Any = None, bias: Any = None,
               epsilon: float = 1e-5, *_: Any) -> Any:
    x = c.value(value)
    axes = range(len(x.shape) - len(shape), len(x.shape))
    made = reductions.normalize(x, axes, epsilon)
    made = made if weight is None else made * c.value(weight)
    made = made if bias is None else made + c.value(bias)
    if c.name() == "layer_norm":
        return made
    mean = reductions.mean(x, axes)
    spread = reductions.mean(e.unary("square", x - layout.expand_dims(mean, axes)), axes)
    scale = e.unary("rsqrt", spread + epsilon)
    return [made, *(c.graph.stop_gradient(layout.expand_dims(v, axes)) for v in (mean, scale))]  # as in PyTorch


@op("rms_norm")
def rms_norm(c: Converter, value: Any, shape: Sequence[int], weight: Any = None, epsilon: Any = None) -> Value:
    x = c.value(value)
    axes = range(len(x.shape) - len(shape), len(x.shape))
    mean = reductions.mean(e.unary("square", x), axes)
    scale = e.unary("rsqrt", mean + (float(np.finfo(reals.real()).eps) if epsilon is None else epsilon))
    made = x * layout.expand_dims(scale, axes)
    return made if weight is None else made * c.value(weight)


@op("group_norm", "instance_norm")
def group_norm(c: Converter, value: Any, *rest: Any) -> Value:
    x = c.value(value)
    rank, channels = len(x.shape), int(x.shape[1])  # type: ignore[arg-type]
    if c.name() == "group_norm":
        groups, weight, bias, epsilon = rest[:4]
    else:
        weight, bias, _, _, _, _, epsilon = rest[:7]
        groups = channels
    moved = layout.move_axis(x, 1, -1)
    parts = layout.reshape(moved, (*moved.shape[:-1], groups, channels // groups))
    made = reductions.normalize(parts, [*range(1, rank - 1), rank], epsilon)
    made = layout.move_axis(layout.reshape(made, moved.shape), -1, 1)
    made = made if weight is None else made * per_channel(c.value(weight), rank)
    return made if bias is None else made + per_channel(c.value(bias), rank)


# Dropout


def drop(c: Converter, x: Value, rate: float) -> Value:
    """Dropout of every element."""
    if not c.random or rate == 0:
        return x
    if rate >= 1:
        return losses.while_training(x * 0.0, x)
    attributes = f" {{{{rate = {text.number(rate)}, stream = {quoted(c.stream())}}}}}"
    return e.apply("dropout", (x,), x.dtype, attributes=attributes)


@op("native_dropout", "dropout", "feature_dropout", "alpha_dropout")
def dropout(c: Converter, value: Any, rate: float, training: Any = True) -> Any:
    x = c.value(value)
    if c.name() == "alpha_dropout":
        return _alpha_dropout(c, x, rate) if training else x
    if c.name() == "feature_dropout":
        shape = (*x.shape[:2], *[1] * (len(x.shape) - 2))
        return x * kept(c, shape, rate) if training else x
    made = drop(c, x, rate) if training is not False else x
    return [made, None] if c.name().startswith("native") else made


def _alpha_dropout(c: Converter, x: Value, rate: float) -> Value:
    """Has the value of selu far below 0 in the place of an element, and keeps the mean and the variance."""
    if not c.random or rate == 0:
        return x
    if rate >= 1:
        return losses.while_training(x * 0.0, x)
    low = -1.7580993408473766
    stays = kept(c, x.shape, rate) * (1 - rate)
    scale = (1 / ((1 - rate) * (1 + rate * low * low))) ** 0.5
    made = (x * stays + low * (1.0 - stays)) * scale - low * rate * scale
    return losses.while_training(made, x)


def kept(c: Converter, shape: Any, rate: float) -> Value:
    """1 / (1 - rate) with the probability 1 - rate, else 0; 1 in evaluation."""
    return drop(c, layout.broadcast(c.graph.constant(1.0, "f32"), shape), rate)
