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
    Keras' paths are the names of the variables, which is how `mtc.keras._match.match_variables` finds them again.
    `_own_step` finds the loss of a class that has its own train_step.
3.  `_optimizer`: `model.optimizer` as an optimizer of MTC's, whose forms are Keras'. Schedules are traced.
4.  `_on_jax`: `mtc.jax` makes the text and checks one batch against Keras on JAX.
5.  `_rebuild`: on another back end a process with KERAS_BACKEND=jax (`_rebuilt`) loads the saved model, and does 1
    to 4.
6.  `_compile` makes the plan, and keeps it under a hash of the text. So a model is traced at each `fit`, which takes a
    second or less, and compiled and checked when its text is new.
"""

from __future__ import annotations

import hashlib
import warnings
from typing import Any, Optional, Union

import numpy as np

from mtc import _cache, _compile, _library, _options
from mtc._errors import ModelError, ModelWarning
from mtc._plan import Plan
from mtc._structure import Structure
from mtc._trace import reals
from mtc.keras import _match, _model, _rebuild
from mtc.keras._example import Example, flat
from mtc.keras._request import Request, Result

# Options of mtc.compile that are for files of Keras.
_OF_FILES = ("loss", "optimizer", "metrics", "input_shape", "batch_norm", "class_names", "vocabulary", "weights")

_checked: set[str] = set()  # texts


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
    reals.refuse(settings.get("precision"), "a trace of Keras")
    policy = getattr(getattr(model, "dtype_policy", None), "name", "float32")
    if policy.startswith("mixed_"):
        settings = {"precision": policy, **settings}
    has_state = _has_state(model)  # before the trace, which may build the optimizer
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

    key = ["trace", result.text, _options.identity(settings), _library.compiler_identity()]
    if with_weights:
        variables = result.variables
        if has_state and not any(info.kind == "optimizer" for info in variables):  # a plan knows their names
            variables = _compile.cached(_cache.key(*key), make, cache).variables
        weights = {info.name: _model.value_of(v) for v, info in _match.match_variables(model, variables)}
        digest = hashlib.blake2b()
        for name in sorted(weights):
            digest.update(np.ascontiguousarray(weights[name]).data)
        plan = _compile.cached(_cache.key(*key, digest.hexdigest()), lambda: make(weights), cache)
    else:
        plan = _compile.cached(_cache.key(*key), make, cache)
    plan._any_label = not _has_classes(model)
    return plan, result.names.structure({t.name for t in plan.signature()})


def _has_state(model: Any) -> bool:
    """Whether there is an optimizer that has variables."""
    return bool(getattr(model, "optimizer", None) is not None and _model.inner_optimizer(model).built)


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
        return _rebuild.trace(model, example, request.check, rate, drop)
    from mtc.keras import _on_jax  # which needs JAX

    return _on_jax.trace(model, example, rate, drop, full=request.check == "full")
