# SPDX-License-Identifier: Apache-2.0
"""A training step of TensorFlow as a plan: a function of tensors, with the variables that it reads and changes.

TensorFlow compiles the Python function by XLA, and says what it compiled as StableHLO: a function of the tensors and of
the variables, whose results are those of the Python function and the new values of variables. That text is compiled by
MTC as a whole step, `mtc compile --step`. The state is that of TensorFlow's variables: what a step makes of it is
written back, and what the script assigns between two steps is seen at the next one.
"""

from __future__ import annotations

import dataclasses
import importlib
import re
from typing import Any, Callable, Optional, Sequence

import numpy as np

from mtc import _compile, _options
from mtc._errors import DataError, Error, ModelError
from mtc._plan import Plan
from mtc._session import Session
from mtc._tensors import Array
from mtc.keras._tf_random import Draws

tf: Any = importlib.import_module("tensorflow")

TOLERANCE = 1e-4
_TYPES = {"float32": "xf32", "int32": "xi32", "int64": "xi64", "bool": "xi1", "uint8": "xui8", "int8": "xi8",
          "uint16": "xui16", "int16": "xi16", "uint32": "xui32", "float16": "xf16", "bfloat16": "xbf16"}
_STATE = ("float32", "int32", "int64", "bool")
_ALIAS = re.compile(r"parameter_number = (\d+) : i64\}, output_index = array<i64(?:: (\d+))?>")
_PLACE = re.compile(r'^(#loc\w* = loc\()"[^"\n]*\.py":\d+:\d+\)$', re.MULTILINE)
_RANDOM = re.compile(r"stablehlo\.(rng\w*|shift_\w+|xor)\b")
_SHARDS = 8
_LONGEST = 300  # characters of a reason


@dataclasses.dataclass
class Text:
    """The step as StableHLO.

    Attributes:
        text: the module.
        arguments: types of the arguments of its function, as "64x28xf32".
        results: types of its results.
        replaced: number of an argument -> that of the result which replaces it.
    """

    text: str
    arguments: list[str]
    results: list[str]
    replaced: dict[int, int]

    @staticmethod
    def of(text: str, name: str) -> Text:
        """Reads what TensorFlow prints, without the places in TensorFlow itself, and names the module."""
        head = re.search(r"func\.func (?:public )?@main\((.*)\) -> (.*) \{$", text, re.MULTILINE)
        if head is None:
            raise ModelError("expected a function main in TensorFlow's StableHLO, found none")
        alias = {int(a): int(r or 0) for a, r in _ALIAS.findall(text[: head.start()])}
        # The places that TensorFlow gives are those in TensorFlow: an op's name says more.
        text = re.sub(r"^module @[\w.]+", f"module @{name}", text, count=1, flags=re.MULTILINE)
        return Text(_PLACE.sub(r"\1unknown)", text), re.findall(r"%arg\d+: tensor<([^>]*)>", head[1]),
                    re.findall(r"tensor<([^>]*)>", head[2]), alias)


def _type_text(shape: Sequence[int], dtype: str) -> str:
    if dtype not in _TYPES:
        raise ModelError(f"expected tensors and variables of float32, integers or bool, found {dtype}")
    return "".join(f"{n}x" for n in shape) + _TYPES[dtype][1:]


@dataclasses.dataclass
class Outcome:
    """What a step gave: the results of the function, flat, and the new values of the variables."""

    results: list[Any]
    state: list[Array]


