# SPDX-License-Identifier: Apache-2.0
"""Products, extremes and logarithms of sums of all elements up to each one.

In the order of `jax.lax.associative_scan`, with which JAX computes them and their gradients: so equal numbers share a
gradient as they do there.
"""

from __future__ import annotations

from typing import Any, Callable, Sequence

from mtc._trace import Batch, Refused, Value, layout, moves
from mtc.jax._reader import ACROSS, Reader, rule
from mtc.jax._rules import extremum
from mtc.jax._singular import log_add_exp

Combine = Callable[[Value, Value], Value]
COMBINE: dict[str, Combine] = {
    "cumprod": lambda a, b: a * b, "cummax": lambda a, b: extremum("maximum", a, b),
    "cummin": lambda a, b: extremum("minimum", a, b), "cumlogsumexp": log_add_exp,
}


@rule(*COMBINE)
def _cumulative(r: Reader, equation: Any, inputs: Sequence[Any]) -> Value:
    value, axis = r.value(inputs[0]), equation.params["axis"]
    if isinstance(value.shape[axis], Batch):
        raise Refused(f"a cumulative function along the batch: {ACROSS}")
    line, last = layout.move_axis(value, axis, -1), (value.rank - 1,)
    if equation.params["reverse"]:
        line = moves.reverse(line, last)
    line = _scan(line, COMBINE[equation.primitive.name])
    if equation.params["reverse"]:
        line = moves.reverse(line, last)
    return layout.move_axis(line, -1, axis)


def _scan(line: Value, combine: Combine) -> Value:
    """Along the last axis."""
    size = int(line.shape[-1])  # type: ignore[arg-type]
    if size < 2:
        return line
    odd = _scan(combine(moves.part(line, -1, 0, size - 1, 2), moves.part(line, -1, 1, size, 2)), combine)
    even = moves.part(line, -1, 0, 1, 2)
    if size > 2:
        before = odd if size % 2 else moves.part(odd, -1, 0, size // 2 - 1)
        even = moves.concat([even, combine(before, moves.part(line, -1, 2, size, 2))], line.rank - 1)
    return _interleaved(even, odd)


def _interleaved(even: Value, odd: Value) -> Value:
    """One of `even`, one of `odd`, and so on; `even` may have one more."""
    rank, count = even.rank, int(odd.shape[-1])  # type: ignore[arg-type]
    pairs = moves.concat([layout.expand_dims(moves.part(v, -1, 0, count), (rank,)) for v in (even, odd)], rank)
    made = layout.reshape(pairs, (*odd.shape[:-1], 2 * count))
    if even.shape[-1] == count:
        return made
    return moves.concat([made, moves.part(even, -1, count, count + 1, 2)], rank - 1)
