# SPDX-License-Identifier: Apache-2.0
"""Losses and metrics: a scalar of the trace becomes a mean over the samples, whose divisor is their number.

A scalar is taken apart along sums, factors and quotients down to sums over the batch. Whatever it is divided by (the
number of samples, of tokens that count, a sum of weights), the result is exact for a short batch.
"""

from __future__ import annotations

import dataclasses
from typing import Optional, Sequence

import numpy as np

from mtc._trace import elementwise as e
from mtc._trace import reals, reductions
from mtc._trace.graph import Graph
from mtc._trace.layout import broadcast, reshape
from mtc._trace.text import number, quoted
from mtc._trace.values import BATCH, Refused, Value, elements, has_batch


@dataclasses.dataclass
class Term:
    """`scale * factor * sum of values / n^divided`; not a number where `empty` holds."""

    values: Value  # [BATCH]
    scale: float
    factor: Optional[Value]
    divided: int
    empty: Optional[Value] = None  # a scalar of i1


@dataclasses.dataclass
class Parts:
    """What a scalar is the sum of."""

    terms: list[Term]
    squares: list[tuple[Value, float]]  # variables, and the coefficient of the sum of their squares
    others: list[tuple[Value, float]]  # scalars that are the same for all samples


def add_loss(graph: Graph, value: Value, evaluation: Optional[Value] = None, name: str = "loss") -> None:
    """Minimises a scalar f32. `evaluation`: the same in `eval_step`, where it differs."""
    _check(value, name)
    parts = take_apart(value)
    if evaluation is None or evaluation is value:
        if len(parts.terms) == 1 and not parts.others and parts.terms[0].factor is None and parts.terms[0].divided == 1:
            _say_mean(graph, name, parts.terms[0])
        else:
            graph.say(f"mt.loss {quoted(name)}, {{0}} : {{t0}}", per_sample(graph, parts))
    else:
        other = take_apart(evaluation)
        if [(id(v), c) for v, c in other.squares] != [(id(v), c) for v, c in parts.squares]:
            _without_squares(graph, parts)
            _without_squares(graph, other)
        values = while_training(per_sample(graph, parts), per_sample(graph, other))
        graph.say(f"mt.loss {quoted(name)}, {{0}} : {{t0}}", values)
    for variable, coefficient in parts.squares:
        graph.say(f"mt.regularizer {{0}} l2 = {number(coefficient)} : {{t0}}", variable)


def add_metric(graph: Graph, name: str, value: Value, evaluation: Optional[Value] = None,
               better: str = "lower", exact: bool = False) -> None:
    """Reports a scalar: a mean over all samples, a quotient of two sums over all samples, or the root of one of these.

    Of another scalar that is the mean of what it is for each batch; with `exact` it is refused.
    """
    _check(value, name)
    both = [value, value if evaluation is None else evaluation]
    if all(v.op == "metric" for v in both):
        _say_named(graph, name, *both)
        return
    means, root = [_mean_of(graph, v) for v in both], ""
    if all(v.source.op == "sqrt" for v in both):
        squares = [_mean_of(graph, v.source.operands[0]) for v in both]
        if all(m.exact for m in squares):
            means, root = squares, " finalizer root_mean"
    if exact and not all(m.exact for m in means):
        raise Refused(f"metric {name}: expected a mean over samples or a quotient of two sums, found another function "
                      "of the samples")
    values = while_training(means[0].values, means[1].values)
    if all(m.weights is None for m in means):
        graph.say(f"mt.metric {quoted(name)}, {{0}}{root} better {better} : {{t0}}", values)
        return
    ones = broadcast(graph.constant(1.0), (BATCH,))
    weights = while_training(means[0].weights or ones, means[1].weights or ones)
    graph.say(f"mt.metric {quoted(name)}, {{0}} weights({{1}} : {{t1}}){root} better {better} : {{t0}}", values,
              weights)


def named_metric(graph: Graph, described: str, operands: Sequence[Value], count: int) -> list[Value]:
    """The numbers that a metric is which the compiler knows by the text of its object. They are of no other use."""
    return [Value(graph, "metric", tuple(operands), "", (), "f32", info=(described, i)) for i in range(count)]


def _say_named(graph: Graph, name: str, training: Value, evaluation: Value) -> None:
    """The first number of a metric stands for all, whose names are NAME/0, NAME/1 and so on."""
    described, number = training.info
    if number:
        return
    operands = [while_training(a, b) for a, b in zip(training.operands, evaluation.operands)]
    names = ", ".join(f"{{{i}}}" for i in range(len(operands)))
    types = ", ".join(f"{{t{i}}}" for i in range(len(operands)))
    graph.say(f"graph.metric {quoted(name.removesuffix('/0'))} of {quoted(described)} {names} : {types}", *operands)


