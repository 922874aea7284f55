# SPDX-License-Identifier: Apache-2.0
"""Attention: a product of queries and keys, a softmax, and a product with values, as the one op that mt has for them.

Taken are scores with a scale, and with a causal mask, or another mask that is the same for all samples and hides no
query's last key. Scores of other forms stay as they are.
"""

from __future__ import annotations

import dataclasses
from typing import Optional

import numpy as np

from mtc._trace.layout import transpose_node
from mtc._trace.values import Array, Node, Value

HIDDEN = -1e9  # a score of this or less counts as hidden


@dataclasses.dataclass
class Scores:
    """softmax(scale * Q K^T), where the mask holds."""

    query: Node  # [?, H, T, D]
    key: Node  # [?, H, S, D], or [?, H, D, S]
    transposed: bool  # the latter
    scale: float
    mask: Optional[Array]  # [T, S]


def find_scores(node: Node) -> Optional[Scores]:
    """What a softmax [?, H, T, S] is of, if it is an attention's."""
    if node.op != "softmax" or len(node.shape) != 4 or not node.split:
        return None
    scale, mask = 1.0, None
    x = node.operands[0]
    while x.op in ("select", "mul", "div"):
        if x.op == "select":
            condition, kept, fill = x.operands
            hides = fill.constant is not None and not fill.shape and float(fill.constant) <= HIDDEN
            if mask is not None or not hides or condition.constant is None or condition.shape != node.shape[2:]:
                return None
            if not condition.constant.any(axis=1).all() or scale <= 0:
                return None
            mask, x = condition.constant, kept
            continue
        number = x.operands[1]
        if number.constant is None or number.shape:
            return None
        scale = scale * float(number.constant) if x.op == "mul" else scale / float(number.constant)
        x = x.operands[0]
    if x.op != "matmul" or x.info not in ("", " transpose_b") or x.shape != node.shape:
        return None
    if any(len(o.shape) != 4 for o in x.operands):
        return None
    return Scores(x.operands[0], x.operands[1], x.info == "", scale, mask)


def attend(softmax: Value, scores: Scores, values: Node) -> Node:
    """The result [?, T, H, V] for values [?, S, H, V]."""
    graph, heads = softmax.graph, softmax.node.shape[1]

    def line(node: Node, order: list[int]) -> Node:
        """[?, T, H * D]."""
        moved = transpose_node(Value(graph, node, ()), order)
        return graph.reshape_node(moved, (None, moved.shape[1], moved.elements // (moved.shape[1] or 1)))

    query = line(scores.query, [0, 2, 1, 3])
    key = line(scores.key, [0, 3, 1, 2] if scores.transposed else [0, 2, 1, 3])
    value = line(values, [0, 1, 2, 3])
    operands, words, types = [query, key, value], "", "{t0}, {t1}, {t2}"
    causal = scores.mask is not None and np.array_equal(scores.mask, np.tri(*scores.mask.shape, dtype=bool))
    if scores.mask is not None and not causal:
        operands.append(graph.reshape_node(graph.constant_node(scores.mask, "i1"), (1, 1, *scores.mask.shape)))
        words, types = " mask {3}", types + ", {t3}"
    words += f" heads = {heads}" + (" causal" if causal else "") + f" scale = {scores.scale:.9e}"
    width = values.shape[3]
    node = graph.node("attention", operands, f"mt.attention {{0}}, {{1}}, {{2}}{words} : {types}",
                      (None, query.shape[1], value.shape[2]), "f32")
    return graph.reshape_node(node, (None, query.shape[1], heads, width))
