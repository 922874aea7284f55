# SPDX-License-Identifier: Apache-2.0
"""Two steps by PyTorch and by MTC, compared."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np

from mtc._trace import whole
from mtc.torch._framework import pytree, torch
from mtc.torch._reference import even, noisy


def compare(own: Any, function: Callable[..., Any], state: Any, batch: Any) -> str:
    """Two steps by PyTorch and by a `WholeStep`, each from the same state. Gives what was compared.

    Args:
        own: the step, without random numbers, as PyTorch runs here.
        function: the caller's.
        state: the `Tree` of the state.
        batch: the `Tree` of the batch.

    Raises:
        ModelError: a tensor of the state or of the metrics differs by more than rounding.
    """
    def run(tensors: list[Any], convert: Callable[[Any], Any] = lambda t: t) -> tuple[list[Any], whole.Arrays]:
        with even():
            new, found = function(state.build([convert(t).clone() for t in tensors]),
                                  batch.build([convert(t).clone() for t in batch.arrays]))
        made = type(state).of(new).arrays
        return made, _arrays(own, made, type(state).of(found).arrays)

    def mine(tensors: list[Any]) -> whole.Arrays:
        new, found = own(state.build(tensors), batch.build(batch.arrays), allow_nan=True)
        return _arrays(own, _tensors(new, state), _tensors(found, own._traced.metrics))

    def before(tensors: list[Any]) -> whole.Arrays:
        return {name: _numbers(t) for name, t in zip(state.names, tensors)}

    def others(tensors: list[Any]) -> list[whole.Arrays]:
        try:
            return [run(tensors, lambda t: t.double() if t.dtype == torch.float32 else t)[1]]
        except Exception:  # noqa: BLE001 - the caller's code, which is for float32
            return []

    def changed(tensors: list[Any]) -> list[whole.Arrays]:
        found = []
        for noise in (1, 2):
            generator = torch.Generator().manual_seed(noise)
            found.append(run([noisy(t, 1, generator) for t in tensors])[1])
        return found

    place = whole.place_of(function, getattr(function, "__name__", "step"))
    return whole.compare("PyTorch", mine, run, list(state.arrays), before, others, changed, place)


def _tensors(tree: Any, like: Any) -> list[Any]:
    return [value for value, other in zip(pytree.tree_leaves(tree), like.others) if other is None]


def _arrays(own: Any, state: Any, metrics: Any) -> whole.Arrays:
    return {**{name: _numbers(t) for name, t in zip(own._state.names, state)},
            **{f"metrics/{name}": _numbers(t) for name, t in zip(own._traced.metrics.names, metrics)}}


def _numbers(tensor: Any) -> Any:
    return np.asarray(tensor.detach() if isinstance(tensor, torch.Tensor) else tensor, "f8")
