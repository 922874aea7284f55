# SPDX-License-Identifier: Apache-2.0
"""What an optimizer of PyTorch remembers, and what it starts with: found by steps of small parameters."""

from __future__ import annotations

import dataclasses
from typing import Any, Mapping, Optional, Sequence

import numpy as np

from mtc._errors import ModelError
from mtc.torch._framework import real_dtype, torch
from mtc.torch._holders import Holders, Key, Whole, is_container, items_of, value_at
from mtc.torch._scalars import tensor_of
from mtc.torch._trial import NAMES, Trial, same

PRESENT = "(is there)"  # the end of the path of a number that says whether there is what a later step makes


@dataclasses.dataclass(frozen=True)
class Entry:
    """What an optimizer remembers of a parameter or a group.

    Attributes:
        shape: of its tensor; () for a number.
        dtype: of PyTorch.
        number: whether it is a number of Python.
        start: before the first step: a number, an array, or None: the parameter itself.
        of_gradient: the first step makes it of the gradient, or of the parameter by a formula.
        late: nothing is in its place before a step that is not the first: a group has None there, a state no key.
    """

    shape: tuple[int, ...]
    dtype: Any
    number: bool
    start: Any
    of_gradient: bool = False
    late: bool = False


def kind_of(optimizer: Any) -> str:
    """The name of an optimizer's class."""
    return type(optimizer).__name__


