# SPDX-License-Identifier: Apache-2.0
"""Three updates by the optimizer of optax or Keras and by MTC's, with the same gradients.

Both are given the gradients that MTC found, of parts of a few parameters (`mtc._trace.updates`).
"""

from __future__ import annotations

from typing import Any, Callable, Mapping, Protocol, Sequence

import jax
import numpy as np

from mtc._plan import Plan
from mtc._tensors import Array
from mtc._trace import Graph, guard, losses, reals, updates
from mtc.jax._optimizers import Optimizer
from mtc.jax._program import Program, Traced, finish_text, masks_of
from mtc.jax._reader import Reader
from mtc.jax._tree import Tree
from mtc.jax._update import Update

FEW = {0: 1, 1: 16, 2: 4}  # elements along each axis that are enough where an element's update is its own; else 2
MOST = 192  # elements along an axis, of other updates: some depend on the size
COUNT = 8  # parameters whose updates are compared

Arrays = dict[str, Array]


class Twin(Protocol):
    """The framework's optimizer, with new weights for a few parameters."""

    owner: str
    kind: str

    def step(self, gradients: Mapping[str, Array]) -> Arrays:
        """The weights after an update."""

    def slots(self, variables: Any) -> dict[str, tuple[Array, Array]]:
        """What is remembered: MTC's, of a session's variables, and the framework's."""


class Updates:
    """The updates of a step's optimizer.

    Args:
        names: of the parameters that stand for all.
        part: the part of an array that is compared.
        text: a model of these weights, whose gradients are its input.
        make: the framework's optimizer, of first weights.
    """

    def __init__(self, names: Sequence[str], part: Callable[[Any], Array], text: Callable[[Arrays], str],
                 make: Callable[[Arrays], Twin]) -> None:
        self._names = names
        self._part = part
        self._text = text
        self._make = make

    def compare(self, compile: Callable[[str, int], Plan], gradients: Sequence[guard.Values]) -> str:
        """Makes an update for each of these gradients. Gives what was compared.

        Raises:
            ModelError: a weight or a slot differs.
        """
        names = [name for name in self._names if _key(name) in gradients[0] and gradients[0][_key(name)].size]
        if not names:
            return "no update to compare"
        random = np.random.default_rng(3)
        shapes = {name: self._part(gradients[0][_key(name)]).shape for name in names}
        weights = {name: np.asarray(random.uniform(0.5, 1, shape) * random.choice([-1, 1], shape), reals.real())
                   for name, shape in shapes.items()}
        twin = self._make(weights)
        with compile(self._text(weights), 1).session("cpu:1", processes=1) as session:
            for name, value in {**weights, **getattr(twin, "first", {})}.items():
                session.variables[name] = value
            for count, found in enumerate((updates.COUNT * list(gradients))[:updates.COUNT]):
                given = {name: _given(self._part(found[_key(name)]), random) for name in names}
                before = {name: session.variables[name] for name in names}
                session.train_step({"gradients": np.concatenate([g.reshape(-1) for g in given.values()])[None]})
                wrong = {f"the weight {name}": updates.error(
                    session.variables[name], weight, float(np.abs(weight - before[name]).max()))
                    for name, weight in twin.step(given).items()}
                wrong.update({label: updates.error(mine, theirs, float(np.abs(theirs).max()))
                              for label, (mine, theirs) in twin.slots(session.variables).items()})
                updates.judge(wrong, twin.kind, twin.owner, count + 1)
        return f"{updates.COUNT} updates of {twin.kind} are those of {twin.owner}"


def of_short_form(program: Program, optimizer: Optimizer, make: Callable[[Arrays], Twin]) -> Updates:
    """`Updates` of an optimizer of MTC, whose update of an element depends on that element alone.

    Each parameter keeps its axes, by which masks choose; the first and the last parameter stand for all that are
    decayed, and for all that are not.
    """
    decayed = dict(zip(program.params.names, masks_of(program, optimizer)))
    groups = [[name for name in decayed if decayed[name] == flag] for flag in (True, False)]
    names = list(dict.fromkeys(name for group in groups for name in (*group[:1], *group[-1:])))

    def text(weights: Arrays) -> str:
        graph = Graph("updates")
        variables = [graph.variable(name, weight.shape, no_weight_decay=not decayed[name])
                     for name, weight in weights.items()]
        loss = updates.loss_of(graph, variables)
        losses.add_loss(graph, loss)
        return finish_text(Traced(graph, Reader(graph), variables, loss), optimizer)

    return Updates(names, lambda array: _part(array, FEW.get(np.ndim(array), 2)), text, make)


class _Traced:
    """The optimizer of an `Update` itself, with other weights for a few parameters. The others are 0."""

    def __init__(self, update: Update, weights: Arrays) -> None:
        self.kind, self.owner = update.kind, update.owner
        self._update = update
        self._names = list(weights)
        self._weights = [jax.numpy.asarray(weights.get(name, array), reals.real())
                         for name, array in zip(update.params.names, update.params.arrays)]
        self._state = [jax.numpy.asarray(array) for array in update.state.arrays]
        self.first = update.weights()

    def step(self, gradients: Mapping[str, Array]) -> Arrays:
        given = [jax.numpy.asarray(gradients[name]) if name in gradients else jax.numpy.zeros(weight.shape)
                 for name, weight in zip(self._update.params.names, self._weights)]
        made, state = self._update.function(self._weights, given, self._state, reals.real()(0))
        self._weights, self._state = list(made), list(state)
        return {name: np.asarray(weight) for name, weight in zip(self._update.params.names, made)
                if name in self._names}

    def slots(self, variables: Any) -> dict[str, tuple[Array, Array]]:
        return {f"the state {name}": (variables[name], np.asarray(array, reals.real()))
                for name, array in zip(self._update.state.names, self._state) if np.size(array)}


def of_update(update: Update, again: Callable[[Tree], Update]) -> Updates:
    """`Updates` of an optimizer that is traced. `again`: traces it for other parameters."""
    known = update.params
    names = list(dict.fromkeys([*known.names[:COUNT // 2], *known.names[-COUNT // 2:]]))
    made: list[Update] = []

    def small(weights: Arrays) -> Update:
        if not made:
            arrays = [weights[name] if name in weights else np.zeros(_part(array, 2).shape, reals.real())
                      for name, array in zip(known.names, known.arrays)]
            made.append(again(Tree(known.names, arrays, known.structure, known.others)))
        return made[0]

    def text(weights: Arrays) -> str:
        graph = Graph("updates")
        variables = {name: graph.variable(name, np.shape(array))
                     for name, array in zip(known.names, small(weights).params.arrays)}
        loss = updates.loss_of(graph, [variables[name] for name in weights])
        losses.add_loss(graph, loss)
        return finish_text(Traced(graph, Reader(graph), list(variables.values()), None), small(weights))

    return Updates(names, lambda array: _part(array, MOST), text, lambda weights: _Traced(small(weights), weights))


def _key(name: str) -> str:
    return f'{guard.GRADIENT}"{name}"'


def _part(array: Any, most: int) -> Array:
    return np.asarray(array[tuple(slice(0, most) for _ in array.shape)], reals.real())


def _given(part: Array, random: np.random.Generator) -> Array:
    """A gradient to update with. Some elements are 0, where a decay is seen alone; but not all."""
    part = updates.usable(part)
    if not part.any():
        part = np.asarray(random.uniform(-0.01, 0.01, part.shape), reals.real())
    flat = part.reshape(-1).copy()
    flat[3::4] = 0
    return flat.reshape(part.shape)
