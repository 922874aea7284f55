# SPDX-License-Identifier: Apache-2.0
"""Steps of an optimizer of small parameters, which show what it remembers."""

from __future__ import annotations

import collections
import copy
from typing import Any, Collection, Mapping, Optional, Sequence

from mtc.torch._framework import real_dtype, torch
from mtc.torch._holders import Holders, Key, Whole, attributes_of, rebuilt

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


def take_step(twin: Any) -> None:
    """Makes a step."""
    type(twin).step(twin)


def try_step(twin: Any) -> bool:
    """Makes a step. Whether it draws random numbers, which PyTorch draws again after it."""
    with torch.random.fork_rng(devices=[]):
        before = torch.get_rng_state()
        take_step(twin)
        return not torch.equal(before, torch.get_rng_state())


class _State(collections.defaultdict):  # type: ignore[type-arg]
    """A state that keeps the first value of each key that is no parameter."""

    def __init__(self, given: Mapping[Any, Any]) -> None:
        super().__init__(_Snapshots, given)
        self.first: dict[str, Any] = {}

    def __setitem__(self, key: Any, value: Any) -> None:
        if not isinstance(key, torch.Tensor) and key not in self:
            self.first[key] = copy.deepcopy(value)
        super().__setitem__(key, value)


class Trial:
    """Two steps of an optimizer of small parameters.

    Args:
        holders: the optimizer, and those that it calls.
        names: of the parameters that are trained.
        seed: of the gradients.
        full: parameters that are taken as they are, without the others.
        weights: the seed of the small parameters.
        scale: of the gradients.
        other: the names of parameters that have other values and gradients than these seeds give.

    Attributes:
        parameters: before the first step, by name.
        draws: whether the first step draws random numbers. Each trial draws those that PyTorch would draw next.
        kept: whether it begins with parts of the state that there is: without it the optimizer takes no step.
        first: what was put into the state first, by the place of a key.
        updated: the parameters after the first step; `after`: the state and attributes then; `later`: after the second.
        starts: what was in each group first, or before that.
        groups: before the first step, after it, and after the second one.
        special: the names of the parameters whose first step is not what a step makes of the state in `first`.
    """

    def __init__(self, holders: Holders, names: Mapping[Any, str], seed: int,
                 full: Optional[Sequence[Any]] = None, weights: int = 7, scale: float = 1,
                 other: Collection[str] = ()) -> None:
        generator = torch.Generator().manual_seed(weights)
        gradients = torch.Generator().manual_seed(seed)
        self.holders = holders
        self.parameters: dict[str, Any] = {}
        self.gradients: dict[str, Any] = {}
        self.members: list[list[str]] = []  # of each group
        self._source: dict[str, Any] = {}
        for group in holders.groups:
            self.members.append([])
            for p in group["params"]:
                if p in names and (full is None or any(p is other for other in full)):
                    shape = [n if full is not None else min(n, FEW) for n in p.shape]
                    name = names[p]
                    self._source[name] = p
                    made = torch.rand(shape, generator=generator) + 0.5 if full is None else p.detach().clone()
                    self.parameters[name] = made.to(real_dtype())
                    self.gradients[name] = ((torch.rand(shape, generator=gradients) - 0.3) * scale).to(real_dtype())
                    if name in other:
                        self.parameters[name] = self.parameters[name] * 1.5 + 0.1
                        self.gradients[name] = self.gradients[name] * -0.7 + 0.1 * scale
                    self.members[-1].append(name)
        self.draws = self.kept = False
        with torch.no_grad():
            try:
                self._run()
            except Exception:
                if not any(len(o.state) for o in holders.optimizers):
                    raise
                self.kept = True  # what the constructor has put there
                self._run()

    def _run(self) -> None:
        twin, chosen = self._twin({}, [])
        twins = Holders(twin)
        groups = twins.groups
        self.groups = [[dict(group) for group in groups]]
        self.draws = try_step(twin)
        self.groups.append([dict(group) for group in groups])
        self.first = {Key(owner, (key,), i): value for i in range(len(twins.optimizers))
                      for owner, own in twins.owners(i, chosen)
                      for key, value in getattr(twins.optimizers[i].state if owner is Whole.STATE else own,
                                                "first", {}).items()}
        self.after = self._values(twins, chosen)
        self.updated = {name: p.detach().clone() for name, p in chosen.items()}
        starts = [dict(group.first) for group in groups]
        try_step(twin)
        self.later = self._values(twins, chosen)
        self.groups.append([dict(group) for group in groups])
        self.starts = [{**start, **_numbers_before(*kept)} for start, *kept in zip(starts, *self.groups)]
        self.special = self._special()

    def _values(self, twins: Holders, chosen: Mapping[str, Any]) -> dict[Key, Any]:
        """What is in the state and among the attributes now."""
        return copy.deepcopy({
            **{Key(owner, (key,), i): value for i in range(len(twins.optimizers))
               for owner, own in twins.owners(i, chosen) for key, value in own.items()},
            **{Key(Whole.ATTRIBUTES, (key,), i): value for i, o in enumerate(twins.optimizers)
               for key, value in attributes_of(o).items()}})

    def _twin(self, state: Mapping[Key, Any], starts: Sequence[Mapping[str, Any]]) -> tuple[Any, dict[str, Any]]:
        """An optimizer of the small parameters, and these by name. `starts`: more of each group."""
        chosen = {name: torch.nn.Parameter(p.clone()) for name, p in self.parameters.items()}
        for name, parameter in chosen.items():
            parameter.grad = self.gradients[name].clone()
        groups = []
        for i, (group, own) in enumerate(zip(self.holders.groups, self.members)):
            kept = copy.deepcopy({key: value for key, value in group.items() if key not in NAMES})
            more = copy.deepcopy(dict(starts[i])) if starts else {}
            groups.append(_Snapshots({**kept, **{key: value for key, value in HOW.items() if key in group}, **more,
                                      "params": [chosen[name] for name in own]}))
        states = []
        for optimizer in self.holders.optimizers:
            made = _State({key: copy.deepcopy(value) for key, value in optimizer.state.items()
                           if not isinstance(key, torch.Tensor)})
            if self.kept:
                for name, source in self._source.items():
                    if source in optimizer.state:
                        made[chosen[name]] = _Snapshots(part_of(optimizer.state[source], source, FEW))
            states.append(made)
        for key, value in state.items():
            holder = states[key.holder]
            (holder if key.owner is Whole.STATE else holder[chosen[key.owner]])[key.path[0]] = copy.deepcopy(value)
        twin = self.holders.twin(groups, states)
        return twin, chosen

    def _special(self) -> set[str]:
        """Compares the first step with a step from the first state."""
        twin, chosen = self._twin(self.first, self.starts)
        try:
            try_step(twin)
        except Exception:  # noqa: BLE001 - no step from this state: each of them is special
            return set(chosen)
        found = self._values(Holders(twin), chosen)
        return {name for name, p in chosen.items()
                if not torch.equal(p.detach(), self.updated[name])
                or not same(_of(found, name), _of(self.after, name))}


