# SPDX-License-Identifier: Apache-2.0
"""Losses and metrics: a scalar of the trace becomes a mean over the samples, whose divisor is their number.

A scalar is taken apart along sums, factors and quotients down to sums over the batch. Whatever it is divided by (the
number of samples, of tokens that count, a sum of weights), the result is exact for a short batch.
"""

from __future__ import annotations

import dataclasses
from typing import Optional

import numpy as np

from mtc._trace import elementwise as e
from mtc._trace.graph import Graph, quoted
from mtc._trace.layout import align, arrange, broadcast_node, order_of, replaced
from mtc._trace.values import BATCH, Axis, Node, Refused, Value


@dataclasses.dataclass
class Term:
    """`scale * factor * sum of values / n^divided`; not a number where `empty` holds."""

    values: Node  # [?]
    scale: float
    factor: Optional[Value]
    divided: int
    empty: Optional[Node] = None  # a scalar of i1


@dataclasses.dataclass
class Parts:
    """What a scalar is the sum of."""

    terms: list[Term]
    squares: list[tuple[Node, float]]  # variables, and the coefficient of the sum of their squares
    others: list[tuple[Node, float]]  # scalars that are the same for all samples


def add_loss(graph: Graph, value: Value, evaluation: Optional[Value] = None, name: str = "loss") -> None:
    """Minimises a scalar f32. `evaluation`: the same in `eval_step`, where it differs."""
    _check(value, name)
    parts = take_apart(value)
    if evaluation is None or evaluation.node is value.node:
        if len(parts.terms) == 1 and not parts.others and parts.terms[0].factor is None and parts.terms[0].divided == 1:
            _say_mean(graph, name, parts.terms[0])
        else:
            graph.say(f"mt.loss {quoted(name)}, {{0}} : {{t0}}", per_sample(graph, parts))
    else:
        other = take_apart(evaluation)
        if [(id(v), c) for v, c in other.squares] != [(id(v), c) for v, c in parts.squares]:
            _without_squares(graph, parts)
            _without_squares(graph, other)
        node = _while_training(graph, per_sample(graph, parts), per_sample(graph, other))
        graph.say(f"mt.loss {quoted(name)}, {{0}} : {{t0}}", node)
    for variable, coefficient in parts.squares:
        graph.say(f"mt.regularizer {{0}} l2 = {coefficient:.9e} : {{t0}}", variable)


def add_metric(graph: Graph, name: str, value: Value, evaluation: Optional[Value] = None,
               better: str = "lower", exact: bool = False) -> None:
    """Reports a scalar: a mean over all samples, a quotient of two sums over all samples, or the root of one of these.

    Of another scalar that is the mean of what it is for each batch; with `exact` it is refused.
    """
    _check(value, name)
    both = [value, value if evaluation is None else evaluation]
    means, root = [_mean_of(graph, v) for v in both], ""
    if all(v.node.op == "sqrt" for v in both):
        squares = [_mean_of(graph, Value(graph, v.node.operands[0], ())) for v in both]
        if all(m.exact for m in squares):
            means, root = squares, " finalizer root_mean"
    if exact and not all(m.exact for m in means):
        raise Refused(f"metric {name}: expected a mean over samples or a quotient of two sums, found another function "
                      "of the samples")
    values = _while_training(graph, means[0].values, means[1].values)
    if all(m.weights is None for m in means):
        graph.say(f"mt.metric {quoted(name)}, {{0}}{root} better {better} : {{t0}}", values)
        return
    ones = broadcast_node(value, graph.constant_node(1.0, "f32"), (None,))
    weights = _while_training(graph, means[0].weights or ones, means[1].weights or ones)
    graph.say(f"mt.metric {quoted(name)}, {{0}} weights({{1}} : {{t1}}){root} better {better} : {{t0}}", values,
              weights)


@dataclasses.dataclass
class Mean:
    """The mean of `values` [?] with `weights` [?]. `exact`: also over several batches."""

    values: Node
    weights: Optional[Node]
    exact: bool


