# SPDX-License-Identifier: Apache-2.0
"""An optimizer of Keras: one of MTC's, whose forms and numbers are the same, or else its own step, traced by JAX."""

from __future__ import annotations

from typing import Any, Mapping, Sequence

import jax
import numpy as np

from mtc._tensors import Array
from mtc.jax._optimizers import Optimizer
from mtc.jax._tree import Tree
from mtc.jax._update import PREFIX, Update
from mtc.keras import _match, _model

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


def has_form(model: Any) -> bool:
    """Whether MTC has the form of a compiled model's optimizer."""
    given = _model.inner_optimizer(model)
    own = type(given).__name__ in KINDS and type(given).__module__.split(".")[0] == "keras"
    return (own and not given.gradient_accumulation_steps
            and all(getattr(variable, "constraint", None) is None for variable in model.trainable_variables))


def update_of(model: Any, params: Tree) -> Update:
    """The step of a compiled model's optimizer. `params`: of its trainable variables, in their order."""
    optimizer = _model.inner_optimizer(model)
    if not optimizer.built:
        optimizer.build(model.trainable_variables)
    return _update(optimizer, params)


def again(model: Any, params: Tree) -> Update:
    """The same of other values."""
    keras = _model.keras()
    given = _model.inner_optimizer(model)
    variables = []
    for i, (array, old) in enumerate(zip(params.arrays, model.trainable_variables)):
        variables.append(keras.Variable(array, dtype="float32", name=f"u{i}"))
        variables[-1].constraint = getattr(old, "constraint", None)
    optimizer = type(given).from_config(given.get_config())
    if given.weight_decay and hasattr(given, "_use_weight_decay"):
        left = [v for v, old in zip(variables, model.trainable_variables) if not given._use_weight_decay(old)]
        if left:
            optimizer.exclude_from_weight_decay(var_list=left)
    optimizer.build(variables)
    return _update(optimizer, params)


def _update(optimizer: Any, params: Tree) -> Update:
    variables = list(optimizer.variables)
    names = [f"{PREFIX}/{name}" for name in _match.state_names(variables)]
    arrays = [np.asarray(_model.value_of(v)) for v in variables]
    arrays = [a.astype(np.int32) if a.dtype.kind in "iu" else a for a in arrays]
    words = {f"{PREFIX}/iteration": "frozen role(iteration)"}
    if f"{PREFIX}/learning_rate" in names:
        words[f"{PREFIX}/learning_rate"] = "frozen role(learning_rate)"
    state = Tree(names, arrays, jax.tree.structure([0] * len(arrays)), [None] * len(arrays))

    def function(given: Sequence[Any], gradients: Sequence[Any], old: Sequence[Any],
                 _: Any) -> tuple[Sequence[Any], Sequence[Any]]:
        typed = [jax.numpy.asarray(a, v.dtype) for a, v in zip(old, variables)]
        after, new = optimizer.stateless_apply(typed, list(gradients), list(given))
        return after, [jax.numpy.asarray(a, first.dtype) for a, first in zip(new, arrays)]

    return Update(type(optimizer).__name__, "Keras", params, state, function, words)


def optimizer_of(model: Any, rate: bool) -> Optimizer:
    """The optimizer of a compiled model, whose form MTC has. Without `rate` a learning rate that is a number is 0.001:
    who uses the plan sets it."""
    given = _model.inner_optimizer(model)
    kind = type(given).__name__
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


class OfKeras:
    """A new optimizer of a model's kind and numbers, for a few weights.

    Args:
        model: compiled.
        names: of its trainable variables, in their order.
        weights: by the names of some of them.
    """

    owner = "Keras"

    def __init__(self, model: Any, names: list[str], weights: Mapping[str, Array]) -> None:
        keras = _model.keras()
        given = _model.inner_optimizer(model)
        self.kind = type(given).__name__
        schedule = given._learning_rate
        if not callable(schedule) or hasattr(schedule, "assign"):
            schedule = float(_model.value_of(schedule))
        # By its name: of a file that another back end has saved, the class is that back end's.
        self._optimizer = getattr(keras.optimizers, self.kind).from_config(
            {**given.get_config(), "learning_rate": schedule})
        models = dict(zip(names, model.trainable_variables))
        self._variables = {name: keras.Variable(weight, dtype="float32", name=f"u{i}")
                           for i, (name, weight) in enumerate(weights.items())}
        if given.weight_decay:
            left = [v for name, v in self._variables.items() if not given._use_weight_decay(models[name])]
            if left:
                self._optimizer.exclude_from_weight_decay(var_list=left)
        self._optimizer.build(list(self._variables.values()))

    def step(self, gradients: Mapping[str, Array]) -> dict[str, Array]:
        """The weights after an update."""
        convert = _model.keras().ops.convert_to_tensor
        self._optimizer.apply([convert(gradients[name]) for name in self._variables], list(self._variables.values()))
        return {name: np.asarray(variable) for name, variable in self._variables.items()}

    def slots(self, variables: Any) -> dict[str, tuple[Array, Array]]:
        """What is remembered: MTC's, of a session's variables, and Keras'."""
        remembered = {v.path.rpartition("/")[2]: np.asarray(v) for v in self._optimizer.variables}
        found = {}
        for i, name in enumerate(self._variables):
            start = f"{name.replace('/', '_')}_"
            for own in variables:
                end = own.rpartition("/")[2].removeprefix(start)
                if own not in self._variables and own.rpartition("/")[2].startswith(start) and \
                        f"u{i}_{end}" in remembered:
                    found[f"the state {end} of {name}"] = (variables[own], remembered[f"u{i}_{end}"])
        return found
