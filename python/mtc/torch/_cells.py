# SPDX-License-Identifier: Apache-2.0
"""Recurrent layers in a trace: an operation for each layer and direction, where `torch.export` has one for each part of
each step."""

from __future__ import annotations

import contextlib
import importlib
from typing import Any, Callable, Iterator, Sequence

from mtc.torch._framework import torch

_functorch: Any = torch._C._functorch
_functions: Any = importlib.import_module("torch._VF")
_own: dict[str, Callable[..., Any]] = {name: getattr(_functions, name)
                                       for name in ("lstm", "gru", "rnn_tanh", "rnn_relu")}


def _recurrent(kind: str, x: Any, states: Any, weights: Any, backwards: bool) -> Any:
    x = x.flip(1) if backwards else x
    before = [s.unsqueeze(0) for s in states]
    made, *after = _own[kind](x, before if kind == "lstm" else before[0], weights, len(weights) == 4, 1, 0.0, False,
                              False, True)
    return [made.flip(1) if backwards else made.clone(), *(s.squeeze(0) for s in after)]


_recurrent.__annotations__ = {"kind": str, "x": torch.Tensor, "states": list[torch.Tensor],
                              "weights": list[torch.Tensor], "backwards": bool, "return": list[torch.Tensor]}
# One layer in one direction, of x [batch, steps, inputs], states [batch, units] and the weights of PyTorch's layer:
# the outputs [batch, steps, units], then the last states.
recurrent_op: Any = torch.library.custom_op("mtc::recurrent", _recurrent, mutates_args=())


@recurrent_op.register_fake  # type: ignore[untyped-decorator]
def _shapes(kind: str, x: Any, states: Any, weights: Any, backwards: bool) -> Any:
    units = states[0].shape[-1]
    return [x.new_empty(x.shape[0], x.shape[1], units), *(x.new_empty(x.shape[0], units) for _ in states)]


def _layers(kind: str) -> Callable[..., Any]:
    """As PyTorch's function of this name."""
    def run(x: Any, first: Any, weights: Sequence[Any], biased: Any, layers: Any, rate: Any = None,
            training: Any = None, bidirectional: Any = None, batch_first: Any = None) -> Any:
        each, ways = 4 if biased is True else 2, 2 if bidirectional else 1
        # PyTorch's: packed sequences, projections, and recurrent layers within torch.func.vmap.
        if batch_first is None or len(weights) != layers * ways * each or _functorch.get_interpreter_stack():
            given = (x, first, weights, biased, layers, rate, training, bidirectional, batch_first)
            return _own[kind](*(given if batch_first is not None else given[:-1]))
        starts = list(first) if isinstance(first, (list, tuple)) else [first]
        x = x if batch_first else x.transpose(0, 1)
        ends: list[list[Any]] = [[] for _ in starts]
        for layer in range(layers):
            if layer and rate:
                x = torch.dropout(x, rate, training)
            outputs = []
            for number in range(layer * ways, (layer + 1) * ways):
                made, *last = recurrent_op(kind, x, [s[number] for s in starts],
                                           list(weights[number * each:(number + 1) * each]), number % ways == 1)
                outputs.append(made)
                for end, state in zip(ends, last):
                    end.append(state)
            x = torch.cat(outputs, 2) if ways == 2 else outputs[0]
        return (x if batch_first else x.transpose(0, 1), *(torch.stack(end) for end in ends))

    return run


@contextlib.contextmanager
def taken_whole() -> Iterator[None]:
    """Within it, recurrent layers are operations of a trace."""
    for kind in _own:
        setattr(_functions, kind, _layers(kind))
    try:
        yield
    finally:
        for kind, function in _own.items():
            setattr(_functions, kind, function)
