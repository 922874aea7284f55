# SPDX-License-Identifier: Apache-2.0
"""What whole steps of all frameworks share: the batch, metrics, predictions, and the check, which compares steps."""

from __future__ import annotations

from typing import Any, Callable, Collection, Mapping, Optional, Sequence

import numpy as np

from mtc._errors import ModelError
from mtc._tensors import Array
from mtc._trace import elementwise as e
from mtc._trace import roundings
from mtc._trace.graph import Graph
from mtc._trace.values import BATCH, Refused, Value, has_batch

TOLERANCE = 1e-4
Arrays = dict[str, Array]  # of the state and of the metrics, by name, in float64


def check_rows(rows: Collection[Optional[int]], arrays: str) -> None:
    """Refuses a batch whose arrays have other numbers of samples; None: an array without axes. `arrays`: their name."""
    if len(rows) != 1 or None in rows:
        raise ModelError(f"expected {arrays} of one number of samples in the batch, found the sizes "
                         f"{sorted(map(str, rows))}: put what is the same for all samples into the state")


def batch_names(names: list[str]) -> list[str]:
    """What the arrays of a batch are called: x, y and so on in a tuple; by the names of a dict as they are."""
    plain = ["x", "y", "sample_weight"]
    return [plain[int(n)] if n.isdigit() and int(n) < len(plain) else f"input_{n}" if n.isdigit() else
            "x" if n == "value" else n for n in names]


def report(graph: Graph, name: str, value: Value, array: str) -> None:
    """Adds a metric. `array`: what a message calls one that is no number."""
    if value.shape != ():
        raise Refused(f"{name}: expected metrics that are numbers, found {array} {list(value.shape)}: give "
                      "what there is for each sample by `predict`")
    words = " loss" if name == "loss" else ""
    better = "higher" if "acc" in name else "lower"
    graph.reported.append((name, e.cast(value, "f32"), f"{words} better {better}"))


def predict(graph: Graph, name: str, value: Value) -> None:
    """Adds a prediction."""
    if value.shape[:1] != (BATCH,) or has_batch(value.shape[1:]):
        raise Refused(f"{name}: expected a prediction for each sample, found {list(value.shape)}")
    graph.output(name, value)


def output_names(names: Sequence[str]) -> list[str]:
    """What a plan calls predictions, by their names in a tree."""
    return ["output" if n == "value" else f"output_{n}" if n.isdigit() else n for n in names]


READS = ("a step that computes the same from the same state and batch in each call, found one that reads something "
         "else, such as a counter of Python's or the time, which a plan has as it was when the step was traced: make "
         "it a part of the state or of the batch")


def place_of(function: Any, title: str) -> str:
    """Where a function begins, as the first words of an error."""
    code = getattr(function, "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}: {title}" if code is not None else title


def check_state(place: str, name: str, before: Any, after: Any) -> None:
    """Refuses a state whose shape or type a step changes."""
    of_batch = not all(isinstance(n, int) for n in after.shape)
    if not of_batch and before.shape == after.shape and before.dtype == after.dtype:
        return
    found = f"{after.dtype} [{', '.join(map(str, after.shape))}]"
    if of_batch:
        found += ("; it has the samples of a batch, and a state is the same for all samples: keep what belongs to "
                  "samples, as a cache or a buffer of past ones, outside of the step, and give it with the batch")
    raise ModelError(f"{place}: {name}: expected a new state of {before.dtype} {list(before.shape)}, found {found}")


def compare(framework: str, mine: Callable[[Any], Arrays], theirs: Callable[[Any], tuple[Any, Arrays]], state: Any,
            before: Callable[[Any], Arrays], others: Callable[[Any], Sequence[Arrays]],
            changed: Callable[[Any], Sequence[Arrays]], place: str) -> str:
    """Two steps, each from the same state. Gives what was compared.

    Args:
        framework: its name.
        mine: what MTC makes of a state.
        theirs: what the framework makes of it: the next state, and the same arrays.
        state: of the framework.
        before: the arrays of a state.
        others: what the framework makes of it in other ways, such as in float64.
        changed: what it makes of it with weights that are changed by as little as roundings change values.
        place: of the step.

    Raises:
        ModelError: an array of the state or of the metrics differs by more than rounding.
    """
    for count in (1, 2):
        wanted, expected = theirs(state)
        found, old = mine(state), before(state)
        if count == 1 and not all(v <= 1 for v in _errors(theirs(state)[1], expected, old, (), 0).values()):
            raise ModelError(f"{place}: expected {READS}")
        errors = _errors(found, expected, old, others(state), 4)
        if not all(value <= 1 for value in errors.values()):
            loose = _errors(found, expected, old, changed(state), roundings.SLACK)
            errors = {name: min(value, loose[name]) for name, value in errors.items()}
        wrong = {name: value for name, value in errors.items() if not value <= 1}
        if wrong:
            listed = "\n".join(f"  {name}: {value:.3g}" for name, value in
                               sorted(wrong.items(), key=lambda item: -item[1])[:10])
            raise ModelError(f"the step differs from {framework}: after {count} of 2 steps {len(wrong)} of "
                             f"{len(errors)} arrays, by so many times what rounding allows:\n{listed}")
        state = wanted
    return f"checked against {framework}: 2 steps, {len(errors)} arrays of the state and metrics, agree"


def _errors(mine: Arrays, theirs: Arrays, before: Mapping[str, Array], others: Sequence[Mapping[str, Array]],
            slack: float) -> dict[str, float]:
    """Differences, as shares of what rounding allows: so many times (`slack`) the distance to one of `others`."""
    errors = {}
    for name, expected in theirs.items():
        found = mine[name]
        if not found.size:
            errors[name] = 0.0
            continue
        change = np.abs(expected - before[name]).max() if name in before else 0.0
        size = max(float(np.abs(expected).max()), 1e-30)
        allowed = max(TOLERANCE * max(change, 1e-2 * size), 1e-6 * size)
        allowed = max([allowed, *(slack * float(np.abs(expected - other[name]).max())
                                  for other in others if name in other)])
        same = (found == expected) | np.isnan(found) & np.isnan(expected)
        errors[name] = float(np.where(same, 0, np.abs(found - expected)).max()) / allowed
    return errors
