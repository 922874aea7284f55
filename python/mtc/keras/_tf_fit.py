# SPDX-License-Identifier: Apache-2.0
"""Keras' `fit` on TensorFlow, of a model whose class has code of its own and that is no plan as a whole: Keras has the
loop, and the step is a function that may become a plan, as those that a script writes."""

from __future__ import annotations

import contextlib
from typing import Any, Callable, Iterator, Optional

from mtc.keras import _model, _tf_function
from mtc.keras._tf_function import tf


def has_own_step(model: Any) -> bool:
    """Whether it is such a model, whose steps Keras would compile one by one."""
    return bool(_model.keras().backend.backend() == "tensorflow"
                and _model.own_methods(model, ("train_step", "compute_loss", "call"))
                and not _model.own_methods(model, ("make_train_function",)) and not model.run_eagerly
                and model.steps_per_execution == 1 and model.distribute_strategy.num_replicas_in_sync == 1)


@contextlib.contextmanager
def steps(model: Any, devices: Optional[str]) -> Iterator[None]:
    """Within it, Keras' `fit` makes the model's steps of a function that may become a plan."""
    def make_train_function(force: bool = False) -> Callable[..., Any]:
        if model.train_function is None or force:
            model.train_function = _train_function(model, devices)
        made: Callable[..., Any] = model.train_function
        return made

    object.__setattr__(model, "make_train_function", make_train_function)
    try:
        yield
    finally:
        object.__delattr__(model, "make_train_function")


def _train_function(model: Any, devices: Optional[str]) -> Callable[..., Any]:
    @tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
    def train_step(data: Any) -> Any:
        return model.train_step(data)

    train_step.__name__ = f"{type(model).__name__}.train_step"
    made = tf.function(train_step, reduce_retracing=True, jit_compile=model.jit_compile)
    function = _tf_function.Function(train_step, made, devices)
    function.is_step = True
    _tf_function.functions.append(function)
    return lambda iterator: function(_without_optionals(next(iterator)))


def _without_optionals(data: Any) -> Any:
    """None in place of what a data set says is not there, as Keras does it."""
    return tf.nest.map_structure(lambda part: None if isinstance(part, tf.experimental.Optional) else part, data)
