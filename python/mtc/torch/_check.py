# SPDX-License-Identifier: Apache-2.0
"""The check of a module: what MTC and PyTorch make of the example and of batches that are made of it."""

from __future__ import annotations

import contextlib
import copy
import math
from typing import Any, Iterator, Mapping, Optional, Sequence

import numpy as np

from mtc._errors import ModelError
from mtc._plan import Plan
from mtc._session import Session
from mtc._tensors import TARGET
from mtc._trace import Graph, edges, guard, reals
from mtc._trace.updates import COUNT
from mtc.torch import _nodes
from mtc.torch._export import Exported, TracedStep
from mtc.torch._framework import torch
from mtc.torch._reference import Reference
from mtc.torch._step import Variables

TOLERANCE = 1e-4  # of the largest element of an array
_SLOT = "gradient/"  # + the name of a parameter: its gradient after a step
ROWS = 2  # samples of the example that are enough
NORMALIZED = 4  # where a batch has few values of a channel: of two every normal value is 1 or -1
FEW = 16  # values of a channel in a sample
CHANGE, BLOCK = 0.02, 1 << 16  # of the weights, as a share; random numbers that are repeated
EXAMPLE = "the example"
CHANGED = "the example with other weights"


def rows_of(example: int, exported: Exported, full: bool) -> int:
    """How many samples of an example the check takes."""
    return example if full else min(example, NORMALIZED if _has_few(exported) else ROWS)


def keep_gradients(graph: Graph) -> None:
    """Adds an update that keeps the gradients in slots, and changes no parameter."""
    for name, variable in list(graph.variables.items()):
        if variable.learned:
            graph.slot(_SLOT + name, variable.shape)  # type: ignore[arg-type]
            graph.assign(_SLOT + name, graph.gradient(variable))


def refuse_functions(name: str, functions: Sequence[str]) -> None:
    """An error for functions whose backward only the check can compare with what MTC takes it for."""
    if functions:
        raise ModelError(f"{name}: {_with_backward(functions)}, and check=False does not find out whether it is one: "
                         "compile with the check, or write the function with operations of PyTorch's")


def _with_backward(functions: Sequence[str]) -> str:
    return (f"the backward of {', '.join(functions)} (torch.autograd.Function) is taken as linear in the gradient that "
            "it is given, of a function that changes no input")


def _has_few(exported: Exported) -> bool:
    """Whether a sample has few values of what statistics are of. A buffer may be any statistic."""
    sizes = [math.prod(node.args[0].meta["val"].shape[2:]) for node in _nodes.calls(exported.nodes, "batch_norm")]
    return bool(exported.changed) and not (sizes and all(int(size) >= FEW for size in sizes))


