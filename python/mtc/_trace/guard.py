# SPDX-License-Identifier: Apache-2.0
"""Whether MTC's numbers are those of the framework: one judge for PyTorch, JAX and Keras.

A case is a batch. What a step, an evaluation and a prediction make of it are arrays with names that messages have:
"the loss", "the gradient of dense/kernel", "the prediction output". `judge` compares those of MTC with those of the
framework's `reference`.

1.  The framework's float32 decides up to the tolerance.
2.  A difference of up to a tenth, or of a few elements of a gradient alone, may be a rounding that a deep network
    enlarges. It is allowed where the framework's own results move by an eighth as much when its weights change as
    roundings would change them (`mtc._trace.roundings`).
3.  Else the framework in float64 decides: MTC may be 8 times as far from it as the framework's float32 is.
"""

from __future__ import annotations

import contextlib
import dataclasses
import time
from typing import Callable, Container, Mapping, Optional

import numpy as np

from mtc._errors import ModelError
from mtc._tensors import Array
from mtc._trace import differences, roundings

Values = dict[str, Array]
Measure = Callable[[Mapping[str, Array], Mapping[str, Array]], dict[str, float]]
Reference = Callable[[bool, int], Values]  # (float64?, step of `roundings`) -> what the framework makes

FLOOR = 1e-3  # of the largest element of all gradients: a gradient below it is rounding errors
LEAST = 1e-6  # of other arrays: below it they are 0
ZERO = 1e-12  # of the loss: where all gradients are below it, they are 0 but for the roundings of float64
MOST = 0.1  # a larger difference is no rounding,
FEW = 0.03  # unless its norm is at most this share of the gradient's: one sample's ReLU has gone the other way
QUICK = roundings.STEPS[:3]  # before float64 is asked
CASES, SECONDS = 2, 2.0  # that are always compared: the example and a batch that is made of it; of the thread, for more
LOSS, GRADIENT, BUFFER, METRIC, PREDICTION = ("the loss", "the gradient of ", "the buffer ", "the metric ",
                                              "the prediction ")
EVALUATED = " in evaluation"


@dataclasses.dataclass
class Verdict:
    """What was found out about a case.

    Attributes:
        errors: of each array, as a share of its largest element.
        moved: those that the framework's changed weights move as far.
        doubled: those that are as near to float64 as the framework's float32 is.
        change: the most by which a weight was changed, as a share of it.
    """

    errors: dict[str, float]
    moved: list[str] = dataclasses.field(default_factory=list)
    doubled: list[str] = dataclasses.field(default_factory=list)
    change: float = 0.0


class Budget:
    """How many cases are compared. `full`: all of them."""

    def __init__(self, full: bool) -> None:
        self.full = full
        self.began = time.thread_time()

    def allows(self, compared: int) -> bool:
        """Whether to compare one more."""
        return self.full or compared < CASES or time.thread_time() - self.began <= SECONDS


class Different(ModelError):
    """MTC's numbers are not the framework's. `errors`: of each array that differs."""

    def __init__(self, text: str, errors: Mapping[str, float]) -> None:
        super().__init__(text)
        self.errors = dict(errors)


def errors(mine: Mapping[str, Array], theirs: Mapping[str, Array]) -> dict[str, float]:
    """The largest difference of each array that both have, as a share of the largest element of the framework's.

    What the framework has no finite number for is not compared.
    """
    pairs = {key: _finite(mine[key], theirs[key]) for key in theirs if key in mine}
    largest = max([differences.largest(b) for key, (_, b) in pairs.items() if key.startswith(GRADIENT)], default=0.0)
    largest = _size(largest, max([differences.largest(b) for key, (_, b) in pairs.items() if key == LOSS], default=0.0))
    found = {}
    for key, (a, b) in pairs.items():
        scale = differences.largest(b) + (FLOOR * largest if key.startswith(GRADIENT) else LEAST)
        found[key] = differences.largest_difference(a, b) / scale
    return found


def norms(mine: Mapping[str, Array], theirs: Mapping[str, Array]) -> dict[str, float]:
    """As `errors`, but of gradients the norm of the difference, as a share of the norm of the framework's, or of a
    hundredth of the largest norm if that is more."""
    found = errors(*({k: v for k, v in values.items() if not k.startswith(GRADIENT)} for values in (mine, theirs)))
    pairs = {key: _finite(mine[key], theirs[key]) for key in theirs if key in mine and key.startswith(GRADIENT)}
    sizes = {key: differences.norm(b) for key, (_, b) in pairs.items()}
    loss = _finite(theirs[LOSS], theirs[LOSS])[1]
    least = 1e-2 * _size(max(sizes.values(), default=0.0), differences.largest(loss))
    found.update({key: differences.norm_of_difference(a, b) / max(sizes[key], least) for key, (a, b) in pairs.items()})
    return found


def _size(gradients: float, loss: float) -> float:
    """What gradients are compared with: the largest of them, or the loss where all of them are 0."""
    return gradients if gradients > ZERO * loss else loss or 1.0


