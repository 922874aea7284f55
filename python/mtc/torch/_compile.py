# SPDX-License-Identifier: Apache-2.0
"""From a module to a step that trains."""

from __future__ import annotations

import importlib
import re
from typing import Any, Callable, Optional, Sequence, Union, cast

from mtc import _cache, _compile, _library, _options
from mtc._errors import ModelError
from mtc._plan import Plan
from mtc._trace import guard, losses, reals
from mtc.torch import _check, _optimizers, _update
from mtc.torch._convert import Converter, Model
from mtc.torch._example import Example
from mtc.torch._export import Exported, TracedStep, export
from mtc.torch._framework import torch
from mtc.torch._handlers import is_known
from mtc.torch._optimizers import Optimizer
from mtc.torch._plan import StepPlan
from mtc.torch._step import Step, Variables
from mtc.torch._update import Update
from mtc.torch._updates import Updates
from mtc.torch._watch import Tensors, refuse_hooks

for _name in ("_elements", "_functions", "_along", "_shapes", "_places", "_points", "_lookups", "_index", "_layers",
              "_linear", "_random", "_attention", "_losses", "_recurrent", "_loops", "_complex", "_sampling"):
    importlib.import_module(f"mtc.torch.{_name}")  # they register their operations


@reals.chosen
def compile(module: Any, example: Any, *, loss: Optional[Callable[..., Any]] = None, optimizer: Any = "adam",
            batch_size: Optional[int] = None, check: Union[bool, str] = True, tolerance: float = _check.TOLERANCE,
            clip_norm: Optional[float] = None, clip_value: Optional[float] = None, devices: Optional[str] = None,
            target: Optional[str] = None, precision: Optional[str] = None, shards: int = 0, seed: int = 0,
            verbose: Union[int, str] = "auto", cache: bool = True, **options: Any) -> Step:
    """Compiles a module, its loss and its optimizer into a training step.

    Args:
        module: a torch.nn.Module. Its parameters, buffers and their values are those of the step.
        example: a batch: (inputs, labels), where inputs is a tensor, a tuple or a dict of tensors; or, for a module
            that returns its loss, a dict of keyword arguments. Tensors are [n, ...] of any number n of samples; what
            is no tensor stays as it is in all batches.
        loss: a function of the module's output and the labels that makes a number. None: the module returns it: as an
            attribute or a key `loss`, as the number in a tuple such as `(logits, loss)`, or alone.
        optimizer: a torch.optim.Optimizer, PyTorch's or another one whose step can be traced, with the state that it
            has. Before each step the plan is given what its parameter groups have then: learning rates, decays, betas.
            Or the name of MTC's with its options, such as "adam" or "sgd,learning_rate=0.1,momentum=0.9".
        batch_size: the most samples of a step. None: those of the example.
        check: compares what PyTorch and MTC make of two samples of the example, and of batches that are made of them:
            losses, gradients, buffers, predictions and updates. "full": of all samples. False: compares nothing.
        tolerance: of the check, as a share of the largest element of a tensor; at most 1e-8 with precision="f64".
        clip_norm: the most that the norm of all gradients together may be.
        clip_value: the most that each element of a gradient may be.
        devices: as of `mtc.Session`.
        target: as of `mtc.compile`, and so are precision, shards, cache and options.
        seed: of dropout and other random numbers; 0: 1.
        verbose: 0: silent.

    Returns:
        A `Step`.

    Raises:
        ModelError: the module cannot be traced or compiled, or the check has found a difference. What cannot be
            compiled is listed with the lines of the caller's code.
    """
    if reals.double():
        _refuse_floats(module)
    work = _Work(module, example, loss, cache)
    if not check:
        _check.refuse_functions(work.name, work.exported.functions)
    refuse_hooks(None if isinstance(optimizer, str) else optimizer, work.step,
                 {t: n for n, t in work.parameters.items()})
    size = batch_size or len(work.example.tensors[0])
    settings = _options.fields(size, {"target": target, "precision": precision, "shards": shards, "seed": seed,
                                      **options})
    model = work.convert(size, set())
    # PyTorch's optimizers pass over what the loss does not depend on.
    names = {t: n for n, t in work.parameters.items() if n in model.stored}
    clipping = _optimizers.clipping(clip_norm, clip_value)
    if isinstance(optimizer, str):
        named = _optimizers.by_name(optimizer)
        named.attributes.update(clipping)
        if model.graph.assigned:
            raise ModelError(f"{work.name}: expected a torch.optim.Optimizer for a module that changes buffers in a "
                             f"step, {', '.join(name for name, _ in model.graph.assigned)}, found optimizer="
                             f"\"{optimizer}\"")
        text, chosen = _text(model, named.text()), cast(Union[Optimizer, Update], named)
    else:
        updated = {p for group in _update.checked(optimizer).param_groups for p in group["params"]}
        chosen = Update(optimizer, {t: n for t, n in names.items() if t in updated}, clip_norm, clip_value)
        chosen.add_to(model.graph, model.stored)
        text = _text(model)

    def make() -> Plan:
        return work.compile(text, _options.for_this_cpu(settings), verbose)

    def compare() -> str:
        line, gradients = work.check(reals.tolerance(tolerance), check == "full")
        if isinstance(chosen, Optimizer):
            return line
        return f"{line}; {work.check_updates(Updates(optimizer, chosen.names, clip_norm, clip_value), gradients)}"

    plan = _compile.while_checking(make, compare, verbose) if check else make()
    variables = Variables(model.stored, model.statistics, model.counters)
    watched = Tensors(work.step, work.tensors, variables.names(), model.constants)
    step = Step(module, work.tensors, work.example, chosen, variables, watched, StepPlan(plan._data),
                lambda weights: _compile.plan_of_text(text, work.name, settings, 0, weights), devices, seed)
    step._evaluation = work.evaluation
    return step


