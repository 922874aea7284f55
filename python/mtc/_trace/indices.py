# SPDX-License-Identifier: Apache-2.0
"""Indices along an axis: those below 0, those out of range, and those that count the samples."""

from __future__ import annotations

import dataclasses
from typing import Any, Optional, Sequence

import numpy as np

from mtc._trace import elementwise as e
from mtc._trace import integers, layout
from mtc._trace.values import Batch, Value, has_batch

# What an index out of range reads: the nearest element, a number of its own, or the nearest without a gradient.
CLIP, FILL, PROMISED = "clip", "fill", "promised"


@dataclasses.dataclass(frozen=True)
class Places:
    """Indices along an axis, and which of them are in range: None: all. `clamped`: for the others a slice is read,
    to which no gradient goes, as JAX has it where the user promises that there are none."""

    ids: Value
    valid: Optional[Value] = None
    clamped: bool = False


def places(ids: Value, size: int, mode: str, checked: bool) -> Places:
    """The places of indices along an axis with so many of them.

    `checked`: what reads them lets MTC check that data is in range, so that neither a wrap nor a limit has to be
    computed for the ids of an input.
    """
    plain = unwrapped(ids, size)
    source = ids if plain is None else plain
    if checked and mode != CLIP and _is_data(source):
        return Places(source)
    low, high = integers.bounds(source)
    if plain is not None and low >= 0:
        ids = plain
    elif plain is not None:
        low, high = max(min(low + size, 0), integers.ANY[0]), max(high, min(high, -1) + size)
    inside = low >= 0 and high < size
    if inside or (mode == FILL and size == 0):
        return Places(ids)
    limited = e.binary("minimum", e.binary("maximum", ids, 0), size - 1)
    if mode == CLIP:
        return Places(limited)
    valid = e.compare("ge", ids, 0) & e.compare("lt", ids, size)
    return Places(limited, valid, mode != FILL)


def unwrapped(ids: Value, size: Any) -> Optional[Value]:
    """The indices to whose negative ones a framework has added the size, if that is what these are."""
    value = layout.unshaped(ids)
    if value.op != "select":
        return None
    condition, added, plain = value.operands
    if not _is_below_0(condition, plain) or plain.shape != value.shape or added.op != "add" or (
            added.operands[0] is not plain):
        return None
    other = added.operands[1]
    same = other.count == size.times if isinstance(size, Batch) else other.scalar == size
    return layout.reshape(plain, ids.shape) if same else None


def _is_below_0(condition: Value, plain: Value) -> bool:
    return condition.kind == "lt" and condition.operands[0] is plain and condition.operands[1].scalar == 0


def is_sample(value: Any) -> bool:
    """Whether it is the place of each sample in the batch."""
    if not isinstance(value, Value) or not has_batch(value.shape):
        return False
    size = next(n for n in value.shape if isinstance(n, Batch))
    value = _unrepeated(value)
    plain = unwrapped(value, size)
    line = _unrepeated(value if plain is None else plain)
    return line.op == "iota" and size in line.shape


def _unrepeated(value: Value) -> Value:
    """A value of the samples that is repeated along other axes, as jnp.arange(b)[:, None] for several ids of each."""
    while value.op in ("reshape", "broadcast") and has_batch(value.operands[0].shape):
        value = value.operands[0]
    return value


def _is_data(value: Value) -> bool:
    """Whether all of it is integers of the caller, which the session checks: see compiler/differentiate/Limits.cpp."""
    waiting = [value]
    while waiting:
        top = waiting.pop()
        if top.op in ("reshape", "broadcast", "transpose", "reverse", "concat", "cast"):
            waiting += top.operands
        elif top.op not in ("input", "target"):
            return False
    return True


def filled(value: Value, found: Places, fill: Any, after: int = 0) -> Value:
    """`fill` where the places, whose axes `after` further ones follow, are out of range."""
    if found.valid is None or found.clamped and not value.learned:
        return value
    rank = found.valid.rank
    valid = layout.expand_dims(found.valid, range(rank, rank + after))
    if found.clamped:
        return e.select(valid, value, value.graph.stop_gradient(value))
    return e.select(valid, value, value.graph.constant(np.asarray(fill), value.dtype))


def joined(ids: Value, found: Sequence[Places]) -> Places:
    """The places by several indices, whose number is `ids`."""
    valid = None
    for place in found:
        if place.valid is not None:
            valid = place.valid if valid is None else valid & place.valid
    return Places(ids, valid, any(place.clamped for place in found))