def _finite(a: Array, b: Array) -> tuple[Array, Array]:
    """The two, with 0 where b is not finite."""
    if np.isfinite(differences.largest(b)):
        return a, b
    known = np.isfinite(b)
    return np.where(known, a, 0), np.where(known, b, 0)


def judge(mine: Mapping[str, Array], reference: Reference, tolerance: float,
          measure: Measure = errors) -> Verdict:
    """Compares a case.

    Raises:
        Different: something differs by more than roundings do.
    """
    single = reference(False, 0)
    found = measure(mine, single)
    over = [key for key, error in found.items() if not error <= tolerance]
    if not over:
        return Verdict(found)
    few = {key for key, size in norms(mine, single).items() if key.startswith(GRADIENT) and size <= FEW}
    steps: set[int] = set()
    doubled: dict[int, Values] = {}

    def moved(noise: int, double: bool = False) -> dict[str, float]:
        steps.add(noise)
        return measure(reference(double, noise), doubled[0] if double else single)

    left = _unmoved(found, tolerance, few, moved, QUICK)
    exact: list[str] = []
    if left:  # float64 takes several times as long
        with contextlib.suppress(Exception):  # the caller's code may insist on float32
            doubled[0] = reference(True, 0)
    if doubled:
        own, truth = measure(single, doubled[0]), measure(mine, doubled[0])
        found.update({key: truth[key] for key in left})
        exact = [key for key in left if found[key] <= tolerance + roundings.SLACK * own[key]]
    if left:
        kept = {key: found[key] for key in left if key not in exact}
        left = _unmoved(kept, tolerance, few, lambda noise: moved(noise, bool(doubled)), roundings.STEPS)
    if left:
        raise Different("", {key: found[key] for key in left})
    return Verdict(found, [key for key in over if key not in exact], exact,
                   roundings.change(max(steps)) if steps else 0.0)


def _unmoved(found: Mapping[str, float], tolerance: float, few: Container[str],
             again: Callable[[int], Mapping[str, float]], steps: range) -> list[str]:
    """The keys that are over the tolerance, and that changed weights do not explain. `few`: of which a few elements
    alone differ."""
    large = [key for key, error in found.items() if not error <= max(MOST, tolerance)
             and not (key in few and np.isfinite(error))]
    rest = {key: error for key, error in found.items() if key not in large}
    return large + roundings.unexplained(rest, tolerance, again, steps)


def listing(found: Mapping[str, float], most: int = 10) -> str:
    """Lines that name what differs, the worst first."""
    keys = sorted(found, key=lambda key: -found[key] if found[key] == found[key] else -np.inf)
    rest = f"\n  and {len(keys) - most} more" if len(keys) > most else ""
    return "\n".join(f"  {key}: {found[key]:.1e}" for key in keys[:most]) + rest


def counted(keys: Mapping[str, float]) -> str:
    """What was compared: "the loss, 62 gradients, 40 buffers, 1 prediction"."""
    plain = [key for key in keys if not key.endswith(EVALUATED)]
    parts = ["the loss"] if LOSS in keys else []
    for start, word in ((GRADIENT, "gradient"), (BUFFER, "buffer"), (METRIC, "metric"), (PREDICTION, "prediction")):
        count = sum(key.startswith(start) for key in plain)
        if count:
            parts.append(f"{count} {word}{'s' if count > 1 else ''}")
    return ", ".join(parts)


def conclusion(framework: str, verdicts: Mapping[str, Verdict], tolerance: float) -> str:
    """What a newcomer must know, in a sentence. `verdicts`: by case, of which the first is the example."""
    worst = max(((error, key) for verdict in verdicts.values() for key, error in verdict.errors.items()
                 if key not in (*verdict.moved, *verdict.doubled)), default=(0.0, "the loss"))
    moved = [verdict.errors[key] for verdict in verdicts.values() for key in verdict.moved]
    doubled = [verdict.errors[key] for verdict in verdicts.values() for key in verdict.doubled]
    if not moved and not doubled:
        return f"agrees with {framework} within {tolerance:.0e}; the worst is {worst[1]}, {worst[0]:.1e}"
    parts = [f"agrees with {framework} within {tolerance:.0e}, but for rounding"]
    if moved:
        change = max(verdict.change for verdict in verdicts.values())
        parts.append(f"{_arrays(moved)} by up to {max(moved):.1e}, and {framework}'s own numbers move as far when its "
                     f"weights change by {change:.0e}")
    if doubled:
        parts.append(f"{_arrays(doubled)} by up to {max(doubled):.1e} from {framework} in float64, and its float32 by "
                     "an eighth of that or more")
    return f"{parts[0]}: {', and '.join(parts[1:])}"


def _arrays(found: list[float]) -> str:
    return "1 array differs" if len(found) == 1 else f"{len(found)} arrays differ"


def cases_of(labels: Mapping[str, Optional[Verdict]]) -> str:
    """The cases that were compared, beside the example."""
    names = list(labels)[1:]
    many = f"{len(names)} batches" if len(names) > 1 else "1 batch"
    return f", and of {many} made of it ({'; '.join(names)})" if names else ""
