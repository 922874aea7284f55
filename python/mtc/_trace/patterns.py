# SPDX-License-Identifier: Apache-2.0
"""What several operations of a trace are together: softmax, cross-entropy, softplus.

The compiler differentiates the whole better than its parts: a softmax has no gradient to the maximum that it subtracts.
Each function gets the operation that ends the pattern, and gives its value, or None.
"""

from __future__ import annotations

from typing import Optional, Sequence

import numpy as np

from mtc._trace.values import Axis, Node, Value


def shift_of(node: Node) -> Optional[Node]:
    """The tensor whose maximum along one axis a node is, if that is what it is."""
    while node.op in ("reshape", "stop_gradient", "shift", "select") or _is_picked(node) or (
            node.op == "maximum" and any(o.constant is not None for o in node.operands)):
        if _is_picked(node):
            node = node.operands[0].info[1]
        elif node.op == "select":  # where the maximum is finite
            node = node.operands[1]
        else:
            node = next(o for o in node.operands if o.constant is None)
    return node if node.op == "reduce_max" and len(node.info) == 1 else None


def _is_picked(node: Node) -> bool:
    """Whether it is a maximum of which one place has the gradient; `info` of its operand has the plain one."""
    info = node.operands[0].info if node.op == "reduce_sum" else None
    return isinstance(info, tuple) and len(info) == 2 and info[0] == "picked"


def _shifted(node: Node) -> Optional[tuple[Node, int]]:
    """x and an axis, where the node is x minus its maximum along that axis."""
    if node.op != "sub":
        return None
    maximum = shift_of(node.operands[1])
    x = node.operands[0]
    if maximum is None or maximum.operands[0] is not x or x.shape != node.shape:
        return None
    return x, maximum.info[0]


def _reduced(node: Node) -> Node:
    while node.op == "reshape":
        node = node.operands[0]
    return node


def _abs(node: Node) -> Optional[Node]:
    """The op `abs` that a node is, or is another form of."""
    node = node.info[1] if isinstance(node.info, tuple) and node.info[0] == "abs" else node
    return node if node.op == "abs" else None


def _is_over(whole: Value, part: Value, place: int) -> bool:
    """Whether `part` has the axes of `whole` but the stored one `place`, along which it is repeated."""
    a, b = whole.flat, part.flat
    if len(a) != len(b):
        return False
    for mine, theirs in zip(a, b):
        if mine.place is None or mine.place == place:
            wanted = None
        else:
            wanted = mine.place - (mine.place > place)
        if theirs.place != wanted:
            return False
    return True


def _logical(value: Value, place: int) -> Optional[int]:
    """The logical axis that is the stored one `place`, whole."""
    for i, parts in enumerate(value.axes):
        if len(parts) == 1 and parts[0].place == place and place != 0:
            return i
    return None


def softmax(a: Value, b: Value) -> Optional[tuple[Value, int]]:
    """a / b = e^(x - max) / sum: x and the axis."""
    if a.node.op != "exp" or b.node.op != "reduce_sum" or b.node.operands[0] is not a.node or len(b.node.info) != 1:
        return None
    found = _shifted(a.node.operands[0])
    place = b.node.info[0]
    if found is None or found[1] != place or not _is_over(a, b, place):
        return None
    axis = _logical(a, place)
    return None if axis is None else (Value(a.graph, found[0], a.axes), axis)


def log_softmax(a: Value, b: Value) -> Optional[tuple[Value, int]]:
    """a - b = (x - max) - log(sum of e^(x - max)): x and the axis."""
    found = _shifted(a.node)
    if found is None or b.node.op != "log":
        return None
    total = _reduced(b.node.operands[0])
    total = _reduced(magnitude.operands[0]) if (magnitude := _abs(total)) else total
    if total.op != "reduce_sum" or total.info != [found[1]] or total.operands[0].op != "exp":
        return None
    if total.operands[0].operands[0] is not a.node or not _is_over(a, b, found[1]):
        return None
    axis = _logical(a, found[1])
    return None if axis is None else (Value(a.graph, found[0], a.axes), axis)


def log_sum_exp(node: Node, last: bool = True) -> Optional[Node]:
    """x, where the node is log(sum of e^(x - max)) + max along a stored axis, the last one with `last`."""
    if node.op != "add":
        return None
    for a, b in (node.operands, node.operands[::-1]):
        if a.op != "log":
            continue
        total = _reduced(a.operands[0])
        total = _reduced(magnitude.operands[0]) if (magnitude := _abs(total)) else total
        if total.op != "reduce_sum" or total.operands[0].op != "exp":
            continue
        found = _shifted(total.operands[0].operands[0])
        maximum = shift_of(b)
        if found is None or maximum is None or maximum.operands[0] is not found[0]:
            continue
        if total.info == [found[1]] and (not last or found[1] == len(found[0].shape) - 1):
            return found[0]
    return None


