# SPDX-License-Identifier: Apache-2.0
"""Sessions of live Keras models for steps that the caller makes one by one, as `train_on_batch` does."""

from __future__ import annotations

import os
import weakref
from typing import Any, Callable

from mtc._data import ClassWeights, rows_of
from mtc._errors import DataError, Error
from mtc._interrupt import deferred
from mtc._session import Logs, Session
from mtc.keras import _fit, _model
from mtc.keras._evaluate import plan_for
from mtc.keras._example import build
from mtc.keras._names import Names
from mtc.keras._window import Window

_ATTRIBUTE = "_mtc_live"  # of a model
_lives: weakref.WeakSet[Live] = weakref.WeakSet()
_forks: list[bool] = []  # not empty: a fork() brings all models up to date


class Live:
    """A model's session, which stays from one step to the next.

    On JAX the model's variables are a window on the session's between the steps too: a step copies nothing unless
    somebody looks. Elsewhere a variable may change without the knowledge of Keras, so that a step copies all of them
    in before it and out after it.
    """

    def __init__(self, model: Any, example: tuple[Any, ...], rows: int, weighted: bool,
                 settings: dict[str, Any]) -> None:
        """`example`: the caller's x, or x, y and sample_weight."""
        options = dict(settings)
        devices, seed = options.pop("devices", None), options.pop("seed", None)
        build(model, example[0])
        # For predictions alone; a plan has a loss.
        of_file = {} if getattr(model, "compiled", False) else {"loss": "mean_squared_error", "optimizer": "sgd"}
        self.plan, self.structure = plan_for(model, rows, weighted, 0, example, of_file=of_file, **options)
        self.rows, self.weighted, self.settings = rows, weighted, dict(settings)
        with _fit.strategy_scope(model):
            seed = seed or 0
            if model.compiled:
                model.optimizer.build(model.trainable_variables)
                seed = _fit.seed_for(model, settings.get("seed"))
            self.state = _state(model)
            self.session = Session(self.plan, devices, seed=seed)
            self.window = Window(model, self.session, any_thread=True)
        self.stays = _model.keras().backend.backend() == "jax"
        self._pid = os.getpid()
        _lives.add(self)

    def serves(self, model: Any, rows: int, weighted: bool, settings: dict[str, Any]) -> bool:
        """Whether the session is one for the model as it is now, and for so many rows."""
        return (rows <= self.rows and weighted <= self.weighted and settings == self.settings
                and os.getpid() == self._pid and _same(self.state, _state(model)))

    def step(self, model: Any, make: Callable[[], Any], changes: bool) -> Any:
        """Runs `make`, with the model's values in the session; `changes`: the session has other values then."""
        with _fit.strategy_scope(model), deferred():
            if self.stays and not self.window.watching:
                self.window.push()
                self.window.watch()
            elif not self.stays:
                self.window.push()
            self.window.closed()
            try:
                return make()
            finally:
                if changes:
                    self.window.stepped()
                self.window.opened()
                if changes and not self.stays:
                    self.window.pull()

    def release(self) -> None:
        """The model has its values itself."""
        if self.window.watching and os.getpid() == self._pid:
            self.window.release()


def _state(model: Any) -> list[Any]:
    """What the plan of a model was made of, besides values: the objects that `compile` makes, and what is trained."""
    optimizer = getattr(model, "optimizer", None)
    compiled = [getattr(model, name, None) for name in ("_compile_loss", "_compile_metrics", "_compile_config")]
    return [optimizer, getattr(optimizer, "_learning_rate", None), *compiled, *model.trainable_variables]


def _same(state: list[Any], other: list[Any]) -> bool:
    """Whether two states consist of the same objects."""
    return len(state) == len(other) and all(a is b for a, b in zip(state, other))


class _Refused:
    """That a model, as it is, cannot be compiled with these settings."""

    def __init__(self, model: Any, error: Exception, weighted: bool, settings: dict[str, Any]) -> None:
        self.state = _state(model)
        self.error = error
        self.weighted, self.settings = weighted, dict(settings)

    def holds(self, model: Any, weighted: bool, settings: dict[str, Any]) -> bool:
        """Whether it would be refused again."""
        return (self.weighted, self.settings) == (weighted, settings) and _same(self.state, _state(model))

    def release(self) -> None:
        """There is nothing to give back."""


def _live_of(model: Any, example: tuple[Any, ...], weighted: bool, settings: dict[str, Any]) -> Live:
    rows = rows_of(example[0])
    known = model.__dict__.get(_ATTRIBUTE)
    if isinstance(known, _Refused) and known.holds(model, weighted, settings):
        raise known.error
    if isinstance(known, Live):
        if known.serves(model, rows, weighted, settings):
            return known
        known.release()
        rows, weighted = max(rows, known.rows), weighted or known.weighted
        known.session.close()
    if not _forks:
        _forks.append(True)
        os.register_at_fork(before=release_all)
    model.__dict__.pop(_ATTRIBUTE, None)
    try:
        live = Live(model, example, rows, weighted, settings)
    except (Error, TypeError, ValueError, AttributeError, NotImplementedError) as error:
        model.__dict__[_ATTRIBUTE] = _Refused(model, error, weighted, settings)
        raise
    model.__dict__[_ATTRIBUTE] = live  # not by setattr: Keras would look at what it is
    return live


def release(model: Any) -> None:
    """The model has its values itself, until its next step."""
    known = model.__dict__.get(_ATTRIBUTE)
    if known is not None:
        known.release()


def release_all() -> None:
    """All models have their values themselves."""
    for live in list(_lives):
        live.release()


def train_on_batch(model: Any, x: Any, y: Any = None, sample_weight: Any = None, class_weight: Any = None,
                   return_dict: bool = False, **settings: Any) -> Any:
    """One step of a compiled model, as `model.train_on_batch`: the loss, or a list or dict with the metrics too.

    The values are those of this batch. `settings` are those of `mtc.fit`.
    """
    if class_weight is not None:
        if sample_weight is not None:
            raise DataError("expected class_weight or sample_weight, found both")
        sample_weight = ClassWeights(class_weight)(y)
    return _step(model, "train_step", x, y, sample_weight, return_dict, settings)


def test_on_batch(model: Any, x: Any, y: Any = None, sample_weight: Any = None, return_dict: bool = False,
                  **settings: Any) -> Any:
    """The loss and metrics of a batch, as `model.test_on_batch`."""
    _model.refuse_own(model, "test_step")
    return _step(model, "eval_step", x, y, sample_weight, return_dict, settings)


def predict_on_batch(model: Any, x: Any, **settings: Any) -> Any:
    """The outputs [n, ...] of a batch, as `model.predict_on_batch`."""
    _model.refuse_own(model, "predict_step")
    live = _live_of(model, (x,), False, settings)
    bound = live.structure.bind(x, None, None)
    outputs = live.step(model, lambda: live.session._predict(bound), changes=False)
    return _model.output_like(model, outputs, live.structure)


def _step(model: Any, program: str, x: Any, y: Any, sample_weight: Any, return_dict: bool,
          settings: dict[str, Any]) -> Any:
    _model.check_model(model)
    live = _live_of(model, (x, y, sample_weight), sample_weight is not None, settings)
    bound = live.structure.bind(x, y, sample_weight)
    trains = program == "train_step"
    make = live.session.train_step if trains else live.session.eval_step
    logs: Logs = live.step(model, lambda: make(bound), changes=trains)
    return _model.returned(model, live.plan, Names(list(logs)).of(logs), return_dict)
