# SPDX-License-Identifier: Apache-2.0
"""What several operations of a trace are together: softmax, cross-entropy, softplus.

The compiler differentiates the whole better than its parts: a softmax has no gradient to the maximum that it subtracts.
Each function gets the operation that ends the pattern, and gives its value, or None.
"""

from __future__ import annotations

from typing import Optional, Sequence

import numpy as np

from mtc._trace import layout
from mtc._trace.values import VIEWS, Value, elements


def shift_of(value: Value) -> Optional[Value]:
    """The maximum along one axis that a value is, if that is what it is."""
    while value.op in (*VIEWS, "stop_gradient", "shift", "select") or _is_picked(value) or (
            value.op == "maximum" and any(o.constant is not None for o in value.operands)):
        if _is_picked(value):
            value = value.operands[0].info[1]
        elif value.op == "select":  # where the maximum is finite
            value = value.operands[1]
        else:
            value = next((o for o in value.operands if o.constant is None), value.operands[0])
        if value.constant is not None:
            return None
    return value if value.op == "reduce_max" and len(value.dims) == 1 else None


def _is_picked(value: Value) -> bool:
    """Whether it is a maximum of which one place has the gradient; `info` of its operand has the plain one."""
    info = value.operands[0].info if value.op == "reduce_sum" else None
    return isinstance(info, tuple) and len(info) == 2 and info[0] == "picked"


def _axis_of(value: Value, whole: Value) -> Optional[int]:
    """The axis of `whole` along which a value is the same, if it has all others in their places."""
    rank, places = whole.rank, list(range(value.rank))
    if value.op == "broadcast":
        places, value = list(value.dims), value.operands[0]
    else:
        places = [i + rank - value.rank for i in places]
    if value.rank == rank - 1 and tuple(whole.shape[i] for i in places) == value.shape:
        missing = [i for i in range(rank) if i not in places]
        return missing[0]
    ones = [i for i, n in zip(places, value.shape) if n == 1 and whole.shape[i] != 1]
    kept = all(n in (1, whole.shape[i]) for i, n in zip(places, value.shape))
    return ones[0] if value.rank == rank and kept and len(ones) == 1 else None


def _shifted(value: Value) -> Optional[tuple[Value, int]]:
    """x and an axis, where the value is x minus its maximum along that axis."""
    if value.op != "sub":
        return None
    x, subtracted = value.operands
    maximum = shift_of(subtracted)
    if maximum is None or maximum.operands[0] is not x or x.shape != value.shape:
        return None
    axis = maximum.dims[0]
    return (x, axis) if _axis_of(subtracted, x) == axis or x.shape[axis] == 1 else None


def _abs(value: Value) -> Optional[Value]:
    """The op `abs` that a value is, or is another form of."""
    value = value.info[1] if isinstance(value.info, tuple) and value.info[0] == "abs" else value
    return value if value.op == "abs" else None


def softmax(a: Value, b: Value) -> Optional[tuple[Value, int]]:
    """a / b = e^(x - max) / sum: x and the axis."""
    total = b.source
    if a.op != "exp" or total.op != "reduce_sum" or total.operands[0] is not a or len(total.dims) != 1:
        return None
    found = _shifted(a.operands[0])
    if found is None or found[1] != total.dims[0] or (_axis_of(b, a) != found[1] and a.shape[found[1]] != 1):
        return None
    return found


def log_softmax(a: Value, b: Value) -> Optional[tuple[Value, int]]:
    """a - b = (x - max) - log(sum of e^(x - max)): x and the axis."""
    found, logarithm = _shifted(a), b.source
    if found is None or logarithm.op != "log":
        return None
    total = _summed(logarithm)
    if total is None or total.dims != (found[1],) or total.operands[0].operands[0] is not a:
        return None
    return found if _axis_of(b, a) == found[1] or a.shape[found[1]] == 1 else None


def _summed(logarithm: Value) -> Optional[Value]:
    """The sum of exponentials whose logarithm a value is."""
    total = logarithm.operands[0].source
    total = magnitude.operands[0].source if (magnitude := _abs(total)) else total
    return total if total.op == "reduce_sum" and total.operands[0].op == "exp" else None


def log_sum_exp(value: Value, last: bool = True) -> Optional[Value]:
    """x, where the value is log(sum of e^(x - max)) + max along an axis, the last one with `last`."""
    if value.op != "add":
        return None
    for a, b in (value.operands, value.operands[::-1]):
        if a.source.op != "log":
            continue
        total = _summed(a.source)
        found = None if total is None else _shifted(total.operands[0].operands[0])
        maximum = shift_of(b)
        if total is None or found is None or maximum is None or maximum.operands[0] is not found[0]:
            continue
        if total.dims == (found[1],) and (not last or found[1] == found[0].rank - 1):
            return found[0]
    return None


