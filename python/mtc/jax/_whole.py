# SPDX-License-Identifier: Apache-2.0
"""Whole steps: a function (state, batch) -> (state, metrics), gradients and updates included, becomes a plan."""

from __future__ import annotations

import dataclasses
from typing import Any, Callable, Mapping, Optional, Sequence, Union

import jax
import numpy as np

from mtc import _compile, _options, _whole
from mtc._errors import ModelError
from mtc._plan import Plan
from mtc._tensors import Array, stored
from mtc._trace import Graph, Refused, Value, places, reals
from mtc._trace import elementwise as e
from mtc._trace import whole as shared
from mtc._trace.graph import dtype_of
from mtc.jax import _derivative
from mtc.jax import _threefry as threefry
from mtc.jax._control import move_keys
from mtc.jax._program import hint, specs_of, symbolic
from mtc.jax._reader import Reader, is_key, with_way_out
from mtc.jax._tree import Tree
from mtc.jax._update import arrays_of
from mtc.jax._whole_check import STATE, compare


class DeviceArray(_whole.DeviceArray):
    """An array of a state that stays on the devices, until somebody reads it, as NumPy or JAX read an array.

    Once the step was called again its memory has other values: then it is a DataError to read it, if it was not read
    before, or to give it to the step.
    """

    def __jax_array__(self) -> Any:
        return jax.numpy.asarray(np.asarray(self))


@dataclasses.dataclass
class _Traced(_whole.Traced):
    graph: Graph
    keys: set[str]  # arrays of the state that are keys of random numbers


class WholeStep(_whole.WholeStep):
    """A compiled step. Call it as the function: state, metrics = step(state, batch).

    Attributes:
        plan: the `mtc.Plan`.
        session: the `mtc.Session`, whose variables are the arrays of the state.
        text: the model as `mt` text.
    """

    _framework = "jax"
    _traced: _Traced

    def _flatten(self, tree: Any) -> tuple[list[Any], Any]:
        return jax.tree.flatten(tree)

    def _leaves_or_none(self, tree: Any) -> list[Any]:
        return list(jax.tree.flatten(tree, is_leaf=lambda x: x is None)[0])

    def _handle(self, name: str, like: Any) -> Any:
        if is_key(like):  # small, and a type of JAX alone
            return threefry.from_host(self.session.variables[name], like)
        return DeviceArray(self, name, like, self._calls)

    def _to_host(self, name: str, array: Any) -> Array:
        return _stored(array, name in self._traced.keys)

    def _array(self, name: str, shape: tuple[int, ...], dtype: Any) -> Array:
        if name in self._traced.keys:
            return np.asarray(self.session.variables[name], np.int32).view(np.uint32).reshape(shape)
        return super()._array(name, shape, dtype)


@reals.chosen
def step(function: Callable[..., Any], state: Any, example_batch: Any, *, batch_size: int = 0,
         predict: Optional[Callable[..., Any]] = None, devices: Optional[str] = None, name: str = "",
         check: bool = True, verbose: Union[int, str] = "auto", **options: Any) -> WholeStep:
    """Compiles a whole training step of JAX.

    Args:
        function: function(state, batch) gives (state, metrics). Gradients, updates and whatever else a step does are in
            it. It is traced with any number of samples.
        state: a pytree of arrays of float32, int32 or bool, and of keys of random numbers, which training starts with.
        example_batch: a pytree of arrays [n, ...] of a few samples, which are split between the devices.
        batch_size: samples of a step, on all devices together. 0: those of the example.
        predict: predict(state, batch): arrays [n, ...] for `step.predict`.
        devices: as of `mtc.Session`.
        name: of the model; the function's name without it.
        check: compares what JAX and MTC make of the example in two steps, the state and the metrics.
        verbose: 0: silent.
        options: as of `mtc.compile`: target, precision, shards, seed, mode, ...

    Returns:
        A `WholeStep`: state, metrics = step(state, batch).

    Raises:
        ModelError: something cannot be taken, a line for each with the place in the code; or the check failed.
    """
    function = getattr(function, "__wrapped__", function)  # without jax.jit
    whole, batch = Tree.of(arrays_of(state), STATE), Tree.of(example_batch)
    batch.names = shared.batch_names(batch.names)
    title = name or getattr(function, "__name__", "step").strip("<>")
    rows = {np.shape(a)[0] if np.ndim(a) else None for a in batch.arrays}
    shared.check_rows(rows, "arrays")
    traced = _trace(function, whole, batch, title, predict)
    text = traced.graph.text()
    settings = _options.fields(batch_size or len(batch.arrays[0]), options)

    def made(fields: Mapping[str, Any]) -> Plan:
        weights = {name: _stored(array, name in traced.keys) for name, array in zip(whole.names, whole.arrays)
                   if name in traced.graph.state}
        return Plan(_compile.plan_of_text(text, title, dict(fields), verbose, weights), any_label=True)

    def check_it() -> str:
        again = _trace(function, whole, batch, title, predict)
        alike = all(np.array_equal(value, again.constant[name]) for name, value in traced.constant.items())
        if again.graph.text() != text or not alike:
            raise ModelError(f"{shared.place_of(function, title)}: expected {shared.READS}")
        plan = made(_options.for_check(len(batch.arrays[0]), options))
        with WholeStep(plan, text, traced, "cpu:1", processes=1) as own:
            return compare(own, function, state, example_batch)

    plan = _compile.while_checking(lambda: made(settings), check_it, verbose) if check else made(settings)
    return WholeStep(plan, text, traced, devices)


