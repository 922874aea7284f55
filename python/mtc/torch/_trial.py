# SPDX-License-Identifier: Apache-2.0
"""Steps of an optimizer of small parameters, which show what it remembers."""

from __future__ import annotations

import collections
import copy
from typing import Any, Collection, Mapping, Sequence

from mtc.torch._framework import torch

FEW = 6  # elements along an axis of a parameter
# Keys of a group that say how PyTorch computes an update, and not what.
HOW = {"foreach": False, "fused": False, "capturable": False, "differentiable": False}
NAMES = ("params", "param_names")


class _Snapshots(dict):  # type: ignore[type-arg]
    """A dict that keeps the first value of each key that is added."""

    def __init__(self, given: Mapping[str, Any] = {}) -> None:
        super().__init__(given)
        self.first: dict[str, Any] = {}

    def __setitem__(self, key: str, value: Any) -> None:
        if key not in self and key not in self.first:
            self.first[key] = copy.deepcopy(value)
        super().__setitem__(key, value)

    def setdefault(self, key: str, default: Any = None) -> Any:
        if key not in self:
            self[key] = default
        return self[key]

    def update(self, *given: Any, **more: Any) -> None:
        for key, value in dict(*given, **more).items():
            self[key] = value


def twin_of(optimizer: Any, groups: Sequence[Mapping[str, Any]], state: Mapping[Any, Any]) -> Any:
    """An optimizer of the same class and attributes, of other groups and another state."""
    twin = copy.copy(optimizer)
    # A scheduler puts a step of the other optimizer into it.
    twin.__dict__ = {key: value for key, value in vars(optimizer).items() if key != "step"}
    twin.param_groups = list(groups)
    twin.state = collections.defaultdict(dict, state)
    return twin


def take_step(twin: Any) -> None:
    type(twin).step(twin)


