# SPDX-License-Identifier: Apache-2.0
"""A plan whose gradients are its input, and how near two optimizers must be that are given the same ones.

End to end a gradient that is 0 but for rounding would become a full step of Adam, in one direction or the other. So the
framework's optimizer and MTC's are given the gradients that MTC found.
"""

from __future__ import annotations

from typing import Mapping, Optional, Sequence

import numpy as np

from mtc._errors import ModelError
from mtc._tensors import Array
from mtc._trace import guard, layout, moves, reductions
from mtc._trace.graph import Graph
from mtc._trace.values import BATCH, Value

COUNT = 3  # of updates
TOLERANCE = 1e-3  # of the largest change: frameworks have powers of betas in float64
ROUNDING = 1e-6  # of the largest element
FARTHER = 8  # times as far from float64 as the framework's float32 is
LARGEST = 1e15  # of a gradient: optimizers square it, in float32


def loss_of(graph: Graph, variables: Sequence[Value]) -> Value:
    """A loss whose gradients are the input `gradients`, those of all variables one behind the other."""
    sizes = [int(np.prod([int(n) for n in variable.shape])) for variable in variables]  # type: ignore[arg-type]
    given = graph.input("gradients", (BATCH, sum(sizes)), "f32")
    total: Optional[Value] = None
    begin = 0
    for variable, size in zip(variables, sizes):
        part = moves.part(given, 1, begin, begin + size)
        flat = layout.reshape(variable, (size,))
        term = reductions.mean(reductions.reduce("sum", part * flat, [1]), [0])
        total = term if total is None else total + term
        begin += size
    assert total is not None
    return total


def usable(gradient: Array) -> Array:
    """With 0 for what is not finite, or would not be after an update."""
    return np.where(np.abs(gradient) <= LARGEST, gradient, 0).astype("f4")


def error(mine: Array, theirs: Array, change: float) -> float:
    """A difference, as a share of what rounding allows after a change of this size."""
    mine, theirs = np.asarray(mine), np.asarray(theirs)
    allowed = TOLERANCE * change + ROUNDING * float(np.abs(theirs).max()) + 1e-30
    return float(np.abs(mine.reshape(theirs.shape) - theirs).max()) / allowed


def as_near(mine: Array, theirs: Array, exact: Array) -> bool:
    """Whether an array is at most 8 times as far from float64's as the framework's float32 is, at its farthest."""
    exact = np.asarray(exact)
    distance = float(np.abs(np.asarray(theirs) - exact).max())
    return float(np.abs(np.asarray(mine).reshape(exact.shape) - exact).max()) <= FARTHER * distance


def judge(errors: Mapping[str, float], kind: str, owner: str, count: int) -> None:
    """Raises a ModelError where an array differs by more than rounding. `errors`: of `error`."""
    wrong = {key: value for key, value in errors.items() if not value <= 1}
    if wrong:
        raise ModelError(f"expected what {kind} of {owner} makes of the same gradients, found after {count} of {COUNT} "
                         f"updates {len(wrong)} arrays that differ, by so many times what rounding allows:\n"
                         f"{guard.listing(wrong)}")
