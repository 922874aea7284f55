# SPDX-License-Identifier: Apache-2.0
"""The check of a loss function: what MTC and JAX make of the example and of batches that are made of it."""

from __future__ import annotations

from typing import Any, Mapping, Optional, Sequence

import jax
import numpy as np

from mtc._errors import ModelError
from mtc._plan import Plan
from mtc._session import Session
from mtc._tensors import INPUT
from mtc._trace import differences, edges, guard, reals
from mtc._trace.updates import COUNT
from mtc._trace.values import Shape
from mtc.jax._optimizers import Optimizer
from mtc.jax._program import Program, finish_text, trace
from mtc.jax._reference import Reference, numbers_of
from mtc.jax._updates import Updates

ROWS, NORMALIZED = 2, 4  # samples of the example that are enough, without and with statistics of a batch
EXAMPLE = "the example"
# Its momentum is the gradient after a step that begins with none; with the rate 0 the parameters stay.
OPTIMIZER = Optimizer("sgd", 1.0, {"momentum": 0.5, "rate_after_momentum": True})

Fixed = list[tuple[str, str, Shape]]


def compare(program: Program, arrays: Sequence[Any], tolerance: float, make: Any, full: bool = False,
            updates: Optional[Updates] = None) -> str:
    """A line that says how good a program is. Raises a ModelError where something differs.

    Args:
        program: the loss function.
        arrays: a batch.
        tolerance: of the norm of a difference of gradients, relative to the norm of the gradient, or to a hundredth of
            the largest norm if that is more; of other arrays relative to their largest element. What roundings explain
            may be more (`mtc._trace.guard`).
        make: compiles text into a plan.
        full: takes all samples of the batch, and all batches that are made of it.
        updates: of the framework's own optimizer.
    """
    rows = len(arrays[0]) if full else min(len(arrays[0]), NORMALIZED if program.state else ROWS)
    whole = {name: np.asarray(array) for name, array in zip(program.batch.names, arrays)}
    given = {name: array[:rows] for name, array in whole.items()}
    fixed: Fixed = []
    traced = trace(program, "check", OPTIMIZER, fixed=fixed, whole=True)
    if traced.graph.assigned:  # which there are in an update alone
        for name, variable in zip(program.params.names, traced.variables):
            if variable.learned:
                traced.graph.slot(_slot(name), variable.shape)  # type: ignore[arg-type]
                traced.graph.assign(_slot(name), traced.graph.gradient(variable))
    text = traced.graph.text() if traced.graph.assigned else finish_text(traced, OPTIMIZER)
    check = _Check(program, tolerance, fixed)
    budget = guard.Budget(full)
    with make(text, rows).session(processes=1) as session:  # each process checks its own step
        mine = _Mine(session, program)
        check.compare(mine, edges.Case(EXAMPLE, given))
        for case in edges.cases(given, _entries(session.plan, whole)) if rows > 1 else []:
            if budget.allows(len(check.verdicts)):
                check.compare(mine, case)
    if updates is None:
        return check.line()
    return f"{check.line()}; {updates.compare(make, check.gradients)}"


def _slot(name: str) -> str:
    """The variable that has the gradient of a parameter after a step."""
    return f"sgd/{name.replace('/', '_')}_momentum"


def _entries(plan: Plan, arrays: Mapping[str, Any]) -> dict[str, edges.Entry]:
    known = [info for info in plan.signature() if info.name in arrays]
    masks = {info.name for info in known if _may_be_mask(arrays[info.name])}
    if all(info.name in masks for info in known if info.role == INPUT):  # what the model reads is not masks alone
        masks = {info.name for info in known if info.name in masks and (
            info.role != INPUT or arrays[info.name].dtype.kind == "b" or "mask" in info.name.lower())}
    return {info.name: edges.Entry(info.role != INPUT, info.limit, _ignored(arrays[info.name], info.limit),
                                   info.name in masks) for info in known}


def _ignored(array: Any, limit: int) -> Optional[int]:
    """A number that says that a label does not count: one below 0, of what is no place in a table."""
    least = int(array.min()) if limit < 0 and array.dtype.kind == "i" and array.size else 0
    return least if least < 0 else None


def _may_be_mask(array: Any) -> bool:
    """Whether it may say which samples or labels count: it is true or false, or 1 or 0."""
    return bool(array.dtype.kind == "b" or (array.dtype.kind == "f" and ((array == 0) | (array == 1)).all()))