def picked(node: Node) -> Optional[tuple[Node, Node]]:
    """x and ids, where the node is the element of x at the id along its last stored axis."""
    if node.op != "reduce_sum" or node.operands[0].op not in ("mul", "select"):
        return None
    if node.operands[0].op == "mul":
        x, hot = node.operands[0].operands
        ids = hot.operands[0] if hot.op == "one_hot" else None
    else:
        hot, x, _ = node.operands[0].operands
        ids = hot.info[1] if isinstance(hot.info, tuple) and hot.info[0] == "place" else None
    if ids is None or hot.shape != x.shape or node.info != [len(x.shape) - 1]:
        return None
    return x, ids


def cross_entropy(x: Value, ids: Node, axes: tuple[tuple[Axis, ...], ...]) -> Value:
    """-log softmax(x)[id] along the last stored axis."""
    node = x.graph.node("cross_entropy", (x.node, ids),
                        "mt.sparse_categorical_crossentropy {0}, {1} from_logits : {t0}, {t1}", x.node.shape[:-1],
                        "f32")
    return Value(x.graph, node, axes)


def entropy_difference(a: Value, b: Value) -> Optional[Value]:
    """a - b = log_sum_exp(x) - x[id]."""
    x = log_sum_exp(a.node)
    if x is None or a.axes != b.axes:
        return None
    node, valid = b.node, None
    if isinstance(node.info, tuple) and node.info[0] == "picked":
        _, node, valid = node.info
    found = picked(node)
    if found is None or found[0] is not x or (valid is not None and valid.shape != b.node.shape):
        return None
    made = cross_entropy(Value(a.graph, x, ()), found[1], a.axes)
    if valid is None:
        return made
    nan = a.graph.constant_node(np.float32(np.nan), "f32")  # of an id out of range
    node = a.graph.node("select", (valid, made.node, nan), "mt.select {0}, {1}, {2} : {t0}, {t1}, {t2}",
                        made.node.shape, "f32")
    return Value(a.graph, node, made.axes)


def softplus(a: Value, b: Value) -> Optional[tuple[Value, Value]]:
    """max(p, q) + log1p(e^-|p - q|) = log(e^p + e^q), where q is a number: p and q."""
    for top, rest in ((_untied(a), b), (_untied(b), a)):
        if top.node.op != "maximum" or rest.node.op != "log1p" or rest.node.operands[0].op != "exp":
            continue
        negative = rest.node.operands[0].operands[0]
        magnitude = _abs(negative.operands[0]) if negative.op == "neg" else None
        if magnitude is None:
            continue
        difference = magnitude.operands[0]
        p, q = top.node.operands
        if q.constant is None:
            p, q = q, p
        if q.constant is None or q.shape or top.axes != rest.axes:
            continue
        zero = float(q.constant) == 0.0
        inside = difference.operands if difference.op in ("sub", "neg") else ()
        if (zero and difference is p) or (p in inside and (zero or q in inside)):
            graph = a.graph
            return Value(graph, p, top.axes), Value(graph, q, ())
    return None


def _untied(value: Value) -> Value:
    """The maximum that a value is, without a rule for the gradient of equal numbers (`info` of its node)."""
    info = value.node.info
    return info[1] if isinstance(info, tuple) and len(info) == 2 and info[0] == "tied" else value


def cancelled(nodes: Sequence[Node]) -> set[int]:
    """Of all nodes that are printed: numbers that are subtracted before e^x, and added again after the logarithm.

    Their gradient is 0 in sum, so nothing has to stop it. The result has `id`s of nodes `shift`.
    """
    users: dict[int, list[Node]] = {}
    for node in nodes:
        for operand in node.operands:
            users.setdefault(id(operand), []).append(node)

    def ends(node: Node) -> list[Node]:
        found = []
        for user in users.get(id(node), []):
            found += ends(user) if user.op in ("reshape", "select") else [user]
        return found

    sums = [n for n in nodes if n.op == "add" and log_sum_exp(n, last=False) is not None]
    result = set()
    for shift in (n for n in nodes if n.op == "shift"):
        found = ends(shift)
        exponents = [u for n in found if n.op == "sub" for u in users.get(id(n), [])]
        good = all(n in sums or n.op == "sub" for n in found) and any(n in sums for n in found)
        if good and all(u.op == "exp" and all(w.op == "reduce_sum" for w in users[id(u)]) for u in exponents):
            result.add(id(shift))
    return result
