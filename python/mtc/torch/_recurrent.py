# SPDX-License-Identifier: Apache-2.0
"""Recurrent layers, a step of the sequence after the other."""

from __future__ import annotations

from typing import Any, Callable, Optional, Sequence

import numpy as np

from mtc._trace import Batch, Refused, Value, layout, moves, products
from mtc._trace import elementwise as e
from mtc.torch._convert import Converter, op
from mtc.torch._layers import drop

Cell = Callable[[Value, Value, Optional[Value], Value], tuple[Value, Optional[Value]]]


def _gates(x: Value, count: int) -> list[Value]:
    size = int(x.shape[-1]) // count  # type: ignore[arg-type]
    axis = len(x.shape) - 1
    return [moves.part(x, axis, i * size, (i + 1) * size) for i in range(count)]


def _affine(x: Value, weight: Value, bias: Optional[Value]) -> Value:
    if x.scalar == 0:  # the state in front of the first step
        return bias if bias is not None else x.graph.constant(np.zeros(int(weight.shape[0]), "float32"))  # type: ignore
    made = products.dot_general(x, weight, ((len(x.shape) - 1,), (1,)))
    return made if bias is None else made + bias


def _lstm(given: Value, hidden: Value, cell: Optional[Value], inner: Value) -> tuple[Value, Optional[Value]]:
    assert cell is not None
    i, f, g, o = _gates(given + inner, 4)
    kept = e.unary("sigmoid", f) * cell
    cell = kept + e.unary("sigmoid", i) * e.unary("tanh", g)
    return e.unary("sigmoid", o) * e.unary("tanh", cell), cell


def _gru(given: Value, hidden: Value, _: Optional[Value], inner: Value) -> tuple[Value, Optional[Value]]:
    (r, z, n), (hr, hz, hn) = _gates(given, 3), _gates(inner, 3)
    reset, update = e.unary("sigmoid", r + hr), e.unary("sigmoid", z + hz)
    new = e.unary("tanh", n + reset * hn)
    return new + update * (hidden - new), None


def _simple(function: str) -> Cell:
    def cell(given: Value, hidden: Value, _: Optional[Value], inner: Value) -> tuple[Value, Optional[Value]]:
        return e.unary(function, given + inner), None

    return cell


CELLS: dict[str, Cell] = {"lstm": _lstm, "gru": _gru, "rnn_tanh": _simple("tanh"), "rnn_relu": _simple("relu")}


@op(*CELLS)
def recurrent(c: Converter, value: Any, starts: Any, parameters: Sequence[Any], biased: Any, layers: Any,
              rate: Any, training: Any, bidirectional: Any, batch_first: Any) -> list[Value]:
    if not isinstance(biased, bool):
        raise Refused("a packed sequence")
    first = [c.value(s) for s in (starts if isinstance(starts, (list, tuple)) else [starts])]
    weights = [c.value(p) for p in parameters]
    each, ways = 4 if biased else 2, 2 if bidirectional else 1
    if len(weights) != layers * ways * each:
        raise Refused("projections of an LSTM")
    x = c.value(value)
    x = x if batch_first else layout.transpose(x, (1, 0, 2))
    if isinstance(x.shape[1], Batch):
        raise Refused("a recurrent layer along the samples")
    ends: list[list[Value]] = [[] for _ in first]
    for layer in range(layers):
        if layer:
            x = drop(c, x, rate)
        outputs = []
        for way in range(ways):
            number = layer * ways + way
            state = [moves.at(s, 0, number) for s in first]
            made, last = _run(CELLS[c.name()], x, state, weights[number * each:(number + 1) * each], way == 1)
            outputs.append(made)
            for end, value_ in zip(ends, last):
                end.append(layout.expand_dims(value_, (0,)))
        x = outputs[0] if ways == 1 else moves.concat(outputs, 2)
    x = x if batch_first else layout.transpose(x, (1, 0, 2))
    return [x, *(moves.concat(end, 0) for end in ends)]


def _run(cell: Cell, x: Value, state: Sequence[Value], weights: Sequence[Value],
         backwards: bool) -> tuple[Value, list[Value]]:
    """A layer in one direction: its results [batch, steps, hidden], and the last states."""
    into, own, *biases = weights
    given = _affine(x, into, biases[0] if biases else None)  # of all steps at once
    hidden, memory = state[0], state[1] if len(state) > 1 else None
    results: list[Value] = []
    steps = int(x.shape[1])  # type: ignore[arg-type]
    for i in x.graph.unroll(steps):
        t = steps - 1 - i if backwards else i
        now = moves.at(given, 1, t)
        hidden, memory = cell(now, hidden, memory, _affine(hidden, own, biases[1] if biases else None))
        results.append(layout.expand_dims(hidden, (1,)))
    if backwards:
        results.reverse()
    return moves.concat(results, 1), [hidden] if memory is None else [hidden, memory]
