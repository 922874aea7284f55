# SPDX-License-Identifier: Apache-2.0
"""Three updates by the optimizer of optax or Keras and by MTC's, with the same gradients and the same schedule.

Both are given the gradients that MTC found, of a few elements of a few parameters (`mtc._trace.updates`). Each keeps
its axes, by which masks choose; the first and the last parameter stand for all that are decayed, and for all that are
not.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Callable, Mapping, Optional, Protocol, Sequence

import jax
import numpy as np

from mtc._plan import Plan
from mtc._tensors import Array
from mtc._trace import Graph, guard, losses, updates
from mtc.jax._optax import State
from mtc.jax._optimizers import Optimizer
from mtc.jax._program import Program, Traced, Tree, _masks, finish_text
from mtc.jax._reader import Reader

MOST = {0: 1, 1: 16, 2: 4}  # elements along each axis, by the number of axes; else 2

Arrays = dict[str, Array]


class Twin(Protocol):
    """The framework's optimizer, with new weights for a few parameters."""

    owner: str
    kind: str

    def step(self, gradients: Mapping[str, Array]) -> Arrays:
        """The weights after an update."""

    def slots(self, variables: Any) -> dict[str, tuple[Array, Array]]:
        """What is remembered: MTC's, of a session's variables, and the framework's."""


Maker = Callable[[Arrays], Twin]  # of first weights


class Updates:
    """The updates of a step's optimizer.

    Args:
        program: the loss function.
        optimizer: MTC's.
        make: the framework's.
    """

    def __init__(self, program: Program, optimizer: Optimizer, make: Maker) -> None:
        self.optimizer = optimizer
        self._decayed = dict(zip(program.params.names, _masks(program, optimizer)))
        self._make = make

    def compare(self, compile: Callable[[str, int], Plan], gradients: Sequence[guard.Values]) -> str:
        """Makes an update for each of these gradients. Gives what was compared.

        Raises:
            ModelError: a weight or a slot differs.
        """
        known = [name for name in self._decayed if _key(name) in gradients[0] and gradients[0][_key(name)].size]
        groups = [[name for name in known if self._decayed[name] == flag] for flag in (True, False)]
        names = list(dict.fromkeys(name for group in groups for name in (*group[:1], *group[-1:])))
        if not names:
            return "no update to compare"
        random = np.random.default_rng(3)
        shapes = {name: _part(gradients[0][_key(name)]).shape for name in names}
        weights = {name: np.asarray(random.uniform(0.5, 1, shape) * random.choice([-1, 1], shape), "f4")
                   for name, shape in shapes.items()}
        twin = self._make(weights)
        with compile(self._text(shapes), 1).session("cpu:1") as session:
            for name, weight in weights.items():
                session.variables[name] = weight
            for count, found in enumerate((updates.COUNT * list(gradients))[:updates.COUNT]):
                given = {name: _given(found[_key(name)], random) for name in names}
                before = {name: session.variables[name] for name in names}
                session.train_step({"gradients": np.concatenate([g.reshape(-1) for g in given.values()])[None]})
                wrong = {f"the weight {name}": updates.error(
                    session.variables[name], weight, float(np.abs(weight - before[name]).max()))
                    for name, weight in twin.step(given).items()}
                wrong.update({label: updates.error(mine, theirs, float(np.abs(theirs).max()))
                              for label, (mine, theirs) in twin.slots(session.variables).items()})
                updates.judge(wrong, twin.kind, twin.owner, count + 1)
        return f"{updates.COUNT} updates of {twin.kind} are those of {twin.owner}"

    def _text(self, shapes: Mapping[str, tuple[int, ...]]) -> str:
        graph = Graph("updates")
        reader = Reader(graph)
        variables = [graph.variable(name, shape, no_weight_decay=not self._decayed[name])
                     for name, shape in shapes.items()]
        losses.add_loss(graph, updates.loss_of(graph, variables))
        return finish_text(Traced(graph, reader), self.optimizer)


