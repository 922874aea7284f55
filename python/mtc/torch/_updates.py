# SPDX-License-Identifier: Apache-2.0
"""Three updates by PyTorch's optimizer and by MTC's, with the same gradients.

Both are given the gradients that MTC found, of parts of a few parameters of each group. Where gradients are clipped,
these are all that there are.
"""

from __future__ import annotations

import copy
from typing import Any, Mapping, Optional, Sequence

import numpy as np

from mtc._plan import Plan
from mtc._tensors import Array
from mtc._trace import Graph, guard, losses, updates
from mtc.torch._framework import torch
from mtc.torch._trial import twin_of
from mtc.torch._update import Update

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
        self._shapes = {name: tuple(p.shape) for p, name in chosen_of(optimizer, names).items()}
        generator = np.random.default_rng(3)
        shapes = {name: tuple(min(n, MOST) for n in shape) for name, shape in self._shapes.items()}
        self._weights = {name: (generator.uniform(0.5, 1, n) * generator.choice([-1, 1], n)).astype("f4")
                         for name, n in shapes.items()}
        self.theirs, self._tensors = self._twin(optimizer, names)
        self._read, read = self._twin(optimizer, names)
        self.mine = Update(self._read, {tensor: name for name, tensor in read.items()}, clip_norm, clip_value)

    def _twin(self, optimizer: Any, names: Mapping[Any, str]) -> tuple[Any, dict[str, Any]]:
        """A new optimizer of the same settings and state, for the parts alone."""
        tensors = {name: torch.nn.Parameter(torch.from_numpy(w.copy())) for name, w in self._weights.items()}
        groups, state = [], {}
        for group in optimizer.param_groups:
            own = {names[p]: p for p in group["params"] if names.get(p) in tensors}
            kept = {key: copy.deepcopy(value) for key, value in group.items() if key not in ("params", "param_names")}
            groups.append({**kept, "params": [tensors[name] for name in own],
                           **{key: False for key in ("foreach", "fused") if key in kept}})
            for name, parameter in own.items():
                old = optimizer.state.get(parameter) or {}
                cut = {key: self._part(value, parameter) for key, value in old.items()}
                if cut and all(value is not None or old[key] is None for key, value in cut.items()):
                    state[tensors[name]] = cut
        return twin_of(optimizer, groups, state), tensors

    def _part(self, value: Any, parameter: Any) -> Any:
        """A part of what is remembered of a parameter; None where the part is not known."""
        if not isinstance(value, torch.Tensor) or value.ndim == 0:
            return copy.deepcopy(value)
        if value.shape != parameter.shape:
            return None
        return value.detach()[tuple(slice(0, MOST) for _ in value.shape)].clone().float().cpu()

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
        with plan.session("cpu:1") as session:
            for name, value in {**self._weights, **self.mine.start()}.items():
                session.variables[name] = value
            rates = [float(group.get("lr", 0)) for group in self.theirs.param_groups]
            largest = max(rates)
            for count, found in enumerate(gradients):
                for twin in (self.theirs, self._read):
                    for group, rate in zip(twin.param_groups, rates):
                        if "lr" in group and largest:
                            group["lr"] = RATE / 2**count * rate / largest
                given = {name: updates.usable(np.asarray(found[guard.GRADIENT + name], "f4").reshape(shape)
                                              [tuple(slice(0, MOST) for _ in shape)])
                         for name, shape in self._shapes.items()}
                before = {name: session.variables[name] for name in self._weights}
                for name, value in self.mine.follow().items():
                    session.variables[name] = value
                session.train_step({"gradients": np.concatenate([g.reshape(-1) for g in given.values()])[None]})
                self._step(given)
                self._judge(session, before, count + 1)
        return f"{len(gradients)} updates of {self.kind} are PyTorch's"

    def _step(self, gradients: Mapping[str, Array]) -> None:
        for name, tensor in self._tensors.items():
            tensor.grad = torch.from_numpy(gradients[name].copy())
        norm, bound = self._clipping
        if norm is not None:
            torch.nn.utils.clip_grad_norm_(list(self._tensors.values()), norm)
        if bound is not None:
            torch.nn.utils.clip_grad_value_(list(self._tensors.values()), bound)
        type(self.theirs).step(self.theirs)

    def _judge(self, session: Any, before: Mapping[str, Array], count: int) -> None:
        wrong: dict[str, float] = {}
        for name, tensor in self._tensors.items():
            theirs = tensor.detach().numpy()
            change = float(np.abs(theirs - before[name]).max())
            wrong[f"the weight {name}"] = updates.error(session.variables[name], theirs, change)
        for slot in self.mine.slots.values():
            for owner, key in slot.keys:
                holder = (self.theirs.param_groups[owner] if isinstance(owner, int)
                          else self.theirs.state[self._tensors[owner]])
                if (value := holder.get(key)) is not None:
                    value = np.asarray(value.detach() if isinstance(value, torch.Tensor) else value, "f4")
                    own = np.asarray(session.variables[slot.name])
                    wrong[f"the state {key} of {owner}"] = updates.error(own, value, float(np.abs(value).max()))
        updates.judge(wrong, self.kind, "PyTorch", count)
