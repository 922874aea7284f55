# SPDX-License-Identifier: Apache-2.0
"""The step of an optimizer of PyTorch, traced: what it makes of a parameter, a gradient and its state.

Any subclass of torch.optim.Optimizer is traced by its own `step`, with numbers that are a part of the trace
(`mtc.torch._scalars`). PyTorch's own optimizers update each parameter by itself, so that one parameter of a shape is
traced for all of its group; other optimizers are traced with all parameters together.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import logging
from typing import Any, Iterator, Mapping, Optional, Sequence

import numpy as np

from mtc._errors import ModelError
from mtc._trace import Refused
from mtc.torch import _scalars
from mtc.torch._convert import is_known
from mtc.torch._framework import torch
from mtc.torch._nodes import name_of
from mtc.torch._trial import HOW, NAMES, Trial, is_separable, same, take_step, twin_of

proxy: Any = importlib.import_module("torch.fx.experimental.proxy_tensor")

MOST_PATHS = 16
MOST_NUMBERS = 4096  # expressions of hyper-parameters in a trace
# Of torch.optim: they update each element by itself, so that one parameter stands for those of all shapes.
_ELEMENTWISE = {"SGD", "Adam", "AdamW", "NAdam", "RAdam", "Adamax", "Adagrad", "Adadelta", "RMSprop", "ASGD"}
Key = tuple[Any, ...]  # (parameter's name or group's number, key, and the place in a list of tensors)


@dataclasses.dataclass(frozen=True)
class Entry:
    """What an optimizer remembers of a parameter or a group.

    Attributes:
        shape: of its tensor; () for a number.
        dtype: of PyTorch.
        number: whether it is a number of Python.
        start: before the first step: a number, an array, or None: the parameter itself.
        of_gradient: the first step makes it of the gradient, or of the parameter by a formula.
    """

    shape: tuple[int, ...]
    dtype: Any
    number: bool
    start: Any
    of_gradient: bool = False


@dataclasses.dataclass
class Path:
    """One way through the branches of a step.

    Attributes:
        graph: of functions of ATen. Its operands are the parameters, the gradients, the entries and a table of numbers;
            its results the new parameters and entries, and a condition for each branch.
        decisions: which way each branch went.
    """

    graph: Any
    decisions: list[bool]


@dataclasses.dataclass
class Unit:
    """Parameters that are traced together: of PyTorch's own optimizers one, which stands for others.

    Attributes:
        group: the number of the group of each parameter.
        alike: for each parameter the names of those that are updated like it.
        entries: what is remembered.
        paths: the traces: for each way through the branches on what a step computes.
        first: the same of the first step, where that is another one.
    """

    parameters: dict[str, Any]
    group: dict[str, int]
    alike: list[list[str]]
    entries: dict[Key, Entry]
    paths: list[Path] = dataclasses.field(default_factory=list)
    first: list[Path] = dataclasses.field(default_factory=list)


def kind_of(optimizer: Any) -> str:
    """The name of an optimizer's class."""
    return type(optimizer).__name__


def is_own(optimizer: Any) -> bool:
    """Whether it is one of PyTorch's, whose update of a parameter depends on that parameter alone."""
    return type(optimizer).__module__.startswith("torch.optim.")


def hypers_of(groups: Sequence[Mapping[str, Any]], states: set[tuple[int, str]]) -> dict[str, float]:
    """The hyper-parameters of groups: each float by its name, "group0/betas.1". `states`: what a step changes."""
    found = {}
    for i, group in enumerate(groups):
        for key, value in group.items():
            if key in NAMES or (i, key) in states:
                continue
            for place, number in enumerate(value if isinstance(value, (tuple, list)) else [value]):
                number = float(number) if isinstance(number, torch.Tensor) and number.ndim == 0 else number
                if type(number) is float or isinstance(number, np.floating):
                    end = f".{place}" if isinstance(value, (tuple, list)) else ""
                    found[f"group{i}/{key}{end}"] = float(number)
    return found


