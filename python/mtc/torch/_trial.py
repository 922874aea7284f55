# SPDX-License-Identifier: Apache-2.0
"""Two steps of an optimizer of small parameters, which show what it remembers."""

from __future__ import annotations

import collections
import copy
from typing import Any, Mapping, Sequence

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

    Attributes:
        parameters: before the first step, by name.
        first: by name, what was put into a parameter's state first.
        after: by name, the state after the first step.
        starts: what was put into each group first.
        groups: before the first step, after it, and after the second one.
    """

    def __init__(self, optimizer: Any, names: Mapping[Any, str], seed: int, full: Any) -> None:
        generator = torch.Generator().manual_seed(7)
        gradients = torch.Generator().manual_seed(seed)
        chosen: dict[str, Any] = {}
        groups = []
        for group in optimizer.param_groups:
            own = []
            for p in group["params"]:
                if p in names and (full is None or p is full):
                    shape = [n if full is not None else min(n, FEW) for n in p.shape]
                    made = torch.rand(shape, generator=generator) + 0.5 if full is None else p.detach().clone().float()
                    own.append(torch.nn.Parameter(made))
                    own[-1].grad = torch.rand(shape, generator=gradients) - 0.3
                    chosen[names[p]] = own[-1]
            groups.append(_Snapshots({**copy.deepcopy({k: v for k, v in group.items() if k not in NAMES}),
                                      **{key: value for key, value in HOW.items() if key in group}, "params": own}))
        twin = twin_of(optimizer, groups, {})
        twin.state.default_factory = _Snapshots
        twin.__dict__ = {key: value if key in ("param_groups", "state") or key.startswith("_") else _copied(value)
                         for key, value in vars(twin).items()}
        self.parameters = {name: p.detach().clone() for name, p in chosen.items()}
        self.groups = [[dict(group) for group in groups]]
        with torch.no_grad():
            take_step(twin)
            self.groups.append([dict(group) for group in groups])
            self.after = {name: dict(twin.state[p]) for name, p in chosen.items()}
            self.first = {name: getattr(twin.state[p], "first", {}) for name, p in chosen.items()}
            self.after = copy.deepcopy(self.after)
            self.starts = [group.first for group in groups]
            take_step(twin)
        self.groups.append([dict(group) for group in groups])


def _copied(value: Any) -> Any:
    try:
        return copy.deepcopy(value)
    except Exception:  # noqa: BLE001 - what cannot be copied is shared
        return value


def same(a: Any, b: Any) -> bool:
    if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
        return a.shape == b.shape and bool(torch.equal(a, b))
    if isinstance(a, torch.Tensor) or isinstance(b, torch.Tensor):
        return False
    return bool(a == b)
