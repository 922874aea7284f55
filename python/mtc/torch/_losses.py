# SPDX-License-Identifier: Apache-2.0
"""ATen's losses. A mean is a sum over the batch divided by what counts, so that it is exact for a short batch."""

from __future__ import annotations

from typing import Any, Optional

from mtc._trace import BATCH, Refused, Value, gradients, layout, moves, patterns, reductions
from mtc._trace import elementwise as e
from mtc._trace.values import Batch
from mtc.torch._convert import Converter
from mtc.torch._handlers import op

NONE, MEAN, SUM = range(3)
MOVES = {"reshape", "broadcast", "transpose", "slice", "cast"}


def reduced(values: Value, reduction: int, weights: Optional[Value] = None, counts: Optional[Value] = None,
            more: Optional[Value] = None) -> Value:
    """The values, their sum or their mean; with weights the weighted mean.

    `counts`: 1 for each value that counts, else 0. Where none counts the mean is not a number, but its gradient is 0.
    `more`: is added to the values times their weights.
    """
    weighted = values if weights is None else values * weights
    weighted = weighted if more is None else weighted + more
    if reduction == NONE:
        return weighted
    every = range(len(values.shape))
    if weights is not None and reduction == MEAN:
        total, divisor = reductions.reduce("sum", weighted, every), reductions.reduce("sum", weights, every)
        if counts is None:
            return total / divisor
        none = e.compare("eq", divisor if counts is weights else reductions.reduce("sum", counts, every), 0.0)
        mean = total / e.select(none, e.as_value(divisor, 1.0), divisor)
        return e.select(none, e.as_value(mean, float("nan")), mean)
    return reductions.mean(weighted, every) if reduction == MEAN else reductions.reduce("sum", weighted, every)


@op("cross_entropy_loss")
def cross_entropy(c: Converter, logits: Any, target: Any, weight: Any = None, reduction: int = MEAN,
                  ignored: int = -100, smoothing: float = 0.0) -> Value:
    x, labels = _classes_last(c.value(logits)), c.value(target)
    if labels.dtype == "f32":
        return _of_probabilities(c, x, _classes_last(labels), weight, reduction, smoothing)
    labels, weights, counts = _counted(c, labels, weight, ignored)
    values = _sparse(x, labels)
    if not smoothing:
        return reduced(values, reduction, weights, counts)
    logs = reductions.softmax(x, log=True)
    logs = logs if weight is None else logs * c.value(weight)
    every = -reductions.reduce("sum", logs, [len(x.shape) - 1])
    every = every * (smoothing / int(x.shape[-1]))  # type: ignore[arg-type]
    values = values * (1 - smoothing)
    if weight is None:
        return reduced(values + every, reduction, weights, counts)
    # Every class has its own weight in the share of all, and a label's is in the other and in the divisor alone.
    return reduced(values, reduction, weights, counts, every if counts is None else every * counts)


@op("nll_loss", "nll_loss_nd", "nll_loss2d")
def nll(c: Converter, log_probabilities: Any, target: Any, weight: Any = None, reduction: int = MEAN,
        ignored: int = -100) -> Value:
    x = _classes_last(c.value(log_probabilities))
    whole = patterns.logits_of(x) is not None  # a cross entropy, whose labels the runtime checks
    labels, weights, counts = _counted(c, c.value(target), weight, ignored, whole)
    return reduced(-reductions.pick(x, labels), reduction, weights, counts)


def _classes_last(x: Value) -> Value:
    return layout.move_axis(x, 1, -1) if len(x.shape) > 2 else x


def _counted(c: Converter, labels: Value, weight: Any, ignored: int,
             whole: bool = True) -> tuple[Value, Optional[Value], Optional[Value]]:
    """Labels that are classes; the weight of each: that of its class, and 0 where it is to be ignored; else 1 or 0.

    `whole`: the loss is one operation of `mt`, whose labels the runtime checks.
    """
    labels = e.cast(labels, "i32")
    if whole and _is_checked(c, labels, ignored):
        return labels, None if weight is None else moves.take(c.value(weight), labels), None
    there = e.compare("ne", labels, ignored)
    labels = e.select(there, labels, e.as_value(labels, 0))
    counts = e.cast(there, "f32")
    weights = counts if weight is None else counts * moves.take(c.value(weight), labels)
    return labels, weights, counts


