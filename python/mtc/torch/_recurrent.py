# SPDX-License-Identifier: Apache-2.0
"""Recurrent layers: a loop over the steps of the sequence."""

from __future__ import annotations

from typing import Any, Callable, Optional, Sequence

import numpy as np

from mtc._trace import Batch, Refused, Value, layout, loops, moves, products
from mtc._trace import elementwise as e
from mtc.torch._convert import Converter
from mtc.torch._handlers import op

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


@op("recurrent")
def recurrent(c: Converter, kind: str, given: Any, first: Sequence[Any], parameters: Sequence[Any],
              backwards: bool) -> list[Value]:
    """A layer in one direction: its results [batch, steps, hidden], and the last states."""
    into, own, *biases = [c.value(p) for p in parameters]
    x, state = c.value(given), [c.value(s) for s in first]  # [batch, steps, inputs], [batch, hidden]
    if isinstance(x.shape[1], Batch):
        raise Refused("a recurrent layer along the samples")
    given = _affine(x, into, biases[0] if biases else None)  # of all steps at once

    def step(before: Sequence[Value], now: Value) -> list[Value]:
        hidden, memory = before[0], before[1] if len(before) > 1 else None
        hidden, memory = CELLS[kind](now, hidden, memory, _affine(hidden, own, biases[1] if biases else None))
        return [hidden] if memory is None else [hidden, memory]

    steps = int(x.shape[1])
    before = [layout.broadcast(s, (*x.shape[:1], s.shape[-1])) for s in state]
    made = loops.scan(x.graph, steps, before, [layout.move_axis(given, 1, 0)],
                      lambda carried, parts: [*(after := step(carried, parts[0])), after[0]], backwards)
    if made is not None:
        return [layout.move_axis(made[-1], 0, 1), *made[:-1]]
    results: list[Value] = []
    for i in x.graph.unroll(steps):
        state = step(state, moves.at(given, 1, steps - 1 - i if backwards else i))
        results.append(layout.expand_dims(state[0], (1,)))
    if backwards:
        results.reverse()
    return [moves.concat(results, 1), *state]