@dataclasses.dataclass
class Mean:
    """The mean of `values` [BATCH] with `weights` [BATCH]. `exact`: also over several batches."""

    values: Value
    weights: Optional[Value]
    exact: bool


def _mean_of(graph: Graph, value: Value) -> Mean:
    """The mean that a scalar is."""
    parts = take_apart(value)
    _without_squares(graph, parts)
    if all(t.factor is None and t.divided == 1 for t in parts.terms):
        return Mean(per_sample(graph, parts), None, not any(_of_samples(other) for other, _ in parts.others))
    if not parts.others and len({id(t.factor) for t in parts.terms}) == 1:
        divisor = _divisor(parts.terms[0])
        sums = take_apart(divisor) if divisor is not None else Parts([], [], [])
        plain = all(t.factor is None for t in sums.terms) and not any(t.divided for t in (*sums.terms, *parts.terms))
        if sums.terms and plain and not sums.squares and not sums.others:
            top, weights = _total(graph, parts), _total(graph, sums)
            none = e.compare("eq", weights, 0.0)
            mean = top / e.select(none, e.as_value(weights, 1.0), weights)
            for empty in {id(t.empty): t.empty for t in parts.terms if t.empty is not None}.values():
                mean = _or_nothing(mean, empty)
                weights = e.select(empty, e.as_value(weights, 1.0), weights)
            return Mean(mean, weights, True)
    return Mean(per_sample(graph, parts), None, False)


def _total(graph: Graph, parts: Parts) -> Value:
    """The sum of the values of terms, for each sample."""
    total: Optional[Value] = None
    for term in parts.terms:
        value = term.values * term.scale
        total = value if total is None else total + value
    assert total is not None
    return total


def _divisor(term: Term) -> Optional[Value]:
    """What a term is divided by, but for what keeps it from 0."""
    factor = term.factor
    if factor is None or factor.op != "div" or factor.operands[0].scalar != 1.0:
        return None
    divisor = factor.operands[1].source
    return divisor.operands[2] if _is_guarded(divisor, None) else divisor


def _is_safe(value: Value) -> bool:
    """Whether it is w, or 1 where w is 0."""
    return _is_guarded(value, None) and value.operands[0].source.operands[0].source is value.operands[2].source


def _is_guarded(value: Value, test: Optional[Value]) -> bool:
    """Whether it is 1 where a number is 0, as a test says; None: any test."""
    if value.op != "select" or value.operands[1].scalar != 1.0:
        return False
    own = value.operands[0].source
    return own.kind == "eq" and (test is None or test.source is own)


def _of_samples(value: Value) -> bool:
    """Whether a scalar depends on samples, other than on their number."""
    waiting, seen = [value], set()
    while waiting:
        top = waiting.pop()
        if has_batch(top.shape) and top.op != "broadcast" and top.constant is None:
            return True
        if id(top) not in seen:
            seen.add(id(top))
            waiting += top.operands
    return False


def while_training(training: Value, evaluation: Value) -> Value:
    """The one value in `train_step`, the other in `eval_step` and `predict`. Both are of one shape and type."""
    if training is evaluation:
        return training
    if training.dtype == "f32":
        return e.apply("while_training", (training, evaluation), "f32")
    trains = while_training(training.graph.constant(1.0, "f32"), training.graph.constant(0.0, "f32"))
    return e.select(e.compare("eq", trains, 1.0), training, evaluation)


def _check(value: Value, name: str) -> None:
    if value.shape != () or value.dtype != "f32":
        raise Refused(f"{name}: expected a scalar of f32, found {value.dtype} {list(value.shape)}")


def _say_mean(graph: Graph, name: str, term: Term) -> None:
    """One mean: over elements where it is just that, which the compiler knows best."""
    values, scale, divisor = term.values, term.scale, "samples"
    if values.op == "reduce_sum" and _is_whole_sample(values):
        inner = values.operands[0]
        times = scale * elements(inner.shape)
        values, scale, divisor = inner, (1.0 if abs(times - 1) < reals.rounding() else times), "elements"
    scaled = "" if scale == 1 else f" scale = {number(scale)}"
    graph.say(f"mt.loss {quoted(name)}, {{0}} by {divisor}{scaled} : {{t0}}", values)


def _is_whole_sample(total: Value) -> bool:
    """Whether it sums all elements of each sample."""
    inner = total.operands[0]
    return len(total.dims) + (inner.shape[0] == BATCH) == inner.rank


def take_apart(value: Value) -> Parts:
    """The sums over the batch, and the rest, that a scalar is made of."""
    parts = Parts([], [], [])
    _collect(value, 1.0, None, 0, parts)
    return parts


