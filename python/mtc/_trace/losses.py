# SPDX-License-Identifier: Apache-2.0
"""Losses and metrics: a scalar of the trace becomes a mean over the samples, whose divisor is their number.

A scalar is taken apart along sums, factors and quotients down to sums over the batch. Whatever it is divided by (the
number of samples, of tokens that count, a sum of weights), the result is exact for a short batch.
"""

from __future__ import annotations

import dataclasses
from typing import Optional

from mtc._trace import elementwise as e
from mtc._trace.graph import Graph, quoted
from mtc._trace.layout import align, arrange, broadcast_node, order_of, replaced
from mtc._trace.values import BATCH, Axis, Node, Refused, Value


@dataclasses.dataclass
class Term:
    """`scale * factor * sum of values / n^divided`."""

    values: Node  # [?]
    scale: float
    factor: Optional[Value]
    divided: int


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
               better: str = "lower") -> None:
    """Reports a scalar as the mean over all samples."""
    _check(value, name)
    parts = take_apart(value)
    _without_squares(graph, parts)
    node = per_sample(graph, parts)
    if evaluation is not None and evaluation.node is not value.node:
        other = take_apart(evaluation)
        _without_squares(graph, other)
        node = _while_training(graph, node, per_sample(graph, other))
    graph.say(f"mt.metric {quoted(name)}, {{0}} better {better} : {{t0}}", node)


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


def _collect(graph: Graph, node: Node, scale: float, factor: Optional[Value], divided: int, parts: Parts) -> None:
    """Adds the parts of `scale * factor * node / n^divided`."""
    a, b = [*node.operands, None, None][:2]
    if node.op in ("add", "sub") and a is not None and b is not None:
        _collect(graph, a, scale, factor, divided, parts)
        _collect(graph, b, -scale if node.op == "sub" else scale, factor, divided, parts)
        return
    if node.op == "neg" and a is not None:
        return _collect(graph, a, -scale, factor, divided, parts)
    if node.op in ("mul", "div") and a is not None and b is not None:
        if b.constant is not None:
            number = float(b.constant)
            return _collect(graph, a, scale * number if node.op == "mul" else scale / number, factor, divided, parts)
        if node.op == "mul" and a.constant is not None:
            return _collect(graph, b, scale * float(a.constant), factor, divided, parts)
        if node.op == "div" and b.count:
            return _collect(graph, a, scale / b.count, factor, divided + 1, parts)
        if node.op == "div" or _is_sum(a):
            given = Value(graph, b, ())
            made = e.binary(node.op, factor if factor is not None else e.as_value(given, 1.0), given)
            return _collect(graph, a, scale, made, divided, parts)
        if _is_sum(b):
            given = Value(graph, a, ())
            made = given if factor is None else e.binary("mul", factor, given)
            return _collect(graph, b, scale, made, divided, parts)
    if _is_sum(node):
        assert a is not None
        parts.terms.append(Term(a, scale, factor, divided))
        return None
    squared = _squared(node)
    if squared is not None and factor is None and divided == 0:
        parts.squares.append((squared, scale))
        return None
    value = Value(graph, node, ())
    if factor is not None:
        value = e.binary("mul", value, factor)
    for _ in range(divided):
        value = e.binary("div", value, graph.count(BATCH))
    parts.others.append((value.node, scale))
    return None


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
        value = e.binary("mul", value, term.scale)
        total = value if total is None else e.binary("add", total, value)
    for node, scale in parts.others:
        value = e.binary("mul", Value(graph, node, ()), scale)
        total = value if total is None else e.binary("add", total, value)
    if total is None:
        total = graph.constant(0.0, "f32")
    return broadcast_node(total, total.node, (None,))