class Trial:
    """Two steps of an optimizer of small parameters.

    Args:
        optimizer: of torch.optim.
        names: of the parameters that are trained.
        seed: of the gradients.
        full: a parameter that is taken as it is, without the others.
        weights: the seed of the small parameters.
        scale: of the gradients.
        other: the names of parameters that have other values and gradients than these seeds give.

    Attributes:
        parameters: before the first step, by name.
        first: by name, what was put into a parameter's state first.
        updated: the parameters after the first step; `after`: their state then.
        starts: what was put into each group first.
        groups: before the first step, after it, and after the second one.
        others: what the state has besides parameters, and a step changes.
        special: the names of the parameters whose first step is not what a step makes of the state in `first`.
    """

    def __init__(self, optimizer: Any, names: Mapping[Any, str], seed: int, full: Any = None,
                 weights: int = 7, scale: float = 1, other: Collection[str] = ()) -> None:
        generator = torch.Generator().manual_seed(weights)
        gradients = torch.Generator().manual_seed(seed)
        self.optimizer = optimizer
        self.parameters: dict[str, Any] = {}
        self.gradients: dict[str, Any] = {}
        self.members: list[list[str]] = []  # of each group
        for group in optimizer.param_groups:
            self.members.append([])
            for p in group["params"]:
                if p in names and (full is None or p is full):
                    shape = [n if full is not None else min(n, FEW) for n in p.shape]
                    name = names[p]
                    self.parameters[name] = (torch.rand(shape, generator=generator) + 0.5 if full is None
                                             else p.detach().clone().float())
                    self.gradients[name] = (torch.rand(shape, generator=gradients) - 0.3) * scale
                    if name in other:
                        self.parameters[name] = self.parameters[name] * 1.5 + 0.1
                        self.gradients[name] = self.gradients[name] * -0.7 + 0.1 * scale
                    self.members[-1].append(name)
        twin, chosen = self._twin({}, [])
        groups = twin.param_groups
        self.groups = [[dict(group) for group in groups]]
        with torch.no_grad():
            take_step(twin)
            self.groups.append([dict(group) for group in groups])
            self.first = {name: getattr(twin.state[p], "first", {}) for name, p in chosen.items()}
            self.after = copy.deepcopy({name: dict(twin.state[p]) for name, p in chosen.items()})
            self.starts = [group.first for group in groups]
            others = {key: copy.deepcopy(twin.state[key]) for key in twin.state if not isinstance(key, torch.Tensor)}
            self.updated = {name: p.detach().clone() for name, p in chosen.items()}
            self.special = self._special()
            take_step(twin)
            self.others = [key for key in twin.state if not isinstance(key, torch.Tensor)
                           and not (key in others and same(others[key], twin.state[key]))]
        self.groups.append([dict(group) for group in groups])

    def _twin(self, state: Mapping[str, Mapping[str, Any]], starts: Sequence[Mapping[str, Any]]) -> tuple[Any, Any]:
        """An optimizer of the small parameters, and these by name. `starts`: more of each group."""
        chosen = {name: torch.nn.Parameter(p.clone()) for name, p in self.parameters.items()}
        for name, parameter in chosen.items():
            parameter.grad = self.gradients[name].clone()
        groups = []
        for i, (group, own) in enumerate(zip(self.optimizer.param_groups, self.members)):
            kept = copy.deepcopy({key: value for key, value in group.items() if key not in NAMES})
            more = copy.deepcopy(dict(starts[i])) if starts else {}
            groups.append(_Snapshots({**kept, **{key: value for key, value in HOW.items() if key in group}, **more,
                                      "params": [chosen[name] for name in own]}))
        twin = twin_of(self.optimizer, groups, {chosen[name]: _Snapshots(copy.deepcopy(dict(own)))
                                                for name, own in state.items()})
        twin.state.default_factory = _Snapshots
        twin.__dict__ = {key: value if key in ("param_groups", "state") or key.startswith("_") else _copied(value)
                         for key, value in vars(twin).items()}
        return twin, chosen

    def _special(self) -> set[str]:
        """Compares the first step with a step from the first state."""
        twin, chosen = self._twin(self.first, self.starts)
        try:
            take_step(twin)
        except Exception:  # noqa: BLE001 - no step from this state: each of them is special
            return set(chosen)
        return {name for name, p in chosen.items()
                if not torch.equal(p.detach(), self.updated[name]) or set(twin.state[p]) != set(self.after[name])
                or not all(same(value, twin.state[p][key]) for key, value in self.after[name].items())}


def is_separable(optimizer: Any, names: Mapping[Any, str]) -> bool:
    """Whether the update of each parameter depends on that parameter and its gradient alone.

    Tries it with small, middle and large gradients: an optimizer may clip the norm of all of them. For any two
    parameters there is a bit in which their numbers differ; so each is once changed without the other.
    """
    listed = list(names.values())
    for scale in (1e-3, 1.0, 1e3, 1e6):
        before = Trial(optimizer, names, seed=0, scale=scale)
        for bit in range(max(1, (len(listed) - 1).bit_length())):
            for side in (0, 1):
                other = {name for i, name in enumerate(listed) if i >> bit & 1 == side}
                now = Trial(optimizer, names, seed=0, scale=scale, other=other)
                stays = [name for name in listed if name not in other]
                if not all(same(getattr(now, part).get(name), getattr(before, part).get(name))
                           for name in stays for part in ("updated", "after")) or not same(
                               [_values_of(g) for g in now.groups[-1]], [_values_of(g) for g in before.groups[-1]]):
                    return False
    return True


def _values_of(group: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in group.items() if key not in NAMES}


def _copied(value: Any) -> Any:
    try:
        return copy.deepcopy(value)
    except Exception:  # noqa: BLE001 - what cannot be copied is shared
        return value


def same(a: Any, b: Any) -> bool:
    """Whether two values of a state are equal; NaN equals NaN."""
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(value, b[key]) for key, value in a.items())
    if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
        return a.shape == b.shape and bool(torch.equal(a, b))
    if isinstance(a, torch.Tensor) or isinstance(b, torch.Tensor):
        return False
    return bool(a == b)