class Memory:
    """What an optimizer remembers.

    Attributes:
        holders: the optimizer, and those that it calls.
        names: parameter -> name, of those that the step trains.
        entries: the numbers and tensors.
        structures: what has entries, or is a constant, by the place of its key.
        states: keys of groups that a step changes.
        special: as of `Trial`, and so is kept.
        draws: whether the first step draws random numbers, with which the state begins.
    """

    def __init__(self, optimizer: Any, names: Mapping[Any, str]) -> None:
        self.holders = Holders(optimizer)
        self.kind = kind_of(optimizer)
        self.names = names
        self.groups = self.holders.groups
        self.entries: dict[Key, Entry] = {}
        self.structures: dict[Key, Any] = {}
        self.states: set[tuple[int, str]] = set()
        self.special: set[str] = set()
        self.kept = False
        self.draws = False
        self._all: Optional[Trial] = None  # of all parameters as they are

    def find(self) -> None:
        """Runs two steps of an optimizer of small parameters, and looks at what it remembers."""
        runs = [Trial(self.holders, self.names, seed=0), Trial(self.holders, self.names, seed=1),
                Trial(self.holders, self.names, seed=0, weights=8)]
        self.special, self.kept = runs[0].special, runs[0].kept
        self.draws = runs[0].draws
        if self.draws:  # one after the other, for parameters as they are
            self._all = Trial(self.holders, self.names, seed=0, full=list(self.names))
        for i, group in enumerate(self.groups):
            self._find_of_group(i, group, runs[0])
            for parameter in group["params"]:
                if parameter in self.names:
                    self._find_of_parameter(parameter, runs)
        self._find_of_all(runs[0])

    def _find_of_group(self, number: int, group: Mapping[str, Any], run: Trial) -> None:
        before, first, second = (groups[number] for groups in run.groups)
        for key, value in second.items():
            if key in NAMES or key in before and same(value, before[key]):
                continue
            self.states.add((number, key))
            place = Key(number, (key,))
            if isinstance(value, torch.Tensor):
                start = group[key] if key in group else run.starts[number].get(key, value)
                self._add(place, value, start, False)
                continue
            if type(value) not in (int, float):
                raise ModelError(f"{self.kind}: expected groups of which a step changes numbers and tensors alone, "
                                 f"found that it changes {key}, {type(value).__name__}")
            late = key in group and group[key] is None
            start = group[key] if key in group and not late else run.starts[number].get(key)
            if type(start) not in (int, float):
                raise ModelError(f"{self.kind}: expected a number for {key} in group {number}, which a step changes, "
                                 f"found {start}")
            dtype = torch.int64 if isinstance(value, int) and isinstance(start, int) else torch.float32
            self.entries[place] = Entry((), dtype, True, start, False, late)

    def _find_of_all(self, run: Trial) -> None:
        """What steps change in the state and the attributes of all parameters together."""
        for key, value in run.later.items():
            if not isinstance(key.owner, Whole):
                continue
            old = self.holders.get(key, {})
            start = run.first.get(key) if old is None else old
            if key.owner is Whole.ATTRIBUTES and same(value, old):
                continue
            alike = _alike(start, value)
            for path, part in items_of(value, key.path):
                place = Key(key.owner, path, key.holder)
                self._add(place, part, value_at(start, path[1:]) if alike else _nothing_like(part), not alike)
            self.structures[key] = value

    def take(self, place: Key, made: Any) -> None:
        """Makes an entry of what a later step changes, or makes of a parameter. `made`: what it puts there."""
        if isinstance(place.owner, str):
            made = tensor_of(made)
            tensor = made if isinstance(made, torch.Tensor) else torch.as_tensor(made)
            self.entries[place] = Entry(tuple(tensor.shape), tensor.dtype, tensor is not made, np.zeros(tensor.shape),
                                        False, True)
            self.entries[place._replace(path=(*place.path, PRESENT))] = Entry((), torch.int64, True, 0, False, True)
            self.structures[place] = None
            return
        value = self.holders.get(place, {})
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise ModelError(f"{self.kind}: expected a step that changes numbers and tensors alone, found that it "
                             f"changes {place.name}, {type(value).__name__}")
        if isinstance(place.owner, int):
            self.states.add((place.owner, place.name))
        self.structures[place] = value
        # It has to hold what a step puts there, which may have a fraction.
        self.entries[place] = Entry((), torch.float32, True, float(value))

    def _find_of_parameter(self, parameter: Any, runs: Sequence[Trial]) -> None:
        name = self.names[parameter]
        whole: Optional[Trial] = None
        keys = [key for key in runs[0].after if key.owner == name]
        for i, optimizer in enumerate(self.holders.optimizers):
            keys += [key for old in optimizer.state.get(parameter) or {}
                     if (key := Key(name, (old,), i)) not in keys]
        for key in keys:
            old = self.holders.get(key, {name: parameter})
            found = [run.first.get(key) for run in runs]
            if old is not None or found[0] is None and runs[0].after.get(key) is None:
                self.structures[key] = old
                for path, part in items_of(old, key.path):
                    self._add(Key(name, path, key.holder), part, part, False)
                continue
            later = found[0] is None or is_container(runs[0].after[key]) and not _alike(found[0], runs[0].after[key])
            if later:  # made of the gradient, or in several steps
                found = [run.after[key] for run in runs]
            template = found[0]
            if is_container(template):
                whole = whole or self._whole(parameter, runs[0])
                template = (whole.after if later else whole.first)[key]
                if not _alike(template, whole.later[key]):
                    raise ModelError(f"{self.kind}: expected a state of one structure in all steps, found {key.name} "
                                     f"of {name}, which grows or changes")
            self.structures[key] = template
            for path, part in items_of(template, key.path):
                place = Key(name, path, key.holder)
                if later and is_container(template):
                    self._add(place, part, _nothing_like(part), True)
                    continue
                whole = self._find_value_of(parameter, place, part, [value_at(value, path[1:]) for value in found],
                                        runs[0], whole)

    def _find_value_of(self, parameter: Any, key: Key, part: Any, found: Sequence[Any], run: Trial,
                   whole: Optional[Trial]) -> Optional[Trial]:
        """An entry of a parameter, from what the trials have put there first. `part`: of the parameter as it is, where
        the key has several values."""
        name = key.owner
        value, other, third = found
        after = value_at(run.after.get(key.top), key.path[1:])
        small = run.parameters[name]
        if len(key.path) > 1 and not isinstance(part, torch.Tensor) and whole is not None and same(
                part, value_at(whole.later.get(key.top), key.path[1:])):
            return whole  # a constant among others
        if isinstance(value, torch.Tensor) and value.ndim and same(value, small) and same(other, small):
            self.entries[key] = Entry(tuple(parameter.shape), value.dtype, False, None)
            return whole
        of_gradient = not same(value, other) or not same(value, third)
        value = _as_later(value, after)
        if isinstance(value, torch.Tensor) and not of_gradient:
            alike = value.numel() == 1 or value.numel() > 0 and bool((value == value.reshape(-1)[0]).all())
            if value.ndim and not (alike and value.shape == small.shape):
                whole = whole or self._whole(parameter, run)
                value = value_at(whole.first[key.top], key.path[1:])
            elif value.ndim:
                value = value.reshape(-1)[0].expand(parameter.shape)
        elif isinstance(value, torch.Tensor) and value.ndim:
            whole = whole or self._whole(parameter, run)
            shape = parameter.shape
            if value.shape != small.shape:
                shape = value_at(whole.after[key.top], key.path[1:]).shape
            value = torch.zeros((), dtype=value.dtype).expand(shape)
        elif is_setting(value) and after is not None and not same(value, after):
            raise ModelError(f"{self.kind}: expected a step that changes numbers and tensors alone, found that it "
                             f"changes {key.name} of {name}, {type(value).__name__}")
        self._add(key, value, value, of_gradient)
        return whole

    def _whole(self, parameter: Any, small: Trial) -> Trial:
        """A trial of a parameter as it is: without the others, if the state has the same keys then as in `small`."""
        if self._all is None:
            alone = Trial(self.holders, self.names, seed=0, full=[parameter])
            if all(key in alone.after for key in small.after if key.owner == self.names[parameter]):
                return alone
            self._all = Trial(self.holders, self.names, seed=0, full=list(self.names))
        return self._all

    def _add(self, key: Key, value: Any, start: Any, of_gradient: bool) -> None:
        if is_setting(value):
            return
        if isinstance(value, torch.Tensor) and start is not None:
            if value.is_complex() or value.layout != torch.strided:
                raise ModelError(f"{self.kind}: expected a state of dense tensors of real numbers, found {key.name}")
            start = torch.as_tensor(start).detach().cpu().expand(value.shape)
            array = start.to(real_dtype()).numpy() if value.dtype.is_floating_point else start.numpy()
            self.entries[key] = Entry(tuple(value.shape), value.dtype, False, array, of_gradient)
        elif type(value) in (int, float) and type(start) in (int, float):
            self.entries[key] = Entry((), torch.int64 if isinstance(value, int) else torch.float32, True, start)
        else:
            of = f" of {key.owner}" if isinstance(key.owner, str) else ""
            raise ModelError(f"{self.kind}: expected a state of tensors and numbers, found {key.name}{of}, "
                             f"{type(value if type(start) in (int, float) else start).__name__}")


