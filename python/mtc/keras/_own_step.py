# SPDX-License-Identifier: Apache-2.0
"""The loss of a model whose class has a `train_step` of its own, on the JAX back end.

Such a step computes a loss, its gradients by `jax.value_and_grad` or `jax.grad`, and gives them to
`self.optimizer.stateless_apply`. MTC differentiates the loss itself. So the step is called once with replacements of
these three functions: the first ones call the loss and return placeholders of the gradients, and the last one takes
nothing but these. What the step does to gradients between the two would be lost, and is refused.
"""

from __future__ import annotations

import contextlib
from typing import Any, Callable, Iterator, Mapping, Optional, Sequence
from unittest import mock

import jax

from mtc._errors import ModelError
from mtc.keras import _model

_grad, _value_and_grad = jax.grad, jax.value_and_grad


class OwnStep:
    """One call of a `train_step`."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.loss: Any = None
        self.placeholders: Optional[list[Any]] = None
        self.applied = False
        self._within_loss = False

    def run(self, params: Sequence[Any], others: Sequence[Any], metrics: Sequence[Any], x: Any, y: Any,
            weight: Any) -> tuple[Any, Any, Any]:
        """The loss, the variables that are not trained after the step, and what the step reports.

        Raises:
            ModelError: it does something else with the loss or the gradients.
        """
        optimizer = [v.value for v in self.model.optimizer.variables]
        data = tuple(part for part in (x, y, weight) if part is not None)
        with self._replaced(params):
            logs, state = self.model.train_step((list(params), list(others), optimizer, list(metrics)), data)
        if self.placeholders is None:
            raise self._error("expected it to call jax.value_and_grad or jax.grad, found no call (it must be written "
                              "so, with jax.)")
        if not self.applied:
            raise self._error("expected it to give the gradients to self.optimizer.stateless_apply, found no call")
        return self.loss, state[1], _flat(logs)

    @contextlib.contextmanager
    def _replaced(self, params: Sequence[Any]) -> Iterator[None]:
        def value_and_grad(function: Callable[..., Any], argnums: Any = 0, has_aux: bool = False,
                           **options: Any) -> Callable[..., Any]:
            own = _value_and_grad(function, argnums, has_aux, **options)
            return lambda *given, **named: own(*given, **named) if self._within_loss else \
                self._call(params, function, argnums, has_aux, given, named)

        def grad(function: Callable[..., Any], argnums: Any = 0, has_aux: bool = False,
                 **options: Any) -> Callable[..., Any]:
            own = _grad(function, argnums, has_aux, **options)

            def call(*given: Any, **named: Any) -> Any:
                if self._within_loss:
                    return own(*given, **named)
                value, placeholders = value_and_grad(function, argnums, has_aux, **options)(*given, **named)
                return (placeholders, value[1]) if has_aux else placeholders

            return call

        def apply(_self: Any, optimizer: Any, gradients: Sequence[Any], trainable: Any = None) -> Any:
            self._check(gradients)
            return trainable, optimizer

        with mock.patch.object(jax, "value_and_grad", value_and_grad), mock.patch.object(jax, "grad", grad), \
                mock.patch.object(type(self.model.optimizer), "stateless_apply", apply):
            yield

    def _call(self, params: Sequence[Any], function: Callable[..., Any], argnums: Any, has_aux: bool,
              given: Sequence[Any], named: dict[str, Any]) -> Any:
        if self.placeholders is not None:
            raise self._error("expected one loss, found a second call of jax.value_and_grad or jax.grad")
        if argnums != 0 or not given or not _same(given[0], params):
            raise self._error("expected gradients of the trainable variables of its state, the first argument of the "
                              "loss, found gradients of others")
        self._within_loss = True  # a derivative in the loss is a part of it
        try:
            value = function(*given, **named)
        finally:
            self._within_loss = False
        self.loss = value[0] if has_aux else value
        self.placeholders = [jax.numpy.zeros_like(p) for p in params]
        return value, list(self.placeholders)

    def _check(self, gradients: Sequence[Any]) -> None:
        if self.applied:
            raise self._error("expected one update, found a second call of self.optimizer.stateless_apply")
        if self.placeholders is None or not _same(gradients, self.placeholders):
            raise self._error("expected the gradients of the loss as they are in self.optimizer.stateless_apply, found "
                              "others: clip them by clipnorm, global_clipnorm or clipvalue of the optimizer")
        self.applied = True

    def _error(self, reason: str) -> ModelError:
        return ModelError(f"{self.model.name}: train_step of {type(self.model).__name__}: {reason}")


def own_step(model: Any) -> Callable[..., tuple[Any, Any, Any]]:
    """`OwnStep.run` of a model, whose Python code runs once for all arguments of the same shapes and types.

    Variables that stay as they are are None after the step.
    """
    def run(params: Sequence[Any], others: Sequence[Any], *rest: Any) -> tuple[Any, Any, Any]:
        loss, after, logs = OwnStep(model).run(params, others, *rest)
        return loss, [None if new is old else new for old, new in zip(others, after)], logs

    return jax.jit(run)


def has_own_step(model: Any) -> bool:
    """Whether the class has a `train_step` of its own."""
    return bool(_model.own_methods(model, ("train_step",)))


def _flat(logs: Mapping[str, Any]) -> dict[str, Any]:
    """Without the names of groups of metrics, as Keras reports them."""
    made: dict[str, Any] = {}
    for name, value in logs.items():
        made.update(_flat(value) if isinstance(value, Mapping) else {name: value})
    return made


def _same(a: Any, b: Sequence[Any]) -> bool:
    """Whether these are the very same values in the same order."""
    leaves = jax.tree.leaves(a)
    return len(leaves) == len(b) and all(x is y for x, y in zip(leaves, b))