class Tracer:
    """Traces an optimizer for some of its parameters.

    Args:
        names: parameter -> name, of those that the step trains.
    """

    def __init__(self, optimizer: Any, names: Mapping[Any, str]) -> None:
        self.optimizer = optimizer
        self.kind = kind_of(optimizer)
        self.names = names
        self.groups = optimizer.param_groups
        self.entries: dict[Key, Entry] = {}
        self.states: set[tuple[int, str]] = set()  # keys of groups that a step changes
        try:
            self._find_entries()
        except (ModelError, Refused):
            raise
        except Exception as error:  # the optimizer's own
            raise self._refusal(error) from error
        self.recorder = _scalars.Recorder(hypers_of(self.groups, self.states))
        self.units = self._make_units()

    def has_variant(self) -> bool:
        """Whether there is a variant of the step for CUDA graphs, which has no branches on numbers of steps."""
        return any("capturable" in group for group in self.groups)

    def trace(self, capturable: bool) -> list[Unit]:
        """The units, with their graphs. `capturable`: of the variant for CUDA graphs."""
        try:
            return self._trace_units(capturable)
        except _scalars.TooManyBranches as error:
            if is_own(self.optimizer) or not is_separable(self.optimizer, self.names):
                raise self._refusal(error) from error
        # Branches of each parameter by itself: one is traced without the others.
        self.units = self._make_units(alone=True)
        return self._trace_units(capturable)

    def _trace_units(self, capturable: bool) -> list[Unit]:
        how = {**HOW, "capturable": capturable}
        for unit in self.units:
            try:
                unit.paths = self._paths(unit, False, how)
                if self.special & unit.parameters.keys() or any(e.of_gradient for e in unit.entries.values()):
                    unit.first = self._paths(unit, True, how)
            except (ModelError, _scalars.TooManyBranches):
                raise
            except Exception as error:
                if (cause := _cause(error, _scalars.TooManyBranches)) is not None:
                    raise cause from error
                raise self._refusal(error) from error
        return self.units

    def _refusal(self, error: BaseException) -> ModelError:
        reason = _cause(error, Refused)
        text = str(reason or f"{type(error).__name__}: {error}").splitlines()[0]
        frames = []
        trace = (reason or error).__traceback__
        while trace is not None:
            frames.append((trace.tb_frame.f_code.co_filename, trace.tb_lineno))
            trace = trace.tb_next
        own = [f"{file}:{line}: " for file, line in frames
               if "/mtc/torch/" not in file and not file.endswith(("torch/optim/optimizer.py", "_contextlib.py"))
               and ("/torch/optim/" in file or "/torch/" not in file)]
        return ModelError(f"{own[-1] if own else ''}{self.kind}: expected a step that MTC can trace, found {text}")

    # The state

    def _find_entries(self) -> None:
        """Runs two steps of an optimizer of small parameters, and looks at what it remembers."""
        runs = [Trial(self.optimizer, self.names, seed=0), Trial(self.optimizer, self.names, seed=1),
                Trial(self.optimizer, self.names, seed=0, weights=8)]
        self.special = runs[0].special
        if others := runs[0].others:
            raise ModelError(f"{self.kind}: expected a state of parameters, found {others[0]!r} in it: keep it in a "
                             "group")
        for i, group in enumerate(self.groups):
            self._find_of_group(i, group, runs[0])
            for parameter in group["params"]:
                if parameter in self.names:
                    self._find_of_parameter(parameter, runs)

    def _find_of_group(self, number: int, group: Mapping[str, Any], run: Trial) -> None:
        before, first, second = (groups[number] for groups in run.groups)
        for key, value in second.items():
            if key in NAMES or key in before and same(value, before[key]):
                continue
            self.states.add((number, key))
            if isinstance(value, torch.Tensor):
                start = group[key] if isinstance(group.get(key), torch.Tensor) else run.starts[number].get(key, value)
                self._add(number, key, value, start, False)
                continue
            if type(value) not in (int, float):
                raise ModelError(f"{self.kind}: expected groups of which a step changes numbers and tensors alone, "
                                 f"found that it changes {key}, {type(value).__name__}")
            # What the first step makes is one step from the start, as the second value is from the first.
            start = group[key] if key in group else first[key] - (value - first[key])
            if type(start) not in (int, float):
                raise ModelError(f"{self.kind}: expected a number for {key} in group {number}, which a step changes, "
                                 f"found {start}")
            dtype = torch.int64 if isinstance(value, int) and isinstance(start, int) else torch.float32
            self.entries[number, key] = Entry((), dtype, True, start)

    def _find_of_parameter(self, parameter: Any, runs: Sequence[Trial]) -> None:
        name = self.names[parameter]
        old = self.optimizer.state.get(parameter) or {}
        snapshots = [run.first[name] for run in runs]
        whole: Optional[Trial] = None
        for key in dict.fromkeys([*old, *snapshots[0]]):
            if key in old and (old[key] is not None or key not in snapshots[0]):
                self._add(name, key, old[key], old[key], False)
                continue
            value, other, third = (found[key] for found in snapshots)
            if value is None and (later := runs[0].after[name].get(key)) is not None:  # made of the gradient
                value, other, third = later, runs[1].after[name][key], runs[2].after[name][key]
            small = runs[0].parameters[name]
            if isinstance(value, torch.Tensor) and value.ndim and same(value, small) and same(other, small):
                self.entries[name, key] = Entry(tuple(parameter.shape), value.dtype, False, None)
                continue
            of_gradient = not same(value, other) or not same(value, third)
            value = _as_later(value, runs[0].after[name].get(key))
            if isinstance(value, torch.Tensor) and not of_gradient:
                alike = value.numel() == 1 or value.numel() > 0 and bool((value == value.reshape(-1)[0]).all())
                if value.ndim and not (alike and value.shape == small.shape):
                    whole = whole or Trial(self.optimizer, self.names, seed=0, full=parameter)
                    value = whole.first[name][key]
                elif value.ndim:
                    value = value.reshape(-1)[0].expand(parameter.shape)
            elif isinstance(value, torch.Tensor) and value.ndim:
                whole = whole or Trial(self.optimizer, self.names, seed=0, full=parameter)
                shape = parameter.shape if value.shape == small.shape else whole.after[name][key].shape
                value = torch.zeros((), dtype=value.dtype).expand(shape)
            self._add(name, key, value, value, of_gradient)

    def _add(self, name: Any, key: str, value: Any, start: Any, of_gradient: bool) -> None:
        if _is_setting(value):
            return
        if isinstance(value, torch.Tensor):
            if value.is_complex() or value.layout != torch.strided:
                raise ModelError(f"{self.kind}: expected a state of dense tensors of real numbers, found {key}")
            start = torch.as_tensor(start).detach().cpu()
            array = start.float().numpy() if value.dtype.is_floating_point else start.numpy()
            self.entries[name, key] = Entry(tuple(value.shape), value.dtype, False, array, of_gradient)
        elif type(value) in (int, float):
            self.entries[name, key] = Entry((), torch.int64 if isinstance(value, int) else torch.float32, True, start)
        else:
            raise ModelError(f"{self.kind}: expected a state of tensors and numbers, found {key} of {name}, "
                             f"{type(value).__name__}")

    # The trace

    def _make_units(self, alone: bool = False) -> list[Unit]:
        """`alone`: of an optimizer that is not PyTorch's, each parameter by itself."""
        members = [(i, p) for i, group in enumerate(self.groups) for p in group["params"] if p in self.names]
        entries = {self.names[p]: {key: e for key, e in self.entries.items() if key[0] == self.names[p]}
                   for _, p in members}
        of_groups = {key: e for key, e in self.entries.items() if isinstance(key[0], int)}
        if not alone and not is_own(self.optimizer):
            listed = {self.names[p]: p for _, p in members}
            everything = {**of_groups, **{key: e for own in entries.values() for key, e in own.items()}}
            return [Unit(listed, {self.names[p]: i for i, p in members}, [[name] for name in listed], everything)]
        any_shape = self.kind in _ELEMENTWISE
        alike: dict[Any, list[tuple[int, Any]]] = {}
        for i, parameter in members:
            own = entries[self.names[parameter]]
            sign = (i, self.names[parameter] in self.special, None if any_shape else tuple(parameter.shape), tuple(
                (k[1], e.shape == parameter.shape if any_shape else e.shape, e.dtype, e.number, e.of_gradient)
                for k, e in own.items()))
            alike.setdefault(sign, []).append((i, parameter))
        units = []
        for members in alike.values():
            i, parameter = max(members, key=lambda member: (member[1].ndim, -member[1].numel()))
            name = self.names[parameter]
            units.append(Unit({name: parameter}, {name: i}, [[self.names[p] for _, p in members]],
                              {**{key: e for key, e in of_groups.items() if key[0] == i}, **entries[name]}))
        return units

    def _paths(self, unit: Unit, first: bool, how: Mapping[str, bool]) -> list[Path]:
        found = []
        for _ in self.recorder.paths():
            found.append(Path(self._trace(unit, first, how), list(self.recorder.decisions)))
            if len(found) > MOST_PATHS:
                raise _scalars.TooManyBranches(f"more than {MOST_PATHS} ways through branches on what it computes in a "
                                               "step: use torch.where, torch.maximum or torch.minimum")
        return found

    def _trace(self, unit: Unit, first: bool, how: Mapping[str, bool]) -> Any:
        """A graph of functions of ATen. `first`: of a step that finds no state."""
        # Memory that nothing touches.
        shapes = [p.shape for p in unit.parameters.values()]
        given = [*(torch.empty(shape) for shape in [*shapes, *shapes]),
                 *(torch.empty(e.shape, dtype=e.dtype) for e in unit.entries.values()),
                 torch.empty(MOST_NUMBERS, dtype=torch.float64)]

        def step(*tensors: Any) -> Any:
            return self._make_step(unit, first, how, tensors)

        table_of = {op: made for op, made in torch._decomp.core_aten_decompositions().items()
                    if not is_known(name_of(op))}
        with _compiling(), _scalars.traceable(self._scopes()):
            return proxy.make_fx(torch.func.functionalize(step), decomposition_table=table_of,
                                 tracing_mode="fake")(*given)

    def _make_step(self, unit: Unit, first: bool, how: Mapping[str, bool], tensors: Sequence[Any]) -> list[Any]:
        count = len(unit.parameters)
        parameters = dict(zip(unit.parameters, tensors[:count]))
        remembered = dict(zip(unit.entries, tensors[2 * count:-1]))
        recorder = self.recorder
        recorder.table = tensors[-1]
        groups: list[dict[str, Any]] = []
        for i, group in enumerate(self.groups):
            own = [parameters[name] for name, number in unit.group.items() if number == i]
            numbers = {key: self._number(recorder, i, key, value, remembered) for key, value in group.items()
                       if key not in NAMES}
            groups.append({**numbers, **{key: value for key, value in how.items() if key in group},
                           "params": own})
            for key in ((key[1]) for key in unit.entries if key[0] == i and key[1] not in group):
                groups[-1][key] = self._remembered(recorder, (i, key), unit.entries[i, key], remembered[i, key])
        state: dict[Any, Any] = {}
        for name, parameter in parameters.items():
            old = self.optimizer.state.get(unit.parameters[name]) or {}
            kept = {} if first else {key: value for key, value in old.items()
                                     if _is_setting(value)}
            for key, tensor in remembered.items():
                if key[0] == name and not first:
                    kept[key[1]] = self._remembered(recorder, key, unit.entries[key], tensor)
            if kept:
                state[parameter] = kept
        for parameter, gradient in zip(parameters.values(), tensors[count:2 * count]):
            parameter.grad = gradient
        twin = twin_of(self.optimizer, groups, state)
        before = _attributes(twin)
        with torch.no_grad(), _scalars.Mode(recorder):
            take_step(twin)
        changed = [key for key, value in _attributes(twin).items() if before.get(key) is not value]
        if changed:
            raise Refused(f"an attribute that a step changes, {changed[0]}: keep it in the state")
        self._refuse_new([(i, group) for i, group in enumerate(groups)], unit)
        self._refuse_new([(name, twin.state.get(p) or {}) for name, p in parameters.items()], unit)
        results = list(parameters.values())
        for key in unit.entries:
            made = groups[key[0]][key[1]] if isinstance(key[0], int) else twin.state[parameters[key[0]]].get(key[1])
            made = _scalars.tensor_of(made)
            results.append(made if isinstance(made, torch.Tensor) else torch.as_tensor(made))
        return [*results, *recorder.conditions]

    def _refuse_new(self, holders: Sequence[tuple[Any, Mapping[str, Any]]], unit: Unit) -> None:
        """Refuses what the first steps do not make, as at every tenth step: it would be lost."""
        for owner, holder in holders:
            known = {"params", *(self.groups[owner] if isinstance(owner, int) else ())}
            for key, value in holder.items():
                if key not in known and (owner, key) not in unit.entries and not _is_setting(value):
                    raise Refused(f"a state that not the first step makes, {key}: make it in the first step")

    def _remembered(self, recorder: _scalars.Recorder, key: Key, entry: Entry, tensor: Any) -> Any:
        if not entry.number:
            return tensor
        owner = key[0] if isinstance(key[0], int) else None  # numbers of parameters are alike: see `_Builder.shared`
        return recorder.unknown(tensor, ("state", owner, key[1], float(entry.start)))

    def _number(self, recorder: _scalars.Recorder, group: int, key: str, value: Any,
                remembered: Mapping[Key, Any]) -> Any:
        """What a group has for a key in the trace."""
        if (group, key) in remembered:
            return self._remembered(recorder, (group, key), self.entries[group, key], remembered[group, key])
        name = f"group{group}/{key}"
        if name in recorder.hypers:
            return recorder.known(name)
        if isinstance(value, (tuple, list)):
            return type(value)(recorder.known(f"{name}.{i}") if f"{name}.{i}" in recorder.hypers else v
                               for i, v in enumerate(value))
        return value

    def _scopes(self) -> list[dict[str, Any]]:
        """The globals of the optimizer's methods."""
        functions = [getattr(value, "__wrapped__", value) for owner in type(self.optimizer).__mro__
                     if owner not in (object, torch.optim.Optimizer) for value in vars(owner).values()]
        found = {id(f.__globals__): f.__globals__ for f in functions if hasattr(f, "__globals__")}
        return [scope for scope in found.values() if scope.get("__name__") != "torch.optim.optimizer"]