def _is_checked(c: Converter, labels: Value, ignored: int) -> bool:
    """Whether they are one class a sample, as the caller gave them, of which none is ignored in the example.

    The runtime then checks that all labels are classes, so that one to be ignored is an error and not a wrong result.
    """
    given = labels
    while given.op in MOVES:
        given = given.operands[0]
    example = c.examples.get(given.location)
    return (given.op in ("target", "input") and given.shape == (BATCH,) and example is not None
            and not bool((example == ignored).any()))


def _sparse(logits: Value, labels: Value) -> Value:
    """The cross entropy of each label."""
    if isinstance(logits.shape[-1], Batch):
        raise Refused("a cross entropy over the samples of a batch")
    return patterns.cross_entropy(logits, labels)


def _of_probabilities(c: Converter, x: Value, target: Value, weight: Any, reduction: int, smoothing: float) -> Value:
    classes = int(x.shape[-1])  # type: ignore[arg-type]
    if smoothing:
        target = target * (1 - smoothing) + smoothing / classes
    logs = reductions.softmax(x, log=True)
    parts = logs * target
    parts = parts if weight is None else parts * c.value(weight)
    return reduced(-reductions.reduce("sum", parts, [len(x.shape) - 1]), reduction)


# Element by element


def _pair(c: Converter, a: Any, b: Any) -> tuple[Value, Value]:
    return e.cast(c.value(a), "f32"), e.cast(c.value(b), "f32")


@op("mse_loss")
def mse(c: Converter, a: Any, b: Any, reduction: int = MEAN) -> Value:
    return reduced(e.unary("square", e.binary("sub", *_pair(c, a, b))), reduction)


@op("l1_loss")
def l1(c: Converter, a: Any, b: Any, reduction: int = MEAN) -> Value:
    return reduced(e.unary("abs", e.binary("sub", *_pair(c, a, b))), reduction)


@op("smooth_l1_loss", "huber_loss")
def huber(c: Converter, a: Any, b: Any, reduction: int = MEAN, bound: float = 1.0) -> Value:
    distance = e.unary("abs", e.binary("sub", *_pair(c, a, b)))
    if bound == 0:
        return reduced(distance, reduction)
    near = e.unary("square", distance) * 0.5
    far = (distance - 0.5 * bound) * bound
    values = e.select(e.compare("lt", distance, bound), near, far)
    return reduced(values / bound if c.name() == "smooth_l1_loss" else values, reduction)


@op("binary_cross_entropy_with_logits")
def bce_with_logits(c: Converter, logits: Any, target: Any, weight: Any = None, positive: Any = None,
                    reduction: int = MEAN) -> Value:
    x, t = _pair(c, logits, target)
    missed = e.unary("softplus", -x)
    if positive is not None:
        more = c.value(positive) - 1.0
        missed = missed * (more * t + 1.0)
    values = (1.0 - t) * x + missed
    return reduced(values if weight is None else values * c.value(weight), reduction)


@op("binary_cross_entropy")
def bce(c: Converter, probabilities: Any, target: Any, weight: Any = None, reduction: int = MEAN) -> Value:
    """PyTorch's gradient to p, (p - t) / max(p (1 - p), 1e-12), is a number where p is 0 or 1 too."""
    p, t = _pair(c, probabilities, target)
    q = 1.0 - p
    hit, rest = (e.binary("maximum", -100.0, c.graph.stop_gradient(e.unary("log", v))) for v in (p, q))
    miss = (1.0 - t) * rest
    values = -(t * hit + miss)
    slope = (p - t) / e.binary("maximum", 1e-12, q * p)
    values = gradients.with_slope(values, p, slope)
    return reduced(values if weight is None else values * c.value(weight), reduction)


@op("kl_div")
def kl_div(c: Converter, logs: Any, target: Any, reduction: int = MEAN, log_target: bool = False) -> Value:
    x, t = _pair(c, logs, target)
    if log_target:
        return reduced(e.unary("exp", t) * (t - x), reduction)
    positive = e.compare("gt", t, 0.0)
    known = e.unary("log", e.select(positive, t, e.as_value(t, 1.0)))
    return reduced(t * (known - x), reduction)


