# SPDX-License-Identifier: Apache-2.0
"""Loops over the steps of sequences, as `mt.scan`: the operations of one step stand for those of all steps.

A body that `mt.scan` cannot have, or that would become slower by it, is not taken (None): the caller then makes the
operations of each step, one after the other.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Callable, Optional, Sequence

from mtc._trace import layout
from mtc._trace.values import BATCH, Batch, Refused, Shape, Value, has_batch, stored

if TYPE_CHECKING:
    from mtc._trace.graph import Graph

# From the carries before a step, and the part of each input, to the carries after it, and then the outputs.
Body = Callable[[Sequence[Value], Sequence[Value]], Sequence[Value]]

MOST_OPERATIONS = 50_000  # in all steps; of `graph`, of which some become several of `mt`, which has a limit of its own
# Images have an order in memory of their own, which carries do not have; points of derivatives belong to the model.
_NOT_INSIDE = ("convolution", "transposed_convolution", "pool", "pool_gradient", "derivative", "argument", "gradient")


@dataclasses.dataclass(eq=False)
class Loop:
    """An `mt.scan`.

    Attributes:
        inputs: [steps, ...].
        before: the carries before the first step.
        parts: arguments of the body, tensors of `mt`: the part of each input.
        carried: the same of the carries.
        results: of the body: the carries after a step, then the outputs.
        outer: what the body reads and does not make.
        made: the results of the loop, tensors of `mt`.
    """

    steps: int
    reverse: bool
    inputs: list[Value]
    before: list[Value]
    parts: list[Value]
    carried: list[Value]
    results: list[Value] = dataclasses.field(default_factory=list)
    outer: list[Value] = dataclasses.field(default_factory=list)
    made: list[Value] = dataclasses.field(default_factory=list)


def reads(value: Value) -> Sequence[Value]:
    """The values that are written before a value. (The operands of a result of a loop are values of the body.)"""
    if value.op == "scan":
        loop: Loop = value.info[0]
        return [*loop.inputs, *loop.before, *loop.outer]
    return () if value.op == "scan_argument" else value.operands


def scan(graph: Graph, steps: int, before: Sequence[Value], inputs: Sequence[Value], body: Body,
         reverse: bool = False) -> Optional[list[Value]]:
    """The carries after the last step, then the outputs of all steps [steps, ...]; None: the loop must be unrolled.

    `reverse`: the loop begins with the last step of the inputs; the outputs have the order of the inputs.
    """
    if steps < 2 or any(sum(isinstance(n, Batch) for n in v.shape) > 1 for v in (*before, *inputs)):
        return None
    size = graph.size
    made = _traced(graph, steps, before, inputs, body, reverse)
    if made is None:
        graph.forget(size)
    return made


def _traced(graph: Graph, steps: int, before: Sequence[Value], inputs: Sequence[Value], body: Body,
            reverse: bool) -> Optional[list[Value]]:
    learned = tuple(value.learned for value in before)
    state = _state(graph)
    while True:
        key: Any = (steps, reverse, tuple(map(id, inputs)), tuple(map(id, before)), learned)
        loop = Loop(steps, reverse, list(inputs), list(before), *_arguments(graph, key, inputs, before))
        count = graph.size
        parts = [layout.from_stored(tensor, v.shape[1:]) for tensor, v in zip(loop.parts, inputs)]
        carried = [layout.from_stored(tensor, v.shape) for tensor, v in zip(loop.carried, before)]
        try:
            loop.results = list(body(carried, parts))
        except Refused:
            return None
        if _state(graph) != state or (graph.size - count) * steps > MOST_OPERATIONS:
            return None
        after = [value.learned for value in loop.results[:len(before)]]
        if all(on or not new for on, new in zip(learned, after)):
            break
        learned = tuple(on or new for on, new in zip(learned, after))
    key = (key, tuple(map(id, loop.results)))
    if key not in graph.loops:
        graph.loops[key] = _results(graph, loop)
    return graph.loops[key]  # type: ignore[no-any-return]


def _state(graph: Graph) -> tuple[int, ...]:
    """How many things a graph has beside its operations."""
    return tuple(map(len, (graph.statements, graph.variables, graph.signature, graph.state, graph.assigned)))


def _sizes(shape: Shape) -> Shape:
    """The shape of the tensor of `mt` of a value."""
    return tuple(BATCH if n is None else n for n in stored(shape))


def _arguments(graph: Graph, key: Any, inputs: Sequence[Value], before: Sequence[Value]) -> tuple[list[Value], ...]:
    """The arguments of the body; those that there are already, where a loop over the same is traced again."""
    def argument(operand: Value, shape: Shape, learned: bool) -> Value:
        return Value(graph, "scan_argument", (operand,), "", _sizes(shape), operand.dtype, tensor=True, learned=learned,
                     location=graph.location)

    if key not in graph.loops:
        graph.loops[key] = ([argument(v, v.shape[1:], v.learned) for v in inputs],
                            [argument(v, v.shape, on) for v, on in zip(before, key[-1])])
    return graph.loops[key]  # type: ignore[no-any-return]


def _results(graph: Graph, loop: Loop) -> Optional[list[Value]]:
    inside = _inside(loop)
    count = len(loop.before)
    if inside is None or any((v.shape, v.dtype) != (b.shape, b.dtype) for v, b in zip(loop.results, loop.before)):
        return None
    for tensor, after in zip(loop.carried, loop.results):
        tensor.operands = (*tensor.operands, after)  # the functions that ask what a value depends on find both
    made, outputs = [], [v for v in loop.results[count:] if id(v) in inside]
    same = loop.results[count:]
    loop.results = [*loop.results[:count], *outputs]
    if not any(id(v) in inside for v in loop.results):
        return None
    for number, value in enumerate(loop.results):
        shape = value.shape if number < count else (loop.steps, *value.shape)
        operands = (value, loop.before[number]) if number < count else (value,)
        tensor = Value(graph, "scan", operands, "", _sizes(shape), value.dtype, tensor=True,
                       learned=any(o.learned for o in operands), location=graph.location, info=(loop, number))
        loop.made.append(tensor)
        made.append(layout.from_stored(tensor, shape))
    rest = iter(made[count:])
    return [*made[:count], *(next(rest) if id(v) in inside else layout.broadcast(v, (loop.steps, *v.shape))
                             for v in same)]


def _inside(loop: Loop) -> Optional[set[int]]:
    """The ids of the values that depend on a step; None: `mt.scan` should not have them. Finds what is read besides."""
    depends = {id(v): True for v in (*loop.parts, *loop.carried)}
    outer: dict[int, Value] = {}
    waiting = list(loop.results)
    while waiting:
        top = waiting[-1]
        if id(top) in depends:
            waiting.pop()
            continue
        needed = reads(top)
        missing = [v for v in needed if id(v) not in depends]
        if missing:
            waiting += missing
            continue
        waiting.pop()
        own = [v for v in needed if depends[id(v)]]
        depends[id(top)] = bool(own)
        if not own:
            continue
        if top.op in _NOT_INSIDE or not has_batch(top.shape) and any(has_batch(v.shape) for v in own):
            return None  # a sum over the samples would hide a loss or a statistic from the functions that look for it
        outer.update((id(v), v) for v in needed if not depends[id(v)])
    outer.update((id(v), v) for v in loop.results if not depends[id(v)])
    loop.outer = list(outer.values())
    return {number for number, inside in depends.items() if inside}
