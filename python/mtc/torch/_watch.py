# SPDX-License-Identifier: Apache-2.0
"""What PyTorch would read before a step, compared with what the plan was compiled for.

A plan has copies of the parameters and buffers, and it is traced once. So whatever a caller or a scheduler changes
afterwards is followed (the hyper-parameters of the optimizer) or refused, before each step. Where nothing has changed
this costs a few comparisons of lists.
"""

from __future__ import annotations

import operator
from typing import Any, Iterable, Mapping, NamedTuple, Optional

import numpy as np

from mtc._errors import ModelError
from mtc.torch._framework import torch
from mtc.torch._holders import Holders
from mtc.torch._scalars import Recorder
from mtc.torch._trace import hypers_of

# Keys of a group that say how PyTorch computes an update, and not what.
_HOW = {"foreach", "fused", "capturable", "differentiable"}
_MEMBERS = {"params", "param_names"}
_AGAIN = "call mtc.torch.compile again, or set it back"
# Layers of torch.nn that are the same in training and in evaluation.
_WITHOUT_MODE = {f"torch.nn.modules.{name}" for name in ("linear", "activation", "container", "conv", "pooling",
                                                         "padding", "flatten", "loss", "sparse", "upsampling")}


class Groups:
    """The parameter groups of an optimizer, compared with what its trace has.

    Attributes:
        used: numbers of the groups that have trained parameters.
    """

    def __init__(self, holders: Holders, names: Mapping[Any, str], recorder: Recorder,
                 states: set[tuple[int, str]]) -> None:
        """`names`: of the trained parameters. `states`: what a step changes in the groups."""
        self._holders = holders
        self._kind = type(holders.optimizers[0]).__name__
        self._recorder = recorder
        self._states = states
        groups = holders.groups
        self.used = [i for i, g in enumerate(groups) if any(p in names for p in g["params"])]
        self._keys = [[k for k in g if k not in _MEMBERS and k not in _HOW and (i, k) not in states]
                      for i, g in enumerate(groups)]
        self._members = self._listed()
        self._values: list[Any] = []
        self._constants = self._plain_values()
        self.take_state()

    def current(self) -> dict[str, float]:
        """The hyper-parameters, by name."""
        return hypers_of(self._holders.groups, self._states)

    def hypers(self) -> Optional[dict[str, float]]:
        """The hyper-parameters, if one has changed since this was called last.

        Raises:
            ModelError: something has changed that the trace has relied on.
        """
        if self._listed() != self._members:
            self._refuse_members()
        values = [float(v) if isinstance(v, torch.Tensor) and v.ndim == 0 else v
                  for g, keys in zip(self._holders.groups, self._keys) for v in map(g.get, keys)]
        if values == self._values:
            return None
        self._check_constants()
        found = self.current()
        for guard in self._recorder.guards.values():
            if not guard.holds(found):
                name = sorted(guard.names())[0]
                group, _, key = name.partition("/")
                raise ModelError(f"expected {key}={self._recorder.hypers[name]} in {group.replace('group', 'group ')} "
                                 f"of {self._kind}, on which a branch of its step depends, or a value that takes the "
                                 f"same branch, found {found[name]}: {_AGAIN}")
        self._values = [list(v) if isinstance(v, list) else v for v in values]
        return found

    def _plain_values(self) -> list[Any]:
        """What is neither a float nor a list of floats."""
        return [_without_floats(g.get(k)) for g, keys in zip(self._holders.groups, self._keys) for k in keys]

    def _check_constants(self) -> None:
        if (now := self._plain_values()) == self._constants:
            return
        places = [(i, k) for i, keys in enumerate(self._keys) for k in keys]
        (i, key), old = next((p, a) for p, a, b in zip(places, self._constants, now) if a != b)
        wanted = "a float as " + key if old is float else f"{key}={old}"
        raise ModelError(f"expected {wanted} in group {i} of {self._kind}, as when the step was compiled, found "
                         f"{self._holders.groups[i].get(key)}: {_AGAIN}")

    def check_state(self) -> None:
        """ModelError where the state was replaced or cleared since `take_state`."""
        if any(o.state is not state or len(state) < count for o, (state, count) in zip(
                self._holders.optimizers, self._taken)):
            raise ModelError(f"expected the state of {self._kind} that step.from_module() or "
                             "step.to_module() left, found another: call step.from_module() to take it")

    def take_state(self) -> None:
        """The plan has the state that the optimizer has now."""
        self._taken = [(o.state, len(o.state)) for o in self._holders.optimizers]

    def _listed(self) -> list[Any]:
        """Identities of all parameters, with a mark between groups."""
        listed: list[Any] = []
        for group in self._holders.groups:
            listed += map(id, group["params"])
            listed.append(None)
        return listed

    def _refuse_members(self) -> None:
        groups = self._holders.groups
        before = self._members.count(None)
        if len(groups) != before:
            raise ModelError(f"expected the {before} parameter groups of {self._kind} that the step was compiled with, "
                             f"found {len(groups)}: call mtc.torch.compile again")
        raise ModelError(f"expected the parameter groups of {self._kind} with the parameters that they had when the "
                         "step was compiled, found others: call mtc.torch.compile again")


