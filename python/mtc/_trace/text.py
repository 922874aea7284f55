# SPDX-License-Identifier: Apache-2.0
"""A graph as text: of the dialect `graph` first, and then, by the compiler's pass `graph-layout`, of `mt`."""

from __future__ import annotations

import ctypes
import json
import re
from typing import TYPE_CHECKING, Any, Optional, Sequence

import numpy as np

from mtc import _library, _structs
from mtc._errors import ModelError
from mtc._plan import take_result
from mtc._trace import reals
from mtc._trace.loops import Loop, reads
from mtc._trace.values import BATCH, Shape, Value, stored

if TYPE_CHECKING:
    from mtc._trace.graph import Graph

VERSION = 1  # of the dialect `graph`


def written(graph: Graph, optimizer: str, skipped: set[int]) -> str:
    """The model in the dialects `graph` and `mt`. `optimizer`: its line, if any.

    `skipped`: ids of values that their operand stands for.
    """
    return _Writer(graph, skipped).text(optimizer)


class NotLowered(Exception):
    """What the pass `graph-layout` refuses. `problems`: number of the origin (-1: none), reason, layer."""

    def __init__(self, problems: Sequence[tuple[int, str, str]]) -> None:
        super().__init__("\n".join(reason for _, reason, _ in problems))
        self.problems = problems


def lowered(model: str) -> str:
    """The model in `mt`.

    Raises:
        NotLowered: the layout of operations is refused.
    """
    library, weights = _library.compiler(), ctypes.c_void_p()
    encoded = model.encode()
    try:
        made = take_result(lambda *given: library.mtc_import_text(*given, ctypes.byref(weights)), encoded, len(encoded),
                           b"trace", _structs.sized(_structs.CompileOptions), invalid=ModelError)
    except ModelError as error:
        raise NotLowered([_problem(line) for line in str(error).splitlines()]) from None
    return made.decode()


_PROBLEM = re.compile(r'^origin:(\d+):\d+: error: (.*?)(?: \(in "(.*)"\))?$')


def _problem(line: str) -> tuple[int, str, str]:
    found = _PROBLEM.match(line)
    return (int(found[1]), found[2], found[3] or "") if found else (-1, line, "")