class TensorFlowStep:
    """One plan of a function, for arguments of one structure, of fixed shapes and types.

    Attributes:
        variables: the variables of TensorFlow that the step reads, in the order of its state.
    """

    def __init__(self, function: Callable[..., Any], tensors: Sequence[Any], name: str, devices: Optional[str]) -> None:
        """`function`: of the tensors alone; called once more, to see what it computes.

        Raises:
            ModelError: MTC cannot compile the step, or TensorFlow cannot without its own kernels.
        """
        rows = next((t.shape[0] for t in tensors if t.shape.rank), None)
        try:
            self._make(function, tensors, name, devices, rows)
        except ModelError:
            if self._samples is None:
                raise
            self._make(function, tensors, name, devices, None)

    def _make(self, function: Callable[..., Any], tensors: Sequence[Any], name: str, devices: Optional[str],
              rows: Optional[int]) -> None:
        """`rows`: draws of so many numbers several times are of several batches, one after the other."""
        self.draws = Draws()
        self._samples: Optional[int] = None

        def with_draws(*given: Any) -> Any:
            with self.draws.given([_one_after_the_other(d, s) for d, s in zip(given[len(tensors):], shapes)]):
                return function(*given[:len(tensors)])

        compiled = tf.function(with_draws, jit_compile=True, autograph=True)
        try:
            self.draws.find(function, tensors)
            with self.draws.kept():
                drawn = self.draws.draw()
            shapes = [d.shape for d in drawn]
            drawn = [_by_samples(d, rows) for d in drawn]
            if any(d.shape != shape for d, shape in zip(drawn, shapes)):
                self._samples = rows
            concrete = compiled.get_concrete_function(*tensors, *drawn)
            text = compiled.experimental_get_compiler_ir(*tensors, *drawn)(stage="stablehlo")
        except ModelError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever TensorFlow says of it
            raise ModelError(f"XLA cannot compile it: {_first_line(error)}") from None
        self.structure = concrete.structured_outputs
        name = re.sub(r"\W", "_", name)
        self._text = Text.of(text if isinstance(text, str) else text.decode(), name)
        if _RANDOM.search(self._text.text):
            raise ModelError("it draws random numbers that MTC cannot ask TensorFlow for before the step: draw them by "
                             "keras.random, of a shape that is known")
        self._tensors = len(tensors) + len(drawn)
        self._find_state(concrete)
        self._bind([*tensors, *drawn], name, devices)

    def _find_state(self, concrete: Any) -> None:
        """Whether the function's arguments are the tensors and the variables that it captures."""
        variables = {id(v.handle): v for v in concrete.graph.variables}
        self.variables: list[Any] = []
        self._constants: list[tuple[int, Any]] = []  # captured tensors by argument
        numbers = {}
        for place, captured in enumerate(concrete.captured_inputs):
            number = self._tensors + place
            if id(captured) in variables:
                numbers[number] = len(self.variables)
                self.variables.append(variables[id(captured)])
            elif captured.dtype in (tf.resource, tf.variant):
                raise ModelError("it uses something of TensorFlow that is neither a tensor nor a variable, as a "
                                 "table or an iterator")
            else:
                self._constants.append((number, captured))
        self._numbers = numbers

    def _bind(self, tensors: Sequence[Any], name: str, devices: Optional[str]) -> None:
        text = self._text
        wanted = [_type_text(t.shape, t.dtype.name) for t in tensors]
        held = {**{n: self.variables[i] for n, i in self._numbers.items()}, **dict(self._constants)}
        wanted += [_type_text(held[n].shape, held[n].dtype.name) for n in sorted(held)]
        if text.arguments != wanted:
            raise ModelError(f"expected a function of {len(wanted)} arguments in TensorFlow's StableHLO, the tensors "
                             f"and variables of the step, found one of {len(text.arguments)} or of other types")
        for variable in self.variables:
            if variable.dtype.name not in _STATE:
                raise ModelError(f"{variable.name}: expected variables of {', '.join(_STATE)}, found "
                                 f"{variable.dtype.name}")
        rows = {t.shape[0] for t in tensors[:len(tensors) - len(self.draws)] if t.shape.rank}
        if len(rows) != 1:
            raise ModelError(f"expected tensors of one number of samples, found the sizes {sorted(rows)}")
        (self.rows,) = rows
        self._split = [i for i, t in enumerate(tensors) if t.shape.rank and t.shape[0] == self.rows]
        self._whole = [i for i in range(len(tensors)) if i not in self._split]  # the same on all devices
        # Results that replace no variable, which are those of the function.
        self._given = [r for r in range(len(text.results)) if r not in text.replaced.values()]
        flat = tf.nest.flatten(self.structure)
        self._outputs = [i for i, output in enumerate(flat) if tf.is_tensor(output)]
        self._types = [output.dtype for output in flat if tf.is_tensor(output)]
        if len(self._given) != len(self._outputs):
            raise ModelError(f"expected {len(self._outputs)} results besides the variables' values, found "
                             f"{len(self._given)}")
        self._compile(name, devices)

    def _compile(self, name: str, devices: Optional[str]) -> None:
        names = _names([v.name for v in self.variables])
        state = []
        for number, index in self._numbers.items():
            result = self._text.replaced.get(number)
            state.append(f"{number}{'' if result is None else f':{result}'}={names[index]}")
        state += [f"{number}=argument{number}" for number in self._whole]
        state += [f"{number}=constant{number}" for number, _ in self._constants]
        split = ",".join(f"{number}=input{number}" for number in self._split)
        if not any(number in self._text.replaced for number in self._numbers):
            raise ModelError("expected a step that changes variables, found one that does not")
        # A short batch too has a shard for each of 8 devices.
        settings = _options.fields(max(self.rows, _SHARDS), {"step": 1, "state": ",".join(state), "split": split,
                                                             "cpu": "native"})
        try:
            data = _compile.plan_of_text(self._text.text, name, settings, 0)
        except ModelError as error:
            raise ModelError(_first_line(error)) from None
        self.plan = Plan(data, any_label=True)
        self.session = Session(self.plan, devices)
        self._stored = {info.name for info in self.plan.variables}
        self._metrics = set(self.plan.metrics("train_step"))
        self._names = names
        self._now: list[Optional[Array]] = [None] * len(self.variables)  # what the session has
        self._written: list[Any] = [None] * len(self.variables)  # what `write` gave to TensorFlow
        for number, tensor in self._constants:
            self._set(f"constant{number}", tensor.numpy())

    def _set(self, name: str, array: Array) -> None:
        if name in self._stored:  # else no part of the step reads it
            self.session.variables[name] = _stored(array)

    def __call__(self, tensors: Sequence[Any]) -> Outcome:
        """One step from the values of the variables now; they stay as they are until `write`.

        What it draws is drawn, so that the generators are those after the step.
        """
        generators = self.draws.states()
        tensors = [*tensors, *(_by_samples(d, self._samples) for d in self.draws.draw())]
        for i, variable in enumerate(self.variables):
            tensor, held, now = _read(variable), self._written[i], self._now[i]
            if now is not None and held is not None and _address(tensor) == _address(held):
                continue
            array = np.array(memoryview(tensor))
            if now is None or not _same_bits(array, now):
                self._set(self._names[i], array)
            self._now[i] = array
        for number in self._whole:
            self._set(f"argument{number}", tensors[number].numpy())
        known = {entry.name for entry in self.plan.signature("train_step")}
        try:
            logs = self.session.train_step({f"input{n}": tensors[n].numpy() for n in self._split
                                            if f"input{n}" in known})
        except Error:
            self.draws.restore(generators)
            self._now = [None] * len(self.variables)  # what the session has is not known now
            raise
        for number, index in self._numbers.items():
            if number in self._text.replaced and self._names[index] in self._stored:
                array = self.session.variables[self._names[index]]
                self._now[index] = array.astype(self.variables[index].dtype.as_numpy_dtype, copy=False)
        return Outcome(self._results(logs), [array for array in self._now if array is not None])

    def _results(self, logs: Any) -> list[Any]:
        made = []
        numbers = [r for r in self._given if "x" not in self._text.results[r]]
        for result, dtype in zip(self._given, self._types):
            name = "loss" if numbers == [result] else f"result{result}"
            value = np.float32(logs[name]) if name in self._metrics else self.session.variables[name]
            made.append(tf.cast(tf.constant(value), dtype))
        return made

    def write(self, outcome: Outcome) -> None:
        """Gives the variables the values after a step.

        As long as the tensor is held here, TensorFlow does not change its memory in place: a variable whose tensor
        has this memory has this value still.
        """
        for number, index in self._numbers.items():
            if number in self._text.replaced:
                tensor = tf.constant(outcome.state[index])
                tf.raw_ops.AssignVariableOp(resource=self.variables[index].handle, value=tensor)
                self._written[index] = tensor

    def build(self, results: Sequence[Any]) -> Any:
        """Flat results in the structure that the function gives."""
        flat = list(tf.nest.flatten(self.structure))
        for place, result in zip(self._outputs, results):
            flat[place] = result
        return tf.nest.pack_sequence_as(self.structure, flat)

    def close(self) -> None:
        """Ends the session."""
        self.session.close()


