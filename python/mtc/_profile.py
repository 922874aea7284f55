# SPDX-License-Identifier: Apache-2.0
"""What steps take: timings, profiles, totals of their results."""

from __future__ import annotations

import ctypes
import dataclasses
from typing import TYPE_CHECKING, Any, Optional

import numpy as np

from mtc import _library, _structs
from mtc._errors import check
from mtc._tensors import Array

if TYPE_CHECKING:
    from mtc._plan import Plan

Logs = dict[str, float]


@dataclasses.dataclass(frozen=True)
class Timing:
    """Times of training steps, in microseconds.

    Attributes:
        median_us: median of the timed steps.
        min_us: the shortest.
        mean_us: their mean.
        steps: how many were timed.
        first_step_us: of the first step, before any warm-up.
        queued_us: GPUs, else 0: median from step to step with launches queued.
        resident_us: GPUs, else 0: median with inputs that stay on the devices.
        resident_queued_us: GPUs, else 0: median with both.
        floor_us: what the operations or bytes of each launch take at the devices' peak; 0: unknown.
    """

    median_us: float
    min_us: float
    mean_us: float
    steps: int
    first_step_us: float
    queued_us: float
    resident_us: float
    resident_queued_us: float
    floor_us: float


@dataclasses.dataclass(frozen=True)
class ProfileEntry:
    """A launch or all-reduce of a step. Times are microseconds per step, all threads together.

    Attributes:
        name: the kernel's name, or "all-reduce".
        kind: the kernel's kind, such as "matmul", or "all_reduce".
        layer: the layer that most of its work belongs to; "": the model names none.
        compute_us: time in the kernel, or in sums.
        transfer_us: time in copies between devices.
        wait_us: time that threads waited for others.
        flops: floating-point operations per step.
        bytes: bytes that must be moved per step at least.
    """

    name: str
    kind: str
    layer: str
    compute_us: float
    transfer_us: float
    wait_us: float
    flops: float
    bytes: float


@dataclasses.dataclass(frozen=True)
class Profile:
    """Means over the recorded training steps. Times are in microseconds.

    Attributes:
        steps: number of recorded steps.
        samples: number of their samples.
        threads: threads of all devices together.
        step_us: duration of a step.
        between_us: from the end of a step to the beginning of the next one.
        idle_us: time that threads waited for a step to begin or to end, all threads together.
        entries: its launches and all-reduces, in their order.
    """

    steps: int
    samples: int
    threads: int
    step_us: float
    between_us: float
    idle_us: float
    entries: tuple[ProfileEntry, ...]

    def layers(self) -> Logs:
        """Microseconds of all threads by layer, the most first."""
        times: Logs = {}
        for entry in self.entries:
            spent = entry.compute_us + entry.transfer_us + entry.wait_us
            times[entry.layer or entry.name] = times.get(entry.layer or entry.name, 0.0) + spent
        return dict(sorted(times.items(), key=lambda item: -item[1]))


def benchmark(handle: ctypes.c_void_p, rows: int, warmup: int, steps: int) -> Timing:
    """Times steps of `rows` random samples."""
    library = _library.runtime()
    timing = _structs.Timing()
    check(library, library.mtrun_benchmark(handle, rows, warmup, steps, ctypes.byref(timing)))
    return Timing(**_values(timing))


def profile(handle: ctypes.c_void_p) -> Profile:
    """Of the steps that were recorded."""
    library = _library.runtime()
    found = _structs.Profile()
    check(library, library.mtrun_profile_get(handle, ctypes.byref(found)))
    entries = []
    for index in range(found.entries):
        entry = _structs.ProfileEntry()
        check(library, library.mtrun_profile_get_entry(handle, index, ctypes.byref(entry)))
        entries.append(ProfileEntry(**_values(entry)))
    return Profile(**{**_values(found), "entries": tuple(entries)})


def _values(struct: ctypes.Structure) -> dict[str, Any]:
    values = {name: getattr(struct, name) for name, *_ in struct._fields_}
    return {name: v.decode() if isinstance(v, bytes) else v for name, v in values.items()}


@dataclasses.dataclass(frozen=True)
class StepResult:
    """What a step computed.

    Attributes:
        logs: the losses and metrics of this step alone, by name.
        weights: weight of each in a mean over steps, such as the number of samples.
        sums: what `Totals` adds up over steps.
        learning_rate: of a training step where a schedule computes it; else None.
    """

    logs: Logs
    weights: Array
    sums: Array
    learning_rate: Optional[float]


class Totals:
    """Losses and metrics over several steps, also those that are no means, such as the area under a curve.

    `add` takes what `session.step` gives: `totals.add(session.step("eval_step", tensors))`.
    """

    def __init__(self, plan: Plan, program: str = "eval_step") -> None:
        """`program`: the steps' own, "train_step" or "eval_step"."""
        self.plan = plan
        self.program = program
        self._weights: Any = None
        self._sums: Any = None

    def add(self, result: StepResult) -> None:
        """Adds a step's result."""
        if self._sums is None:
            self._weights, self._sums = np.zeros_like(result.weights), np.zeros_like(result.sums)
        self._weights += result.weights
        self._sums += result.sums

    def logs(self) -> Logs:
        """The losses and metrics of all steps so far, by name; none before the first."""
        if self._sums is None:
            return {}
        library = _library.runtime()
        doubles = ctypes.POINTER(ctypes.c_double)
        sums, weights = self._sums.ctypes.data_as(doubles), self._weights.ctypes.data_as(doubles)
        return {name: library.mtrun_plan_metric_value(self.plan._handle, self.program.encode(), index, sums, weights)
                for index, name in enumerate(self.plan.metrics(self.program))}
