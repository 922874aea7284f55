# SPDX-License-Identifier: Apache-2.0
"""Three updates by PyTorch's optimizer and by MTC's, with the same gradients.

Both are given the gradients that MTC found, of parts of a few parameters of each group. Where gradients are clipped,
these are all that there are.
"""

from __future__ import annotations

import collections
import copy
import functools
import importlib
from typing import Any, Mapping, Optional, Sequence

import numpy as np

from mtc._plan import Plan
from mtc._tensors import Array
from mtc._trace import Graph, guard, losses, reals, updates
from mtc.torch._framework import real_dtype, torch
from mtc.torch._holders import Holders, Key, Whole, items_of, rebuilt
from mtc.torch._trial import part_of, try_step
from mtc.torch._update import Update

TorchDispatchMode: Any = importlib.import_module("torch.utils._python_dispatch").TorchDispatchMode
MOST = 48  # elements along an axis of a parameter
EACH = 2  # parameters of a group
RATE = 0.1  # of the first update: a decay has to be seen beside the rounding of a weight


def chosen_of(optimizer: Any, names: Mapping[Any, str]) -> dict[Any, str]:
    """The parameters that stand for the others: the first and the last ones of each group, and of each number of axes.

    `names`: of the trained.
    """
    found: dict[Any, str] = {}
    for group in optimizer.param_groups:
        own = [p for p in group["params"] if p in names]
        for rank in sorted({p.ndim for p in own}):
            same = [p for p in own if p.ndim == rank]
            found.update({p: names[p] for p in [*same[:EACH - 1], *same[-1:]]})
    return found


