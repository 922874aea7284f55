# SPDX-License-Identifier: Apache-2.0
"""Walks the equations of a jaxpr, and builds a graph of `mt`.

A value of the jaxpr is an array of NumPy where it depends on no argument, a `Value`, a key of random numbers, or
random bits on their way to a number. What cannot be taken is noted with the user's line, and the walk goes on.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib.util
import pathlib
from typing import Any, Callable, Optional, Sequence, Union

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend import core

from mtc import _private
from mtc._errors import ModelError
from mtc._trace import Batch, Graph, Refused, Value, integers, reals
from mtc._trace.complex_numbers import Complex
from mtc._trace.graph import Origin, Problem, in_lines
from mtc._trace.values import Shape, dtype_of_elements
from mtc.jax import _empty

Rule = Callable[["Reader", Any, Sequence[Any]], Any]
RULES: dict[str, Rule] = {}
OF_COMPLEX = "complex numbers"  # the rule of every primitive that takes or gives such
_OF_SAMPLES = ("every sample with every other", "imum over the batch", "along the batch", "samples beside",
               "mixes samples", "the number of samples", "samples of a batch", "one sample of a batch",
               "the order of the samples")
ACROSS = "for what compares samples see docs/jax.md#contrastive-losses"


def with_way_out(problems: Sequence[Problem]) -> str:
    """A line for each problem, with the page that helps."""
    return in_lines([(origin, reason if ACROSS in reason or not any(text in reason for text in _OF_SAMPLES)
                      else f"{reason}: {ACROSS}", layer) for origin, reason, layer in problems])


class Unknown:
    """In place of a value that cannot be taken."""


UNKNOWN = Unknown()


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Registers the rule of these primitives."""
    def register(function: Rule) -> Rule:
        for name in names:
            RULES[name] = function
        return function
    return register