def _by_samples(drawn: Any, rows: Optional[int]) -> Any:
    """Numbers for several batches that stand one after the other, as [samples, batches, ...]; others as they are."""
    count = drawn.shape[0] if drawn.shape.rank else 0
    if not rows or not count or count == rows or count % rows:
        return drawn
    apart = tf.reshape(drawn, [count // rows, rows, *drawn.shape[1:]])
    return tf.transpose(apart, [1, 0, *range(2, apart.shape.rank)])


def _one_after_the_other(given: Any, shape: Any) -> Any:
    """The numbers in the shape in which they were drawn."""
    if given.shape == shape:
        return given
    return tf.reshape(tf.transpose(given, [1, 0, *range(2, given.shape.rank)]), shape)


def _read(variable: Any) -> Any:
    return tf.raw_ops.ReadVariableOp(resource=variable.handle, dtype=variable.dtype)


def _address(tensor: Any) -> int:
    return int(np.asarray(memoryview(tensor)).__array_interface__["data"][0])


def values(variables: Sequence[Any]) -> list[Array]:
    """Copies of variables' values."""
    return [np.array(v.numpy()) for v in variables]


def differences(names: Sequence[str], before: Sequence[Optional[Array]], mine: Sequence[Any], theirs: Sequence[Any],
                again: Sequence[Sequence[Any]]) -> dict[str, float]:
    """By how many times what rounding allows values differ.

    `again`: TensorFlow's values with the samples in another order, and others of what only rounding tells apart, which
    show what rounding does in this step.
    """
    found = {}
    for name, old, a, b, *others in zip(names, before, mine, theirs, *again):
        a, b = (np.asarray(array, "f8") for array in (a, b))
        if not b.size:
            continue
        change = float(np.abs(b - np.asarray(old, "f8")).max()) if old is not None else 0.0
        size = max(float(np.abs(b).max()), 1e-30)
        noise = max(float(np.abs(b - np.asarray(c, "f8")).max()) for c in others)
        # Of a result, as a loss, nobody knows how far it has changed.
        allowed = max(TOLERANCE * (max(change, 1e-2 * size) if old is not None else 0.1 * size), 16 * noise)
        same = (a == b) | np.isnan(a) & np.isnan(b)
        found[name] = float(np.where(same, 0, np.abs(a - b)).max()) / allowed
    return found


def nudged(values: Sequence[Array]) -> list[Array]:
    """The values with other last digits: every other float by 2^-23 of itself."""
    def of(value: Array) -> Array:
        odd = (np.arange(value.size) % 2).reshape(value.shape)
        return np.asarray(value * (1 + 2.0**-23 * odd), value.dtype)

    return [of(value) if value.dtype == np.float32 else value for value in values]


def _names(names: Sequence[str]) -> list[str]:
    """Names of variables, each another one, without what has a meaning in an option."""
    made: list[str] = []
    for name in names:
        plain = re.sub(r"[,:=\s]", "_", re.sub(r":\d+$", "", name)) or "variable"
        while plain in made:
            plain += "_"
        made.append(plain)
    return made


def _stored(array: Array) -> Array:
    if array.dtype == np.int64:
        if array.size and (array.min() < -2**31 or array.max() >= 2**31):
            raise DataError("expected integers that 32 bits hold in the state, found larger ones")
        return array.astype(np.int32)
    return array.astype(np.int32) if array.dtype == np.bool_ else array


def _same_bits(a: Array, b: Array) -> bool:
    return a.dtype == b.dtype and np.array_equal(np.atleast_1d(a).view(f"u{a.dtype.itemsize}"),
                                                 np.atleast_1d(b).view(f"u{b.dtype.itemsize}"))


def _first_line(error: Exception) -> str:
    lines = [line for line in str(error).splitlines() if line.strip()]
    return "; ".join(lines[:3])[:_LONGEST] if lines else type(error).__name__