class Updates:
    """The updates of a step's optimizer.

    Args:
        optimizer: of torch.optim.
        names: of the trained parameters.
        clip_norm: as of `compile`, and so is clip_value.
    """

    def __init__(self, optimizer: Any, names: Mapping[Any, str], clip_norm: Optional[float],
                 clip_value: Optional[float]) -> None:
        self.kind = type(optimizer).__name__
        self._clipping = clip_norm, clip_value
        self._real = reals.real()
        self._shapes = {name: tuple(p.shape) for p, name in chosen_of(optimizer, names).items()}
        generator = np.random.default_rng(3)
        shapes = {name: tuple(min(n, MOST) for n in shape) for name, shape in self._shapes.items()}
        self._weights = {name: np.asarray(generator.uniform(0.5, 1, n) * generator.choice([-1, 1], n), self._real)
                         for name, n in shapes.items()}
        self.theirs, self._tensors = self._twin(optimizer, names)
        self._read, read = self._twin(optimizer, names)
        self._rates = [float(group.get("lr", 0)) for group in optimizer.param_groups]
        self._exact = functools.partial(self._twin, optimizer, names, torch.float64)
        self.mine = Update(self._read, {tensor: name for name, tensor in read.items()}, clip_norm, clip_value)

    def _twin(self, optimizer: Any, names: Mapping[Any, str], dtype: Any = None) -> tuple[Any, dict[str, Any]]:
        """A new optimizer of the same settings and state, for the parts alone. `dtype`: of these, else float32."""
        tensors = {name: torch.nn.Parameter(torch.from_numpy(w.copy()).to(dtype)) for name, w in self._weights.items()}
        holders = Holders(optimizer)
        groups = []
        states: list[dict[Any, Any]] = []
        for group in holders.groups:
            own = {names[p]: p for p in group["params"] if names.get(p) in tensors}
            kept = {key: copy.deepcopy(value) for key, value in group.items() if key not in ("params", "param_names")}
            groups.append({**kept, "params": [tensors[name] for name in own],
                           **{key: False for key in ("foreach", "fused") if key in kept}})
        for each in holders.optimizers:
            states.append(collections.defaultdict(dict, {
                key: copy.deepcopy(value) for key, value in each.state.items() if not isinstance(key, torch.Tensor)}))
            for parameter, name in names.items():
                if name in tensors and each.state.get(parameter):
                    cut = self._part(each.state[parameter], parameter, dtype)
                    if cut is not None:
                        states[-1][tensors[name]] = cut
        twin = holders.twin(groups, states)
        return twin, tensors

    def _part(self, state: Any, parameter: Any, dtype: Any) -> Any:
        """A part of what is remembered of a parameter; None where the part is not known."""
        if any(isinstance(value, torch.Tensor) and value.ndim and value.shape != parameter.shape
               for _, value in items_of(state)):
            return None
        cut = part_of(state, parameter, MOST)
        return rebuilt(cut, lambda _, value: value.to(dtype or real_dtype()).cpu() if isinstance(
            value, torch.Tensor) and value.ndim and value.dtype.is_floating_point else value)

    def text(self) -> str:
        """A model whose gradients are its input."""
        graph = Graph("updates")
        variables = [graph.variable(name, weight.shape) for name, weight in self._weights.items()]
        losses.add_loss(graph, updates.loss_of(graph, variables))
        self.mine.add_to(graph, {name: tuple(range(weight.ndim)) for name, weight in self._weights.items()})
        return graph.text()

    def compare(self, plan: Plan, gradients: Sequence[Mapping[str, Array]]) -> str:
        """Makes an update for each of these gradients. Gives what was compared.

        Raises:
            ModelError: a weight or a slot differs.
        """
        with plan.session("cpu:1", processes=1) as session:
            for name, value in {**self._weights, **self.mine.start()}.items():
                session.variables[name] = value
            made: list[Mapping[str, Array]] = []
            for count, found in enumerate(gradients):
                self._set_rates(self._read, count)
                made.append({name: updates.usable(np.asarray(found[guard.GRADIENT + name], self._real).reshape(shape)
                                                  [tuple(slice(0, MOST) for _ in shape)])
                             for name, shape in self._shapes.items()})
                before = {name: session.variables[name] for name in self._weights}
                for name, value in self.mine.follow().items():
                    session.variables[name] = value
                session.train_step({"gradients": np.concatenate([g.reshape(-1) for g in made[-1].values()])[None]})
                self._step(self.theirs, self._tensors, made[-1], count)
                self._judge(session, before, made)
        return f"{len(gradients)} updates of {self.kind} are PyTorch's"

    def _set_rates(self, twin: Any, count: int) -> None:
        for i, (group, rate) in enumerate(zip(twin.param_groups, self._rates)):
            if "lr" in group and not self.mine.changes(i, "lr") and not self.mine.draws() and max(self._rates):
                group["lr"] = RATE / 2**count * rate / max(self._rates)

    def _step(self, twin: Any, tensors: Mapping[str, Any], gradients: Mapping[str, Array], count: int) -> None:
        self._set_rates(twin, count)
        for name, tensor in tensors.items():
            tensor.grad = torch.from_numpy(gradients[name].copy()).to(tensor.dtype)
        norm, bound = self._clipping
        if norm is not None:
            torch.nn.utils.clip_grad_norm_(list(tensors.values()), norm)
        if bound is not None:
            torch.nn.utils.clip_grad_value_(list(tensors.values()), bound)
        try_step(twin)

    def _judge(self, session: Any, before: Mapping[str, Array], gradients: Sequence[Mapping[str, Array]]) -> None:
        theirs = self._found(self.theirs, self._tensors)
        mine = {f"the weight {name}": np.asarray(session.variables[name]) for name in self._tensors}
        mine.update({_title(key): np.asarray(session.variables[slot.name])
                     for slot in self.mine.slots.values() for key in slot.keys})
        change = {f"the weight {name}": float(np.abs(tensor.detach().numpy() - before[name]).max())
                  for name, tensor in self._tensors.items()}
        if self.mine.has_vectors:
            mine = {name: value if name in change else _signed(value, theirs.get(name)) for name, value in mine.items()}
        wrong = {name: updates.error(mine[name], value, change.get(name, float(np.abs(value).max())))
                 for name, value in theirs.items()}
        if not all(value <= 1 for value in wrong.values()):
            exact = self._exactly(gradients)
            wrong = {name: value for name, value in wrong.items()
                     if name not in exact or not updates.as_near(mine[name], theirs[name], exact[name])}
        updates.judge(wrong, self.kind, "PyTorch", len(gradients))

    def _exactly(self, gradients: Sequence[Mapping[str, Array]]) -> dict[str, Array]:
        """What the updates are in float64: they may depend on what rounding parts, as the sign of a difference does.

        Empty where PyTorch's optimizer takes no step in float64.
        """
        twin, tensors = self._exact()
        try:
            with _Doubles():
                for count, given in enumerate(gradients):
                    self._step(twin, tensors, given, count)
        except Exception:  # noqa: BLE001 - the optimizer's own
            return {}
        return self._found(twin, tensors)

    def _found(self, twin: Any, tensors: Mapping[str, Any]) -> dict[str, Array]:
        """The weights and the state of a twin."""
        found = {f"the weight {name}": _array(tensor) for name, tensor in tensors.items()}
        holders = Holders(twin)
        for slot in self.mine.slots.values():
            for key in slot.keys:
                if (value := holders.get(key, tensors)) is not None:
                    found[_title(key)] = _array(value)
        return found


def _signed(vectors: Array, like: Optional[Array]) -> Array:
    """With the signs of another array's columns, or of its rows, which those of eigenvectors are free in."""
    if like is None or vectors.ndim < 2 or vectors.shape != like.shape:
        return vectors
    found = [np.where((vectors * like).sum(axis, keepdims=True) < 0, -vectors, vectors) for axis in (-2, -1)]
    return min(found, key=lambda array: float(np.abs(array - like).sum()))


def _title(key: Key) -> str:
    return f"the state {key.name} of {key.owner.value if isinstance(key.owner, Whole) else key.owner}"


class _Doubles(TorchDispatchMode):  # type: ignore[misc]
    """Within it, what an optimizer converts to a shorter type, such as bfloat16, has float64."""

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if (dtype := kwargs.get("dtype")) is not None and dtype.is_floating_point:
            kwargs["dtype"] = torch.float64
        return function(*args, **kwargs)


def _array(value: Any) -> Array:
    return np.asarray(value.detach().double().numpy() if isinstance(value, torch.Tensor) else value, "f8")