def picked(value: Value) -> Optional[tuple[Value, Value]]:
    """x and ids, where the value is the element of x at the id along its last axis."""
    if value.op != "reduce_sum" or value.operands[0].op not in ("mul", "select"):
        return None
    if value.operands[0].op == "mul":
        x, hot = value.operands[0].operands
        ids = hot.operands[0] if hot.op == "one_hot" else None
    else:
        hot, x, _ = value.operands[0].operands
        ids = hot.info[1] if isinstance(hot.info, tuple) and hot.info[0] == "place" else None
    if ids is None or hot.shape != x.shape or value.dims != (x.rank - 1,):
        return None
    return x, ids


def logits_of(value: Value) -> Optional[Value]:
    """The operand of a log_softmax along the last axis of a value, in the order of its axes."""
    order = list(range(value.rank))
    if value.op == "transpose" and value.operands[0].op == "log_softmax":
        order, value = list(value.dims), value.operands[0]
    if value.op != "log_softmax" or order[-1] != value.dims[0]:
        return None
    return layout.transpose(value.operands[0], order)


def cross_entropy(logits: Value, ids: Value) -> Value:
    """-log softmax(logits)[id] along the last axis."""
    return logits.graph.operation("cross_entropy", (logits, ids), "graph.cross_entropy {0}, {1}", logits.shape[:-1],
                                  "f32")


def entropy_difference(a: Value, b: Value) -> Optional[Value]:
    """a - b = log_sum_exp(x) - x[id]."""
    total, value, valid = layout.unshaped(a), b, None
    x = log_sum_exp(total)
    if x is None or total.shape != x.shape[:-1] or a.shape != b.shape:
        return None
    while value.info is None and value.op in VIEWS:
        value = value.operands[0]
    if isinstance(value.info, tuple) and value.info[0] == "picked" and len(value.info) == 3:
        _, value, valid = value.info
    found = picked(layout.unshaped(value))
    if found is None or found[0] is not x or (valid is not None and elements(valid.shape) != elements(total.shape)):
        return None
    made = cross_entropy(x, found[1])
    if valid is not None:
        valid = layout.reshape(valid, made.shape)
        nan = a.graph.constant(np.float32(np.nan))  # of an id out of range
        made = a.graph.operation("select", (valid, made, nan), 'graph.elementwise "select"({0}, {1}, {2})', made.shape,
                                 "f32")
    return layout.reshape(made, a.shape)


def softplus(a: Value, b: Value) -> Optional[tuple[Value, Value]]:
    """max(p, q) + log1p(e^-|p - q|) = log(e^p + e^q), where q is a number: p and q."""
    for top, rest in ((_untied(a), b), (_untied(b), a)):
        if top.op != "maximum" or rest.op != "log1p" or rest.operands[0].op != "exp":
            continue
        negative = rest.operands[0].operands[0]
        magnitude = _abs(negative.operands[0]) if negative.op == "neg" else None
        if magnitude is None:
            continue
        difference = magnitude.operands[0]
        p, q = top.operands
        if q.constant is None:
            p, q = q, p
        if q.scalar is None or top.shape != rest.shape:
            continue
        zero = q.scalar == 0.0
        inside = difference.operands if difference.op in ("sub", "neg") else ()
        if (zero and difference is p) or (p in inside and (zero or any(o.scalar == q.scalar for o in inside))):
            return p, q
    return None


def _untied(value: Value) -> Value:
    """The maximum that a value is, without a rule for the gradient of equal numbers (`info`)."""
    info = value.info
    return info[1] if isinstance(info, tuple) and len(info) == 2 and info[0] == "tied" else value


def cancelled(values: Sequence[Value]) -> set[int]:
    """Of all values that are written: those that are subtracted before e^x, and added again after the logarithm.

    Their gradient is 0 in sum, so nothing has to stop it. The result has `id`s of values `shift`.
    """
    users: dict[int, list[Value]] = {}
    for value in values:
        for operand in value.operands:
            users.setdefault(id(operand), []).append(value)

    def ends(value: Value) -> list[Value]:
        found = []
        for user in users.get(id(value), []):
            found += ends(user) if user.op in (*VIEWS, "select") else [user]
        return found

    sums = {id(v) for v in values if v.op == "add" and log_sum_exp(v, last=False) is not None}
    result = set()
    for shift in (v for v in values if v.op == "shift"):
        found = ends(shift)
        exponents = [u for v in found if v.op == "sub" for u in users.get(id(v), [])]
        good = all(id(v) in sums or v.op == "sub" for v in found) and any(id(v) in sums for v in found)
        if good and all(u.op == "exp" and all(w.op == "reduce_sum" for w in users[id(u)]) for u in exponents):
            result.add(id(shift))
    return result