def _without_floats(value: Any) -> Any:
    """What a trace has of a group's value as a constant."""
    if isinstance(value, (torch.Tensor, float, np.floating)):  # schedules of packages give numbers of NumPy
        return float
    return tuple(map(_without_floats, value)) if isinstance(value, (list, tuple)) else value


class _Place(NamedTuple):
    """Where a module holds a tensor or another module."""

    holder: dict[str, Any]
    key: str
    name: str


class Tensors:
    """The tensors and submodules of a module that a plan has copies of, and the module's mode."""

    def __init__(self, step: Any, tensors: Mapping[str, Any], copied: Iterable[str], constants: Iterable[str]) -> None:
        """
        Args:
            step: the traced module.
            tensors: parameters and buffers by name.
            copied: names of those that are variables of the plan.
            constants: names of those whose values are constants of it.
        """
        self._root = step.module
        self._copied = {n: tensors[n] for n in copied}
        self._constants = {n: tensors[n] for n in constants}
        self._watched = [*self._copied.values(), *self._constants.values()]
        self._counted = [t for t in self._watched if not t.is_inference()]  # those that count their changes
        self._parameters = {n: t for n, t in self._copied.items() if isinstance(t, torch.nn.Parameter)}
        self._trained = list(self._parameters.values())
        self._needs = [p.requires_grad for p in self._trained]
        self._places, self._held = self._find(step, tensors)
        self._numbers = self._find_numbers(step)
        self._values = [holder[key] for holder, key, _ in self._numbers]
        everything = not self._root.training  # it was traced in training mode
        modes = [(n, m) for n, m in self._root.named_modules() if type(m).__module__ not in _WITHOUT_MODE
                 or type(m).__name__ in ("MultiheadAttention", "RReLU")]
        self._modules = [m for _, m in modes]
        self._modes = [everything or m.training for m in self._modules]
        self._mode_names = [n for n, _ in modes]
        self._hook_names, self._hooks = zip(*_hooks_of(step))
        self._hooked = list(map(tuple, self._hooks))
        self.take()

    def _find(self, step: Any, tensors: Mapping[str, Any]) -> tuple[list[_Place], list[Any]]:
        known = {id(t) for t in self._watched}
        places, held = [], []
        for path, module in step.named_modules():
            for holder in (module._parameters, module._buffers, module._modules):
                for key, value in holder.items():
                    if value is not None and (holder is module._modules or id(value) in known):
                        places.append(_Place(holder, key, _shown(f"{path}.{key}")))
                        held.append(value)
        return places, held

    def _find_numbers(self, step: Any) -> list[_Place]:
        return [_Place(vars(module), key, _shown(f"{path}.{key}")) for path, module in step.named_modules()
                for key, value in vars(module).items()
                if key != "training" and not key.startswith("_") and type(value) in (int, float, bool)]

    def take(self) -> None:
        """The plan has the values that the tensors have now."""
        self._versions = [t._version for t in self._counted]
        self._pointers = [t.data_ptr() for t in self._watched]

    def changed(self) -> bool:
        """Whether a tensor has other values, or has been replaced, since `take`."""
        return not (self._versions == [t._version for t in self._counted]
                    and self._pointers == [t.data_ptr() for t in self._watched]
                    and all(map(operator.is_, [holder.get(key) for holder, key, _ in self._places], self._held)))

    def check_values(self) -> None:
        """ModelError where `changed`."""
        if self.changed():
            self._refuse_values()

    def check(self) -> None:
        """ModelError where something differs from what the plan has."""
        self.check_values()
        if self._needs != [p.requires_grad for p in self._trained]:
            name = next(n for (n, p), old in zip(self._parameters.items(), self._needs) if p.requires_grad != old)
            now = self._parameters[name].requires_grad
            raise ModelError(f"{name}: expected requires_grad={not now}, as when the step was compiled, found {now}: "
                             "call step.to_module(), then mtc.torch.compile again")
        if self._root.training and self._modes != [m.training for m in self._modules]:
            at = next(i for i, m in enumerate(self._modules) if m.training != self._modes[i])
            was = self._modes[at]
            raise ModelError(f"{self._mode_names[at] or 'the module'}: expected training={was}, as when the step was "
                             f"compiled, found {not was}: call its {'train' if was else 'eval'}(), or "
                             "mtc.torch.compile again")
        if self._hooked != list(map(tuple, self._hooks)):
            at = next(i for i, hooks in enumerate(self._hooks) if self._hooked[i] != tuple(hooks))
            found = "more" if len(self._hooks[at]) > len(self._hooked[at]) else "others"
            raise ModelError(f"{self._hook_names[at]}: expected the hooks that it had when the step was compiled, "
                             f"found {found}: {_AGAIN.replace('set it back', 'remove the hook')}")
        if self._values != [holder.get(key) for holder, key, _ in self._numbers]:
            place, old = next((p, v) for p, v in zip(self._numbers, self._values) if p.holder.get(p.key) != v)
            if place.holder.get(place.key) == place.holder.get(place.key):  # not NaN
                raise ModelError(f"{place.name}: expected {old}, as when the step was compiled, found "
                                 f"{place.holder.get(place.key)}: {_AGAIN}")

    def _refuse_values(self) -> None:
        for (holder, key, name), held in zip(self._places, self._held):
            if holder.get(key) is not held:
                raise ModelError(f"{name}: expected what it was when the step was compiled, found another "
                                 f"{type(held).__name__} assigned: copy into its tensors in place and call "
                                 "step.from_module(), or call mtc.torch.compile again")
        versions = {id(t): v for t, v in zip(self._counted, self._versions)}
        pointers = {id(t): p for t, p in zip(self._watched, self._pointers)}
        for given in (self._constants, self._copied):
            for name, tensor in given.items():
                if versions.get(id(tensor), 0) != (tensor._version if id(tensor) in versions else 0) \
                        or pointers[id(tensor)] != tensor.data_ptr():
                    advice = ("it is a constant of the plan; call mtc.torch.compile again" if given is self._constants
                              else "call step.from_module() to take the change, or step.to_module() to undo it")
                    raise ModelError(f"{name}: expected the values that step.from_module() or step.to_module() left, "
                                     f"found a tensor that was changed since: {advice}")