def _as_later(value: Any, later: Any) -> Any:
    """A whole number that begins a state, in the type that it has after a step."""
    if type(value) is not int:
        return value
    if isinstance(later, torch.Tensor) and later.ndim == 0:
        return torch.tensor(value, dtype=later.dtype)
    return float(value) if isinstance(later, float) else value


def is_setting(value: Any) -> bool:
    """Whether a value of a state is a constant of the trace."""
    return value is None or isinstance(value, (bool, str)) or isinstance(value, (list, tuple)) and not value


def _nothing_like(part: Any) -> Any:
    """What stands in a place before the first step, which does not read it."""
    if isinstance(part, torch.Tensor):
        return torch.zeros((), dtype=part.dtype).expand(part.shape)
    return type(part)(0) if type(part) in (int, float) else part


def _alike(a: Any, b: Any) -> bool:
    """Whether two values have the same paths, and tensors of the same shapes there."""
    mine, other = dict(items_of(a)), dict(items_of(b))
    return mine.keys() == other.keys() and all(map(_alike_values, mine.values(), map(other.__getitem__, mine)))


def _alike_values(a: Any, b: Any) -> bool:
    return (a is None) == (b is None) and isinstance(a, torch.Tensor) == isinstance(b, torch.Tensor) and (
        getattr(a, "shape", 0) == getattr(b, "shape", 0))