def _mean_of(graph: Graph, value: Value) -> Mean:
    """The mean that a scalar is."""
    parts = take_apart(value)
    _without_squares(graph, parts)
    if all(t.factor is None and t.divided == 1 for t in parts.terms):
        return Mean(per_sample(graph, parts), None, not any(_of_samples(node) for node, _ in parts.others))
    if not parts.others and len({id(t.factor.node) if t.factor else 0 for t in parts.terms}) == 1:
        divisor = _divisor(parts.terms[0])
        sums = take_apart(Value(graph, divisor, ())) if divisor is not None else Parts([], [], [])
        plain = all(t.factor is None for t in sums.terms) and not any(t.divided for t in (*sums.terms, *parts.terms))
        if sums.terms and plain and not sums.squares and not sums.others:
            top, weights = _total(graph, parts), _total(graph, sums)
            none = e.compare("eq", weights, 0.0)
            mean = e.binary("div", top, e.select(none, e.as_value(weights, 1.0), weights))
            for empty in {id(t.empty): t.empty for t in parts.terms if t.empty is not None}.values():
                mean = _or_nothing(mean, empty)
                weights = e.select(Value(graph, empty, ()), e.as_value(weights, 1.0), weights)
            return Mean(mean.node, weights.node, True)
    return Mean(per_sample(graph, parts), None, False)


def _total(graph: Graph, parts: Parts) -> Value:
    """The sum of the values of terms, for each sample."""
    total: Optional[Value] = None
    for term in parts.terms:
        value = e.binary("mul", Value(graph, term.values, ((Axis(BATCH, 0),),)), term.scale)
        total = value if total is None else e.binary("add", total, value)
    assert total is not None
    return total


def _divisor(term: Term) -> Optional[Node]:
    """What a term is divided by, but for what keeps it from 0."""
    factor = term.factor.node if term.factor is not None else None
    if factor is None or factor.op != "div" or factor.operands[0].constant is None or (
            float(factor.operands[0].constant) != 1.0):
        return None
    divisor = factor.operands[1]
    return divisor.operands[2] if _is_guarded(divisor, divisor.operands[0] if divisor.operands else None) else divisor


def _is_safe(node: Node) -> bool:
    """Whether it is w, or 1 where w is 0."""
    return _is_guarded(node, node.operands[0] if node.operands else None) and (
        node.operands[0].operands[0] is node.operands[2])


def _is_guarded(node: Node, test: Optional[Node]) -> bool:
    """Whether it is 1 where a number is 0, as a test says."""
    if node.op != "select" or node.operands[1].constant is None or float(node.operands[1].constant) != 1.0:
        return False
    return test is node.operands[0] and test.op == "compare" and " eq," in test.template


def _of_samples(node: Node) -> bool:
    """Whether a scalar depends on samples, other than on their number."""
    waiting, seen = [node], set()
    while waiting:
        top = waiting.pop()
        if top.split or top.op == "stop_gradient" and top.operands[0].split:
            return True
        if id(top) not in seen:
            seen.add(id(top))
            waiting += top.operands
    return False


def while_training(training: Value, evaluation: Value) -> Value:
    """The one value in `train_step`, the other in `eval_step` and `predict`."""
    if training.node is evaluation.node and training.axes == evaluation.axes:
        return training
    a, b = align([training, evaluation])
    order = order_of([a, b])
    node = _while_training(a.graph, arrange(a, order, order), arrange(b, order, order))
    return replaced(a, node, order)


def _while_training(graph: Graph, training: Node, evaluation: Node) -> Node:
    if training is evaluation:
        return training
    return graph.node("while_training", (training, evaluation), "mt.while_training {0} else {1} : {t}", training.shape,
                      "f32")


def _check(value: Value, name: str) -> None:
    if value.shape != () or value.dtype != "f32":
        raise Refused(f"{name}: expected a scalar of f32, found {value.dtype} {list(value.shape)}")


def _say_mean(graph: Graph, name: str, term: Term) -> None:
    """One mean: over elements where it is just that, which the compiler knows best."""
    node, scale = term.values, term.scale
    if node.op == "reduce_sum" and len(node.info) == len(node.operands[0].shape) - 1:
        inner = node.operands[0]
        times = scale * inner.elements
        node, scale, divisor = inner, (1.0 if abs(times - 1) < 1e-6 else times), "elements"
    else:
        divisor = "samples"
    scaled = "" if scale == 1 else f" scale = {scale:.9e}"
    graph.say(f"mt.loss {quoted(name)}, {{0}} by {divisor}{scaled} : {{t0}}", node)


def take_apart(value: Value) -> Parts:
    """The sums over the batch, and the rest, that a scalar is made of."""
    parts = Parts([], [], [])
    _collect(value.graph, value.node, 1.0, None, 0, parts)
    return parts


