# SPDX-License-Identifier: Apache-2.0
"""Keras models that are no files: Python code is their meaning, and a trace of it becomes a plan.

The importer of files (`libmtc`) reads Keras' own layers. Whatever it refuses comes here: subclassed models, custom
layers, losses and metrics, `add_loss`, `compute_loss`. The way:

1.  `_example`: a few samples as `fit` takes them. Their shapes and types are the trace's, their values the check's.
    Inputs, outputs, targets and weights get the names that the importer of files would give them.
2.  `_program`: the loss function of `mtc.jax`. It calls `model.compute_loss_and_updates` of Keras' JAX back end, as
    Keras' own train_step does, on variables that are arguments: trainable ones are parameters, those of type float
    that are not trained are the state, seeds are keys (so MTC draws the random numbers), others are constants. Metrics
    start from their reset state in each batch; what they report must be a mean over samples, or a quotient of sums.
    Keras' paths are the names of the variables, which is how `mtc.keras._model.match_variables` finds them again.
    `_own_step` finds the loss of a class that has its own train_step.
3.  `_optimizer`: `model.optimizer` as an optimizer of MTC's, whose forms are Keras'. Schedules are traced.
4.  `mtc.jax` makes the text and checks one batch against Keras on JAX.
5.  `_rebuild`: on another back end a process with KERAS_BACKEND=jax loads the saved model, and does 1 to 4.
6.  `_compile` makes the plan, and keeps it under a hash of the text. So a model is traced at each `fit`, which takes a
    second or less, and compiled and checked when its text is new.
"""

from __future__ import annotations

import dataclasses
import hashlib
import warnings
from typing import Any, Callable, Optional, Sequence, Union

import numpy as np

from mtc import _cache, _compile, _library
from mtc._errors import ModelError, ModelWarning
from mtc._plan import Plan
from mtc._structure import Structure
from mtc._trace import places
from mtc.keras import _model
from mtc.keras._example import Example, Names, flat

# Options of mtc.compile that are for files of Keras.
_OF_FILES = ("loss", "optimizer", "metrics", "input_shape", "batch_norm", "class_names", "vocabulary", "weights")
TOLERANCES = {"float32": 1e-4}  # of the check, by the type that Keras computes in
LOOSE = 5e-2

_checked: set[str] = set()  # texts


@dataclasses.dataclass(frozen=True)
class Request:
    """What a trace is made for.

    Attributes:
        example: gives samples; None: they are made up.
        weighted: the loss takes weights of samples.
        check: compares a batch with Keras.
    """

    example: Optional[Callable[[], Example]]
    weighted: bool = False
    check: Union[bool, str] = True


@dataclasses.dataclass(frozen=True)
class Result:
    """The text of a model, and who checks it.

    Attributes:
        text: in `mt`.
        names: of its entries.
        check: raises a ModelError where a batch differs from Keras; gives the line that says how good it is.
        dropped: why metrics were left out.
    """

    text: str
    names: Names
    check: Callable[[], str]
    dropped: Sequence[str]


