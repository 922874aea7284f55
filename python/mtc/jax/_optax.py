# SPDX-License-Identifier: Apache-2.0
"""The state of optax' optimizers, from the variables of a session and back."""

from __future__ import annotations

from typing import Any, Callable, MutableMapping

import jax
import numpy as np

from mtc._errors import DataError, ModelError
from mtc.jax._program import Tree

# By the class of a state: its field for each parameter -> the end of a variable's name in the plan.
_SLOTS: dict[str, dict[str, str]] = {
    "ScaleByAdamState": {"mu": "momentum", "nu": "velocity"},
    "ScaleByLionState": {"mu": "momentum"},
    "ScaleByRmsState": {"nu": "velocity"},
    "ScaleByRStdDevState": {"mu": "average_gradient", "nu": "velocity"},
    "ScaleByRssState": {"sum_of_squares": "accumulator"},
    "TraceState": {"trace": "momentum"},
}

Slot = Callable[[str, Any], Any]  # (the end of the names, a tree like the parameters) -> what stands in its place
Count = Callable[[Any], Any]


def _mapped(state: Any, slot: Slot, count: Count) -> Any:
    """The state with other values: of trees like the parameters, and of counts of steps."""
    if not isinstance(state, tuple):
        raise ModelError(f"expected a state of optax, found {type(state).__name__}")
    if not hasattr(state, "_fields"):
        return tuple(_mapped(inner, slot, count) for inner in state)
    slots = _SLOTS.get(type(state).__name__, {})
    values = {}
    for name, value in zip(state._fields, state):
        if name in slots:
            values[name] = slot(slots[name], value)
        elif name == "count":
            values[name] = count(value)
        elif name == "inner_state":
            values[name] = _mapped(value, slot, count)
        else:
            raise ModelError(f"expected a state of optax that MTC has, found {type(state).__name__}.{name}")
    return type(state)(**values)


class State:
    """What an optimizer of optax remembers of these parameters.

    Args:
        optimizer: of optax.
        params: the parameters.
        variables: of a session, by name.
    """

    def __init__(self, optimizer: Any, params: Tree, variables: MutableMapping[str, Any]) -> None:
        self._params, self._variables = params, variables
        arrays = [jax.numpy.asarray(a) if o is None else None for a, o in self._leaves()]
        self._template = optimizer.init(jax.tree_util.tree_unflatten(params.structure, arrays))
        iteration = [n for n in variables if n.endswith("/iteration")]
        if len(iteration) != 1:
            raise ModelError(f"expected one optimizer in the plan, found {len(iteration)}")
        self._iteration = iteration[0]

    def _leaves(self) -> list[tuple[Any, Any]]:
        given = iter(self._params.arrays)
        return [(next(given) if o is None else None, o) for o in self._params.others]

    def _names(self, slot: str) -> list[str]:
        prefix = self._iteration.rpartition("/")[0]
        return [f"{prefix}/{name.replace('/', '_')}_{slot}" for name in self._params.names]

    def read(self) -> Any:
        """The state now, as `optimizer.init` makes it, of NumPy arrays."""
        def slot(end: str, tree: Any) -> Any:
            leaves, structure = jax.tree_util.tree_flatten(tree)
            values = [self._variables[n].astype(old.dtype) if n in self._variables else np.asarray(old)
                      for n, old in zip(self._names(end), leaves)]
            return jax.tree_util.tree_unflatten(structure, values)

        steps = int(self._variables[self._iteration])
        return _mapped(self._template, slot, lambda count: np.asarray(steps, count.dtype))

    def _by_name(self, state: Any) -> dict[str, Any]:
        """What a state has for each parameter, by the name of its variable."""
        found: dict[str, Any] = {}

        def slot(end: str, tree: Any) -> Any:
            found.update(zip(self._names(end), jax.tree.leaves(tree)))
            return tree

        _mapped(state, slot, lambda count: count)
        return found

    def write(self, state: Any) -> None:
        """Sets the variables from a state."""
        found_structure: Any = jax.tree.structure(state)
        if found_structure != jax.tree.structure(self._template):
            raise DataError("expected a state of the optimizer that was compiled, found one of another structure")
        found, first = self._by_name(state), self._by_name(self._template)
        counts: list[int] = []

        def count(value: Any) -> Any:
            counts.append(int(value))
            return value

        _mapped(state, lambda end, tree: tree, count)
        if len(set(counts)) > 1:
            raise DataError(f"expected one number of steps in the state, found {sorted(set(counts))}")
        unused = [n for n, value in found.items()
                  if n not in self._variables and not np.array_equal(first[n], value)]
        if unused:
            raise DataError(f"{unused[0]}: expected the first state of a parameter that the loss does not depend on, "
                            "found another")
        for name, value in found.items():
            if name in self._variables:
                self._variables[name] = np.asarray(value, np.float32)
        if counts:
            self._variables[self._iteration] = np.asarray(counts[0], self._variables[self._iteration].dtype)
