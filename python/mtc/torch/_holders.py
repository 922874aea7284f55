# SPDX-License-Identifier: Apache-2.0
"""Where an optimizer keeps what it remembers: parameter groups, its state, its attributes, and those of the optimizers
that it calls, as Lookahead does."""

from __future__ import annotations

import collections
import copy
import enum
from typing import Any, Callable, Iterator, Mapping, NamedTuple, Sequence

from mtc.torch._framework import torch

Replace = Callable[[tuple[Any, ...], Any], Any]  # what is put in the place of a value at a path


class Whole(enum.Enum):
    """What remembers something of all parameters together: the key of a state that is no parameter, or an attribute."""

    STATE = "state"
    ATTRIBUTES = "attributes"


class Key(NamedTuple):
    """The place of what an optimizer remembers.

    Attributes:
        owner: a parameter's name, a group's number, or `Whole`.
        path: the key there, and the places in lists, tuples and dicts behind it.
        holder: which of the optimizers has it; 0: the caller's.
    """

    owner: Any
    path: tuple[Any, ...]
    holder: int = 0

    @property
    def name(self) -> str:
        """The key, and the places behind it."""
        return "/".join(map(str, self.path))

    @property
    def top(self) -> Key:
        """The place of the list, tuple or dict that has it; itself, if none has."""
        return Key(self.owner, self.path[:1], self.holder)


def is_container(value: Any) -> bool:
    """Whether it is a list, tuple or dict with elements."""
    return isinstance(value, (list, tuple, dict, collections.deque)) and len(value) > 0


def items_of(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """All values in lists, tuples and dicts, with their paths."""
    if not is_container(value):
        yield path, value
        return
    for key, part in value.items() if isinstance(value, dict) else enumerate(value):
        yield from items_of(part, (*path, key))


def value_at(value: Any, path: Sequence[Any]) -> Any:
    """What is at a path in lists, tuples and dicts; None where nothing is."""
    for part in path:
        if isinstance(value, dict):
            value = value.get(part)
        else:
            value = value[part] if is_container(value) and part < len(value) else None
    return value


def rebuilt(value: Any, replace: Replace, path: tuple[Any, ...] = ()) -> Any:
    """A value of the same lists, tuples and dicts, whose elements `replace` makes."""
    if not is_container(value):
        return replace(path, value)
    if isinstance(value, dict):
        return {key: rebuilt(part, replace, (*path, key)) for key, part in value.items()}
    parts = [rebuilt(part, replace, (*path, i)) for i, part in enumerate(value)]
    if isinstance(value, collections.deque):
        return collections.deque(parts, value.maxlen)
    return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)


def found_at(values: Mapping[Key, Any], owner: Any, holder: int) -> Replace:
    """For `rebuilt`: the value of each place that has one, else what is there."""
    return lambda path, value: values.get(Key(owner, path, holder), value)


def attributes_of(optimizer: Any) -> dict[str, Any]:
    """The numbers and tensors among the attributes of an optimizer."""
    return {key: value for key, value in vars(optimizer).items() if not key.startswith("_")
            and isinstance(value, (int, float, torch.Tensor)) and not isinstance(value, torch.nn.Parameter)}


def _copied(value: Any) -> Any:
    if isinstance(value, torch.optim.Optimizer):
        return value  # another twin takes its place
    try:
        return copy.deepcopy(value)
    except Exception:  # noqa: BLE001 - what cannot be copied is shared
        return value


class Holders:
    """An optimizer and those that it calls.

    Attributes:
        optimizers: all, the caller's first.
    """

    def __init__(self, optimizer: Any) -> None:
        self.optimizers = [optimizer]
        self._links: list[tuple[int, str, int]] = []  # holder, attribute, the optimizer that it has there
        for i, holder in enumerate(self.optimizers):  # which grows
            for name, value in vars(holder).items():
                if isinstance(value, torch.optim.Optimizer):
                    known = next((j for j, o in enumerate(self.optimizers) if o is value), len(self.optimizers))
                    self.optimizers += [value] if known == len(self.optimizers) else []
                    self._links.append((i, name, known))

    @property
    def groups(self) -> list[Any]:
        """The groups of all, each once."""
        return list({id(group): group for o in self.optimizers for group in o.param_groups}.values())

    def path_of(self, holder: int) -> str:
        """The attributes by which the caller's optimizer has another one; empty for itself."""
        for parent, name, child in self._links:
            if child == holder:
                return f"{self.path_of(parent)}{name}/" if holder else ""
        return ""

    def twin(self, groups: Sequence[Mapping[str, Any]], states: Sequence[Mapping[Any, Any]]) -> Any:
        """An optimizer of the same classes and attributes, of other groups and other states (one for each holder)."""
        replaced = {id(old): new for old, new in zip(self.groups, groups)}
        state_of: dict[int, Any] = {}
        twins = []
        for optimizer, state in zip(self.optimizers, states):
            made = object.__new__(type(optimizer))
            # A scheduler puts a step of the other optimizer into it.
            made.__dict__ = {key: value if key.startswith("_") or key in ("param_groups", "state") else _copied(value)
                             for key, value in vars(optimizer).items() if key != "step"}
            if "param_groups" in made.__dict__:  # else it is a property
                made.param_groups = [replaced[id(group)] for group in optimizer.param_groups]
            own = state_of.setdefault(id(optimizer.state), state)
            if "state" in made.__dict__:
                made.state = own
            twins.append(made)
        for parent, name, child in self._links:
            twins[parent].__dict__[name] = twins[child]
        return twins[0]

    def owners(self, holder: int, parameters: Mapping[str, Any]) -> Iterator[tuple[Any, Mapping[Any, Any]]]:
        """What has a state in an optimizer: each parameter, and all together. Nothing where another one has it too."""
        state = self.optimizers[holder].state
        if any(other.state is state for other in self.optimizers[:holder]):
            return
        for name, parameter in parameters.items():
            yield name, state.get(parameter) or {}
        yield Whole.STATE, {key: value for key, value in state.items() if not isinstance(key, torch.Tensor)}

    def get(self, key: Key, parameters: Mapping[str, Any]) -> Any:
        """What is at a place now; None where nothing is."""
        optimizer = self.optimizers[key.holder]
        value: Any
        if isinstance(key.owner, int):
            value = self.groups[key.owner]
        elif key.owner is Whole.ATTRIBUTES:
            value = vars(optimizer)
        elif key.owner is Whole.STATE:
            value = optimizer.state
        else:
            value = optimizer.state.get(parameters[key.owner]) or {}
        return value_at(value, key.path)

    def put(self, key: Key, value: Any, parameters: Mapping[str, Any]) -> None:
        """Sets what is at a place that is no part of a list, tuple or dict."""
        (name,) = key.path
        optimizer = self.optimizers[key.holder]
        if isinstance(key.owner, int):
            self.groups[key.owner][name] = value
        elif key.owner is Whole.ATTRIBUTES:
            setattr(optimizer, name, value)
        elif key.owner is Whole.STATE:
            optimizer.state[name] = value
        else:
            optimizer.state[parameters[key.owner]][name] = value