def _collect(value: Value, scale: float, factor: Optional[Value], divided: int, parts: Parts,
             empty: Optional[Value] = None) -> None:
    """Adds the parts of `scale * factor * value / n^divided`, which is not a number where `empty` holds."""

    def collect(inner: Value, scale: float = scale, factor: Optional[Value] = factor, divided: int = divided) -> None:
        _collect(inner, scale, factor, divided, parts, empty)

    value = value.source
    if value.op == "select" and value.operands[2].source.op == "div" and value.operands[1].scalar is not None:
        fill, quotient = value.operands[1].scalar, value.operands[2].source
        if fill == 0 and _is_safe(quotient.operands[1].source):
            value = quotient  # 0 where the divisor is 0: then what is divided, a sum over no samples, is 0 too
        elif np.isnan(fill) and _is_guarded(quotient.operands[1].source, value.operands[0]):
            test = _scalar(value.operands[0])
            empty = test if empty is None else empty | test
            value = quotient
    a, b = [*(o.source for o in value.operands), None, None][:2]
    if value.op in ("add", "sub") and a is not None and b is not None:
        collect(a)
        collect(b, -scale if value.op == "sub" else scale)
        return
    if value.op == "neg" and a is not None:
        return collect(a, -scale)
    if value.op in ("mul", "div") and a is not None and b is not None:
        if b.scalar is not None:
            return collect(a, scale * b.scalar if value.op == "mul" else scale / b.scalar)
        if value.op == "mul" and a.scalar is not None:
            return collect(b, scale * a.scalar)
        for count, other in ((a, b), (b, a)) if value.op == "mul" and divided else ():
            if count.count:
                return collect(other, scale * count.count, divided=divided - 1)
        if value.op == "div" and b.count:
            return collect(a, scale / b.count, divided=divided + 1)
        if value.op == "div" or _is_sum(a):
            given = _scalar(b)
            made = e.binary(value.op, factor if factor is not None else e.as_value(given, 1.0), given)
            return collect(a, factor=made)
        if _is_sum(b):
            given = _scalar(a)
            return collect(b, factor=given if factor is None else factor * given)
    if _is_sum(value):
        assert a is not None
        parts.terms.append(Term(value.operands[0], scale, factor, divided, empty))
        return None
    squared = _squared(value)
    if squared is not None and factor is None and divided == 0 and empty is None:
        parts.squares.append((squared, scale))
        return None
    value = _scalar(value)
    if factor is not None:
        value = value * factor
    for _ in range(divided):
        value = value / value.graph.count(BATCH)
    parts.others.append((_or_nothing(value, empty), scale))
    return None


def _scalar(value: Value) -> Value:
    return reshape(value, ())


def _or_nothing(value: Value, empty: Optional[Value]) -> Value:
    """The value; not a number, and without a gradient, where `empty` holds."""
    return value if empty is None else e.select(empty, e.as_value(value, float("nan")), value)


def _is_sum(value: Value) -> bool:
    return value.op == "reduce_sum" and value.dims == (0,) and value.operands[0].shape == (BATCH,)


def _squared(value: Value) -> Optional[Value]:
    """The variable whose squares a value sums, if that is what it is."""
    if value.op != "reduce_sum" or elements(value.shape) != 1:
        return None
    inner = value.operands[0].source
    if inner.op == "square" or (inner.op == "mul" and inner.operands[0] is inner.operands[1]):
        variable = inner.operands[0].source
        return variable if variable.op == "variable" and elements(variable.shape) == elements(inner.shape) else None
    return None


def _without_squares(graph: Graph, parts: Parts) -> None:
    """Squares as numbers like others."""
    for variable, coefficient in parts.squares:
        total = reductions.reduce("sum", e.unary("square", variable), range(variable.rank))
        parts.others.append((total, coefficient))
    parts.squares.clear()


def per_sample(graph: Graph, parts: Parts) -> Value:
    """A number for each sample, [BATCH], whose mean over the samples is the scalar, but for its squares."""
    total: Optional[Value] = None
    for term in parts.terms:
        value, factor = term.values, term.factor
        for _ in range(term.divided - 1):
            factor = (1.0 if factor is None else factor) / graph.count(BATCH)
        if term.divided == 0:
            factor = graph.count(BATCH) if factor is None else factor * graph.count(BATCH)
        if factor is not None:
            value = value * factor
        value = _or_nothing(value * term.scale, term.empty)
        total = value if total is None else total + value
    for other, scale in parts.others:
        value = other * scale
        total = value if total is None else total + value
    return broadcast(graph.constant(0.0) if total is None else total, (BATCH,))