def _refuse_floats(module: Any) -> None:
    """ModelError for a module that precision f64 would change."""
    wrong = [name for name, tensor in (*module.named_parameters(), *module.named_buffers())
             if tensor.is_floating_point() and tensor.dtype != torch.float64]
    if wrong:
        rest = f" and {len(wrong) - 1} more" if len(wrong) > 1 else ""
        raise ModelError(f"expected parameters and buffers of float64 with precision=\"f64\", found others, {wrong[0]}"
                         f"{rest}: call module.double()")


class _Work:
    """A module on its way."""

    def __init__(self, module: Any, example: Any, loss: Optional[Callable[..., Any]], cache: bool) -> None:
        for scripted in (m for m in module.modules() if isinstance(m, torch.jit.ScriptModule)):
            raise ModelError(f"{type(module).__name__}: expected modules of Python, found a {type(scripted).__name__}: "
                             "give compile the module that torch.jit was called with")
        self.example = Example(example, module, loss)
        self.step = TracedStep(module, loss, self.example)
        self.name = re.sub(r"\W", "_", type(module).__name__)
        self.tensors = self.step.tensors()
        self.parameters = {n: t for n, t in self.step.parameters_by_name().items() if t.requires_grad}
        self.exported: Exported = export(self.step, is_known)
        self.evaluation = ""  # why the plan cannot evaluate
        self._cache = cache
        self._precision = {"precision": "f64"} if reals.double() else {}

    def convert(self, batch_size: int, undecayed: set[str], random: bool = True) -> Model:
        """The graph of `mt`. `undecayed`: parameters without weight decay. `random`: with dropout."""
        return Converter(self.exported, self.name, self.tensors, dict(zip(self.example.names, self.example.tensors)),
                         batch_size, undecayed, random).convert()

    def compile(self, text: str, settings: dict[str, Any], verbose: Union[int, str] = 0) -> Plan:
        """The plan of a model's text, from the cache if it is there."""

        def make() -> bytes:
            return _compile.plan_of_text(text, self.name, settings, verbose)

        key = _cache.key(text, _options.identity(settings), _library.compiler_identity())
        return _compile.cached(key, make, self._cache)

    def check(self, tolerance: float, full: bool) -> tuple[str, list[guard.Values]]:
        """A line about how well MTC's numbers fit PyTorch's, and gradients. ModelError where they differ."""
        given = len(self.example.tensors[0])
        rows = _check.rows_of(given, self.exported, full)
        model = self.convert(rows, set(), random=False)
        _check.keep_gradients(model.graph)
        plan = self.compile(_text(model), {"batch": rows, "cpu": "native", **self._precision})
        check = _check.Check(self.name, self.step, self.exported, [n for n in model.stored if n in self.parameters],
                             tolerance)
        arrays = {name: tensor[:rows] for name, tensor in zip(self.example.names, self.example.tensors)}
        line = check.run(plan, Variables(model.stored, model.statistics), arrays, full)
        self.evaluation = check.evaluation
        return line, check.gradients

    def check_updates(self, updates: Updates, gradients: Sequence[guard.Values]) -> str:
        """What of the optimizer is PyTorch's. ModelError where it is not."""
        return updates.compare(self.compile(updates.text(), {"batch": 1, "cpu": "native", **self._precision}),
                               gradients)


def _text(model: Model, optimizer: str = "") -> str:
    """The text of a model: its loss, its outputs and its optimizer, where the graph has no update."""
    graph = model.graph
    losses.add_loss(graph, model.loss)
    for name, value in model.outputs.items():
        graph.output(name, value)
    return graph.text(optimizer)
