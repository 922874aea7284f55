# SPDX-License-Identifier: Apache-2.0
"""From a loss function of JAX to the text of a model."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from typing import Any, Callable, Optional, Sequence, Union

import jax
import numpy as np

import mtc.jax._loops  # noqa: F401
from mtc._errors import ModelError
from mtc._trace import BATCH, Graph, Refused, Value, losses, places, reals, whole
from mtc._trace import elementwise as e
from mtc._trace.graph import dtype_of
from mtc._trace.values import Shape, has_batch
from mtc.jax import _complex, _control, _cumulative, _functions, _indexing, _rules, _shards, _state  # noqa: F401
from mtc.jax._optimizers import Optimizer
from mtc.jax._reader import ACROSS, UNKNOWN, Keys, Reader, with_way_out
from mtc.jax._tree import Tree
from mtc.jax._update import Update

Spec: Any = jax.ShapeDtypeStruct
KEY_NAMES = ("key", "rng", "rngs", "prng_key", "rng_key")
TRAINING_NAMES = ("training", "train", "is_training")


@dataclasses.dataclass
class Program:
    """A loss function and what it is called with."""

    function: Callable[..., Any]
    params: Tree
    state: Optional[Tree]
    batch: Tree
    key: Optional[str]  # the name of its argument
    training: Optional[str]
    predict: Optional[Callable[..., Any]] = None
    kinds: Sequence[str] = ()  # of the arrays of the batch; without it what `predict` does not read is a target
    exact: bool = False  # metrics are what they are over all samples, or are refused
    dropped: Optional[list[str]] = None  # gets the reasons of metrics that are refused, which are left out

    @staticmethod
    def of(function: Callable[..., Any], params: Any, state: Any, batch: Any, predict: Any) -> Program:
        """Looks at the arguments of the function."""
        known = inspect.signature(function).parameters
        key = next((n for n in KEY_NAMES if n in known), None)
        training = next((n for n in TRAINING_NAMES if n in known), None)
        tree = Tree.of(batch)
        tree.names = whole.batch_names(tree.names)
        learned, stateful = Tree.of(params), None if state is None else Tree.of(state)
        if stateful is not None:  # a teacher's parameters have the names of the learner's
            stateful.names = [f"state/{name}" if name in learned.names else name for name in stateful.names]
        return Program(function, learned, stateful, tree, key, training, predict)

    @property
    def predicts_with_key(self) -> bool:
        """Whether the predictions have random numbers."""
        return self.key is not None and self.predict is not None and self.key in inspect.signature(
            self.predict).parameters

    def call(self, params: Sequence[Any], state: Sequence[Any], batch: Sequence[Any], key: Any,
             training: bool) -> tuple[Any, Any, dict[str, Any]]:
        """(loss, new state or None, metrics)."""
        extra: dict[str, Any] = {}
        if self.key is not None:
            extra[self.key] = key
        if self.training is not None:
            extra[self.training] = training
        state = [jax.numpy.asarray(s) for s in state]  # Flax assigns to parts of its variables
        trees = [self.params.build(params), *([self.state.build(state)] if self.state else []),
                 self.batch.build(batch)]
        result = self.function(*trees, **extra)
        loss, aux = result if isinstance(result, tuple) else (result, None)
        if self.state is None:
            return loss, None, _metrics(aux)
        new, metrics = aux, None
        if isinstance(aux, tuple) and len(aux) == 2 and jax.tree.structure(aux[0]) == self.state.structure:
            new, metrics = aux
        if jax.tree.structure(new) != self.state.structure:
            raise ModelError("expected the loss and a new state of the structure of the given one, found another")
        return loss, [x for x, o in zip(jax.tree.leaves(new), self.state.others) if o is None], _metrics(metrics)

    def predictions(self, params: Any, state: Any, batch: Any, key: Any) -> dict[str, Any]:
        """What `predict` returns, by the names that a plan has for it."""
        assert self.predict is not None
        trees = [self.params.build(params), *([self.state.build(state)] if self.state else []),
                 self.batch.build(batch)]
        tree = Tree.of(self.predict(*trees, **({self.key or "": key} if self.predicts_with_key else {})))
        return dict(zip(whole.output_names(tree.names), tree.arrays))


def _metrics(aux: Any) -> dict[str, Any]:
    if aux is None:
        return {}
    made = {}
    for key, inner in aux.items() if isinstance(aux, dict) else [("", aux)]:  # in the order of the dict
        tree = Tree.of(inner, str(key))
        made.update({name: value for name, value in zip(tree.names, tree.arrays) if value.shape == ()})
    return made


@dataclasses.dataclass
class Traced:
    """A graph that has all but the optimizer."""

    graph: Graph
    reader: Reader
    variables: list[Value]  # of the parameters
    loss: Any


@functools.cache
def _rows() -> Any:
    """One symbol for the samples of all batches: functions under `jax.jit` are traced once for it."""
    return jax.export.symbolic_shape("b")[0]


def symbolic(tree: Tree) -> list[Any]:
    """The arrays of a batch with a symbol in place of their first size."""
    made = []
    for name, array in zip(tree.names, tree.arrays):
        if not array.shape:
            raise ModelError(f"{name}: expected an axis of samples in each array of the batch, found a number")
        made.append(Spec((_rows(), *array.shape[1:]), jax.dtypes.canonicalize_dtype(array.dtype)))
    return made


def trace(program: Program, name: str, optimizer: Union[Optimizer, Update], better: Any = None,
          fixed: Optional[list[tuple[str, str, Shape]]] = None, whole: bool = False) -> Traced:
    """Traces a program into a graph.

    `fixed`: random numbers are inputs of the graph, which are added to the list, and the training form
    alone is taken, but with `whole`.
    """
    graph = Graph(name, with_way_out)
    reader = Reader(graph, fixed=fixed)
    batch = symbolic(program.batch)
    modes = [True, False] if program.training is not None and (fixed is None or whole) else [True]
    traced = [_jaxpr(program, batch, mode) for mode in modes]
    used = set() if program.predict is None or program.kinds else _predict_reads(program, batch)
    inputs = []
    for i, (label, spec) in enumerate(zip(program.batch.names, batch)):
        kind = program.kinds[i] if program.kinds else "input" if program.predict is None or i in used else "target"
        value = graph.input(label, reader.shape(spec.shape), dtype_of(spec.dtype), kind)
        if spec.dtype.kind == "u":
            value.bounds = (0, min(int(np.iinfo(spec.dtype).max), 2**31 - 1))
        elif spec.dtype.kind == "i" and spec.dtype.itemsize < 4:
            value.bounds = (int(np.iinfo(spec.dtype).min), int(np.iinfo(spec.dtype).max))
        inputs.append(value)
    _check_types(program)
    masks = masks_of(program, optimizer)
    variables = {n: graph.variable(n, a.shape, no_weight_decay=not decayed)
                 for n, a, decayed in zip(program.params.names, program.params.arrays, masks)}
    state = {n: graph.variable(n, a.shape, frozen=True) for n, a in
             zip(program.state.names, program.state.arrays)} if program.state else {}
    given = [*variables.values(), *state.values(), *inputs]
    results = []
    for closed, count, names in traced:
        made = reader.read(closed, [*given, *([Keys((program.key,))] if program.key else [])])
        _check(reader, program, made[:1 + count], dict(zip(names, made[1 + count:])))
        results.append((made[0], made[1:1 + count], dict(zip(names, made[1 + count:]))))
    _finish(graph, reader, program, results, list(state.values()), better)
    if isinstance(optimizer, Optimizer):
        _freeze_unused(graph, dict(zip(program.params.names, masks)), optimizer)
    if program.predict is not None and (fixed is None or whole):
        _predict(graph, reader, program, batch, given)
    return Traced(graph, reader, list(variables.values()), results[0][0])


def _check_types(program: Program) -> None:
    """Raises where a parameter has other numbers than those of a plan."""
    wrong = [(n, a.dtype) for n, a in zip(program.params.names, program.params.arrays)
             if jax.dtypes.canonicalize_dtype(a.dtype) != reals.real()]
    if wrong:
        raise ModelError("\n".join(f"{name}: expected a parameter of {reals.name()}, found {dtype}"
                                   for name, dtype in wrong))


def _freeze_unused(graph: Graph, decayed: dict[str, bool], optimizer: Optimizer) -> None:
    """Parameters whose gradient is 0, as the loss does not depend on them: they stay, unless they are decayed."""
    names = graph.without_gradient()
    changed = [name for name in names if decayed.get(name) and optimizer.attributes.get("weight_decay")]
    if changed:
        raise ModelError("\n".join(f"{name}: expected a parameter that the loss depends on, or one that the mask keeps "
                                   "from weight decay" for name in changed))
    for name in names:
        graph.freeze(name)


def _check(reader: Reader, program: Program, made: Sequence[Any], metrics: dict[str, Any]) -> None:
    """Raises what cannot be taken; of metrics alone by their names, or not at all where they may be dropped."""
    unknown = [name for name, value in metrics.items() if value is UNKNOWN]
    if program.exact and unknown and not any(value is UNKNOWN for value in made):
        reasons = [f"metric {name}: {'; '.join(reader.problems)}" for name in unknown]
        if program.dropped is None:
            raise ModelError("\n".join(reasons))
        program.dropped += [reason for reason in reasons if reason not in program.dropped]
        reader.problems.clear()
    reader.check()


def _jaxpr(program: Program, batch: list[Any], training: bool) -> tuple[Any, int, list[str]]:
    names: list[str] = []
    count = 0

    def flat(params: Any, state: Any, batch: Any, key: Any) -> Any:
        nonlocal count
        loss, new, metrics = program.call(params, state, batch, key, training)
        names[:] = list(metrics)
        count = len(new or [])
        return [loss, *(new or []), *metrics.values()]

    key = jax.eval_shape(lambda: jax.random.key(0)) if program.key else None
    state = specs_of(program.state.arrays) if program.state else []
    try:
        closed = jax.make_jaxpr(flat)(specs_of(program.params.arrays), state, batch, key)
    except ModelError:
        raise
    except Exception as error:  # what JAX cannot trace: branches on values, functions of NumPy
        raise ModelError(f"{places.refusal(error)}{hint(error)}") from error
    return closed, count, names


_HINTS = {
    "'_DimExpr' object cannot be interpreted as an integer":
        ": the number of samples is a symbol: write x.shape[0] in place of len(x) or int(x.shape[0])",
    "used in a context that requires a constant":
        ": the number of samples is a symbol: use x.shape[0] as it is, without int() and range()",
    "shard_map applied to the function": f": {_shards.OF_SEVERAL.format(count='several')}",
    "Cannot mutate": ": give what the module changes to compile as state=: see docs/jax.md#flax",
    "InconclusiveDimensionOperation":
        f": the number of samples is a symbol, which no other size compares with; {ACROSS}",
}


def hint(error: Exception) -> str:
    """What to do where JAX's or Flax's own words do not say it."""
    text = "".join(f"{type(cause).__name__}: {cause}" for cause in places.causes(error))
    return next((hint for part, hint in _HINTS.items() if part in text), "")


def specs_of(arrays: Sequence[Any]) -> list[Any]:
    """The shapes and types of arrays."""
    return [Spec(a.shape, a.dtype) for a in arrays]


def masks_of(program: Program, optimizer: Union[Optimizer, Update]) -> list[bool]:
    """Which parameters the weight decay of an optimizer of MTC is for."""
    mask = optimizer.mask if isinstance(optimizer, Optimizer) else None
    if mask is None:
        return [True] * len(program.params.names)
    tree = mask(program.params.build(program.params.arrays)) if callable(mask) else mask
    flags = jax.tree.leaves(tree)
    if len(flags) != len(program.params.names):
        raise ModelError(f"expected a mask with {len(program.params.names)} booleans, one for each parameter, found "
                         f"{len(flags)}")
    return [bool(f) for f in flags]


def _finish(graph: Graph, reader: Reader, program: Program, results: list[Any], state: list[Value],
            better: Any) -> None:
    """Losses, metrics and updates of the state."""
    loss, new, metrics = results[0]
    last = results[-1]
    try:
        losses.add_loss(graph, _float(loss), _float(last[0]))
        for name, value in metrics.items():
            if value is UNKNOWN:
                continue
            label = name if name != "loss" else "loss_metric"
            way = (better or {}).get(name, "higher" if "acc" in name.lower() else "lower")
            try:
                losses.add_metric(graph, label, _float(value), _float(last[2][name]), way, program.exact)
            except Refused as problem:
                if program.dropped is None:
                    raise
                program.dropped.append(str(problem))
        if program.state is not None:
            _state.add_updates(graph, program.state.names, state, [reader.value(v) for v in new])
    except Refused as problem:
        raise ModelError(f"{getattr(program.function, '__name__', 'the loss')}: {problem}") from None


def _float(value: Any) -> Value:
    if not isinstance(value, Value):
        raise Refused("expected a loss and metrics that depend on the batch, found a constant")
    return e.cast(value, "f32")


def _predict_jaxpr(program: Program, batch: list[Any]) -> tuple[Any, list[str]]:
    names: list[str] = []

    def flat(params: Any, state: Any, batch: Any, key: Any) -> Any:
        found = program.predictions(params, state, batch, key)
        names[:] = list(found)
        return list(found.values())

    state = specs_of(program.state.arrays) if program.state else []
    key = jax.eval_shape(lambda: jax.random.key(0)) if program.predicts_with_key else None
    return jax.make_jaxpr(flat)(specs_of(program.params.arrays), state, batch, key), names


def _predict_reads(program: Program, batch: list[Any]) -> set[int]:
    """Which arrays of the batch the predictions depend on."""
    closed, _ = _predict_jaxpr(program, batch)
    first = len(closed.jaxpr.invars) - len(batch) - program.predicts_with_key
    read = {v for equation in closed.jaxpr.eqns for v in equation.invars if not hasattr(v, "val")}
    read |= {v for v in closed.jaxpr.outvars if not hasattr(v, "val")}
    return {i for i, v in enumerate(closed.jaxpr.invars[first:first + len(batch)]) if v in read}


def _predict(graph: Graph, reader: Reader, program: Program, batch: list[Any], given: list[Value]) -> None:
    closed, names = _predict_jaxpr(program, batch)
    made = reader.read(closed, [*given, *([Keys((program.key or "",))] if program.predicts_with_key else [])])
    reader.check()
    for name, result in zip(names, made):
        value = reader.value(result)
        if value.shape[:1] != (BATCH,) or has_batch(value.shape[1:]):
            raise ModelError(f"{name}: expected a prediction for each sample, found {list(value.shape)}")
        graph.output(name, value)


def finish_text(traced: Traced, optimizer: Union[Optimizer, Update]) -> str:
    """The text with an optimizer, whose rate may be a function of the step."""
    if traced.graph.assigned and isinstance(optimizer, Optimizer):
        raise ModelError(f"expected an optimizer of optax for a state that is no moving average of a batch's mean and "
                         f"variance, {', '.join(name for name, _ in traced.graph.assigned)}, found {optimizer.kind}")
    if isinstance(optimizer, Update):
        optimizer.trace(traced.reader, traced.variables, traced.loss if isinstance(traced.loss, Value) else None)
        return traced.graph.text()
    if not callable(optimizer.rate):
        return traced.graph.text(optimizer.line("").format())
    closed = jax.make_jaxpr(optimizer.rate)(Spec((), np.int32))
    (rate,) = traced.reader.read(closed, [traced.graph.iteration()])
    traced.reader.check()
    traced.graph.say(optimizer.line("rate({0}) "), e.cast(traced.reader.value(rate), "f32"))
    return traced.graph.text()
