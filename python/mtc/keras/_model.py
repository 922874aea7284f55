# SPDX-License-Identifier: Apache-2.0
"""Live Keras models: what they are, their variables, and the structure of what they take and give."""

from __future__ import annotations

import contextlib
import importlib
from typing import Any, Iterable, Optional

import numpy as np

from mtc._errors import ModelError
from mtc._plan import Plan
from mtc._structure import Structure
from mtc._tensors import Array
from mtc._versions import warn_if_newer

LOSS_VARIABLES = 2  # of a model's metrics before they are built: the running mean of the loss


def keras() -> Any:
    """Keras, imported when it is first needed."""
    module = importlib.import_module("keras")
    warn_if_newer("keras")
    return module


def is_model(value: Any) -> bool:
    """Whether it is a Keras model."""
    return hasattr(value, "compiled") and hasattr(value, "trainable_variables") and hasattr(value, "to_json")


def check_model(model: Any, compiled: bool = True) -> None:
    """ModelError for what is no model, is not compiled, or has no variables yet."""
    if not is_model(model):
        raise ModelError(f"expected a Keras model or the path of a model's file, found {type(model).__name__}")
    if compiled and not model.compiled:
        raise ModelError(f"{model.name}: expected a compiled model, found one without a loss and an optimizer: "
                         "call model.compile()")
    if not model.built:
        raise ModelError(f"{model.name}: expected a built model, found one whose input shape is not known: "
                         "begin it with keras.Input, or call model.build()")


def own_methods(model: Any, names: Iterable[str]) -> list[str]:
    """Which of these methods of `keras.Model` a class has in its own form."""
    base = keras().Model
    return [name for name in names if getattr(type(model), name, None) is not getattr(base, name, None)]


def refuse_own(model: Any, method: str) -> None:
    """Raises a ModelError where the class has its own `test_step` or `predict_step`."""
    if own_methods(model, (method,)):
        raise ModelError(f"{model.name}: expected Keras' own {method}, found one of {type(model).__name__}")


def value_of(variable: Any) -> Array:
    """A copy of the elements of a variable, or of what the back end computed."""
    value = getattr(variable, "value", variable)
    if hasattr(value, "read_value"):  # of TensorFlow, where a strategy may have several copies
        value = value.read_value()
    array: Array = keras().ops.convert_to_numpy(value)
    return array


def inner_optimizer(model: Any) -> Any:
    """The optimizer without the one that Keras puts around it in float16."""
    optimizer = model.optimizer
    return getattr(optimizer, "inner_optimizer", optimizer)


def unique_paths(variables: Iterable[Any]) -> list[str]:
    """The paths of variables, of which equal ones get numbers."""
    counts: dict[str, int] = {}
    names = []
    for variable in variables:
        used = counts.get(variable.path, 0)
        counts[variable.path] = used + 1
        names.append(f"{variable.path}_{used}" if used else variable.path)
    return names


def structure(model: Any, plan: Plan) -> Structure:
    """Names of the model's inputs and outputs, in its order."""
    tensors = list(model.inputs)
    given = getattr(model, "input", None)  # a Sequential may have none
    keys = {key: tensor.name for key, tensor in given.items()} if isinstance(given, dict) else {}
    return Structure.of(plan, [t.name for t in tensors], keys, list(getattr(model, "output_names", [])))


def build_metrics(model: Any, plan: Plan) -> None:
    """Lets the model's losses and metrics know what they are of, as Keras' fit does, unless they know.

    Callbacks ask them which way is better, and `model.metrics` lists those of each output.
    """
    if len(model.metrics_variables) > LOSS_VARIABLES:
        return
    zeros = {t.name: np.zeros((1, *t.shape[1:]), t.dtype) for t in (*plan.outputs, *plan.targets)}
    outputs = output_like(model, {t.name: zeros[t.name] for t in plan.outputs})
    targets = Structure.of(plan).targets
    given = dict(zip([t.name for t in plan.outputs], [zeros[name] if name else None for name in targets]))
    with contextlib.suppress(Exception):  # then they do not know
        model.compute_metrics(None, output_like(model, given), outputs)
        model.compute_loss(None, output_like(model, given), outputs)
        model.reset_metrics()


def returned(model: Any, plan: Plan, logs: dict[str, float], as_dict: bool) -> Any:
    """Losses and metrics as Keras returns them: a dict, a list, or the loss alone as a number."""
    logs = dict(sorted(logs.items()))
    if as_dict or len(logs) == 1:
        return logs if as_dict else next(iter(logs.values()))
    build_metrics(model, plan)
    return model._flatten_metrics_in_order(logs)


def output_like(model: Any, outputs: dict[str, Any], structure: Optional[Structure] = None) -> Any:
    """Predictions in the structure of the model's outputs."""
    if structure is not None and structure.pack is not None:
        return structure.pack([outputs[name] for name in structure.outputs])
    wanted = getattr(model, "output", None)
    if isinstance(wanted, dict):
        return {key: outputs[key] for key in wanted} if set(wanted) == set(outputs) else outputs
    values = list(outputs.values())
    return values if isinstance(wanted, (list, tuple)) else values[0]