class Check:
    """A check of a step.

    Args:
        name: of the model.
        step: a module that makes the loss first of its results.
        exported: of it.
        names: of the parameters whose gradients are compared.
        tolerance: as a share of the largest element of an array.
    """

    def __init__(self, name: str, step: TracedStep, exported: Exported, names: Sequence[str], tolerance: float) -> None:
        self.name = name
        self.step = step
        self.exported = exported
        self.names = names
        self.tolerance = tolerance
        self.gradients: list[guard.Values] = []  # of three cases
        self.evaluation = ""  # why the plan's evaluation is not the module's
        self.products: list[str] = []  # cases in which PyTorch's fused attention differs from its products and softmax

    def compare(self, mine: guard.Values, arrays: Sequence[Any], case: str) -> guard.Verdict:
        """Judges a case. `mine`: of MTC; `case`: what messages call it.

        Raises:
            ModelError: something differs.
        """
        reference = Reference(self.step, arrays, self.names)
        try:
            verdict = guard.judge(self._comparable(mine), reference, self.tolerance)
        except guard.Different as different:
            if reference.changes and all(map(_is_evaluation, different.errors)):
                self._evaluate_by(reference)
                verdict = guard.judge(self._comparable(mine), reference, self.tolerance)
            else:
                verdict = self._again(different, mine, arrays, case)
        self._evaluate_by(reference)
        return verdict

    def _evaluate_by(self, reference: Reference) -> None:
        """Notes why the plan's evaluation is not the module's, if the reference has found a reason."""
        if self.evaluation:
            return
        if reference.drops:
            self.evaluation = (f"{self.name}: expected dropout in training mode alone, found one in evaluation mode "
                               "too: write F.dropout(x, p, training=self.training), or evaluate with "
                               "step.to_module().eval()")
        elif reference.changes:
            self.evaluation = (f"{self.name}: expected buffers that change in training mode alone, found that "
                               f"{', '.join(reference.changes)} changes in evaluation mode too: change it under `if "
                               "self.training:`, or evaluate with step.to_module().eval()")

    def _comparable(self, mine: guard.Values) -> guard.Values:
        return {key: value for key, value in mine.items() if not self.evaluation or not _is_evaluation(key)}

    def _again(self, different: guard.Different, mine: guard.Values, arrays: Sequence[Any], case: str) -> guard.Verdict:
        """Whether all that differs is PyTorch's fused attention, or code of the caller's that asks for the mode.

        Where a mask of large numbers hides a whole row, the gradients of the fused kernel for CPUs are too large, as
        many times as there are keys: its softmax of the backward is e^(x - m) where m + log(sum) is rounded to m.
        """
        if _nodes.calls(self.exported.nodes, "scaled_dot_product_attention"):
            products = Reference(self.step, arrays, self.names, products=True)
            with contextlib.suppress(guard.Different):
                verdict = guard.judge(self._comparable(mine), products, self.tolerance)
                self.products.append(case)
                return verdict
        reference = Reference(self.step, arrays, self.names, traced=True)
        if all(map(_is_evaluation, different.errors)):
            try:
                verdict = guard.judge(self._comparable(mine), reference, self.tolerance)
            except guard.Different:
                pass
            else:
                self.evaluation = (f"{self.name}: expected code that is the same in training and in evaluation mode, "
                                   "found other losses or predictions in evaluation mode: a plan has the code of "
                                   "training. Evaluate with step.to_module().eval()")
                return verdict
        blame = reference.blame(self.exported.program)
        raise ModelError(
            f"{self.name}: expected what PyTorch computes for {case} within {self.tolerance:.0e}, found "
            f"{len(different.errors)} of {len(mine)} arrays that differ by more:\n{guard.listing(different.errors)}"
            + (f"\n{blame}" if blame else "")
            + (f"\n{_with_backward(self.exported.functions)}" if self.exported.functions else ""))

    def run(self, plan: Plan, variables: Variables, arrays: Mapping[str, Any], full: bool) -> str:
        """Compares the example and batches that are made of it. Gives the line that says how good a step is."""
        self.verdicts: dict[str, guard.Verdict] = {}
        budget = guard.Budget(full)
        Reference(self.step, list(arrays.values()), self.names).repeats()
        with Session(plan, processes=1) as session:  # each process checks its own step
            mtc = _Mine(session, variables, self.step.tensors(), self.names)
            for case in self._cases(plan, arrays):
                if budget.allows(len(self.verdicts)):
                    self._one(mtc, case)
            if budget.allows(len(self.verdicts)):
                self.step = self._other_weights()
                mtc.start(self.step.tensors())
                self._one(mtc, edges.Case(CHANGED, next(self._cases(plan, arrays)).arrays))
        self.gradients = (COUNT * self.gradients)[:COUNT]
        first = self.verdicts[EXAMPLE]
        fused = (f"; in {' and '.join(self.products)} the gradients are those of PyTorch's attention as products and a "
                 "softmax (SDPBackend.MATH), which its fused kernel misses") if self.products else ""
        own = f"; step.evaluate and step.predict are refused: {self.evaluation}" if self.evaluation else ""
        return (f"{self.name}: {guard.conclusion('PyTorch', self.verdicts, self.tolerance)} "
                f"({guard.counted(first.errors)} of the example{guard.cases_of(self.verdicts)}){fused}{own}")

    def _one(self, mtc: _Mine, case: edges.Case) -> None:
        given = [torch.from_numpy(array) for array in case.arrays.values()]
        if self.verdicts and not _runs(Reference(self.step, given, self.names)):
            return
        mine = mtc.of(case.arrays)
        if case.short:  # whose variance PyTorch corrects by its own number of samples
            mine = {key: value for key, value in mine.items() if not key.startswith(guard.BUFFER)}
        self.verdicts[case.name] = self.compare(mine, given, case.name)
        if len(self.gradients) < COUNT:
            self.gradients.append({key: value for key, value in mine.items() if key.startswith(guard.GRADIENT)})

    def _other_weights(self) -> TracedStep:
        """The step with weights that are a little different: behind weights of 0 all gradients are 0."""
        step, generator = copy.deepcopy(self.step), torch.Generator().manual_seed(1)
        with torch.no_grad():
            for weight in step.parameters():
                block = torch.rand(min(weight.numel(), BLOCK), generator=generator) * (2 * CHANGE) - CHANGE
                random = block.repeat(-(-weight.numel() // BLOCK))[:weight.numel()].reshape(weight.shape)
                size = torch.where(weight == 0, 1, torch.where(weight.isfinite(), weight.abs(), 0))
                weight.add_(random.to(weight) * size)
        return step

    def _cases(self, plan: Plan, arrays: Mapping[str, Any]) -> Iterator[edges.Case]:
        plain = {name: np.ascontiguousarray(tensor.numpy()) for name, tensor in arrays.items()}
        yield edges.Case(EXAMPLE, plain)
        signature = {info.name: info for info in plan.signature()}
        ignored = _ignored(self.exported)
        entries = {}
        for name, array in plain.items():
            info = signature.get(name)
            label = ignored if info is not None and info.limit < 0 and array.dtype.kind in "iu" and (
                info.role == TARGET or ignored in array) else None
            entries[name] = edges.Entry(info is not None and info.role == TARGET, info.limit if info else -1, label)
        yield from edges.cases(plain, entries)


def _ignored(exported: Exported) -> Optional[int]:
    """The label that a loss of the graph passes over; None where no loss does."""
    for node in exported.nodes:
        schema = getattr(node.target, "_schema", None)
        names = [argument.name for argument in schema.arguments] if schema is not None else []
        if "ignore_index" in names:
            return int(_nodes.bound(node.target, node.args, node.kwargs)[names.index("ignore_index")])
    return None


def _is_evaluation(key: str) -> bool:
    return key.startswith(guard.PREDICTION) or key.endswith(guard.EVALUATED)


def _runs(reference: Reference) -> bool:
    """Whether PyTorch takes such a batch."""
    try:
        reference._forward()
    except Exception:  # noqa: BLE001 - the caller's code raises any
        return False
    return True


class _Mine:
    """What MTC makes of batches, all with the same weights and buffers."""

    def __init__(self, session: Session, variables: Variables, tensors: Mapping[str, Any],
                 names: Sequence[str]) -> None:
        self.session = session
        self.variables = variables
        self.real = reals.real()
        self.shapes = {info.name: info.shape for info in session.plan.variables}
        slots = {name: _SLOT + name for name in names}
        # What the loss does not depend on has no slot, and the gradient 0.
        self.slots = {name: slot for name, slot in slots.items() if slot in self.shapes}
        self.without = [name for name in names if name not in self.slots]
        self.start(tensors)

    def start(self, tensors: Mapping[str, Any]) -> None:
        """From these parameters and buffers."""
        self.tensors = tensors
        self._set(self.variables.names())

    def _set(self, names: Sequence[str]) -> None:
        for name in names:
            variable, array = self.variables.to_plan(name, self.tensors[name])
            self.session.variables[variable] = array

    def of(self, arrays: Mapping[str, Any]) -> guard.Values:
        """The loss, gradients and buffers of a step, and the loss and predictions without one."""
        session = self.session
        self._set(list(self.variables.statistics))
        values: guard.Values = {}
        for name, value in session.eval_step(arrays).items():
            key = guard.LOSS if name == "loss" else guard.METRIC + name
            values[key + guard.EVALUATED] = np.asarray(value, self.real)
        inputs = {info.name: arrays[info.name] for info in session.plan.inputs}
        predicted = session.predict(inputs) if session.plan.outputs else {}
        if not isinstance(predicted, dict):
            predicted = {session.plan.outputs[0].name: predicted}
        values.update({guard.PREDICTION + name: value for name, value in predicted.items()})
        values[guard.LOSS] = np.asarray(session.train_step(arrays)["loss"], self.real)
        for name, slot in self.slots.items():
            values[guard.GRADIENT + name] = self.variables.from_plan(name, session.variables[slot])
        for name in self.without:
            values[guard.GRADIENT + name] = np.zeros(tuple(self.tensors[name].shape), self.real)
        for name in self.variables.statistics:
            values[guard.BUFFER + name] = self.variables.read(session, name).numpy()
        return values
