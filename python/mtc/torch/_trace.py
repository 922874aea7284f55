# SPDX-License-Identifier: Apache-2.0
"""The step of an optimizer of PyTorch, traced: what it makes of a parameter, a gradient and its state.

Any subclass of torch.optim.Optimizer is traced by its own `step`, with numbers that are a part of the trace
(`mtc.torch._scalars`). PyTorch's own optimizers update each parameter by itself, so that one parameter of a shape is
traced for all of its group; other optimizers are traced with all parameters together.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import importlib
import logging
from typing import Any, Iterator, Mapping, Optional, Sequence

import numpy as np

from mtc._errors import ModelError
from mtc._trace import Refused
from mtc.torch import _scalars, _shims
from mtc.torch._entries import PRESENT, Entry, Memory, is_setting, kind_of
from mtc.torch._framework import real_dtype, torch
from mtc.torch._handlers import is_known
from mtc.torch._holders import Holders, Key, Whole, attributes_of, found_at, is_container, rebuilt
from mtc.torch._nodes import name_of
from mtc.torch._trial import HOW, NAMES, is_separable, same, take_step

proxy: Any = importlib.import_module("torch.fx.experimental.proxy_tensor")

MOST_PATHS = 32
MOST_NUMBERS = 4096  # expressions of hyper-parameters in a trace
# Of torch.optim: they update each element by itself, so that one parameter stands for those of all shapes.
_ELEMENTWISE = {"SGD", "Adam", "AdamW", "NAdam", "RAdam", "Adamax", "Adagrad", "Adadelta", "RMSprop", "ASGD"}


class _Found(Exception):
    """Places of what a later step changes or makes, which two steps of small parameters did not, and what it puts
    there."""

    def __init__(self, places: Mapping[Key, Any]) -> None:
        super().__init__(places)
        self.places = places


class _Late(dict):  # type: ignore[type-arg]
    """The state of a parameter with keys that a later step makes: whether they are there is a branch."""

    def __init__(self, given: Mapping[Any, Any], late: Mapping[Any, Any], there: Mapping[Any, Any]) -> None:
        super().__init__(given)
        self._late, self._there = dict(late), there

    def __contains__(self, key: Any) -> bool:
        if not super().__contains__(key) and key in self._late and self._there[key]:
            self[key] = self._late[key]
        return super().__contains__(key)

    def __getitem__(self, key: Any) -> Any:
        return super().__getitem__(key) if key in self else self.__missing__(key)

    def __missing__(self, key: Any) -> Any:
        raise KeyError(key)

    def get(self, key: Any, default: Any = None) -> Any:
        return super().__getitem__(key) if key in self else default

    def setdefault(self, key: Any, default: Any = None) -> Any:
        if key not in self:
            self[key] = default
        return super().__getitem__(key)


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
        self.memory = Memory(optimizer, names)
        self.holders = self.memory.holders
        self.kind = kind_of(optimizer)
        self.names = names
        self.groups = self.holders.groups
        try:
            self.memory.find()
        except (ModelError, Refused):
            raise
        except Exception as error:  # the optimizer's own
            raise self._refusal(error) from error
        self.recorder = _scalars.Recorder(hypers_of(self.groups, self.memory.states))
        self.units = self._make_units()

    def has_variant(self) -> bool:
        """Whether there is a variant of the step for CUDA graphs, which has no branches on numbers of steps."""
        return any("capturable" in group for group in self.groups)

    def trace(self, capturable: bool) -> list[Unit]:
        """The units, with their graphs. `capturable`: of the variant for CUDA graphs."""
        alone = False
        while True:
            try:
                return self._trace_units(capturable)
            except _Found as found:  # fewer each time
                for place, value in found.places.items():
                    self.memory.take(place, value)
            except _scalars.TooManyBranches as error:
                if alone or is_own(self.optimizer) or not is_separable(self.holders, self.names):
                    raise self._refusal(error) from error
                alone = True  # branches of each parameter by itself: one is traced without the others
            self.recorder = _scalars.Recorder(hypers_of(self.groups, self.memory.states))
            self.units = self._make_units(alone)

    def _trace_units(self, capturable: bool) -> list[Unit]:
        how = {**HOW, "capturable": capturable}
        for unit in self.units:
            try:
                unit.paths = self._paths(unit, False, how)
                if self.memory.special & unit.parameters.keys() or any(e.of_gradient for e in unit.entries.values()):
                    unit.first = self._paths(unit, True, how)
            except (ModelError, _scalars.TooManyBranches, _Found):
                raise
            except Exception as error:
                for kind in (_scalars.TooManyBranches, _Found):
                    if (cause := _cause(error, kind)) is not None:
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

    # The trace

    def _make_units(self, alone: bool = False) -> list[Unit]:
        """`alone`: of an optimizer that is not PyTorch's, each parameter by itself."""
        members = [(i, p) for i, group in enumerate(self.groups) for p in group["params"] if p in self.names]
        entries = {self.names[p]: {key: e for key, e in self.memory.entries.items() if key.owner == self.names[p]}
                   for _, p in members}
        of_groups = {key: e for key, e in self.memory.entries.items() if isinstance(key.owner, (int, Whole))}
        if not alone and not is_own(self.optimizer):
            listed = {self.names[p]: p for _, p in members}
            everything = {**of_groups, **{key: e for own in entries.values() for key, e in own.items()}}
            return [Unit(listed, {self.names[p]: i for i, p in members}, [[name] for name in listed], everything)]
        any_shape = self.kind in _ELEMENTWISE
        alike: dict[Any, list[tuple[int, Any]]] = {}
        for i, parameter in members:
            own = entries[self.names[parameter]]
            special = self.names[parameter] in self.memory.special
            sign = (i, special, None if any_shape else tuple(parameter.shape), tuple(
                (k[1:], e.shape == parameter.shape if any_shape else e.shape, e.dtype, e.number, e.of_gradient)
                for k, e in own.items()))
            alike.setdefault(sign, []).append((i, parameter))
        units = []
        for members in alike.values():
            i, parameter = max(members, key=lambda member: (member[1].ndim, -member[1].numel()))
            name = self.names[parameter]
            units.append(Unit({name: parameter}, {name: i}, [[self.names[p] for _, p in members]],
                              {**{key: e for key, e in of_groups.items() if key.owner in (i, *Whole)},
                               **entries[name]}))
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
        given = [*(torch.empty(shape, dtype=real_dtype()) for shape in [*shapes, *shapes]),
                 *(torch.empty(e.shape, dtype=e.dtype) for e in unit.entries.values()),
                 torch.empty(MOST_NUMBERS, dtype=torch.float64)]

        def step(*tensors: Any) -> Any:
            return self._make_step(unit, first, how, tensors)

        table_of = {op: made for op, made in torch._decomp.core_aten_decompositions().items()
                    if not is_known(name_of(op))}
        with _compiling(), _shims.traceable(self._scopes()):
            return proxy.make_fx(torch.func.functionalize(step), decomposition_table=table_of,
                                 tracing_mode="fake")(*given)

    def _make_step(self, unit: Unit, first: bool, how: Mapping[str, bool], tensors: Sequence[Any]) -> list[Any]:
        count = len(unit.parameters)
        parameters = dict(zip(unit.parameters, tensors[:count]))
        remembered = dict(zip(unit.entries, tensors[2 * count:-1]))
        recorder = self.recorder
        recorder.table = tensors[-1]
        given = {key: self._remembered(recorder, key, unit.entries[key], tensor) for key, tensor in remembered.items()}
        groups: list[dict[str, Any]] = []
        for i, group in enumerate(self.groups):
            own = [parameters[name] for name, number in unit.group.items() if number == i]
            numbers = {key: self._number(recorder, i, key, value) for key, value in group.items() if key not in NAMES}
            groups.append({**numbers, **{key: value for key, value in how.items() if key in group}, "params": own})
            for key, entry in unit.entries.items():
                if key.owner == i and not (first and entry.late):
                    groups[-1][key.name] = given[key]
        for parameter, gradient in zip(parameters.values(), tensors[count:2 * count]):
            parameter.grad = gradient
        twin = self.holders.twin(groups, self._states(unit, parameters, given, first))
        twins = Holders(twin)
        for key, value in given.items():
            if key.owner is Whole.ATTRIBUTES and not (first and unit.entries[key].of_gradient):
                twins.put(key, value, {})
        before = [dict(group) for group in groups], [attributes_of(o) for o in twins.optimizers]
        with torch.no_grad(), _scalars.Mode(recorder):
            take_step(twin)
        self._refuse_changes(twins, before, unit, parameters)
        results = list(parameters.values())
        for key in unit.entries:
            made = _scalars.tensor_of(self._result(key, twins, parameters, given))
            results.append(made if isinstance(made, torch.Tensor) else torch.as_tensor(0 if made is None else made))
        return [*results, *recorder.conditions]

    def _result(self, key: Key, twins: Holders, parameters: Mapping[str, Any], given: Mapping[Key, Any]) -> Any:
        """What a step parts in the place of an entry."""
        if not isinstance(key.owner, str) or not self.memory.entries[key].late:
            return twins.get(key, parameters)
        state = twins.optimizers[key.holder].state.get(parameters[key.owner]) or {}
        if not dict.__contains__(state, key.path[0]):
            return given[key]
        return 1 if key.path[-1] == PRESENT else dict.__getitem__(state, key.path[0])

    def _states(self, unit: Unit, parameters: Mapping[str, Any], given: Mapping[Key, Any],
                first: bool) -> list[dict[Any, Any]]:
        """The states of a step. `first`: of a step that finds none but what the constructor has made."""
        states: list[dict[Any, Any]] = []
        for i, optimizer in enumerate(self.holders.optimizers):
            states.append(collections.defaultdict(dict))
            for key, template in self.memory.structures.items():
                if key.holder != i or isinstance(key.owner, int) or key.owner is Whole.ATTRIBUTES:
                    continue
                if first and key.owner is Whole.STATE and any(
                        e.of_gradient for k, e in unit.entries.items() if k.top == key):
                    continue
                own = key.owner in parameters
                if not own and key.owner is not Whole.STATE or first and own and not (
                        self.memory.kept and key.path[0] in (optimizer.state.get(unit.parameters[key.owner]) or {})):
                    continue
                if key in unit.entries and unit.entries[key].late:
                    continue
                made = rebuilt(template, found_at(given, key.owner, i), key.path)
                (states[-1][parameters[key.owner]] if own else states[-1])[key.path[0]] = made
            for name, parameter in parameters.items():
                late = {k.path[0]: given[k] for k, entry in unit.entries.items() if k.owner == name and k.holder == i
                        and entry.late and k.path[-1] != PRESENT}
                if late and not first:
                    there = {key: given[Key(name, (key, PRESENT), i)] for key in late}
                    states[-1][parameter] = _Late(states[-1][parameter], late, there)
            for key, value in optimizer.state.items():
                if not isinstance(key, torch.Tensor):
                    states[-1].setdefault(key, value)
        return states

    def _refuse_changes(self, twins: Holders, before: Any, unit: Unit, parameters: Mapping[str, Any]) -> None:
        """Finds numbers that the first steps do not change, as at every tenth step; refuses other things that they do
        not make: these would be lost."""
        found: dict[Key, Any] = {}
        for i, (old, group) in enumerate(zip(before[0], twins.groups)):
            found.update({Key(i, (key,)): value for key, value in group.items()
                          if key in old and key not in NAMES and not _unchanged(old[key], value)})
        for i, (own, optimizer) in enumerate(zip(before[1], twins.optimizers)):
            found.update({Key(Whole.ATTRIBUTES, (key,), i): value for key, value in attributes_of(optimizer).items()
                          if not _unchanged(own.get(key), value)})
        made = {Key(i, (key,)): value for i, group in enumerate(twins.groups) for key, value in group.items()
                if key not in self.groups[i] and key not in NAMES}
        for i, _ in enumerate(twins.optimizers):
            made.update({Key(owner, (key,), i): value for owner, own in twins.owners(i, parameters)
                         for key, value in own.items()})
        for top, value in made.items():
            if top in self.memory.structures or any(key.top == top for key in unit.entries) or is_setting(value):
                continue
            if not isinstance(top.owner, str) or is_container(value):
                raise Refused(f"a state that not the first step makes, {top.name}: make it in the first step")
            found[top] = value
        if found := {place: value for place, value in found.items() if place not in unit.entries}:
            raise _Found(found)

    def _remembered(self, recorder: _scalars.Recorder, key: Key, entry: Entry, tensor: Any) -> Any:
        if not entry.number:
            return tensor
        # Numbers of parameters are alike: see `_Builder.shared`.
        owner = None if isinstance(key.owner, str) else key.owner
        return recorder.unknown(tensor, ("state", owner, key.holder, key.path, float(entry.start)))

    def _number(self, recorder: _scalars.Recorder, group: int, key: str, value: Any) -> Any:
        """What a group has for a key in the trace."""
        name = f"group{group}/{key}"
        if name in recorder.hypers:
            return recorder.known(name)
        if isinstance(value, (tuple, list)):
            return type(value)(recorder.known(f"{name}.{i}") if f"{name}.{i}" in recorder.hypers else v
                               for i, v in enumerate(value))
        return value

    def _scopes(self) -> list[dict[str, Any]]:
        """The globals of the optimizer's methods."""
        functions = [getattr(value, "__wrapped__", value) for optimizer in self.holders.optimizers
                     for owner in type(optimizer).__mro__ if owner not in (object, torch.optim.Optimizer)
                     for value in vars(owner).values()]
        found = {id(f.__globals__): f.__globals__ for f in functions if hasattr(f, "__globals__")}
        return [scope for scope in found.values() if scope.get("__name__") != "torch.optim.optimizer"]


def _cause(error: BaseException, kind: type[BaseException]) -> Optional[BaseException]:
    """The error of a kind that an error came from; it may be that error."""
    found: Optional[BaseException] = error
    while found is not None and not isinstance(found, kind):
        found = found.__cause__ or found.__context__
    return found


def _unchanged(old: Any, new: Any) -> bool:
    """Whether a step parts a number, or something else that is no tensor."""
    if old is new or isinstance(old, torch.Tensor) or isinstance(new, torch.Tensor) and old is None:
        return old is new
    if isinstance(new, (_scalars.Scalar, torch.Tensor)) or isinstance(old, _scalars.Scalar):
        return isinstance(new, _scalars.Scalar) and new.tree is not None and new.tree == getattr(old, "tree", old)
    return same(old, new)


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