class _Check:
    def __init__(self, program: Program, tolerance: float, fixed: Fixed) -> None:
        self.program = program
        self.tolerance = tolerance
        self.fixed = fixed
        self.reference = Reference(program)
        self.verdicts: dict[str, guard.Verdict] = {}
        self.figures = ""  # of the example
        self.gradients: list[guard.Values] = []  # of three cases

    def compare(self, mtc: _Mine, case: edges.Case) -> None:
        """Judges a case. What JAX or the caller's code does not take is none, but for the example."""
        arrays = [case.arrays[name] for name in self.program.batch.names]
        bits, numbers = numbers_of(self.fixed, len(arrays[0]))
        example = not self.verdicts
        try:
            quick = self._quick(arrays, bits)
            if example and quick is not None:
                self._repeats(quick, arrays, bits)
        except Exception:  # the caller's code raises any
            if example:
                raise
            return
        mine = mtc.of(case.arrays, numbers)
        if quick is not None:
            found = guard.norms(mine, quick)
            if all(error <= self.tolerance for error in found.values()):
                self._passed(case.name, guard.Verdict(found), mine, quick)
                return
        first: list[guard.Values] = []

        def eagerly(double: bool, noise: int) -> guard.Values:
            values = self.reference.of(arrays, bits, False, double, noise)
            first.append(values)
            return values

        try:
            verdict = guard.judge(mine, eagerly, self.tolerance, guard.norms)
        except guard.Different as different:
            text = self._figures(different.errors, mine, first[0])
            where = "" if example else f" for {case.name}"
            listed = guard.listing(different.errors, 20)
            raise ModelError(f"the model differs from JAX{where}: {text}\n{listed}") from None
        self._passed(case.name, verdict, mine, first[0])

    def _repeats(self, first: guard.Values, arrays: Sequence[Any], bits: Any) -> None:
        """Runs the first step a second time. ModelError: it does not repeat its bits, and so is no reference."""
        second = self.reference.of(arrays, bits, True)
        for name, value in first.items():
            if np.asarray(value).tobytes() != np.asarray(second[name]).tobytes():
                found = f" of {value:.7g} and then {second[name]:.7g}" if value.size == 1 else ""
                raise ModelError(f"expected a loss function that computes the same twice for the check, found "
                                 f"{name}{found}: it calls back into Python for numbers that change, or remembers "
                                 "calls. check=False compiles it without a check")

    def _quick(self, arrays: Sequence[Any], bits: Any) -> Any:
        try:
            return self.reference.of(arrays, bits, True)
        except (ModelError, jax.errors.JaxRuntimeError):
            return None  # the operations one by one say what is wrong

    def _passed(self, name: str, verdict: guard.Verdict, mine: guard.Values, theirs: guard.Values) -> None:
        if not self.verdicts:
            self.figures = self._figures(verdict.errors, mine, theirs)
        if len(self.gradients) < COUNT:
            self.gradients.append({key: value for key, value in mine.items() if key.startswith(guard.GRADIENT)})
        self.verdicts[name] = verdict

    def _figures(self, errors: Mapping[str, float], mine: guard.Values, theirs: guard.Values) -> str:
        gradients = {key[len(guard.GRADIENT):]: e for key, e in errors.items() if key.startswith(guard.GRADIENT)}
        worst = max(gradients, key=lambda key: gradients[key] if gradients[key] == gradients[key] else np.inf,
                    default="")
        text = f"worst gradient {worst} {gradients[worst]:.1e}" if gradients else "no gradients"
        return (f"loss {float(mine[guard.LOSS]):.7g} (JAX {float(theirs[guard.LOSS]):.7g}), {text}, tolerance "
                f"{self.tolerance:g}")

    def line(self) -> str:
        """What was found out."""
        first = self.verdicts[EXAMPLE]
        return (f"checked against JAX: {self.figures}; {guard.conclusion('JAX', self.verdicts, self.tolerance)} "
                f"({guard.counted(first.errors)} of the example{guard.cases_of(self.verdicts)})")


class _Mine:
    """What MTC makes of batches, all with the same parameters and state."""

    def __init__(self, session: Session, program: Program) -> None:
        self.session = session
        self.program = program
        known = {info.name: info.shape for info in session.plan.variables}
        # A parameter that the loss does not depend on has no slot, and the gradient 0.
        names = {name: _slot(name) for name in program.params.names}
        self.slots = {name: (slot, known[slot]) for name, slot in names.items() if slot in known}
        self._set(program.params)
        if "sgd/learning_rate" in known:
            session.variables["sgd/learning_rate"] = reals.real()(0)

    def _set(self, tree: Any) -> None:
        for name, array in zip(tree.names, tree.arrays):
            self.session.variables[name] = np.asarray(array, reals.real())

    def of(self, arrays: Mapping[str, Any], numbers: Mapping[str, Any]) -> guard.Values:
        """The loss, gradients, state and metrics of a step, and the loss, metrics and predictions without one."""
        session, program = self.session, self.program
        given = dict(arrays)
        if program.state is not None:
            self._set(program.state)
        for slot, shape in self.slots.values():
            session.variables[slot] = np.zeros(shape, reals.real())
        for name, value in numbers.items():
            if name in session.variables:
                session.variables[name] = value
            else:
                given[name] = value
        values = {}
        if program.training is not None:
            values.update(_logs(session.eval_step({t.name: given[t.name] for t in session.plan.signature("eval_step")}),
                                guard.EVALUATED))
        if program.predict is not None:
            inputs = {t.name: given[t.name] for t in session.plan.inputs}
            found = session.predict(inputs)
            found = found if isinstance(found, dict) else {session.plan.outputs[0].name: found}
            values.update({guard.PREDICTION + name: value for name, value in found.items()})
        values.update(_logs(session.train_step({t.name: given[t.name] for t in session.plan.signature()}), ""))
        finite = True
        for name, array in zip(program.params.names, program.params.arrays):
            slot, _ = self.slots.get(name, ("", ()))
            value = session.variables[slot] if slot else np.zeros(array.shape, reals.real())
            finite = finite and bool(np.isfinite(differences.largest(value)))
            values[f'{guard.GRADIENT}"{name}"'] = value
        for name in program.state.names if program.state else []:
            values[guard.BUFFER + name] = session.variables[name]
        if not finite:  # 0 times such a gradient is no number
            self._set(program.params)
        return values


def _logs(logs: Mapping[str, float], end: str) -> guard.Values:
    return {(guard.LOSS if name == "loss" else guard.METRIC + name) + end: np.asarray(value, reals.real())
            for name, value in logs.items()}
