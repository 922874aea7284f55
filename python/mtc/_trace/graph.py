# SPDX-License-Identifier: Apache-2.0
"""The graph of a model, and its text."""

from __future__ import annotations

import contextlib
import itertools
import json
from typing import Any, Iterator, Optional, Sequence

import numpy as np

from mtc._trace import patterns
from mtc._trace.values import BATCH, DTYPES, Axis, Batch, Node, Refused, Shape, Stored, Value

_CONSTANT = ("stop_gradient", "one_hot", "floor", "sign")  # without a gradient
_MINIMISED = ("mt.loss ", "mt.regularizer ")


MOST_UNROLLED = 100_000  # operations that the steps of a loop may become, as the compiler's mt-unroll has it


class Graph:
    """A model of `mt` under construction: nodes that are made once, and what is said of them."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.statements: list[tuple[str, tuple[Node, ...]]] = []  # losses, metrics, outputs: a template and operands
        self.variables: dict[str, Node] = {}
        self._nodes: dict[Any, Node] = {}
        self._signature: list[Node] = []
        self._location = ""
        self._streams: dict[str, int] = {}

    # Where operations come from

    @contextlib.contextmanager
    def at(self, name: str) -> Iterator[None]:
        """Operations within are of the layer `name`."""
        before, self._location = self._location, name
        try:
            yield
        finally:
            self._location = before

    @property
    def location(self) -> str:
        """The layer whose operations are made now."""
        return self._location

    # Values

    def input(self, name: str, shape: Shape, dtype: str, kind: str = "input") -> Value:
        """What each sample brings, [BATCH, ...]. `kind`: "input", "target" or "sample_weight"."""
        if not shape or shape[0] != BATCH or any(isinstance(n, Batch) for n in shape[1:]):
            raise Refused(f"{name}: expected the batch as the first axis and no other, found {list(shape)}")
        stored: Stored = (None, *(int(n) for n in shape[1:]))  # type: ignore[arg-type]
        node = Node(kind, (), f"mt.{kind} {quoted(name)} : {{t}}", stored, dtype, location=name)
        self._signature.append(node)
        return self.value(node)

    def variable(self, name: str, shape: Sequence[int], *, frozen: bool = False, no_weight_decay: bool = False,
                 gradient_decay: float = 0.0) -> Value:
        """A variable. It starts with zeros here; who compiles the text gives the values."""
        if name in self.variables:
            raise Refused(f"expected one variable of the name {name}, found two")
        words = "".join(f" {word}" for word, on in (("frozen", frozen), ("no_weight_decay", no_weight_decay)) if on)
        words += f" {{{{mt.gradient_decay = {gradient_decay:.9e} : f32}}}}" if gradient_decay else ""
        node = Node("variable", (), f"mt.variable {quoted(name)} init(zeros){words} : {{t}}", tuple(shape), "f32",
                    location=name, learned=not frozen)
        node.info = name
        self.variables[name] = node
        return self.value(node)

    def without_gradient(self, results: Sequence[Node] = ()) -> list[str]:
        """The variables that are learned, but that no loss, nor one of these results, has a gradient to."""
        found: set[int] = set()
        waiting = [o for text, operands in self.statements if text.startswith(_MINIMISED) for o in operands]
        waiting += results
        while waiting:
            node = waiting.pop()
            if id(node) not in found and node.dtype == "f32" and node.op not in _CONSTANT:
                found.add(id(node))
                waiting += node.operands
        return [name for name, node in self.variables.items() if node.learned and id(node) not in found]

    def freeze(self, name: str) -> None:
        """Makes a variable one that training does not change."""
        node = self.variables[name]
        node.template = node.template.replace(f"{quoted(name)} init(zeros)", f"{quoted(name)} init(zeros) frozen", 1)
        node.learned = False

    def constant(self, array: Any, dtype: Optional[str] = None) -> Value:
        """A constant of NumPy. Elements become f32, i32 or i1; those that are all equal are stored once."""
        array = np.asarray(array)
        dtype = dtype or dtype_of(array.dtype)
        converted = convert(array, dtype)
        same = converted.size > 0 and bool((converted == converted.flat[0]).all())
        shape = array.shape
        if same:
            node = self.constant_node(converted.reshape(-1)[0], dtype)
            return Value(self, node, tuple((Axis(n),) for n in shape))
        kept = [i for i, n in enumerate(shape) if n != 1]
        node = self.constant_node(converted.reshape([shape[i] for i in kept]), dtype)
        return Value(self, node, tuple((Axis(n, kept.index(i) if i in kept else None),) for i, n in enumerate(shape)))

    def count(self, size: Batch, dtype: str = "f32") -> Value:
        """A number of samples, times a factor: a scalar."""
        node = self.node("batch_size", (), "mt.batch_size", (), "f32")
        node.count = 1
        if size.times != 1:
            factor = self.constant_node(np.float32(size.times), "f32")
            node = self.node("mul", (node, factor), "mt.mul {0}, {1} : {t0}, {t1}", (), "f32")
            node.count = size.times
        if dtype != "f32":
            node = self.node("cast", (node,), "mt.cast {0} : {t0} to {t}", (), dtype)
            node.count = size.times
        return self.value(node)

    def iteration(self) -> Value:
        """The number of steps before this one: an i32 scalar."""
        return self.value(self.node("iteration", (), "mt.iteration", (), "i32"))

    def random(self, kind: str, shape: Shape, stream: str) -> Value:
        """Random numbers: of `kind` "uniform" in [0, 1) or "normal", new ones in each step.

        Streams of one name in a graph get numbers, so that each is drawn by itself.
        """
        used = self._streams.get(stream, 0)
        self._streams[stream] = used + 1
        name = f"{stream}_{used}" if used else stream
        step = self.iteration().node
        batches = [i for i, n in enumerate(shape) if isinstance(n, Batch)]
        if not batches:
            stored: Stored = tuple(int(n) for n in shape)  # type: ignore[arg-type]
        else:
            rest = [n for i, n in enumerate(shape) if i not in batches]
            times = shape[batches[0]].times  # type: ignore[union-attr]
            stored = (None, *([times] if times > 1 else []), *rest)  # type: ignore[arg-type]
        node = self.node(f"random_{kind}", (step,), f"mt.random_{kind} {quoted(name)} step({{0}}) : {{t}}", stored,
                         "f32")
        if not batches:
            return self.value(node)
        place = 1 if stored[1:2] == (times,) and times > 1 else 0
        axes: list[tuple[Axis, ...]] = []
        for i, n in enumerate(shape):
            if i in batches:
                axes.append((Axis(BATCH, 0), Axis(times, 1)) if times > 1 else (Axis(BATCH, 0),))
            else:
                place += 1
                axes.append((Axis(n, place),))
        return self.tidy(Value(self, node, tuple(axes)))

    def stop_gradient(self, value: Value) -> Value:
        """The value, through which no gradient goes.

        A maximum that is subtracted before e^x and added again after the logarithm has none in sum: see
        `patterns.cancelled`.
        """
        node = value.node
        if not node.learned:
            return value
        op = "shift" if patterns.shift_of(node) is not None else "stop_gradient"
        made = self.node(op, (node,), "mt.stop_gradient {0} : {t0}", node.shape, node.dtype)
        made.learned = False
        return Value(self, made, value.axes)

    # Nodes

    def node(self, op: str, operands: Sequence[Node], template: str, shape: Stored, dtype: str) -> Node:
        """The node of this text; the one that there is already, where it is equal."""
        key = (template, tuple(id(o) for o in operands), shape, dtype)
        found = self._nodes.get(key)
        if found is None:
            found = Node(op, tuple(operands), template, shape, dtype, location=self._location,
                         learned=any(o.learned for o in operands))
            self._nodes[key] = found
        return found

    def constant_node(self, array: Any, dtype: str) -> Node:
        """The node of a constant, whose axes are stored as they are."""
        array = np.ascontiguousarray(array, dtype=DTYPES[dtype]).reshape(np.shape(array))
        key = ("constant", dtype, array.shape, array.tobytes())
        found = self._nodes.get(key)
        if found is None:
            found = Node("constant", (), "", tuple(array.shape), dtype, constant=array, location=self._location)
            self._nodes[key] = found
        return found

    def value(self, node: Node) -> Value:
        """The value whose logical axes are those of the node."""
        return self.tidy(Value(self, node, tuple((Axis(BATCH if n is None else n, i),)
                                                 for i, n in enumerate(node.shape))))

    def tidy(self, value: Value) -> Value:
        """Takes axes of size 1 out of the stored tensor."""
        shape = value.node.shape
        if 1 not in shape:
            return value
        kept = [i for i, n in enumerate(shape) if n != 1]
        node = self.reshape_node(value.node, tuple(shape[i] for i in kept))
        axes = tuple(tuple(Axis(a.size, kept.index(a.place) if a.place in kept else None) for a in parts)
                     for parts in value.axes)
        return Value(self, node, axes)

    def reshape_node(self, node: Node, shape: Stored) -> Node:
        """The same elements, row major, in another stored shape."""
        while node.op == "reshape" and shape != node.shape:
            node = node.operands[0]
        if shape == node.shape:
            return node
        if node.constant is not None:
            return self.constant_node(node.constant.reshape(shape), node.dtype)
        return self.node("reshape", (node,), "mt.reshape {0} : {t0} to {t}", shape, node.dtype)

    def unroll(self, steps: Optional[int] = None) -> Iterator[int]:
        """The numbers of a loop's steps, while their operations are made one after the other. Refused: too many.

        Without `steps` the caller ends the loop.
        """
        before = len(self._nodes)
        for i in itertools.count() if steps is None else range(steps):
            yield i
            made = len(self._nodes) - before
            more = 1 if steps is None else steps / (i + 1)
            if made * more > MOST_UNROLLED or i > MOST_UNROLLED:
                found = "too many steps" if steps is None else f"{steps} steps of {made / (i + 1):.0f} operations"
                raise Refused(f"a loop of {found}: its steps are unrolled, to at most {MOST_UNROLLED} operations")

    # Text

    def say(self, template: str, *operands: Node) -> None:
        """A statement of the model, such as a loss."""
        self.statements.append((template, operands))

    def output(self, name: str, node: Node) -> None:
        """A named result of `predict`; its first stored axis is the batch."""
        self.say(f"mt.output {quoted(name)}, {{0}} : {{t0}}", node)

    def text(self, optimizer: str, before: Sequence[str] = ()) -> str:
        """The model. `optimizer`: its line; `before`: lines in front of it, such as those of a schedule."""
        lines: list[str] = []
        # Inputs and variables in the order in which they were made, whether or not something reads them.
        for node in [*self._signature, *self.variables.values()]:
            node.number = -1
        for node in self._nodes.values():
            node.number = -1
        counter = iter(range(1 << 60))
        skipped = patterns.cancelled(_all_of([o for _, operands in self.statements for o in operands]))
        for node in [*self._signature, *self.variables.values()]:
            _print(node, counter, lines, skipped)
        for template, operands in self.statements:
            for operand in operands:
                _print(operand, counter, lines, skipped)
            lines.append(_filled(template, operands, None))
        body = "\n".join("  " + line for line in [*lines, *before, optimizer])
        return f"mt.model @{quoted(self.name)} {{\n{body}\n}}\n"


def _all_of(nodes: Sequence[Node]) -> list[Node]:
    """The nodes and all that they read, each once."""
    found: dict[int, Node] = {}
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        if id(node) not in found:
            found[id(node)] = node
            waiting += node.operands
    return list(found.values())


def _print(node: Node, counter: Iterator[int], lines: list[str], skipped: set[int]) -> None:
    """Prints a node after those that it reads."""
    waiting = [node]
    while waiting:
        top = waiting[-1]
        if top.number >= 0:
            waiting.pop()
            continue
        missing = [o for o in top.operands if o.number < 0]
        if missing:
            waiting += reversed(missing)
            continue
        waiting.pop()
        if id(top) in skipped:
            top.number = top.operands[0].number
            continue
        top.number = next(counter)
        location = f" loc({quoted(top.location)})" if top.location else ""
        if top.constant is not None:
            text = f"mt.constant {dense(top.constant, top.dtype)} : {top.type}"
        else:
            text = _filled(top.template, top.operands, top)
        lines.append(f"%{top.number} = {text}{location}")


def _filled(template: str, operands: Sequence[Node], result: Optional[Node]) -> str:
    names = [f"%{o.number}" for o in operands]
    types = {f"t{i}": o.type for i, o in enumerate(operands)}
    return template.format(*names, **types, t=result.type if result is not None else "")


def quoted(text: str) -> str:
    """A string of MLIR, safe within a template."""
    return json.dumps(text, ensure_ascii=False).replace("{", "\\7B").replace("}", "\\7D")


def dtype_of(dtype: Any) -> str:
    """The element type of `mt` for one of NumPy."""
    kind = np.dtype(dtype).kind
    if kind == "f" or np.dtype(dtype).name == "bfloat16":
        return "f32"
    if kind in "iu":
        return "i32"
    if kind == "b":
        return "i1"
    raise Refused(f"elements of type {np.dtype(dtype).name}")


def convert(array: Any, dtype: str) -> Any:
    """Elements of another type; integers that do not fit are refused."""
    if dtype == "i32" and array.size and np.dtype(array.dtype).kind in "iu":
        low, high = array.min(), array.max()
        if low < -(2**31) or high >= 2**31:
            raise Refused(f"integers of more than 32 bits, such as {high if high >= 2**31 else low}")
    return array.astype(DTYPES[dtype])


def dense(array: Any, dtype: str) -> str:
    """A constant's elements as MLIR writes them."""
    if array.size == 0:
        return "dense<>"
    if array.size > 1:
        data = np.packbits(array.reshape(-1), bitorder="little") if dtype == "i1" else array
        return f'dense<"0x{data.tobytes().hex().upper()}">'
    value = array.reshape(-1)[0]
    if dtype == "i1":
        return f"dense<{str(bool(value)).lower()}>"
    if dtype == "i32":
        return f"dense<{int(value)}>"
    return f"dense<0x{int(np.float32(value).view(np.uint32)):08X}>"
