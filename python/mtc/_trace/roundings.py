# SPDX-License-Identifier: Apache-2.0
"""Which differences between two computations of the same gradients roundings explain.

A gradient behind a ReLU jumps where the argument is nearly 0, and a rounding decides on which side it is. So where
something differs, the framework computes the gradients again, from weights that are changed at random by as little as
roundings change the values of a deep network.
"""

from __future__ import annotations

from typing import Callable, Iterable, Mapping

SLACK = 8  # times what the changed weights make
STEPS = range(1, 6)


def change(step: int) -> float:
    """The most by which a weight is changed in a step, as a share of it: 2^-20 in the first, and each doubles it."""
    return 2.0 ** (step - 21)


def unexplained(errors: Mapping[str, float], tolerance: float, again: Callable[[int], Mapping[str, float]],
                steps: Iterable[int] = STEPS) -> list[str]:
    """The keys whose errors are larger than the tolerance and `SLACK` times those of each step, which `again` gives.

    A step runs only where the ones before it have left something.
    """
    wrong = [key for key, error in errors.items() if not error <= tolerance]
    own = dict.fromkeys(errors, 0.0)
    for step in steps:
        if not wrong:
            break
        found = again(step)
        own = {key: max(own[key], found[key]) for key in own}
        wrong = [key for key in wrong if not errors[key] - SLACK * own[key] <= tolerance]
    return wrong
