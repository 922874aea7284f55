# SPDX-License-Identifier: Apache-2.0
"""Two steps by JAX and by MTC, compared."""

from __future__ import annotations

from typing import Any, Callable, Mapping, Sequence

import jax
import numpy as np

from mtc._errors import ModelError
from mtc._tensors import Array
from mtc._trace import roundings
from mtc.jax._reader import is_key
from mtc.jax._tree import Tree
from mtc.jax._update import arrays_of

TOLERANCE = 1e-4
STATE = "state"
_jit = jax.jit


def compare(own: Any, function: Callable[..., Any], state: Any, batch: Any) -> str:
    """Two steps by JAX and by a `WholeStep`, each from the same state. Gives what was compared.

    Raises:
        ModelError: an array of the state or of the metrics differs by more than rounding.
    """
    whole = _jit(function)
    for count in (1, 2):
        wanted, metrics = whole(state, batch)
        found, shown = own(jax.tree.map(_host, state), batch, allow_nan=True)
        pairs = {**_pairs(found, wanted, STATE), **_pairs(shown, metrics, "metrics")}
        before = dict(zip(own._state.names, jax.tree.leaves(state)))
        # In float64 JAX draws other random numbers.
        others = [] if own._traced.keys else [_in_double(function, state, batch)]
        errors = _errors(pairs, before, others, 4)
        if not all(value <= 1 for value in errors.values()):
            errors = {name: min(value, other) for (name, value), other in zip(
                errors.items(), _errors(pairs, before, _changed(whole, state, batch), roundings.SLACK).values())}
        wrong = {name: value for name, value in errors.items() if not value <= 1}
        if wrong:
            listed = "\n".join(f"  {name}: {value:.3g}" for name, value in
                               sorted(wrong.items(), key=lambda item: -item[1])[:10])
            raise ModelError(f"the step differs from JAX: after {count} of 2 steps {len(wrong)} of {len(errors)} "
                             f"arrays, by so many times what rounding allows:\n{listed}")
        state = wanted
    return f"checked against JAX: 2 steps, {len(errors)} arrays of the state and metrics, agree"


def _errors(pairs: Mapping[str, tuple[Any, Any]], before: Mapping[str, Any], others: Sequence[Mapping[str, Array]],
            slack: float) -> dict[str, float]:
    """Differences, as shares of what rounding allows.

    Args:
        pairs: MTC's array and JAX', by name.
        before: the state before the step.
        others: what JAX makes in another way; rounding allows so many times (`slack`) the distance from these.
    """
    errors = {}
    for name, (mine, theirs) in pairs.items():
        mine, theirs = _numbers(mine), _numbers(theirs)
        if not mine.size:
            errors[name] = 0.0
            continue
        change = np.abs(theirs - _numbers(before[name])).max() if name in before else 0.0
        size = max(float(np.abs(theirs).max()), 1e-30)
        allowed = max(TOLERANCE * max(change, 1e-2 * size), 1e-6 * size)
        allowed = max([allowed, *(slack * float(np.abs(theirs - other[name]).max())
                                  for other in others if name in other)])
        same = (mine == theirs) | np.isnan(mine) & np.isnan(theirs)
        errors[name] = float(np.where(same, 0, np.abs(mine - theirs)).max()) / allowed
    return errors


def _host(array: Any) -> Any:
    return array if is_key(array) else np.asarray(array)


def _numbers(array: Any) -> Array:
    return np.asarray(jax.random.key_data(array) if is_key(array) else array, "f8")


def _pairs(mine: Any, theirs: Any, prefix: str) -> dict[str, tuple[Any, Any]]:
    tree = Tree.of(arrays_of(theirs), prefix)
    return {name: (a, b) for name, a, b in zip(tree.names, jax.tree.leaves(mine), tree.arrays)}


def _changed(function: Callable[..., Any], state: Any, batch: Any) -> list[dict[str, Array]]:
    """What JAX makes of a step from weights that are changed at random, by as little as roundings change values."""
    found = []
    for number in (1, 2):
        noise = np.random.default_rng(number)

        def change(array: Any, noise: Any = noise) -> Any:
            if is_key(array) or np.asarray(array).dtype != np.float32:
                return array
            array = np.asarray(array)
            return (array * (1 + roundings.change(1) * noise.uniform(-1, 1, array.shape))).astype(array.dtype)
        new, metrics = function(jax.tree.map(change, state), batch)
        trees = Tree.of(arrays_of(new), STATE), Tree.of(arrays_of(metrics), "metrics")
        found.append({name: _numbers(array) for tree in trees for name, array in zip(tree.names, tree.arrays)})
    return found


def _in_double(function: Callable[..., Any], state: Any, batch: Any) -> dict[str, Array]:
    """What JAX makes of a step in float64; nothing where the function does not take it."""
    def double(array: Any) -> Any:
        array = np.asarray(array)
        return jax.numpy.asarray(array, "float64") if array.dtype == np.float32 else array
    try:
        with jax.enable_x64(True):
            new, metrics = function(jax.tree.map(double, state), jax.tree.map(double, batch))
            trees = Tree.of(arrays_of(new), STATE), Tree.of(arrays_of(metrics), "metrics")
            return {name: np.asarray(array, "f8") for tree in trees for name, array in zip(tree.names, tree.arrays)}
    except Exception:  # noqa: BLE001 - the caller's code, which is for float32
        return {}