def compile(model: Any, request: Request, settings: dict[str, Any], verbose: Union[int, str], cache: bool,
            with_weights: bool) -> tuple[Plan, Structure]:
    """The plan of a model, and how the caller's data becomes that of the plan.

    Without its weights the plan's are anybody's: whoever uses it sets them.

    Raises:
        ModelError: it cannot be traced; a line for each reason, with the user's line or the layer.
    """
    drop = bool(settings.get("drop_unsupported_metrics"))
    settings = {n: v for n, v in settings.items() if n not in ("sample_weights", "drop_unsupported_metrics")}
    wrong = [name for name in _OF_FILES if settings.get(name)]
    if wrong:
        raise ModelError(f"{model.name}: expected no {', '.join(wrong)} for a model that is traced: the model says it")
    policy = getattr(getattr(model, "dtype_policy", None), "name", "float32")
    if policy.startswith("mixed_"):
        settings = {"precision": policy, **settings}
    result = _trace(model, request, with_weights, drop)
    for reason in result.dropped:
        warnings.warn(f"{reason}; it is left out of the plan", ModelWarning, stacklevel=2)

    def make(weights: Optional[dict[str, Any]] = None) -> bytes:
        def compiled() -> bytes:
            return _compile.plan_of_text(result.text, str(model.name), settings, verbose, weights)

        if result.text in _checked:
            return compiled()
        return _compile.while_checking(compiled, check, verbose)

    def check() -> str:
        line = result.check() if request.check else "not checked"
        _checked.add(result.text)
        return f"{model.name} is traced on JAX; {line}"

    key = ["trace", result.text, settings, _library.compiler_identity()]
    plan = _compile.cached(_cache.key(*key), make, cache)
    if with_weights:
        weights = {info.name: _model.value_of(v) for v, info in _model.match_variables(model, plan)}
        digest = hashlib.blake2b()
        for name in sorted(weights):
            digest.update(np.ascontiguousarray(weights[name]).data)
        plan = _compile.cached(_cache.key(*key, digest.hexdigest()), lambda: make(weights), cache)
    plan._any_label = not _has_classes(model)
    return plan, result.names.structure({t.name for t in plan.signature()})


def _has_classes(model: Any) -> bool:
    """Whether integer targets are classes of the output, by a loss of Keras that ignores none."""
    losses = [loss for _, loss in flat(getattr(model, "loss", None))]
    names = [loss if isinstance(loss, str) else getattr(loss, "__name__", type(loss).__name__) for loss in losses]
    return any(name.lower().replace("_", "") == "sparsecategoricalcrossentropy"
               and getattr(loss, "ignore_class", None) is None for loss, name in zip(losses, names))


def _trace(model: Any, request: Request, rate: bool, drop: bool) -> Result:
    example = request.example() if request.example else Example.of_model(model, request.weighted).with_targets(model)
    example = example.fitting(model)
    if _model.keras().backend.backend() != "jax":
        from mtc.keras import _rebuild

        return _rebuild.trace(model, example, request.check, rate, drop)
    return trace_here(model, example, rate, drop, full=request.check == "full")


def trace_here(model: Any, example: Example, rate: bool, drop: bool, paths: Sequence[str] = (),
               full: bool = False) -> Result:
    """Traces a model of Keras' JAX back end.

    `rate`: with its learning rate. `drop`: leaves out metrics that cannot be taken. `paths`: other names for its
    variables, in their order. `full`: the check takes all samples, and makes all batches.
    """
    from mtc.jax import _check, _program
    from mtc.jax._optimizers import Optimizer
    from mtc.jax._updates import Updates
    from mtc.keras._optimizer import OfKeras, optimizer_of
    from mtc.keras._program import Traced

    traced = Traced(model, example, paths)
    traced.program.dropped = [] if drop else None
    optimizer = optimizer_of(model, rate) if model.compiled else Optimizer("sgd", 1e-3)
    try:
        graph = _program.trace(traced.program, str(model.name), optimizer, traced.better)
        text = _program.finish_text(graph, optimizer)
    except ModelError:
        raise
    except Exception as error:  # the user's code, or Keras'
        raise places.refusal(error, str(model.name)) from error
    finally:
        getattr(model, "_losses_override", []).clear()  # where a compute_loss raised, Keras would take its losses

    def check() -> str:
        if not traced.has_loss:
            return "not checked, as there are no targets"
        policy = getattr(getattr(model, "dtype_policy", None), "name", "float32")
        program = traced.program
        updates = Updates(program, optimizer_of(model, True), lambda weights: OfKeras(
            model, program.params.names, weights)) if model.compiled else None
        return _check.compare(program, program.batch.arrays, TOLERANCES.get(policy, LOOSE), _small_plan, full,
                              updates)

    return Result(text, traced.names, check, tuple(traced.program.dropped or ()))


def _small_plan(text: str, rows: int) -> Plan:
    return Plan(_compile.plan_of_text(text, "check", {"batch": rows, "cpu": "native"}, 0))