def _stored(array: Any, is_random: bool) -> Array:
    return threefry.to_host(array) if is_random else stored(array, doubles=True)


def _trace(function: Callable[..., Any], state: Tree, batch: Tree, title: str,
           predict: Optional[Callable[..., Any]]) -> _Traced:
    graph = Graph(title, with_way_out)
    reader = Reader(graph, move_keys=move_keys)
    specs = symbolic(batch)
    keys = {name for name, array in zip(state.names, state.arrays) if threefry.is_words(array)}
    wrong = [f"{name}: expected a state of {reals.name()}, int32, bool or keys, found {array.dtype}"
             for name, array in zip(state.names, state.arrays)
             if name not in keys and array.dtype not in (reals.real(), np.int32, np.bool_)]
    for name, array in zip(state.names, state.arrays):
        if name in keys and (problem := threefry.problem_of(array)):
            wrong.append(f"{name}: {problem}")
    if wrong:
        raise ModelError("\n".join(wrong))
    inputs = [graph.input(label, reader.shape(spec.shape), dtype_of(spec.dtype))
              for label, spec in zip(batch.names, specs)]
    slots = {}
    for name, array in zip(state.names, state.arrays):
        if name in keys:
            slots[name] = graph.slot(name, threefry.to_host(array).shape, "i32", "frozen")
        else:  # without words it is the model's, as what is trained
            dtype = "i32" if array.dtype == np.bool_ else dtype_of(array.dtype)
            slots[name] = graph.slot(name, array.shape, dtype, "" if dtype == "f32" else "frozen")
    given: list[Any] = []
    for name, array in zip(state.names, state.arrays):
        if name in keys:
            given.append(threefry.Words(slots[name]))
        else:
            given.append(e.compare("ne", slots[name], 0) if array.dtype == np.bool_ else slots[name])
    closed, metrics = _jaxpr(function, state, batch, specs)
    made = reader.read(closed, [*given, *inputs])
    reader.check()
    constant = {}
    try:
        for name, after in zip(state.names, made):
            if name in keys:
                after = threefry.words_of(reader, after).value
            if after is not slots[name]:
                graph.assign(name, e.cast(reader.value(after), slots[name].dtype))
        for name, after in zip(metrics.names, made[len(state.names):]):
            if not isinstance(after, Value):
                constant[name] = after
                continue
            shared.report(graph, name, after, "an array")
        if predict is not None:
            _add_predictions(graph, reader, predict, state, batch, specs, [*given, *inputs])
    except Refused as problem:
        raise ModelError(f"{title}: {problem}") from None
    if not graph.assigned:
        raise ModelError(f"{title}: expected a step that changes its state, found one that does not")
    return _Traced(state, batch, metrics, constant, graph, keys)


def _jaxpr(function: Callable[..., Any], state: Tree, batch: Tree, specs: Sequence[Any]) -> tuple[Any, Tree]:
    count = len(state.names)
    place = shared.place_of(function, getattr(function, "__name__", "step").strip("<>"))
    found: list[Tree] = []

    def flat(*given: Any) -> Any:
        result = function(state.build(given[:count]), batch.build(given[count:]))
        if not isinstance(result, tuple) or len(result) != 2:
            raise ModelError(f"{place}: expected a function that gives (state, metrics), found "
                             f"{type(result).__name__}")
        new = Tree.of(arrays_of(result[0]), STATE)
        if new.structure != state.structure:
            raise ModelError(f"{place}: expected a new state of the structure of the given one, found another: "
                             f"{new.structure} in place of {state.structure}")
        for name, before, after in zip(state.names, state.arrays, new.arrays):
            shared.check_state(place, name, before, after)
        metrics = Tree.of(arrays_of(result[1]))
        metrics.names = ["loss" if name == "value" else name for name in metrics.names]
        found[:] = [metrics]
        return [*new.arrays, *metrics.arrays]

    try:
        with _derivative.taken_whole(getattr(function, "inner", function)):
            closed = jax.make_jaxpr(flat)(*specs_of(state.arrays), *specs)
    except ModelError:
        raise
    except Exception as error:  # what JAX cannot trace
        raise ModelError(f"{places.refusal(error)}{hint(error)}") from error
    return closed, found[0]


def _add_predictions(graph: Graph, reader: Reader, predict: Callable[..., Any], state: Tree, batch: Tree,
                     specs: Sequence[Any], given: Sequence[Any]) -> None:
    names: list[str] = []

    def flat(*arrays: Any) -> Any:
        count = len(state.names)
        tree = Tree.of(predict(state.build(arrays[:count]), batch.build(arrays[count:])))
        names[:] = shared.output_names(tree.names)
        return tree.arrays

    made = reader.read(jax.make_jaxpr(flat)(*specs_of(state.arrays), *specs), given)
    reader.check()
    for name, result in zip(names, made):
        shared.predict(graph, name, reader.value(result))
