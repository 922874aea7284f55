# SPDX-License-Identifier: Apache-2.0
"""Loops of PyTorch's graphs: `scan` and `while_loop` of torch._higher_order_ops.

A loop whose steps are alike is an `mt.scan`. What PyTorch knows, such as a counter, decides how many steps a
`while_loop` has; a step that computes with a counter reads it as an input of the loop.
"""

from __future__ import annotations

from typing import Any, Optional, Sequence

import numpy as np

from mtc._trace import Refused, Value, layout, loops, moves
from mtc.torch import _nodes
from mtc.torch._convert import Converter
from mtc.torch._framework import torch
from mtc.torch._handlers import op
from mtc.torch._known import Known
from mtc.torch._subgraphs import Subgraph

# Operations that compute with a counter as with any other number. Others look up a place by it.
_ON_NUMBERS = {"add", "sub", "mul", "div", "pow", "rsub", "neg", "exp", "sqrt", "eq", "ne", "lt", "le", "gt", "ge",
               "where", "_to_copy", "to", "remainder", "sin", "cos", "minimum", "maximum", "lift_fresh_copy", "clone"}
_UNBOUNDED = "a loop whose number of steps the data decide: let its condition be a counter's alone, such as i < 10"


@op("scan")
def _scan(c: Converter, step: Subgraph, before: Sequence[Any], inputs: Sequence[Any], rest: Sequence[Any]
          ) -> list[Any]:
    count = len(before)
    carried = [_start(c, v, place) for v, place in zip(before, step.placeholders)]
    parts = [c.value(v) for v in inputs]
    steps = parts[0].shape[0]
    if not isinstance(steps, int):
        raise Refused("a loop along the samples")
    made = None
    if all(v.dtype != "i32" for v in carried):
        made = loops.scan(c.graph, steps, carried, parts, lambda state, now: [
            c.value(v) for v in c.results(step, [*state, *now, *rest])])
    if made is not None:
        return made
    state: list[Any] = list(before)
    rows: list[list[Value]] = []
    for i in c.graph.unroll(steps):
        results = c.results(step, [*state, *(moves.at(v, 0, i) for v in parts), *rest])
        state = results[:count]
        rows.append([layout.expand_dims(c.value(v), (0,)) for v in results[count:]])
    return [*map(c.value, state), *(moves.concat(column, 0) for column in zip(*rows))]


@op("while_loop")
def _while_loop(c: Converter, condition: Subgraph, step: Subgraph, before: Sequence[Any], rest: Sequence[Any]
                ) -> list[Any]:
    known = _follow(c, condition, step, before, rest)
    whole = _whole(c, step, before, rest, known)
    if whole is not None:
        return whole
    state = list(before)
    for _ in c.graph.unroll(len(known) - 1):
        state = c.results(step, [*state, *rest])
    return state


def _start(c: Converter, given: Any, place: Any) -> Value:
    """A carry before the first step, in the shape that it has in each step."""
    return layout.broadcast(c.value(given), _nodes.shape_of(place.meta["val"]))


def _follow(c: Converter, condition: Subgraph, step: Subgraph, before: Sequence[Any], rest: Sequence[Any]
            ) -> list[list[Any]]:
    """What PyTorch knows of the state before each step and after the last one; None in place of the rest."""
    changing: set[int] = set()
    while True:
        state = [v if isinstance(v, Known) and i not in changing else None for i, v in enumerate(before)]
        states = [state]
        for _ in c.graph.unroll():
            (goes_on,) = c.known_results(condition, [*states[-1], *rest])
            if not isinstance(goes_on, Known) or goes_on.tensor.numel() != 1:
                raise Refused(_UNBOUNDED)
            if not bool(goes_on.tensor):
                return states
            after = c.known_results(step, [*states[-1], *rest])
            lost = {i for i, (a, b) in enumerate(zip(states[-1], after)) if a is not None and not isinstance(b, Known)}
            if lost:
                changing |= lost
                break
            states.append([b if a is not None else None for a, b in zip(states[-1], after)])


def _whole(c: Converter, step: Subgraph, before: Sequence[Any], rest: Sequence[Any], known: list[list[Any]]
           ) -> Optional[list[Any]]:
    """The state after a `while_loop` as one loop; None: its steps differ by more than numbers."""
    places = [i for i, v in enumerate(known[0]) if v is None]
    same = {i for i, v in enumerate(known[0]) if v is not None and all(
        torch.equal(v.tensor, other[i].tensor) for other in known)}
    counters = [i for i, v in enumerate(known[0]) if v is not None and i not in same]
    used = [i for i in counters if _is_used(step, i)]
    if not places or len(known) < 3 or any(not _is_number_alone(step, i) for i in used):
        return None
    start = [_start(c, before[i], step.placeholders[i]) for i in places]
    if any(v.dtype == "i32" for v in start):
        return None
    stacked = [np.stack([state[i].tensor.numpy() for state in known[:-1]]) for i in used]
    inputs = [c.graph.constant(array.astype("float32") if array.dtype == np.float64 else array) for array in stacked]

    def body(carried: Sequence[Value], parts: Sequence[Value]) -> list[Value]:
        state = list(before)
        for i, value in [*zip(places, carried), *zip(used, parts)]:
            state[i] = value
        results = c.results(step, [*state, *rest])
        return [c.value(results[i]) for i in places]

    made = loops.scan(c.graph, len(known) - 1, start, inputs, body)
    if made is None:
        return None
    values = iter(made)
    return [next(values) if v is None else v for v in known[-1]]


def _is_used(step: Subgraph, number: int) -> bool:
    """Whether a carry decides more of a step than itself."""
    reached, others = _reached(step, number), [r for i, r in enumerate(step.results) if i != number]
    return any(result in reached for result in others)


def _reached(step: Subgraph, number: int) -> set[Any]:
    """The nodes of a step that depend on a carry."""
    reached = {step.placeholders[number]}
    for node in step.nodes:
        if any(n in reached for n in node.all_input_nodes):
            reached.add(node)
    return reached


def _is_number_alone(step: Subgraph, number: int) -> bool:
    """Whether all operations that a carry alone decides are those that compute with numbers."""
    fixed = {step.placeholders[number]}
    for node in step.nodes:
        if node.op == "call_function" and any(n in fixed for n in node.all_input_nodes):
            if _nodes.name_of(node.target) not in _ON_NUMBERS:
                return False
            if all(n in fixed for n in node.all_input_nodes):
                fixed.add(node)
    return True
