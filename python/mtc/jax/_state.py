# SPDX-License-Identifier: Apache-2.0
"""State that a step changes.

Moving averages of the statistics of a batch, v = v * m + batch * (1 - m) of the mean and the biased variance of one
value, are those of `mt.batch_normalization`, so that they need no sums of their own. Any other new state, such as the
vectors of a spectral norm, is assigned in the update.
"""

from __future__ import annotations

import dataclasses
from typing import Optional, Sequence

import numpy as np

from mtc._trace import BATCH, Graph, Value, layout, reals
from mtc._trace import elementwise as e
from mtc._trace.text import number
from mtc._trace.values import VIEWS, elements


@dataclasses.dataclass(frozen=True)
class _Statistic:
    """The mean, or the variance, of a value over all its axes but one, which has its channels."""

    source: Value
    channels: int


def add_updates(graph: Graph, names: Sequence[str], old: Sequence[Value], new: Sequence[Value]) -> None:
    """Says for each variable what becomes of it in a training step."""
    means: list[tuple[str, Value, float, _Statistic]] = []
    variances: list[tuple[str, Value, float, _Statistic]] = []
    assigned = {}
    for name, before, after in zip(names, old, new):
        if after.source is before.source:
            continue
        assigned[name] = graph.stop_gradient(layout.broadcast(e.cast(after, before.dtype), before.shape))
        momentum, statistic = _average(before.source, _moved(after)) or (0.0, None)
        mean = None if statistic is None else _mean_of(statistic)
        if mean is not None and not _is_square(mean.source):
            means.append((name, before.source, momentum, mean))
            continue
        variance = None if statistic is None else _variance_of(statistic)
        if variance is not None:
            variances.append((name, before.source, momentum, variance))
    for name, moving, momentum, mean in means:
        pair = next((v for v in variances if v[3] == mean and v[2] == momentum), None)
        if pair is None:
            continue
        variances.remove(pair)
        _say(graph, mean, moving, pair[1], momentum)
        del assigned[name], assigned[pair[0]]
    for name, value in assigned.items():
        graph.assign(name, value)


def _moved(value: Value) -> Value:
    """Without what changes no number: nnx stops the gradient of the new averages."""
    while value.op in (*VIEWS, "stop_gradient", "shift"):
        value = value.operands[0]
    return value


def _say(graph: Graph, found: _Statistic, mean: Value, variance: Value, momentum: float) -> None:
    source = found.source
    count = int(source.shape[found.channels])  # type: ignore[arg-type]
    rest = [i for i in range(source.rank) if i != found.channels]
    graph.say("mt.batch_normalization {0}, {1}, {2}, {3}, {4} momentum = " f"{number(momentum)}"
              " : {t0}, {t1}, {t2}, {t3}, {t4}", layout.transpose(source, [*rest, found.channels]),
              graph.constant(np.ones(count)), graph.constant(np.zeros(count)), mean, variance)


def _average(variable: Value, value: Value) -> Optional[tuple[float, Value]]:
    """m and s, where the value is variable * m + s * (1 - m)."""
    if value.op != "add":
        return None
    for kept, added in (value.operands, value.operands[::-1]):
        a, b = _scaled(kept.source), _scaled(added.source)
        if a[1].source is variable and abs(a[0] + b[0] - 1) < 10 * reals.rounding():
            return a[0], b[1]
    return None


def _scaled(value: Value) -> tuple[float, Value]:
    if value.op == "mul":
        for x, y in (value.operands, value.operands[::-1]):
            if x.scalar is not None:
                return x.scalar, y
    return 1.0, value


def _mean_of(value: Value) -> Optional[_Statistic]:
    """The value whose mean over all axes but one this is."""
    value = value.source
    if value.op != "div" or not value.operands[1].source.count:
        return None
    total = value.operands[0].source
    if total.op != "reduce_sum" or total.dims != (0,):
        return None
    source = total.operands[0]
    channels = 1
    if source.op == "reduce_sum":
        source, gone = source.operands[0], source.dims
        rest = [i for i in range(1, source.rank) if i not in gone]
        if 0 in gone or len(rest) != 1:
            return None
        channels = rest[0]
    if source.rank < 2 or source.shape[0] != BATCH:
        return None
    size = elements(source.shape) // int(source.shape[channels])  # type: ignore[arg-type]
    return _Statistic(source, channels) if value.operands[1].source.count == size else None


def _is_square(value: Value) -> bool:
    return value.op == "square" or value.op == "mul" and value.operands[0] is value.operands[1]


def _variance_of(value: Value) -> Optional[_Statistic]:
    """The value whose biased variance over all axes but one this is."""
    value = value.source
    if isinstance(value.info, tuple) and value.info[0] == "tied":  # see the rule of max
        value = value.info[1]
    if value.op == "maximum":
        value = next((o for o in value.operands if o.constant is None), value).source
    if value.op == "sub":  # E[x^2] - E[x]^2
        squares = _mean_of(value.operands[0])
        mean = value.operands[1].source
        if squares is None or not _is_square(squares.source):
            return None
        found = _Statistic(squares.source.operands[0], squares.channels)
        return found if _is_square(mean) and _mean_of(mean.operands[0]) == found else None
    squares = _mean_of(value)  # E[(x - E[x])^2]
    if squares is None or not _is_square(squares.source):
        return None
    difference = squares.source.operands[0]
    if difference.op != "sub":
        return None
    found = _Statistic(difference.operands[0], squares.channels)
    return found if _mean_of(difference.operands[1]) == found else None
