# SPDX-License-Identifier: Apache-2.0
"""Two steps by JAX and by MTC, compared."""

from __future__ import annotations

from typing import Any, Callable

import jax
import numpy as np

from mtc._trace import whole
from mtc.jax._reader import is_key
from mtc.jax._reference import noisy
from mtc.jax._tree import Tree
from mtc.jax._update import arrays_of

STATE = "state"
_jit = jax.jit


def compare(own: Any, function: Callable[..., Any], state: Any, batch: Any) -> str:
    """Two steps by JAX and by a `WholeStep`, each from the same state. Gives what was compared.

    Raises:
        ModelError: an array of the state or of the metrics differs by more than rounding.
    """
    compiled = _jit(function)

    def mine(state: Any) -> whole.Arrays:
        return _arrays(*own(jax.tree.map(_host, state), batch, allow_nan=True))

    def theirs(state: Any) -> tuple[Any, whole.Arrays]:
        wanted, metrics = compiled(state, batch)
        return wanted, _arrays(wanted, metrics)

    def before(state: Any) -> whole.Arrays:
        return {name: _numbers(array) for name, array in zip(own._state.names, jax.tree.leaves(state))}

    def others(state: Any) -> list[whole.Arrays]:  # in float64 JAX draws other random numbers
        return [] if own._traced.keys else [_in_double(function, state, batch)]

    return whole.compare("JAX", mine, theirs, state, before, others,
                         lambda state: _changed(compiled, state, batch),
                         whole.place_of(function, getattr(function, "__name__", "step")))


def _host(array: Any) -> Any:
    return array if is_key(array) else np.asarray(array)


def _numbers(array: Any) -> Any:
    return np.asarray(jax.random.key_data(array) if is_key(array) else array, "f8")


def _arrays(state: Any, metrics: Any) -> whole.Arrays:
    trees = Tree.of(arrays_of(state), STATE), Tree.of(arrays_of(metrics), "metrics")
    return {name: _numbers(array) for tree in trees for name, array in zip(tree.names, tree.arrays)}


def _changed(function: Callable[..., Any], state: Any, batch: Any) -> list[whole.Arrays]:
    """What JAX makes of a step from weights that are changed at random, by as little as roundings change values."""
    found = []
    for number in (1, 2):
        random = np.random.default_rng(number)
        changed = jax.tree.map(lambda a, r=random: a if is_key(a) else noisy(a, 1, r), state)
        found.append(_arrays(*function(changed, batch)))
    return found


def _in_double(function: Callable[..., Any], state: Any, batch: Any) -> whole.Arrays:
    """What JAX makes of a step in float64; nothing where the function does not take it."""
    def double(array: Any) -> Any:
        array = np.asarray(array)
        return jax.numpy.asarray(array, "float64") if array.dtype == np.float32 else array
    try:
        with jax.enable_x64(True):
            return _arrays(*function(jax.tree.map(double, state), jax.tree.map(double, batch)))
    except Exception:  # noqa: BLE001 - the caller's code, which is for float32
        return {}