def _collect(graph: Graph, node: Node, scale: float, factor: Optional[Value], divided: int, parts: Parts,
             empty: Optional[Node] = None) -> None:
    """Adds the parts of `scale * factor * node / n^divided`, which is not a number where `empty` holds."""

    def collect(inner: Node, scale: float = scale, factor: Optional[Value] = factor, divided: int = divided) -> None:
        _collect(graph, inner, scale, factor, divided, parts, empty)

    if node.op == "select" and node.operands[2].op == "div" and node.operands[1].constant is not None:
        fill, quotient = node.operands[1].constant, node.operands[2]
        if not fill.any() and _is_safe(quotient.operands[1]):
            node = quotient  # 0 where the divisor is 0: then what is divided, a sum over no samples, is 0 too
        elif fill.ndim == 0 and np.isnan(fill) and _is_guarded(quotient.operands[1], node.operands[0]):
            test = Value(graph, node.operands[0], ())
            empty = (test if empty is None else e.logical_or(Value(graph, empty, ()), test)).node
            node = quotient
    a, b = [*node.operands, None, None][:2]
    if node.op in ("add", "sub") and a is not None and b is not None:
        collect(a)
        collect(b, -scale if node.op == "sub" else scale)
        return
    if node.op == "neg" and a is not None:
        return collect(a, -scale)
    if node.op in ("mul", "div") and a is not None and b is not None:
        if b.constant is not None:
            number = float(b.constant)
            return collect(a, scale * number if node.op == "mul" else scale / number)
        if node.op == "mul" and a.constant is not None:
            return collect(b, scale * float(a.constant))
        for count, other in ((a, b), (b, a)) if node.op == "mul" and divided else ():
            if count.count:
                return collect(other, scale * count.count, divided=divided - 1)
        if node.op == "div" and b.count:
            return collect(a, scale / b.count, divided=divided + 1)
        if node.op == "div" or _is_sum(a):
            given = Value(graph, b, ())
            made = e.binary(node.op, factor if factor is not None else e.as_value(given, 1.0), given)
            return collect(a, factor=made)
        if _is_sum(b):
            given = Value(graph, a, ())
            return collect(b, factor=given if factor is None else e.binary("mul", factor, given))
    if _is_sum(node):
        assert a is not None
        parts.terms.append(Term(a, scale, factor, divided, empty))
        return None
    squared = _squared(node)
    if squared is not None and factor is None and divided == 0 and empty is None:
        parts.squares.append((squared, scale))
        return None
    value = Value(graph, node, ())
    if factor is not None:
        value = e.binary("mul", value, factor)
    for _ in range(divided):
        value = e.binary("div", value, graph.count(BATCH))
    parts.others.append((_or_nothing(value, empty).node, scale))
    return None


def _or_nothing(value: Value, empty: Optional[Node]) -> Value:
    """The value; not a number, and without a gradient, where `empty` holds."""
    if empty is None:
        return value
    return e.select(Value(value.graph, empty, ()), e.as_value(value, float("nan")), value)


def _is_sum(node: Node) -> bool:
    return node.op == "reduce_sum" and node.info == [0] and node.operands[0].split and node.shape == ()


def _squared(node: Node) -> Optional[Node]:
    """The variable whose squares a node sums, if that is what it is."""
    if node.op != "reduce_sum" or node.shape != ():
        return None
    inner = node.operands[0]
    if inner.op == "square" or (inner.op == "mul" and inner.operands[0] is inner.operands[1]):
        return inner.operands[0] if inner.operands[0].op == "variable" else None
    return None


def _without_squares(graph: Graph, parts: Parts) -> None:
    """Squares as numbers like others."""
    for variable, coefficient in parts.squares:
        square = graph.node("square", (variable,), "mt.square {0} : {t0}", variable.shape, "f32")
        places = list(range(len(variable.shape)))
        total = graph.node("reduce_sum", (square,), f"mt.reduce sum, {{0}} over {places} : {{t0}}", (), "f32")
        total.info = places
        parts.others.append((total, coefficient))
    parts.squares.clear()


def per_sample(graph: Graph, parts: Parts) -> Node:
    """A number for each sample, [?], whose mean over the samples is the scalar, but for its squares."""
    total: Optional[Value] = None
    for term in parts.terms:
        value = Value(graph, term.values, ((Axis(BATCH, 0),),))
        factor = term.factor
        for _ in range(term.divided - 1):
            factor = e.binary("div", 1.0 if factor is None else factor, graph.count(BATCH))
        if term.divided == 0:
            factor = graph.count(BATCH) if factor is None else e.binary("mul", factor, graph.count(BATCH))
        if factor is not None:
            value = e.binary("mul", value, factor)
        value = _or_nothing(e.binary("mul", value, term.scale), term.empty)
        total = value if total is None else e.binary("add", total, value)
    for node, scale in parts.others:
        value = e.binary("mul", Value(graph, node, ()), scale)
        total = value if total is None else e.binary("add", total, value)
    if total is None:
        total = graph.constant(0.0, "f32")
    return broadcast_node(total, total.node, (None,))