class OfOptax:
    """An optimizer of optax. What masks choose by is the whole tree: the other parameters are 0, and so are their
    gradients.

    `full`: of parameters in their own sizes, by which a mask may choose. All but a few of their elements are 0.
    """

    owner = "optax"

    def __init__(self, optimizer: Any, kind: str, params: Tree, weights: Arrays, full: bool) -> None:
        self.kind = kind
        self._optimizer = optimizer
        self._weights_of = {name: weight.shape for name, weight in weights.items()}
        shapes = [a.shape if full else _part(a).shape for a in params.arrays]
        cut = [_spread(weights.get(name), shape) for name, shape in zip(params.names, shapes)]
        self._params = Tree(params.names, cut, params.structure, params.others)
        arrays = [jax.numpy.asarray(a) for a in cut]
        self._weights = _whole(self._params, arrays)
        self._state = optimizer.init(self._weights)

    def step(self, gradients: Mapping[str, Array]) -> Arrays:
        given = [jax.numpy.asarray(_spread(gradients.get(name), array.shape))
                 for name, array in zip(self._params.names, self._params.arrays)]
        changes, self._state = self._optimizer.update(_whole(self._params, given), self._state, self._weights)
        self._weights = jax.tree.map(lambda weight, change: weight + change, self._weights, changes)
        found = dict(zip(self._params.names, jax.tree.leaves(self._weights)))
        return {name: _first(found[name], shape) for name, shape in self._weights_of.items()}

    def slots(self, variables: Any) -> dict[str, tuple[Array, Array]]:
        mine = jax.tree_util.tree_leaves_with_path(State(self._optimizer, self._params, variables).read())
        theirs = jax.tree.leaves(self._state)
        return {f"the state{jax.tree_util.keystr(path)}": (np.asarray(own), _first(other, np.shape(own)))
                for (path, own), other in zip(mine, theirs) if np.size(own)}


def _spread(part: Optional[Array], shape: Sequence[int]) -> Array:
    """An array of 0 that begins with a part."""
    made = np.zeros(shape, "f4")
    if part is not None:
        made[tuple(map(slice, part.shape))] = part
    return made


def _first(array: Any, shape: Sequence[int]) -> Array:
    """The part of this shape that an array begins with."""
    return np.asarray(np.asarray(array)[tuple(map(slice, shape))])


def _whole(tree: Tree, arrays: Sequence[Any]) -> Any:
    """As `optimizer.init` of a step is given it: what is no array is nothing."""
    given = iter(arrays)
    return jax.tree_util.tree_unflatten(tree.structure, [next(given) if o is None else None for o in tree.others])


def of_optax(program: Program, given: Any, optimizer: Optimizer) -> Optional[Updates]:
    """`Updates` of an object of optax; None for another optimizer, which has no other implementation."""
    if isinstance(given, Optimizer) or not (hasattr(given, "init") and hasattr(given, "update")):
        return None
    params = program.params
    cut = Tree(params.names, [_part(a) for a in params.arrays], params.structure, params.others)
    by_size = callable(optimizer.mask) and _masks(dataclasses.replace(program, params=cut), optimizer) != _masks(
        program, optimizer)
    return Updates(program, optimizer, lambda weights: OfOptax(given, optimizer.kind, params, weights, by_size))


def _key(name: str) -> str:
    return f'{guard.GRADIENT}"{name}"'


def _part(array: Any) -> Array:
    most = MOST.get(len(array.shape), 2)
    return np.asarray(array[tuple(slice(0, most) for _ in array.shape)], "f4")


def _given(gradient: Array, random: np.random.Generator) -> Array:
    """A few elements. Some are 0, where a decay is seen alone; but not all."""
    part = updates.usable(_part(gradient))
    if not part.any():
        part = np.asarray(random.uniform(-0.01, 0.01, part.shape), "f4")
    flat = part.reshape(-1).copy()
    flat[3::4] = 0
    return flat.reshape(part.shape)
