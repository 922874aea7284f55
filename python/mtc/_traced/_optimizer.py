# SPDX-License-Identifier: Apache-2.0
"""An optimizer of Keras as one of MTC's: the forms are the same, and so are the names of their numbers."""

from __future__ import annotations

from typing import Any

from mtc import _model
from mtc._errors import ModelError
from mtc.jax._optimizers import Optimizer

# The op of each class, and the numbers and flags that are its own.
KINDS = {
    "SGD": ("sgd", "momentum nesterov"), "Adam": ("adam", "beta_1 beta_2 epsilon amsgrad"),
    "AdamW": ("adamw", "beta_1 beta_2 epsilon amsgrad"), "Adamax": ("adamax", "beta_1 beta_2 epsilon"),
    "Nadam": ("nadam", "beta_1 beta_2 epsilon"), "Lamb": ("lamb", "beta_1 beta_2 epsilon"),
    "RMSprop": ("rmsprop", "rho momentum epsilon centered"),
    "Adagrad": ("adagrad", "initial_accumulator_value epsilon"), "Adadelta": ("adadelta", "rho epsilon"),
    "Lion": ("lion", "beta_1 beta_2"),
}
SHARED = ["weight_decay", "clipnorm", "global_clipnorm", "clipvalue"]


def optimizer_of(model: Any, rate: bool) -> Optimizer:
    """The optimizer of a compiled model. Without `rate` a learning rate that is a number is 0.001: who uses the plan
    sets it."""
    given = _model.inner_optimizer(model)
    kind = type(given).__name__
    if kind not in KINDS or type(given).__module__.split(".")[0] != "keras":
        raise ModelError(f"{model.name}: expected an optimizer of {', '.join(KINDS)}, found {kind}")
    if given.gradient_accumulation_steps:
        raise ModelError(f"{model.name}: gradient_accumulation_steps: give mtc micro_batches, and a batch for all of "
                         "them together")
    for variable in model.trainable_variables:
        if getattr(variable, "constraint", None) is not None:
            raise ModelError(f"{variable.path}: expected a variable without a constraint, found "
                             f"{type(variable.constraint).__name__}")
    op, own = KINDS[kind]
    numbers = {name: value for name in [*own.split(), *SHARED] if (value := getattr(given, name, None)) is not None}
    if numbers.get("nesterov") and not numbers.get("momentum"):
        del numbers["nesterov"]
    if given.use_ema:
        numbers.update(ema_momentum=given.ema_momentum, ema_overwrite_frequency=given.ema_overwrite_frequency)
    schedule = given._learning_rate
    if not callable(schedule) or hasattr(schedule, "assign"):
        schedule = float(_model.value_of(schedule)) if rate else 1e-3
    mask = None
    if numbers.get("weight_decay"):
        mask = [bool(given._use_weight_decay(v)) for v in model.trainable_variables]
    return Optimizer(op, schedule, numbers, mask)