def _hooks_of(step: Any) -> list[tuple[str, Any]]:
    """The hooks of each module, with its name. They are found again by number."""
    return [(_shown(path) or "the module", getattr(module, kind)) for path, module in step.named_modules()
            for kind in ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")]


def _shown(path: str) -> str:
    """A path in the traced step as one in the caller's module."""
    return path.lstrip(".").removeprefix("module.")


def refuse_hooks(optimizer: Optional[Any], step: Any, names: Mapping[Any, str]) -> None:
    """ModelError where PyTorch would call functions of the caller's that a plan does not."""
    for parameter, name in names.items():
        if parameter._backward_hooks or getattr(parameter, "_post_accumulate_grad_hooks", None):
            raise ModelError(f"{name}: expected a parameter without hooks on its gradient, found one: MTC computes the "
                             "gradients itself; clip them by clip_norm= or clip_value=, and remove the hook")
    for path, module in step.named_modules():
        if module._backward_hooks or getattr(module, "_backward_pre_hooks", None):
            raise ModelError(f"{_shown(path)}: expected a module without backward hooks, found one: MTC computes the "
                             "gradients itself; remove the hook")
    for kind in ("_optimizer_step_pre_hooks", "_optimizer_step_post_hooks"):
        if getattr(optimizer, kind, None):
            raise ModelError(f"expected {type(optimizer).__name__} without hooks around its step, found one: MTC makes "
                             "the step itself; remove the hook")
