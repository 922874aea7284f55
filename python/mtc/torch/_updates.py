# SPDX-License-Identifier: Apache-2.0
"""Three updates by PyTorch's optimizer and by MTC's, with the same gradients.

Both are given the gradients that MTC found, of a few elements of a few parameters of each group: an update is the same
function of each element (`mtc._trace.updates`). Where gradients are clipped, these are all that there are.
"""

from __future__ import annotations

from typing import Any, Callable, Mapping, Sequence

import numpy as np

from mtc._plan import Plan
from mtc._tensors import Array
from mtc._trace import Graph, Value, guard, updates
from mtc.torch import _optimizers
from mtc.torch._framework import torch

ELEMENTS = 16  # of a parameter
EACH = 2  # parameters of a group
RATE = 0.1  # of the first update: a decay has to be seen beside the rounding of a weight

CLIPPING = ("global_clipnorm", "clipvalue")


def chosen_of(optimizer: Any, names: Mapping[Any, str]) -> dict[Any, str]:
    """The parameters that stand for the others: the first and the last ones of each group. `names`: of the trained."""
    found: dict[Any, str] = {}
    for group in optimizer.param_groups:
        own = [p for p in group["params"] if p in names]
        found.update({p: names[p] for p in [*own[:EACH - 1], *own[-1:]]})
    return found


class Updates:
    """The updates of a step's optimizer.

    Args:
        optimizer: of torch.optim.
        names: of the trained parameters.
        attributes: of MTC's optimizer, of which those that clip are taken.
    """

    def __init__(self, optimizer: Any, names: Mapping[Any, str], attributes: Mapping[str, Any]) -> None:
        self.kind = type(optimizer).__name__
        self.clipping = {key: float(attributes[key]) for key in CLIPPING if key in attributes}
        self.sizes = {name: min(p.numel(), ELEMENTS) for p, name in chosen_of(optimizer, names).items()}
        self._places = {name: np.linspace(0, p.numel() - 1, self.sizes[name]).astype("i8")
                        for p, name in chosen_of(optimizer, names).items()}
        generator = np.random.default_rng(3)
        self._weights = {name: (generator.uniform(0.5, 1, n) * generator.choice([-1, 1], n)).astype("f4")
                         for name, n in self.sizes.items()}
        self.theirs, self._tensors = self._twin(optimizer, names)
        self._read, read = self._twin(optimizer, names)
        self.mine = _optimizers.of(self._read, {tensor: name for name, tensor in read.items()})
        self.mine.attributes.update(self.clipping)
        self._mine = read

    def _twin(self, optimizer: Any, names: Mapping[Any, str]) -> tuple[Any, dict[str, Any]]:
        """A new optimizer of the same settings and state, for the elements alone."""
        tensors = {name: torch.nn.Parameter(torch.from_numpy(w.copy())) for name, w in self._weights.items()}
        groups, states = [], {}
        for group in optimizer.param_groups:
            own = {names[p]: p for p in group["params"] if names.get(p) in self.sizes}
            if own:
                kept = {key: value for key, value in group.items() if key not in ("params", "param_names")}
                groups.append({**kept, "params": [tensors[name] for name in own], "foreach": None, "fused": None})
                states.update({name: optimizer.state.get(p) or {} for name, p in own.items()})
        twin = type(optimizer)(groups, lr=RATE)
        for name, state in states.items():
            shape = next(p for p, n in names.items() if n == name).shape
            if state:
                twin.state[tensors[name]] = {key: self._part(name, value, shape) for key, value in state.items()}
        return twin, tensors

    def _part(self, name: str, value: Any, shape: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        if value.shape != shape or value.ndim == 0:
            return value.detach().clone()
        return value.detach().reshape(-1)[torch.from_numpy(self._places[name])].clone().float().cpu()

    def text(self, decays: Mapping[str, float], finish: Callable[[Graph, Value], str]) -> str:
        """A model whose gradients are its input. `decays`: of variables; `finish`: makes the text of a graph and its
        loss."""
        graph = Graph("updates")
        variables = [graph.variable(name, (size,), no_weight_decay=name in self.mine.undecayed,
                                    gradient_decay=decays.get(name, 0.0)) for name, size in self.sizes.items()]
        return finish(graph, updates.loss_of(graph, variables))

    def compare(self, plan: Plan, gradients: Sequence[Mapping[str, Array]]) -> str:
        """Makes an update for each of these gradients. Gives what was compared.

        Raises:
            ModelError: a weight or a slot differs.
        """
        with plan.session("cpu:1") as session:
            for name, weight in self._weights.items():
                session.variables[name] = weight
            for name, value in self.mine.state(self._mine, dict.fromkeys(self.sizes, (0,))).items():
                session.variables[name] = value
            rates = [float(group["lr"]) for group in self.theirs.param_groups]
            largest = max(rates)
            for count, found in enumerate(gradients):
                for twin in (self.theirs, self._read):
                    for group, rate in zip(twin.param_groups, rates):
                        group["lr"] = RATE / 2**count * (rate / largest if largest else 1)
                given = {name: self._given(name, found) for name in self.sizes}
                before = {name: session.variables[name] for name in self.sizes}
                self.mine.follow_rate(session)
                session.train_step({"gradients": np.concatenate(list(given.values()))[None]})
                self._step(given)
                self._judge(session, before, count + 1)
        return f"{len(gradients)} updates of {self.kind} are PyTorch's"

    def _given(self, name: str, found: Mapping[str, Array]) -> Array:
        values = np.asarray(found[guard.GRADIENT + name], "f4").reshape(-1)[self._places[name]]
        gradient = updates.usable(values)
        if self.kind == "Adamax":  # has epsilon in another place, which is seen beside small gradients
            gradient = (np.where(gradient < 0, -1, 1) * np.maximum(np.abs(gradient), 0.1)).astype("f4")
        return gradient

    def _step(self, gradients: Mapping[str, Array]) -> None:
        for name, tensor in self._tensors.items():
            tensor.grad = torch.from_numpy(gradients[name].copy())
        if "global_clipnorm" in self.clipping:
            torch.nn.utils.clip_grad_norm_(list(self._tensors.values()), self.clipping["global_clipnorm"])
        if "clipvalue" in self.clipping:
            torch.nn.utils.clip_grad_value_(list(self._tensors.values()), self.clipping["clipvalue"])
        self.theirs.step()

    def _judge(self, session: Any, before: Mapping[str, Array], count: int) -> None:
        wrong: dict[str, float] = {}
        for name, tensor in self._tensors.items():
            theirs = tensor.detach().numpy()
            change = float(np.abs(theirs - before[name]).max())
            wrong[f"the weight {name}"] = updates.error(session.variables[name], theirs, change)
            for mine, slot in self.mine.slots:
                value = self.theirs.state[tensor].get(slot)
                if isinstance(value, torch.Tensor):
                    value = value.detach().numpy()
                    own = session.variables[self.mine.slot(name, mine)]
                    wrong[f"the state {slot} of {name}"] = updates.error(own, value, float(np.abs(value).max()))
        updates.judge(wrong, self.kind, "PyTorch", count)
