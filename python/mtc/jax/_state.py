# SPDX-License-Identifier: Apache-2.0
"""State that a step changes: moving averages of the statistics of a batch, as batch normalisation has them.

`mt` changes such variables by `mt.batch_normalization` alone: v = v * m + batch * (1 - m), of the mean and the biased
variance of one value. So a new state is taken where it is just that.
"""

from __future__ import annotations

from typing import Optional, Sequence

import numpy as np

from mtc._trace import Graph, Refused, Value
from mtc._trace.values import Node


def add_updates(graph: Graph, names: Sequence[str], old: Sequence[Value], new: Sequence[Value]) -> None:
    """Says for each variable what becomes of it in a training step."""
    means: list[tuple[str, Node, float, Node]] = []
    variances: list[tuple[str, Node, float, Node]] = []
    for name, before, after in zip(names, old, new):
        if after.node is before.node:
            continue
        found = _average(_variable(before.node), _moved(after.node))
        if found is None:
            raise Refused(f"{name}: expected a state that does not change, or v * m + (1 - m) * the mean or the "
                          "variance of a value over the batch, found another function")
        momentum, statistic = found
        source = _mean_of(statistic)
        if source is not None and source.op != "square" and not _is_square(source):
            means.append((name, _variable(before.node), momentum, source))
            continue
        source = _variance_of(statistic)
        if source is None:
            raise Refused(f"{name}: expected the moving average of the mean or the biased variance over the batch, "
                          "found another statistic")
        variances.append((name, _variable(before.node), momentum, source))
    for name, mean, momentum, source in means:
        pair = next((v for v in variances if v[3] is source and v[2] == momentum), None)
        if pair is None:
            raise Refused(f"{name}: expected a moving variance of the same value and momentum beside the moving mean")
        variances.remove(pair)
        _say(graph, source, mean, pair[1], momentum)
    if variances:
        raise Refused(f"{variances[0][0]}: expected a moving mean of the same value and momentum beside the moving "
                      "variance")


def _variable(node: Node) -> Node:
    while node.op == "reshape":
        node = node.operands[0]
    return node


def _moved(node: Node) -> Node:
    """Without what changes no number: nnx stops the gradient of the new averages."""
    while node.op in ("reshape", "stop_gradient", "shift"):
        node = node.operands[0]
    return node


def _say(graph: Graph, source: Node, mean: Node, variance: Node, momentum: float) -> None:
    channels = source.shape[-1]
    one = graph.constant_node(np.ones(channels or 1), "f32")
    zero = graph.constant_node(np.zeros(channels or 1), "f32")
    graph.say("mt.batch_normalization {0}, {1}, {2}, {3}, {4} momentum = " f"{momentum:.9e}"
              " : {t0}, {t1}, {t2}, {t3}, {t4}", source, one, zero, mean, variance)


def _average(variable: Node, node: Node) -> Optional[tuple[float, Node]]:
    """m and s, where the node is variable * m + s * (1 - m)."""
    node = _variable(node)
    if node.op != "add":
        return None
    for kept, added in (node.operands, node.operands[::-1]):
        a, b = _scaled(kept), _scaled(added)
        if _variable(a[1]) is variable and abs(a[0] + b[0] - 1) < 1e-5:
            return a[0], b[1]
    return None


def _scaled(node: Node) -> tuple[float, Node]:
    if node.op == "mul":
        for x, y in (node.operands, node.operands[::-1]):
            if x.constant is not None and not x.shape:
                return float(x.constant), y
    return 1.0, node


def _mean_of(node: Node) -> Optional[Node]:
    """The value whose mean over all axes but the last a node is."""
    node = _variable(node)
    if node.op != "div" or not node.operands[1].count:
        return None
    total = node.operands[0]
    if total.op != "reduce_sum" or total.info != [0]:
        return None
    inner = total.operands[0]
    if inner.op == "reduce_sum":
        source = inner.operands[0]
        if inner.info != list(range(1, len(source.shape) - 1)):
            return None
    else:
        source = inner
    size = source.elements // (source.shape[-1] or 1)
    return source if len(source.shape) >= 2 and node.operands[1].count == size else None


def _is_square(node: Node) -> bool:
    return node.op == "mul" and node.operands[0] is node.operands[1]


def _variance_of(node: Node) -> Optional[Node]:
    """The value whose biased variance over all axes but the last a node is."""
    node = _variable(node)
    if isinstance(node.info, tuple) and node.info[0] == "tied":  # see the rule of max
        node = node.info[1].node
    if node.op == "maximum":
        node = next((o for o in node.operands if o.constant is None), node)
    if node.op == "sub":  # E[x^2] - E[x]^2
        squares = _mean_of(node.operands[0])
        mean = node.operands[1]
        if squares is None or not (squares.op == "square" or _is_square(squares)):
            return None
        source = squares.operands[0]
        if (mean.op == "square" or _is_square(mean)) and _mean_of(mean.operands[0]) is source:
            return source
        return None
    squares = _mean_of(node)  # E[(x - E[x])^2]
    if squares is None or not (squares.op == "square" or _is_square(squares)):
        return None
    difference = squares.operands[0]
    if difference.op == "sub" and _mean_of(difference.operands[1]) is difference.operands[0]:
        return difference.operands[0]
    return None
