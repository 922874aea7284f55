# SPDX-License-Identifier: Apache-2.0
"""The graph of a model under construction."""

from __future__ import annotations

import contextlib
import itertools
from typing import Any, Callable, Iterator, NamedTuple, Optional, Sequence

import numpy as np

from mtc._errors import ModelError
from mtc._trace import elementwise, layout, patterns, reals, text
from mtc._trace.text import quoted
from mtc._trace.values import BATCH, VIEWS, Array, Batch, Refused, Shape, Value, dtype_of_elements, has_batch, stored

_CONSTANT = ("stop_gradient", "one_hot", "floor", "sign", "ceil", "trunc", "round_nearest_even",
             "round_nearest_afz")  # without a gradient
_MINIMISED = ("mt.loss ", "mt.regularizer ")

MOST_UNROLLED = 100_000  # operations that the steps of a loop may become, as the compiler's mt-unroll has it


class Origin(NamedTuple):
    """What the user wrote: the line, and the framework's name of the operation. Either may be empty."""

    line: str
    operation: str


Problem = tuple[Origin, str, str]  # what was refused, why, and the layer
Report = Callable[[Sequence[Problem]], str]


def in_lines(problems: Sequence[Problem]) -> str:
    """A line for each problem."""
    return "\n".join(dict.fromkeys(
        ": ".join([*(part for part in origin if part), reason]) + (f' (in "{layer}")' if layer else "")
        for origin, reason, layer in problems))


