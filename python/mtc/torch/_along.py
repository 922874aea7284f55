# SPDX-License-Identifier: Apache-2.0
"""ATen operations along axes: sums, extremes, orders, variances, norms, softmax."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from mtc._trace import Batch, Refused, Value, gradients, integers, layout, moves, reductions
from mtc._trace import elementwise as e
from mtc.torch._convert import Converter
from mtc.torch._elements import as_result, promoted
from mtc.torch._handlers import op
from mtc.torch._known import Known, product


def _axes(value: Value, dims: Any) -> list[int]:
    rank = len(value.shape)
    if dims is None or (isinstance(dims, (list, tuple)) and not dims):
        return list(range(rank))
    return [d % rank for d in (dims if isinstance(dims, (list, tuple)) else [dims])] if rank else []


def _kept(c: Converter, value: Value) -> Value:
    return layout.reshape(value, c.shape())


def _line(value: Value) -> Value:
    """With an axis, if it has none."""
    return value if value.shape else layout.reshape(value, (1,))


def _dims(given: Any) -> Any:
    """Axes; None where an overload has something else in their place: a type, or `unbiased`."""
    return given if isinstance(given, (list, tuple, int)) and not isinstance(given, bool) else None


@op("sum")
def sum_(c: Converter, value: Any, dims: Any = None, *_: Any) -> Value:
    x = as_result(c, value)
    return _kept(c, reductions.reduce("sum", x, _axes(x, _dims(dims))))


@op("mean")
def mean(c: Converter, value: Any, dims: Any = None, *_: Any) -> Value:
    x = as_result(c, value)
    return _kept(c, reductions.mean(x, _axes(x, _dims(dims))))


@op("amax", "amin")
def extreme(c: Converter, value: Any, dims: Any = None, keepdim: bool = False) -> Value:
    x = c.value(value)
    return _kept(c, reductions.reduce(c.name()[1:], x, _axes(x, dims)))


@op("max", "min")
def extreme_and_place(c: Converter, value: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """Of all elements equal ones share the gradient, along an axis the first one has it."""
    x = c.value(value)
    if isinstance(dim, (Value, Known)):
        return gradients.extremum("maximum" if c.name() == "max" else "minimum", *promoted(c, value, dim))
    if dim is None:
        return _kept(c, reductions.reduce(c.name(), x, _axes(x, None)))
    found = gradients.of_first(c.name(), _line(x), dim)
    return [layout.reshape(v, shape) for v, shape in zip(found, c.shapes())]


@op("aminmax")
def extremes(c: Converter, value: Any, dim: Any = None, keepdim: bool = False) -> list[Value]:
    x = c.value(value)
    return [layout.reshape(reductions.reduce(kind, x, _axes(x, dim)), c.shape()) for kind in ("min", "max")]


@op("argmax", "argmin")
def argmax(c: Converter, value: Any, dim: Any = None, keepdim: bool = False) -> Value:
    x = c.value(value)
    x = x if c.name() == "argmax" else -x
    if dim is None:
        if any(isinstance(n, Batch) for n in x.shape):
            raise Refused(f"{c.name()} over all samples")
        x, dim = layout.reshape(x, (product(x.shape),)), 0
    return _kept(c, reductions.argmax(_line(x), dim))


@op("topk")
def topk(c: Converter, value: Any, count: int, dim: int = -1, largest: bool = True, in_order: bool = True) -> Any:
    """Of equal elements the first comes first; PyTorch promises no order."""
    return _ordered(c, value, count, dim, largest)


@op("sort", "argsort")
def sort(c: Converter, value: Any, *options: Any) -> Any:
    dim, descending = options[-2:]  # after `stable`, which it always is
    found = _ordered(c, value, None, dim, descending)
    return found[1] if c.name() == "argsort" else found


def _ordered(c: Converter, value: Any, count: Any, dim: int, largest: bool) -> list[Value]:
    x = _line(c.value(value))
    places = reductions.sort([x], count, dim, largest)
    found = [moves.take_along(x, places, dim), places]
    return found if c.value(value).shape else [layout.reshape(v, ()) for v in found]


@op("kthvalue", "median", "nanmedian")
def of_rank(c: Converter, value: Any, first: Any = None, second: Any = None, keepdim: bool = False) -> Any:
    """The element of a rank and its place: of equal ones the first, but of all elements they share the gradient."""
    x = c.value(value)
    whole = c.name() != "kthvalue" and first is None
    dim = -1 if whole else (second if c.name() == "kthvalue" else first)
    line = _line(layout.reshape(x, (_count(x),)) if whole else x)
    size = line.shape[dim % len(line.shape)]
    if isinstance(size, Batch):
        raise Refused("the order of the samples")
    rank = int(first) if c.name() == "kthvalue" else (size + 1) // 2
    if c.name() == "nanmedian":
        found, place = _of_numbers(line, dim % len(line.shape))
    else:
        place = moves.part(reductions.sort([line], rank, dim), dim % len(line.shape), rank - 1, rank)
        found = moves.take_along(line, place, dim)
    if c.name() == "median" and line.dtype == "f32":  # a NaN is the median
        none = reductions.reduce_logic(False, e.compare("ne", line, line), [dim % len(line.shape)])
        found = e.select(layout.expand_dims(none, (dim % len(line.shape),)), e.as_value(found, math.nan), found)
    if not whole:
        return [layout.reshape(v, shape) for v, shape in zip((found, place), c.shapes())]
    if not found.learned:
        return _kept(c, found)
    fixed = c.graph.stop_gradient(line)
    hot = e.cast(e.compare("eq", fixed, c.graph.stop_gradient(found)), "f32")
    share = hot / reductions.reduce("sum", hot, [0])
    slope = reductions.reduce("sum", (line - fixed) * share, [0])
    return _kept(c, c.graph.stop_gradient(found)) + slope


def _of_numbers(line: Value, axis: int) -> tuple[Value, Value]:
    """The median of what is no NaN, and its place; NaN where nothing is a number."""
    number = e.compare("eq", line, line)
    count = layout.expand_dims(reductions.reduce("sum", e.cast(number, "f32"), [axis]), (axis,))
    last = e.select(number, line, e.as_value(line, math.inf))
    middle = e.unary("floor", e.binary("maximum", count - 1.0, 0.0) * 0.5)
    place = moves.take_along(reductions.sort([last], None, axis), e.cast(middle, "i32"), axis)
    found = moves.take_along(last, place, axis)
    return e.select(e.compare("eq", count, 0.0), e.as_value(found, math.nan), found), place


def _count(x: Value) -> int:
    if any(isinstance(n, Batch) for n in x.shape):
        raise Refused("the order of the samples")
    return product(x.shape)


@op("any", "all")
def logic(c: Converter, value: Any, dims: Any = None, keepdim: bool = False) -> Value:
    x = e.cast(c.value(value), "i1")
    return _kept(c, reductions.reduce_logic(c.name() == "all", x, _axes(x, dims)))


@op("var", "std", "var_mean", "std_mean")
def variance(c: Converter, value: Any, dims: Any = None, correction: Any = 1, keepdim: Any = False) -> Any:
    """Two overloads have `unbiased` for the correction, one of them in the place of the axes."""
    x = c.value(value)
    if isinstance(dims, bool):
        dims, correction = None, dims
    axes = _axes(x, _dims(dims))
    correction = 1 if correction is None else float(correction)
    middle = reductions.mean(x, axes)
    spread = e.unary("square", x - _expanded(middle, axes, x))
    sizes = [x.shape[i] for i in axes]
    batches = [n for n in sizes if isinstance(n, Batch)]
    static = product([n for n in sizes if not isinstance(n, Batch)])
    total = reductions.reduce("sum", spread, axes)
    count = x.graph.count(batches[0] * static) if batches else x.graph.constant(np.float32(static))
    free = e.binary("maximum", count - correction, 0.0) if correction else count
    made = total / free
    made = gradients.root(made) if c.name().startswith("std") else made
    shaped = [layout.reshape(v, c.shape()) for v in (made, middle)]
    return shaped if c.name().endswith("mean") else shaped[0]


def _expanded(value: Value, axes: list[int], like: Value) -> Value:
    return layout.expand_dims(value, sorted(axes)) if len(value.shape) != len(like.shape) else value


@op("softmax", "_softmax", "log_softmax", "_log_softmax", "special_softmax", "special_log_softmax")
def softmax(c: Converter, value: Any, dim: int, *_: Any) -> Value:
    x = _line(e.cast(c.value(value), "f32"))
    return _kept(c, reductions.softmax(x, dim, log="log" in c.name()))


@op("_safe_softmax")
def safe_softmax(c: Converter, value: Any, dim: int, *_: Any) -> Value:
    """0 along lines of -inf alone, which have no gradient."""
    x = _line(e.cast(c.value(value), "f32"))
    axis = dim % len(x.shape)
    most = reductions.reduce("max", c.graph.stop_gradient(x), (axis,))
    empty = layout.expand_dims(e.compare("eq", most, -np.inf), (axis,))
    nothing = e.as_value(x, 0.0)
    return _kept(c, e.select(empty, nothing, reductions.softmax(e.select(empty, nothing, x), axis)))


@op("logsumexp", "special_logsumexp")
def logsumexp(c: Converter, value: Any, dims: Any, keepdim: bool = False) -> Value:
    x = as_result(c, value)
    axes = _axes(x, dims)
    most = reductions.reduce("max", x, axes)
    finite = e.compare("lt", e.unary("abs", c.graph.stop_gradient(most)), np.inf)
    most = e.select(finite, most, e.as_value(most, 0.0))
    total = reductions.reduce("sum", e.unary("exp", x - _expanded(most, axes, x)), axes)
    return _kept(c, e.unary("log", total) + most)


@op("cumsum")
def cumsum(c: Converter, value: Any, dim: int, *_: Any) -> Value:
    return _kept(c, reductions.cumsum(_line(as_result(c, value)), dim))


@op("cumprod")
def cumprod(c: Converter, value: Any, dim: int, *_: Any) -> Value:
    """Each product is of the elements themselves, so that gradients hold at 0 too."""
    return _kept(c, integers.cumulative(operator.mul, _line(as_result(c, value)), dim, False, 1))


@op("cummax", "cummin")
def cumulative_extremes(c: Converter, value: Any, dim: int) -> list[Value]:
    """With the place of the last of equal ones, which alone has the gradient; in rounds as below."""
    x = _line(c.value(value))
    axis, kind = dim % len(x.shape), "ge" if c.name() == "cummax" else "le"
    size, step = x.shape[axis], 1
    if isinstance(size, Batch) or x.dtype == "i1":
        raise Refused("of booleans, or along the batch")
    place = layout.broadcast(moves.indices(x, axis), x.shape)

    def earlier(v: Value) -> Value:
        head = tuple(step if i == axis else n for i, n in enumerate(v.shape))
        fill = layout.broadcast(moves.part(v, axis, 0, 1), head)
        return moves.concat([fill, moves.part(v, axis, 0, size - step)], axis)

    while step < size:
        before, place_before = earlier(x), earlier(place)
        newer = e.compare(kind, x, before)
        if x.dtype == "f32":
            newer = e.logical_or(newer, e.compare("ne", x, x))
        x, place, step = e.select(newer, x, before), e.select(newer, place, place_before), 2 * step
    return [layout.reshape(v, shape) for v, shape in zip((x, place), c.shapes())]


@op("logcumsumexp")
def logcumsumexp(c: Converter, value: Any, dim: int) -> Value:
    return _kept(c, integers.cumulative(_log_add_exp, _line(as_result(c, value)), dim, False, -np.inf))


def _log_add_exp(x: Value, before: Value) -> Value:
    most = x.graph.stop_gradient(e.binary("maximum", x, before))
    none = e.compare("eq", most, -np.inf)
    most = e.select(e.compare("lt", e.unary("abs", most), np.inf), most, e.as_value(most, 0.0))
    total = e.unary("exp", x - most) + e.unary("exp", before - most)
    return e.select(none, x, e.unary("log", e.select(none, e.as_value(total, 1.0), total)) + most)


@op("prod")
def prod(c: Converter, value: Any, dim: Any = None, *_: Any) -> Value:
    x = as_result(c, value)
    if not isinstance(dim, int) or isinstance(dim, bool):
        if any(isinstance(n, Batch) for n in x.shape):
            raise Refused("a product over the samples")
        x, dim = layout.reshape(x, (product(x.shape),)), 0
    return _kept(c, reductions.product(_line(x), [dim]))


@op("norm", "linalg_vector_norm")
def norm(c: Converter, value: Any, order: Any = 2, dims: Any = None, *_: Any) -> Value:
    """At 0 there is no gradient."""
    x = as_result(c, value)
    axes, order = _axes(x, _dims(dims)), 2 if order is None else order
    if order == 2:
        return _kept(c, gradients.root(reductions.reduce("sum", e.unary("square", x), axes)))
    if not isinstance(order, (int, float)):
        raise Refused(f"a norm of order {order}")
    size = e.unary("abs", x)
    if order in (1, math.inf, -math.inf):
        kind = {1: "sum", math.inf: "max", -math.inf: "min"}[order]
        return _kept(c, reductions.reduce(kind, size, axes))
    there = e.compare("ne", x, 0.0)
    if order == 0:
        return _kept(c, reductions.reduce("sum", e.cast(there, "f32"), axes))
    one = e.as_value(x, 1.0)
    powers = e.binary("pow", e.select(there, size, one), float(order))
    if order > 0:
        powers = e.select(there, powers, e.as_value(x, 0.0))
    else:
        powers = e.select(there, powers, e.as_value(x, math.inf))
    total = reductions.reduce("sum", powers, axes)
    some = e.compare("gt", total, 0.0)
    made = e.binary("pow", e.select(some, total, e.as_value(total, 1.0)), 1 / order)
    return _kept(c, e.select(some, made, total))


@op("dist")
def dist(c: Converter, a: Any, b: Any, order: Any = 2) -> Value:
    made: Value = norm(c, as_result(c, a) - as_result(c, b), order)
    return made


@op("_pdist_forward")
def distances(c: Converter, value: Any, order: float = 2) -> Value:
    """Of the rows of each pair."""
    x = as_result(c, value)
    if isinstance(x.shape[0], Batch):
        raise Refused("distances among the samples")
    if math.isinf(order):
        raise Refused("distances of order inf, of which PyTorch's gradient counts equal differences twice")
    rows, columns = (moves.take(x, c.graph.constant(k.astype("i4")), 0) for k in np.triu_indices(int(x.shape[0]), 1))
    made: Value = norm(c, e.binary("sub", rows, columns), order, [-1])
    return made


@op("one_hot")
def one_hot(c: Converter, value: Any, depth: int = -1) -> Value:
    if depth < 0:
        raise Refused("a one_hot of as many classes as the data has: give num_classes")
    return moves.one_hot(c.value(value), depth, c.dtype())
