# SPDX-License-Identifier: Apache-2.0
"""scaled_dot_product_attention as `mt.attention`, or as products and a softmax."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Optional

import numpy as np

from mtc._trace import BATCH, Batch, Refused, Value, layout, products, reductions
from mtc._trace import elementwise as e
from mtc._trace.text import number, quoted
from mtc.torch._convert import Converter
from mtc.torch._handlers import op
from mtc.torch._layers import drop

HIDDEN = -1e4  # a float mask with nothing between this and 0 hides where it is below


class Mask(NamedTuple):
    """What hides keys: words of mt.attention, and an i1 tensor or None."""

    words: str
    seen: Optional[Value]


@op("scaled_dot_product_attention")
def attention(c: Converter, query: Any, key: Any, value: Any, mask: Any = None, rate: float = 0.0,
              causal: bool = False, scale: Optional[float] = None, grouped: bool = False) -> Value:
    """Operands [..., heads, places, channels]."""
    q, k, v = c.value(query), c.value(key), c.value(value)
    given = None if mask is None else c.value(mask)
    new = {2: (0, 1), 3: (1,)}.get(len(q.shape))
    if new and len(q.shape) == len(k.shape) == len(v.shape):  # one head
        q, k, v = (layout.expand_dims(x, new) for x in (q, k, v))
        given = layout.expand_dims(given, (1,)) if given is not None and len(given.shape) == 3 else given
        return layout.squeeze(_attention(c, (q, k, v), given, rate, causal, scale), new)
    return _attention(c, (q, k, v), given, rate, causal, scale)


def _attention(c: Converter, operands: tuple[Value, ...], given: Optional[Value], rate: float, causal: bool,
               scale: Optional[float]) -> Value:
    q, k, v = operands
    k, v, key_heads = _without_repeats(k, v)
    if len(q.shape) == 4 and q.shape[0] == BATCH and key_heads and int(q.shape[1]) % key_heads == 0:  # type: ignore
        found = _mask(given, causal, q, k)
        if found is not None:
            return _whole(c, (q, k, v), key_heads, found, rate, scale)
    k, v = (_repeated(x, q) for x in (k, v))
    scores = products.matmul(q, layout.move_axis(k, -1, -2))
    scores = scores * (1 / math.sqrt(int(q.shape[-1])) if scale is None else scale)  # type: ignore[arg-type]
    if causal:
        rows, columns = (int(n) for n in scores.shape[-2:])
        given = c.graph.constant(np.tri(rows, columns, dtype=bool))
    empty = None if given is None else _empty_rows(given)
    if given is not None and given.dtype == "i1":
        scores = e.select(given, scores, e.as_value(scores, -1e30))
    elif given is not None:
        if empty is not None:
            given = e.select(empty, e.as_value(given, 0.0), given)
        scores = scores + given
    shares = reductions.softmax(scores)
    if empty is not None:
        shares = e.select(empty, e.as_value(shares, 0.0), shares)
    return products.matmul(drop(c, shares, rate), v)


def _empty_rows(mask: Value) -> Optional[Value]:
    """Where a mask hides all keys, whose shares PyTorch makes 0; None: it cannot."""
    last = len(mask.shape) - 1
    if mask.dtype != "i1":
        if not may_be(mask, -np.inf):
            return None
        mask = e.compare("gt", mask, -np.inf)
    empty = layout.expand_dims(~reductions.reduce_logic(False, mask, (last,)), (last,))
    return None if empty.constant is not None and not empty.constant.any() else empty


def _whole(c: Converter, operands: tuple[Value, ...], key_heads: int, mask: Mask, rate: float,
           scale: Optional[float]) -> Value:
    nodes = [_lines(x) for x in operands]
    q, _, v = operands
    heads, places, channels = int(q.shape[1]), int(q.shape[2]), int(v.shape[3])  # type: ignore[arg-type]
    text = "mt.attention {0}, {1}, {2}" + (" mask {3}" if mask.seen is not None else "") + f" heads = {heads}"
    text += f" key_heads = {key_heads}" if key_heads != heads else ""
    text += mask.words
    text += f" scale = {number(scale)}" if scale is not None else ""
    text += f" dropout {quoted(c.stream())} rate = {number(rate)}" if rate and c.random else ""
    nodes += [mask.seen] if mask.seen is not None else []
    types = ", ".join(f"{{t{i}}}" for i in range(len(nodes)))
    made = c.graph.tensor("attention", nodes, f"{text} : {types}", (BATCH, places, heads * channels), "f32")
    result = layout.reshape(made, (BATCH, places, heads, channels))
    return layout.transpose(result, (0, 2, 1, 3))


def _lines(x: Value) -> Value:
    """[batch, places, heads * channels]."""
    _, heads, places, channels = x.shape
    return layout.reshape(layout.transpose(x, (0, 2, 1, 3)), (BATCH, places, heads * channels))  # type: ignore


def may_be(value: Value, number: float) -> bool:
    """Whether a constant of this number, or one that the data brings, is among what a tensor is made of."""
    waiting, seen = [value], set()
    while waiting:
        top = waiting.pop()
        if id(top) in seen:
            continue
        seen.add(id(top))
        if top.constant is not None and top.dtype == "f32" and bool((top.constant == number).any()):
            return True
        if top.op in ("input", "target", "log") and top.dtype == "f32":
            return True
        waiting += top.operands
    return False


def _without_repeats(k: Value, v: Value) -> tuple[Value, Value, int]:
    """Keys and values of the heads that there are, where each is repeated for several heads of the queries."""
    made = []
    for x in (k, v):
        spread = x.operands[0] if x.op == "reshape" else x
        if spread.rank != x.rank + 1 or list(layout.repeats(spread)) != [x.rank - 2]:
            return k, v, 0 if isinstance(k.shape[-3], Batch) else k.shape[-3]
        heads = spread.shape[x.rank - 3]
        made.append(layout.reshape(layout.without_repeats(spread), (*x.shape[:-3], heads, *x.shape[-2:])))
    return made[0], made[1], int(made[0].shape[-3])  # type: ignore[arg-type]


def _repeated(x: Value, like: Value) -> Value:
    heads, wanted = x.shape[-3], like.shape[-3]
    if heads == wanted or isinstance(heads, Batch) or isinstance(wanted, Batch):
        return x
    if wanted % heads:
        raise Refused(f"attention of {wanted} heads with {heads} of the keys")
    rank = len(x.shape)
    spread = layout.expand_dims(x, (rank - 2,))
    spread = layout.broadcast(spread, (*x.shape[:-2], wanted // heads, *x.shape[-2:]))
    return layout.reshape(spread, (*x.shape[:-3], wanted, *x.shape[-2:]))


def _mask(given: Optional[Value], causal: bool, q: Value, k: Value) -> Optional[Mask]:
    """What hides keys, in the words of mt.attention; None: nothing there can say it."""
    if causal:
        return Mask(" causal", None)
    if given is None:
        return Mask("", None)
    full = (BATCH, q.shape[1], q.shape[2], k.shape[2])
    if len(given.shape) > 4:
        return None
    m = layout.broadcast(given, full)
    if m.constant is None:
        return Mask("", layout.without_repeats(m)) if m.dtype == "i1" else None
    array = m.constant
    if m.dtype == "f32":
        seen = (array == 0).any(-1)
        if not np.all((array == 0) | (array < HIDDEN)) or not np.all(seen | (array == -np.inf).all(-1)):
            return None  # of keys that are all as low, but not hidden, the shares are equal
        array = array == 0
    return _of_constant(m, array.astype(bool), int(q.shape[2]), int(k.shape[2]))  # type: ignore[arg-type]


def _of_constant(m: Value, seen: Any, queries: int, keys: int) -> Mask:
    """A constant mask as words where there are words for it."""
    if seen.all():
        return Mask("", None)
    if seen.shape[0] == seen.shape[1] == 1:
        places = np.broadcast_to(seen[0, 0], (queries, keys))
        before = np.arange(queries)[:, None] - np.arange(keys)[None]
        window = int(places[-1].sum())
        if np.array_equal(places, before >= 0):
            return Mask(" causal", None)
        if queries == keys and np.array_equal(places, (before >= 0) & (before < window)):
            return Mask(f" causal window = {window}", None)
        return Mask("", m.graph.constant(seen[0, 0], "i1"))
    return Mask("", m.graph.constant(seen, "i1"))