class Reader:
    """Reads jaxprs into one graph, whose batch is the symbol `b` in their shapes.

    `fixed`: random numbers are inputs of the graph, and frozen variables where they are the same for all samples; the
    list gets (name, path of the key, shape). `move_keys`: keys are data, this moves them, and the numbers are JAX' own.
    """

    def __init__(self, graph: Graph, fixed: Optional[list[tuple[str, str, Shape]]] = None,
                 move_keys: Optional[Callable[..., Any]] = None) -> None:
        self.graph = graph
        self.fixed = fixed
        self.own_keys = move_keys is not None
        self._move_keys = move_keys
        self.problems: dict[str, None] = {}  # in order
        self.randoms: dict[Any, Value] = {}
        self.columns: dict[int, list[Any]] = {}  # of indices that were put together, by id
        self.parts: dict[int, list[Value]] = {}  # the scalars of vectors that were put together, by id
        self.searches = False  # while JAX' own binary search is read, whose places in uint32 are never below 0
        self.solves = False  # while a function is read that solves: it is linear, whatever gradient it stops
        self.masks: set[Value] = set()  # booleans as numbers: see the rule of mul
        self._line = ""
        self._depth = 0  # of jaxprs within jaxprs

    def read(self, closed: Any, arguments: Sequence[Any]) -> list[Any]:
        """The results of a closed jaxpr."""
        return self.read_open(closed.jaxpr, closed.consts, arguments)

    def read_open(self, jaxpr: Any, consts: Sequence[Any], arguments: Sequence[Any]) -> list[Any]:
        """The results of a jaxpr and its constants."""
        values: dict[Any, Any] = {}
        for variable, value in zip([*jaxpr.constvars, *jaxpr.invars], [*map(concrete, consts), *arguments]):
            values[variable] = value

        def find(atom: Any) -> Any:
            if isinstance(atom, core.Literal):
                return concrete(atom.val)
            return values[atom] if atom in values else _empty.of(atom)

        self._depth += 1
        try:
            for equation in _empty.needed(jaxpr):
                made = self._equation(equation, [find(a) for a in equation.invars])
                for variable, value in zip(equation.outvars, made):
                    values[variable] = value
        finally:
            self._depth -= 1
        results = [find(a) for a in jaxpr.outvars]
        if not self._depth and any(value is _empty.EMPTY for value in results):
            self.refuse("a result", _empty.EMPTY.refusal)
            results = [UNKNOWN if value is _empty.EMPTY else value for value in results]
        return results

    def _equation(self, equation: Any, inputs: list[Any]) -> Sequence[Any]:
        count = len(equation.outvars)
        before = self._line
        self._line = _user_line(equation.source_info.traceback) or before
        name = equation.primitive.name
        unknown = any(i is UNKNOWN for i in inputs)
        made: Any
        with self.graph.at(_layer(equation, self.graph), self._line, name):
            try:
                if unknown and name in RULES and name not in NOT_FOLDED:
                    made = [UNKNOWN] * count
                elif self._is_concrete(equation, inputs):
                    # A primitive of a package may be a function of Python, which expects arrays of JAX.
                    made = equation.primitive.bind(*map(jnp.asarray, inputs), **equation.params)
                    made = [concrete(m) for m in (made if equation.primitive.multiple_results else [made])]
                elif (whole := _empty.without(self, RULES, equation, inputs)) is not None:
                    made = [whole]
                elif inputs and isinstance(inputs[0], Keys) and name in ON_KEYS:
                    made = [on_keys(equation, inputs)]
                elif self._move_keys is not None and (moved := self._move_keys(self, equation, inputs)) is not None:
                    made = [moved]
                elif name not in NOT_FOLDED and _is_of_complex(equation, inputs):
                    made = RULES[OF_COMPLEX](self, equation, inputs)
                    made = made if isinstance(made, (list, tuple)) else [made]
                elif name not in RULES:
                    made = self._by_definition(equation, inputs)
                else:
                    made = RULES[name](self, equation, inputs)
                    made = made if isinstance(made, (list, tuple)) else [made]
                    if name not in NOT_FOLDED:
                        made = [typed(m, v.aval.dtype, self.searches) for m, v in zip(made, equation.outvars)]
            except Refused as problem:
                self.refuse(name, str(problem))
                made = [UNKNOWN] * count
        self._line = before
        return list(made)

    def _by_definition(self, equation: Any, inputs: Sequence[Any]) -> list[Any]:
        """The results of a primitive of a package, which is a function of Python in terms of other primitives."""
        primitive = equation.primitive

        def call(*operands: Any) -> Any:
            return primitive.impl(*operands, **equation.params)

        try:
            closed = jax.make_jaxpr(call)(*(v.aval for v in equation.invars))
        except Exception:  # noqa: BLE001 - whatever a primitive without such a function raises
            closed = None
        if closed is None or any(e.primitive is primitive for e in closed.jaxpr.eqns):
            raise Refused("mtc.jax does not have this primitive")
        return self.read(closed, inputs)

    def _is_concrete(self, equation: Any, inputs: list[Any]) -> bool:
        if not all(is_concrete(i) for i in inputs) or equation.primitive.name in NOT_FOLDED:
            return False
        shapes = [v.aval.shape for v in equation.outvars]
        return all(isinstance(n, int) for shape in shapes for n in shape) and not _has_symbols(equation.params)

    def refuse(self, name: str, reason: str) -> None:
        """Notes a problem at the line that is read."""
        self.problems.setdefault(with_way_out([(Origin(self._line, name), reason, self.graph.location)]))

    def check(self) -> None:
        """Raises one error with all problems."""
        if self.problems:
            raise ModelError("\n".join(self.problems))

    # Helpers of rules

    def value(self, given: Any) -> Value:
        """A value of the graph; an array becomes a constant."""
        if isinstance(given, Value):
            return given
        if is_concrete(given) and not is_key(given):
            return self.graph.constant(np.asarray(given))
        raise Refused(getattr(given, "refusal", f"expected numbers, found {type(given).__name__}"))

    def size(self, n: Any) -> Union[int, Batch]:
        """A size of a jaxpr's shape."""
        if isinstance(n, (int, np.integer)):
            return int(n)
        small, large = (int(n._evaluate({"b": k})) for k in (1009, 2018))
        if large == small:
            return small
        if large != 2 * small or small % 1009:
            raise Refused(f"a size of {n}, which is no multiple of the number of samples")
        return Batch(small // 1009)

    def shape(self, shape: Sequence[Any]) -> Shape:
        """A shape of a jaxpr."""
        return tuple(self.size(n) for n in shape)

    def out_shape(self, equation: Any, index: int = 0) -> Shape:
        """The shape of a result."""
        return self.shape(equation.outvars[index].aval.shape)


@dataclasses.dataclass(frozen=True)
class Keys:
    """Keys whose numbers MTC draws: `paths` names a stream for each, row major in `shape`."""

    paths: tuple[str, ...]
    shape: tuple[int, ...] = ()

    def at(self, index: int) -> Keys:
        """One along the first axis."""
        size = int(np.prod(self.shape[1:]))
        return Keys(self.paths[index * size:(index + 1) * size], self.shape[1:])


def _is_of_complex(equation: Any, inputs: Sequence[Any]) -> bool:
    return any(isinstance(i, Complex) for i in inputs) or any(
        getattr(getattr(v.aval, "dtype", None), "kind", "") == "c" for v in equation.outvars)


def typed(value: Any, dtype: Any, small: bool = False) -> Any:
    """A result as its type has it: integers of fewer bits wrap around, numbers of fewer bits are rounded. `small`:
    uint32 is known to be below 2^31."""
    if not isinstance(value, Value):
        return value
    if dtype.itemsize == dtype_of_elements(value.dtype)().itemsize and dtype.name != "uint32":
        return value
    if value.dtype == "i32" and dtype.itemsize < 4:
        return integers.wrapped(value, 8 * dtype.itemsize, dtype.kind == "i")
    if dtype.name == "uint32" and not small and integers.bounds(value)[0] < 0:
        raise Refused("uint32 that may be 2^31 or more: cast to int32 or float32 first")
    return rounded(value, dtype.name) if value.dtype == "f32" else value


def rounded(value: Value, name: str) -> Value:
    """Refuses numbers of fewer bits, whose roundings a plan in float32 does not have."""
    if reals.double():
        raise Refused(f"numbers of {name} amid float64, which MTC would not round: compute in float64")
    if name == "float64":
        raise Refused("numbers of float64: MTC computes in float32: compile with precision=\"f64\"")
    raise Refused(f"numbers of {name}: MTC computes in float32: compute in float32, and compile with "
                  "precision=\"bf16\" or \"f16\" for faster products")


ON_KEYS = {"slice", "squeeze", "reshape", "broadcast_in_dim", "convert_element_type", "copy", "copy_p", "add", "mul"}


def on_keys(equation: Any, inputs: Sequence[Any]) -> Keys:
    """Keys that move between where they are split and where they are used.

    A key may be two numbers, as `jax.random.key_data` gives them: a last axis that `Keys.shape` does not count.
    """
    keys: Keys = inputs[0]
    name, p = equation.primitive.name, equation.params
    if name in ("add", "mul"):
        return _other_keys(name, keys, inputs[1])
    numbers = np.arange(len(keys.paths)).reshape(keys.shape)
    raw = len(equation.invars[0].aval.shape) > len(keys.shape)
    if raw:
        numbers = np.repeat(numbers[..., None], 2, -1)
    if name == "slice":
        strides = p["strides"] or [1] * numbers.ndim
        numbers = numbers[tuple(slice(a, b, s) for a, b, s in zip(p["start_indices"], p["limit_indices"], strides))]
    elif name == "squeeze":
        numbers = numbers.squeeze(tuple(p["dimensions"]))
    elif name == "reshape":
        numbers = numbers.reshape(tuple(p["new_sizes"]))
    elif name == "broadcast_in_dim":
        if len(keys.paths) != 1:
            raise Refused("keys that are repeated")
        numbers = np.zeros(tuple(p["shape"]), int)
    if raw:
        if numbers.shape[-1:] != (2,):
            raise Refused("the numbers of a key by themselves")
        numbers = numbers[..., 0]
    return Keys(tuple(keys.paths[i] for i in numbers.reshape(-1)), numbers.shape)


def _other_keys(name: str, keys: Keys, number: Any) -> Keys:
    """Keys that are made of keys by arithmetic: other ones for each number, the same where it changes nothing."""
    if not is_concrete(number):
        raise Refused("a key made of data")
    if np.all(number == (0 if name == "add" else 1)):
        return keys
    mark = name + ",".join(str(int(n)) for n in np.asarray(number).reshape(-1))
    return Keys(tuple(f"{p}/{mark}" for p in keys.paths), keys.shape)


NOT_FOLDED = {"jit", "pjit", "closed_call", "custom_jvp_call", "custom_vjp_call", "scan", "while", "cond", "remat",
              "checkpoint", "remat2", "core_call", "pure_callback", "io_callback", "debug_callback", "debug_print",
              "shard_map", "pvary", "psum", "psum_invariant", "pmax", "pmin", "axis_index"}


def _has_symbols(params: Any) -> bool:
    if isinstance(params, dict):
        return any(map(_has_symbols, params.values()))
    if isinstance(params, (list, tuple)):
        return any(map(_has_symbols, params))
    return type(params).__name__ == "_DimExpr"


def _user_line(traceback: Any) -> str:
    """The innermost line that is neither JAX's, nor Keras', nor this package's."""
    for frame in _private.jax_user_frames(traceback):
        if not frame.file_name.startswith(_frameworks()):
            column = f":{frame.start_column}" if frame.start_column else ""
            return f"{frame.file_name}:{frame.start_line}{column}"
    return ""


@functools.cache
def _frameworks() -> tuple[str, ...]:
    """The folders of this package and of Keras."""
    keras = importlib.util.find_spec("keras")
    files = [pathlib.Path(__file__).parent, *([pathlib.Path(keras.origin)] if keras and keras.origin else [])]
    return tuple(f"{file.parent}/" for file in files)


def _layer(equation: Any, graph: Graph) -> str:
    """The names of the scopes of an equation, but those that JAX adds itself."""
    stack = str(equation.source_info.name_stack)
    parts = [p for p in stack.split("/") if p and "(" not in p and not p.startswith("_")]
    return "/".join(parts) or graph.location


def concrete(value: Any) -> Any:
    """An array of NumPy, or a key of JAX."""
    if isinstance(value, (np.ndarray, Value)) or is_key(value):
        return value
    return np.asarray(value)


def is_key(value: Any) -> bool:
    """Whether it is an array of keys."""
    dtype = getattr(value, "dtype", None)
    return dtype is not None and not isinstance(value, Value) and bool(jax.numpy.issubdtype(dtype, jax.dtypes.prng_key))


def is_concrete(value: Any) -> bool:
    """Whether its elements are known."""
    return isinstance(value, np.ndarray) or is_key(value)