class Graph:
    """A model under construction: operations that are made once, and the statements about them."""

    def __init__(self, name: str, report: Report = in_lines) -> None:
        self.name = name
        self.report = report
        self.double = reals.double()  # whether the plan computes in f64
        self.statements: list[tuple[str, tuple[Value, ...]]] = []  # losses, metrics, outputs: a template and operands
        self.variables: dict[str, Value] = {}
        self.signature: list[Value] = []
        self.state: dict[str, Value] = {}  # variables of the optimizer
        self.assigned: list[tuple[str, Value]] = []  # by the update: a variable and its new value
        self.reported: list[tuple[str, Value, str]] = []  # by the update: names, scalars, words
        self.origins: list[Origin] = []
        self.loops: dict[Any, Any] = {}  # of `loops`: what was made of equal loops
        self._made: dict[Any, Value] = {}
        self._forgotten: list[Value] = []  # they are not freed: notes about values are by their `id`
        self._location = ""
        self._origin = -1
        self._streams: dict[str, int] = {}
        self.stacked: set[int] = set()  # of how many batches there are values that have one after the other

    # Where operations come from

    @contextlib.contextmanager
    def at(self, layer: str, line: str = "", operation: str = "") -> Iterator[None]:
        """Operations within are of this layer, of this line of the user's, of this operation of the framework."""
        before = self._location, self._origin
        self._location = layer
        if line or operation:
            if not self.origins or self.origins[-1] != (line, operation):
                self.origins.append(Origin(line, operation))
            self._origin = len(self.origins) - 1
        try:
            yield
        finally:
            self._location, self._origin = before

    @property
    def location(self) -> str:
        """The layer whose operations are made now."""
        return self._location

    @property
    def size(self) -> int:
        """How many operations were made."""
        return len(self._made)

    def forget(self, size: int) -> None:
        """Makes operations anew that were made when there were this many, or later."""
        self._forgotten += [self._made.pop(key) for key in list(self._made)[size:]]

    # Values

    def input(self, name: str, shape: Shape, dtype: str, kind: str = "input") -> Value:
        """What each sample brings, [BATCH, ...]. `kind`: "input", "target" or "sample_weight"."""
        if not shape or shape[0] != BATCH or has_batch(shape[1:]):
            raise Refused(f"{name}: expected the batch as the first axis and no other, found {list(shape)}")
        value = Value(self, kind, (), f"mt.{kind} {quoted(name)} : {{t}}", shape, dtype, tensor=True, location=name)
        self.signature.append(value)
        return value

    def variable(self, name: str, shape: Sequence[int], *, dtype: str = "f32", frozen: bool = False,
                 no_weight_decay: bool = False) -> Value:
        """A variable, of i32 if it is frozen. It starts with zeros here; who compiles the text gives the values."""
        if name in self.variables:
            raise Refused(f"expected one variable of the name {name}, found two")
        words = "".join(f" {word}" for word, on in (("frozen", frozen), ("no_weight_decay", no_weight_decay)) if on)
        value = Value(self, "variable", (), f"mt.variable {quoted(name)} init(zeros){words} : {{t}}", tuple(shape),
                      dtype, tensor=True, location=name, learned=not frozen, info=name)
        self.variables[name] = value
        return value

    def slot(self, name: str, shape: Sequence[int], dtype: str = "f32", words: str = "slot") -> Value:
        """A variable of the optimizer, of f32 or i32. It starts with zeros here; who compiles the text gives the
        values."""
        if name in self.state or name in self.variables:
            raise Refused(f"expected one variable of the name {name}, found two")
        value = Value(self, "slot", (), f"mt.variable {quoted(name)} init(zeros) {words} : {{t}}", tuple(shape), dtype,
                      tensor=True, location=name, info=name)
        self.state[name] = value
        return value

    def gradient(self, variable: Value) -> Value:
        """The gradient of the losses with respect to a variable, for the update."""
        return self.tensor("gradient", (), f"mt.gradient {quoted(variable.info)} : {{t}}", variable.shape, "f32")

    def argument(self, value: Value) -> Value:
        """The value as a point by which `derivative` differentiates; another one for each call."""
        made = Value(self, "argument", (value,), "mt.argument {0} : {t}", value.shape, value.dtype, tensor=True,
                     location=self._location, origin=self._origin, learned=True)
        return made

    def derivatives(self, value: Value, arguments: Sequence[Value], shared: Sequence[Value] = ()) -> list[Value]:
        """The derivatives of a scalar by arguments. They are learned if they depend on something else that is.

        `shared`: those of the arguments by which other derivatives are taken, too.
        """
        bound = [a for a in arguments if all(a is not other for other in shared)]
        learned = _is_learned_without(value, bound)
        made = [self.tensor("derivative", (value, a), "mt.derivative {0} by {1} : {t}", a.shape, "f32")
                for a in arguments]
        for derivative in made:
            derivative.learned, derivative.info = learned, tuple(bound)
        return made

    def assign(self, name: str, value: Value) -> None:
        """Makes a value that of a variable after the step."""
        self.assigned.append((name, value))

    def without_gradient(self, results: Sequence[Value] = ()) -> list[str]:
        """The variables that are learned, but that no loss, nor one of these results, has a gradient to."""
        found: set[int] = set()
        waiting = [o for template, operands in self.statements if template.startswith(_MINIMISED) for o in operands]
        waiting += results
        while waiting:
            value = waiting.pop()
            if id(value) not in found and value.dtype == "f32" and value.op not in _CONSTANT:
                found.add(id(value))
                waiting += value.operands
        return [name for name, value in self.variables.items() if value.learned and id(value) not in found]

    def freeze(self, name: str) -> None:
        """Makes a variable one that training does not change."""
        value = self.variables[name]
        value.text = value.text.replace(f"{quoted(name)} init(zeros)", f"{quoted(name)} init(zeros) frozen", 1)
        value.learned = False

    def constant(self, array: Any, dtype: Optional[str] = None) -> Value:
        """A constant of NumPy. Elements become f32, i32 or i1; those that are all equal are stored once."""
        array = np.asarray(array)
        dtype = dtype or dtype_of(array.dtype)
        return self.repeated(convert(array, dtype), array.shape, dtype)

    def repeated(self, array: Array, shape: Shape, dtype: str) -> Value:
        """A constant of this shape, whose array has the size 1 along axes where all elements are equal."""
        array = np.asarray(array, dtype=dtype_of_elements(dtype))
        if array.size > 1 and bool((array == array.flat[0]).all()):
            array = array.reshape(-1)[:1].reshape([1] * array.ndim)
        key = ("constant", dtype, array.shape, shape, array.tobytes())
        found = self._made.get(key)
        if found is None:
            found = self._made[key] = Value(self, "constant", (), "", shape, dtype, constant=array)
        return found

    def count(self, size: Batch, dtype: str = "f32") -> Value:
        """A number of samples, times a factor: a scalar."""
        value = self.tensor("batch_size", (), "mt.batch_size", (), "f32")
        value.count = 1
        if size.times != 1:
            value = self.operation("mul", (value, self.constant(np.float32(size.times))),
                                   'graph.elementwise "mul"({0}, {1})', (), "f32")
            value.count = size.times
        if dtype != "f32":
            value = self.operation("cast", (value,), 'graph.elementwise "cast"({0})', (), dtype)
            value.count = size.times
        return value

    def iteration(self) -> Value:
        """The number of steps before this one: an i32 scalar."""
        return self.tensor("iteration", (), "mt.iteration", (), "i32")

    def random(self, kind: str, shape: Shape, stream: str) -> Value:
        """Random numbers: of `kind` "uniform" in [0, 1) or "normal", new ones in each step.

        Streams of one name in a graph get numbers, so that each is drawn by itself.
        """
        used = self._streams.get(stream, 0)
        self._streams[stream] = used + 1
        name = f"{stream}_{used}" if used else stream
        sizes = tuple(BATCH if n is None else n for n in stored(shape))
        made = self.tensor(f"random_{kind}", (self.iteration(),),
                           f"mt.random_{kind} {quoted(name)} step({{0}}) : {{t}}", sizes, "f32")
        return layout.from_stored(made, shape)

    def stop_gradient(self, value: Value) -> Value:
        """The value, through which no gradient goes.

        A maximum that is subtracted before e^x and added again after the logarithm has none in sum: see
        `patterns.cancelled`.
        """
        if not value.learned:
            return value
        op = "shift" if patterns.shift_of(value) is not None else "stop_gradient"
        made = self.operation(op, (value,), 'graph.elementwise "stop_gradient"({0})', value.shape, value.dtype)
        made.learned = False
        return made

    # Operations

    binary, unary = staticmethod(elementwise.binary), staticmethod(elementwise.unary)
    logical_and, logical_or = staticmethod(elementwise.logical_and), staticmethod(elementwise.logical_or)
    logical_not = staticmethod(elementwise.logical_not)

    def operation(self, op: str, operands: Sequence[Value], template: str, shape: Shape, dtype: str,
                  dims: Sequence[int] = (), kind: str = "") -> Value:
        """The operation of `graph` of this text; the one that there is already, where it is equal."""
        return self._operation(op, operands, template, shape, dtype, dims, kind, False)

    def tensor(self, op: str, operands: Sequence[Value], template: str, shape: Shape, dtype: str) -> Value:
        """The same of `mt`. An operand is stored with the batch first and its other axes in order; so is the result."""
        return self._operation(op, operands, template, shape, dtype, (), "", True)

    def _operation(self, op: str, operands: Sequence[Value], template: str, shape: Shape, dtype: str,
                   dims: Sequence[int], kind: str, tensor: bool) -> Value:
        key = (template, tuple(id(o) for o in operands), shape, dtype)
        found = self._made.get(key)
        if found is None:
            found = Value(self, op, tuple(operands), template, tuple(shape), dtype, tensor=tensor, dims=tuple(dims),
                          kind=kind, location=self._location, origin=self._origin,
                          learned=any(o.learned for o in operands))
            if op in VIEWS:  # what is known of the operand is known of the result
                found.count, found.bounds = operands[0].count, operands[0].bounds
            self._made[key] = found
        return found

    def unroll(self, steps: Optional[int] = None) -> Iterator[int]:
        """The numbers of a loop's steps, while their operations are made one after the other. Refused: too many.

        Without `steps` the caller ends the loop.
        """
        before = self.size
        for i in itertools.count() if steps is None else range(steps):
            yield i
            made = self.size - before
            more = 1 if steps is None else steps / (i + 1)
            if made * more > MOST_UNROLLED or i > MOST_UNROLLED:
                found = "too many steps" if steps is None else f"{steps} steps of {made / (i + 1):.0f} operations"
                raise Refused(f"a loop of {found}: its steps are unrolled, to at most {MOST_UNROLLED} operations")

    # Text

    def say(self, template: str, *operands: Value) -> None:
        """A statement of the model, such as a loss. Its operands are stored as those of `tensor`."""
        self.statements.append((template, operands))

    def output(self, name: str, value: Value) -> None:
        """A named result of `predict`; its first axis is the batch."""
        self.say(f"mt.output {quoted(name)}, {{0}} : {{t0}}", value)

    def text(self, optimizer: str = "") -> str:
        """The model as `mt` text. `optimizer`: its line, where it is none of the statements nor an update.

        Raises:
            ModelError: the layout of an operation is refused; with a line for each.
        """
        skipped = patterns.cancelled(_all_of([o for _, operands in self.statements for o in operands]))
        if self.assigned and "optimizer/iteration" not in self.state:
            self.slot("optimizer/iteration", (), "i32", "frozen role(iteration)")
        written = text.written(self, optimizer, skipped)
        try:
            return text.lowered(written)
        except text.NotLowered as error:
            unknown = Origin("", "")
            raise ModelError(self.report([
                (self.origins[number] if 0 <= number < len(self.origins) else unknown, reason, layer)
                for number, reason, layer in error.problems])) from None


def _is_learned_without(value: Value, arguments: Sequence[Value]) -> bool:
    """Whether a value depends on a trainable variable, or on a point of another derivative, that is none of these."""
    bound = {id(a) for a in arguments}
    found: set[int] = set()
    waiting = [value]
    while waiting:
        value = waiting.pop()
        if id(value) in found or not value.learned:
            continue
        found.add(id(value))
        if value.op == "derivative":  # a point of it is bound there; what the point is may be learned
            bound.update(id(a) for a in value.info)
        elif value.op == "variable" or value.op == "argument" and id(value) not in bound:
            return True
        waiting += value.operands
    return False


def _all_of(values: Sequence[Value]) -> list[Value]:
    """The values and all that they read, each once."""
    found: dict[int, Value] = {}
    waiting = list(values)
    while waiting:
        value = waiting.pop()
        if id(value) not in found:
            found[id(value)] = value
            waiting += value.operands
    return list(found.values())


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
    return array.astype(dtype_of_elements(dtype))
