# SPDX-License-Identifier: Apache-2.0
"""Integers of 32 bits, exactly: how large they may be, and what `mt` has for f32 alone.

f32 has all integers up to 2^24. So what `mt` computes in f32 (sums, extremes, products) is exact where values are known
to stay below that, and else made of operations of i32, which wrap around as integers of 32 bits do everywhere.
"""

from __future__ import annotations

from typing import Callable, Sequence

from mtc._trace import elementwise as e
from mtc._trace import layout, moves
from mtc._trace.values import Batch, Refused, Value, elements, has_batch

Range = tuple[int, int]
ANY: Range = (-(2**31), 2**31 - 1)
EXACT = 2**24
_DEEPEST = 24  # operations that are looked at
_EXACT_IN_BATCH = EXACT >> 16  # the sum over a batch of up to 2^16 samples is exact


def bounds(node: Value, depth: int = 0) -> Range:
    """The least and the largest value that elements of i32 may have, as far as it is known."""
    if node.bounds is None:
        found = _bounds(node, depth + 1) if depth < _DEEPEST else ANY
        if depth:
            return found if found[0] >= ANY[0] and found[1] <= ANY[1] else ANY
        node.bounds = found if found[0] >= ANY[0] and found[1] <= ANY[1] else ANY
    return node.bounds


_SAME = {"reshape", "transpose", "broadcast", "slice", "reverse", "take", "take_along"}


def _bounds(node: Value, depth: int) -> Range:
    if node.dtype == "i1":
        return 0, 1
    if node.constant is not None:
        return (int(node.constant.min()), int(node.constant.max())) if node.constant.size else (0, 0)
    if node.op == "argmax":
        return 0, int(node.operands[0].shape[node.dims[0]]) - 1  # type: ignore[arg-type]
    if node.op == "sort":
        return 0, node.dims[1] - 1
    if node.op == "iota" or node.count:
        return 0, ANY[1]
    if node.op in _SAME or node.op == "cast" and node.operands[0].dtype != "f32":
        return bounds(node.operands[0], depth)
    ranges = [bounds(o, depth) for o in node.operands if o.dtype != "f32"]
    if node.op in ("concat", "select") and node.dtype == "i32":
        rest = ranges[1:] if node.op == "select" else ranges
        return min(r[0] for r in rest), max(r[1] for r in rest)
    if len(ranges) != 2:
        return ANY
    (a, b), (c, d) = ranges
    if node.op == "add":
        return a + c, b + d
    if node.op == "sub":
        return a - d, b - c
    if node.op == "mul":
        products = (a * c, a * d, b * c, b * d)
        return min(products), max(products)
    if node.op in ("maximum", "minimum"):
        pick = max if node.op == "maximum" else min
        return pick(a, c), pick(b, d)
    return ANY


def largest(node: Value) -> int:
    """The largest size that an integer of a node may have."""
    low, high = bounds(node)
    return max(-low, high)


def exact_in_f32(value: Value, terms: int = 1) -> bool:
    """Whether a sum of so many elements has no roundings in f32."""
    return value.dtype != "i32" or largest(value) * terms <= EXACT


def reduce(kind: str, value: Value, axes: Sequence[int],
           compute: Callable[[str, Value, Sequence[int]], Value]) -> Value:
    """The "sum", "max" or "min" of integers over axes. `compute` makes the operation, of f32 or of i32.

    Where the result becomes a number of f32, it is that of f32: see `elementwise.cast`.
    """
    rounded = compute(kind, e.cast(value, "f32"), axes)
    sizes = [value.shape[i] for i in axes]
    terms = elements(sizes) if kind == "sum" else 1
    batch = has_batch(sizes)
    if largest(value) * terms <= (_EXACT_IN_BATCH if batch else EXACT):
        made = e.cast(rounded, "i32")
        if made.op == "cast" and not batch:
            low, high = bounds(value)
            made.bounds = (low * terms, high * terms)
        return made
    made = compute(kind, value, axes)
    if made.info is None:
        made.info = ("rounded", rounded)
    return made


def _digits(value: Value, bits: int) -> tuple[Value, Value]:
    """h and l of value = h * 2^bits + l, in i32. l may be a little outside of 0 to 2^bits, h is not rounded."""
    high = e.cast(e.unary("floor", e.cast(value, "f32") * 2.0**-bits), "i32")
    return high, value - high * (1 << bits)


def wrapped(value: Value, bits: int, signed: bool) -> Value:
    """Modulo 2^bits, as integers of so many bits are."""
    low = -(1 << (bits - 1)) if signed else 0
    limits = (low, low + (1 << bits) - 1)
    found = bounds(value)
    if limits[0] <= found[0] and found[1] <= limits[1]:
        return value
    shifted = value - low if low else value
    for _ in range(1 if largest(shifted) <= EXACT else 2):
        _, shifted = _digits(shifted, bits)
    made = shifted + low if low else shifted
    if made is not value:
        made.bounds = limits
    return made


def divide(a: Value, b: Value) -> tuple[Value, Value]:
    """The quotient, towards 0, and the remainder, which has the sign of a. By 0: -1 and a, as XLA has them."""
    quotient, rest = _divide(a, b)
    if b.scalar and rest.constant is None and bounds(a)[0] >= 0:
        rest.bounds = 0, int(abs(b.scalar)) - 1
    return quotient, rest


def _divide(a: Value, b: Value) -> tuple[Value, Value]:
    quotient = _quotient(a, b)
    rest = a - quotient * b
    divisor = b.scalar
    if divisor and exact_in_f32(a) and exact_in_f32(b):
        return quotient, rest
    more = _quotient(rest, b)
    quotient, rest = quotient + more, rest - more * b
    size, sign = e.unary("abs", b), e.unary("sign", b)
    zero = e.as_value(rest, 0)
    for wrong, direction in ((e.compare("lt", rest, 0), 1), (e.compare("gt", rest, 0), -1)):
        # A remainder of another sign than a, or one as large as b.
        against = e.compare("ge" if direction == 1 else "le", a, 0)
        far = e.compare("le", rest, -size) if direction == 1 else e.compare("ge", rest, size)
        off = wrong & against | far
        step = e.select(off, size, zero)
        rest = e.binary("add" if direction == 1 else "sub", rest, step)
        turn = e.select(off, sign, zero)
        quotient = e.binary("sub" if direction == 1 else "add", quotient, turn)
    none = e.compare("eq", b, 0)
    return e.select(none, e.as_value(a, -1), quotient), e.select(none, a, rest)


def _quotient(a: Value, b: Value) -> Value:
    return e.cast(e.unary("trunc", e.cast(a, "f32") / e.cast(b, "f32")), "i32")


def cumulative(combine: Callable[[Value, Value], Value], value: Value, axis: int, reverse: bool,
               neutral: float) -> Value:
    """The operation of all elements up to each one: in round k = 1, 2, 4 ... with the element k places before it."""
    axis %= value.rank
    size = value.shape[axis]
    if isinstance(size, Batch):
        raise Refused("a cumulative function along the batch")
    step = 1
    while step < size:
        shape = tuple(step if i == axis else n for i, n in enumerate(value.shape))
        fill = layout.broadcast(e.as_value(value, neutral), shape)
        rest = moves.part(value, axis, *((step, size) if reverse else (0, size - step)))
        value = combine(value, moves.concat([rest, fill] if reverse else [fill, rest], axis))
        step *= 2
    return value