def _numbers_before(before: Mapping[str, Any], first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """What numbers of a group that the first step makes are before it: one step from the start, as the second value is
    from the first; 0 in the place of None."""
    found: dict[str, Any] = {}
    for key, value in second.items():
        if type(value) in (int, float) and before.get(key) is None:
            made = first.get(key)
            found[key] = type(value)(0) if key in before else made - (value - made) if type(made) in (
                int, float) else value
    return found


def part_of(value: Any, parameter: Any, most: int) -> Any:
    """A copy of what an optimizer remembers of a parameter; of tensors of its shape so many elements along an axis."""
    def replace(_: Any, found: Any) -> Any:
        if isinstance(found, torch.Tensor) and found.shape == parameter.shape and found.ndim:
            return found.detach()[tuple(slice(0, most) for _ in found.shape)].clone()
        return copy.deepcopy(found)
    return rebuilt(dict(value), replace) if value else {}


def _of(values: Mapping[Key, Any], owner: Any) -> dict[Any, Any]:
    return {(key.holder, key.path): value for key, value in values.items() if key.owner == owner}


def is_separable(holders: Holders, names: Mapping[Any, str]) -> bool:
    """Whether the update of each parameter depends on that parameter and its gradient alone.

    Tries it with small, middle and large gradients: an optimizer may clip the norm of all of them. For any two
    parameters there is a bit in which their numbers differ; so each is once changed without the other.
    """
    listed = list(names.values())
    for scale in (1e-3, 1.0, 1e3, 1e6):
        before = Trial(holders, names, seed=0, scale=scale)
        for bit in range(max(1, (len(listed) - 1).bit_length())):
            for side in (0, 1):
                other = {name for i, name in enumerate(listed) if i >> bit & 1 == side}
                now = Trial(holders, names, seed=0, scale=scale, other=other)
                stays = [name for name in listed if name not in other]
                if not all(same(now.updated[name], before.updated[name])
                           and same(_of(now.after, name), _of(before.after, name)) for name in stays) or not same(
                               *([*map(_values_of, t.groups[-1]), *(_of(t.later, w) for w in Whole)]
                                 for t in (now, before))):
                    return False
    return True


def _values_of(group: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in group.items() if key not in NAMES}


def same(a: Any, b: Any) -> bool:
    """Whether two values of a state are equal; NaN equals NaN."""
    if isinstance(a, (list, tuple, collections.deque)) and isinstance(b, (list, tuple, collections.deque)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(value, b[key]) for key, value in a.items())
    if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
        return a.shape == b.shape and bool(torch.equal(a, b))
    if isinstance(a, torch.Tensor) or isinstance(b, torch.Tensor):
        return False
    return bool(a == b)