class _Writer:
    """Numbers the values, and writes each after those that it reads."""

    def __init__(self, graph: Graph, skipped: set[int]) -> None:
        self._graph = graph
        self._skipped = skipped
        self._lines: list[str] = []
        self._numbers: dict[Any, str] = {}  # by id and whether it is the tensor
        self._count = 0

    def text(self, optimizer: str) -> str:
        graph = self._graph
        # Inputs and variables in the order in which they were made, whether or not something reads them.
        for value in [*graph.signature, *graph.variables.values(), *graph.state.values()]:
            self._write(value)
        for template, operands in graph.statements:
            self._say(template, operands)
        self._lines.append("mt.update {" if graph.assigned else optimizer)
        for name, value in graph.assigned:
            self._say(f"mt.assign {quoted(name)}, {{0}} : {{t0}}", (value,))
        for name, value, words in graph.reported:
            self._say(f"mt.result {quoted(name)}, {{0}}, {{1}}{words}", (value, graph.count(BATCH)))
        if graph.assigned:
            self._lines.append("}")
        body = "\n".join("    " + line for line in self._lines)
        precision = ", mt.compilation = #mt.compilation<precision = f64>" if graph.double else ""
        return (f"module attributes {{graph.version = {VERSION} : i32{precision}}} {{\n"
                f"  mt.model @{quoted(graph.name)} {{\n{body}\n  }}\n}}\n")

    def _say(self, template: str, operands: Sequence[Value]) -> None:
        for operand in operands:
            self._write(operand)
        names = [f"%{self._number(o, True)}" for o in operands]
        types = {f"t{i}": _tensor(o) for i, o in enumerate(operands)}
        self._lines.append(template.format(*names, **types))

    def _write(self, value: Value) -> None:
        waiting = [value]
        while waiting:
            top = waiting[-1]
            if (id(top), top.tensor) in self._numbers:
                waiting.pop()
                continue
            missing = [o for o in reads(top) if (id(o), o.tensor) not in self._numbers]
            if missing:
                waiting += reversed(missing)
                continue
            waiting.pop()
            self._write_one(top)

    def _write_one(self, value: Value) -> None:
        if id(value) in self._skipped:
            self._numbers[id(value), False] = self._number(value.operands[0], False)
        elif value.constant is not None:
            self._write_constant(value)
        elif value.op == "scan":
            self._write_loop(value.info[0], value)
        elif value.tensor:
            names = [f"%{self._number(o, True)}" for o in value.operands]
            types = {"t": _tensor(value), **{f"t{i}": _tensor(o) for i, o in enumerate(value.operands)}}
            self._add(value, True, value.text.format(*names, **types))
        else:
            names = [f"%{self._number(o, False)}" for o in value.operands]
            operand_types = ", ".join(_value(o.shape, o.dtype) for o in value.operands)
            made = _value(value.shape, value.dtype)
            self._add(value, False, f"{value.text.format(*names)} : ({operand_types}) -> {made}")

    def _write_loop(self, loop: Loop, value: Value) -> None:
        """Writes the loop that has the value as a result. What its body makes, conversions too, is named there
        alone."""
        words = ["mt.scan"]
        given = {"over": (loop.inputs, loop.parts), "from": (loop.before, loop.carried)}
        names = [[self._number(o, True) for o in operands] for operands, _ in given.values()]
        outside, self._numbers = self._numbers, dict(self._numbers)
        for (word, (operands, arguments)), numbers in zip(given.items(), names):
            bound = []
            for operand, argument, number in zip(operands, arguments, numbers):
                own = self._numbers[id(argument), True] = self._next()
                bound.append(f"%{own} = %{number} : {_tensor(operand)}")
            words += [f"{word}({', '.join(bound)})"] if bound else []
        words += [] if loop.inputs else [f"steps = {loop.steps}"]
        words += ["reverse"] if loop.reverse else []
        made = self._next()
        self._lines.append(f"%{made}:{len(loop.results)} = {' '.join(words)} {{")
        for result in loop.results:
            self._write(result)
        yielded = [f"%{self._number(r, True)}" for r in loop.results]
        self._lines.append(f"mt.yield {', '.join(yielded)} : {', '.join(map(_tensor, loop.results))}")
        self._numbers = outside
        self._lines.append("}" + self._place(value))
        for other in loop.made:
            self._numbers[id(other), True] = f"{made}#{other.info[1]}"

    def _write_constant(self, value: Value) -> None:
        assert value.constant is not None
        shape: Shape = value.constant.shape if value.constant.size != 1 else ()
        array = value.constant.reshape(shape)  # type: ignore[arg-type]
        tensor = f"tensor<{''.join(f'{n}x' for n in shape)}{value.dtype}>"
        key = ("constant", value.dtype, shape, array.tobytes())
        made = _value(shape, value.dtype)
        if key not in self._numbers:
            if value.dtype == "f32" and self._graph.double:  # the compiler drops the cast
                exact = tensor.replace("f32", "f64")
                number = self._line(f"mt.constant {dense(array, 'f64')} : {exact}", value)
                number = self._line(f"mt.cast %{number} : {exact} to {tensor}", value)
            else:
                number = self._line(f"mt.constant {dense(array, value.dtype)} : {tensor}", value)
            self._numbers[key] = self._line(f"graph.logical %{number} : {tensor} -> {made}", value)
        number = self._numbers[key]
        if shape != value.shape:
            dims = list(range(len(shape)))
            wanted = _value(value.shape, value.dtype)
            number = self._line(f"graph.broadcast %{number} dims {dims} : ({made}) -> {wanted}", value)
        self._numbers[id(value), False] = number

    def _number(self, value: Value, tensor: bool) -> str:
        """The number of a value that is written, as a tensor of `mt` or as a value of `graph`."""
        found = self._numbers.get((id(value), tensor))
        if found is None:
            number = self._numbers[id(value), not tensor]
            logical, whole = _value(value.shape, value.dtype), _tensor(value)
            found = self._line(f"graph.tensor %{number} : {logical} -> {whole}" if tensor else
                               f"graph.logical %{number} : {whole} -> {logical}", value)
            self._numbers[id(value), tensor] = found
        return found

    def _add(self, value: Value, tensor: bool, text: str) -> None:
        self._numbers[id(value), tensor] = self._line(text, value)

    def _next(self) -> str:
        self._count += 1
        return str(self._count - 1)

    def _line(self, text: str, value: Value) -> str:
        made = self._next()
        self._lines.append(f"%{made} = {text}{self._place(value)}")
        return made

    def _place(self, value: Value) -> str:
        """Its location as MLIR writes it, if any."""
        place = f'"origin":{value.origin}:1' if value.origin >= 0 else ""
        location = quoted(value.location) if value.location else ""
        if location and place:
            location = f"{location}({place})"
        location = location or place
        return f" loc({location})" if location else ""


def _tensor(value: Value) -> str:
    """The type of the tensor of `mt`."""
    sizes = "".join("?x" if n is None else f"{n}x" for n in stored(value.shape))
    return f"tensor<{sizes}{value.dtype}>"


def _value(shape: Shape, dtype: str) -> str:
    """The type of the value of `graph`."""
    return f"!graph.value<[{', '.join(map(str, shape))}], {dtype}>"


def quoted(text: str) -> str:
    """A string of MLIR, safe within a template."""
    return json.dumps(text, ensure_ascii=False).replace("{", "\\7B").replace("}", "\\7D")


def number(value: float) -> str:
    """An attribute's number and its type: float32, or float64 where the trace computes with it."""
    return f"{float(value):.16e} : f64" if reals.double() else f"{float(value):.9e} : f32"


def dense(array: Any, dtype: str) -> str:
    """A constant's elements as MLIR writes them."""
    if array.size == 0:
        return "dense<>"
    if array.size > 1:
        data: Optional[Any] = np.packbits(array.reshape(-1), bitorder="little") if dtype == "i1" else array
        return f'dense<"0x{np.ascontiguousarray(data).tobytes().hex().upper()}">'
    value = array.reshape(-1)[0]
    if dtype == "i1":
        return f"dense<{str(bool(value)).lower()}>"
    if dtype == "i32":
        return f"dense<{int(value)}>"
    if dtype == "f64":
        return f"dense<0x{int(np.float64(value).view(np.uint64)):016X}>"
    return f"dense<0x{int(np.float32(value).view(np.uint32)):08X}>"