def _cause(error: BaseException, kind: type[BaseException]) -> Optional[BaseException]:
    """The error of a kind that an error came from; it may be that error."""
    found: Optional[BaseException] = error
    while found is not None and not isinstance(found, kind):
        found = found.__cause__ or found.__context__
    return found


def _as_later(value: Any, later: Any) -> Any:
    """A whole number that begins a state, in the type that it has after a step."""
    if type(value) is not int:
        return value
    if isinstance(later, torch.Tensor) and later.ndim == 0:
        return torch.tensor(value, dtype=later.dtype)
    return float(value) if isinstance(later, float) else value


def _is_setting(value: Any) -> bool:
    """Whether a value of a state is a constant of the trace."""
    return value is None or isinstance(value, (bool, str)) or isinstance(value, (list, tuple)) and not value


def _attributes(optimizer: Any) -> dict[str, Any]:
    return {key: value for key, value in vars(optimizer).items()
            if type(value) in (int, float, bool) and not key.startswith("_")}


@contextlib.contextmanager
def _compiling() -> Iterator[None]:
    """Within it, PyTorch's optimizers keep numbers of steps in tensors."""
    compiler, before = torch.compiler, torch.compiler._is_compiling_flag
    level = logging.getLogger("torch").level
    compiler._is_compiling_flag = True
    try:
        yield
    finally:
        compiler._is_compiling_flag = before
        logging.getLogger("torch").setLevel(level)
