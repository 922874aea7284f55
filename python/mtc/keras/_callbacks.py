# SPDX-License-Identifier: Apache-2.0
"""Keras' callbacks, called from the loop of the library."""

from __future__ import annotations

import time
from typing import Any, Optional

from mtc._errors import DataError
from mtc._html import history_curves
from mtc._process import process, processes
from mtc.keras._model import keras

Logs = dict[str, float]

REDRAW_SECONDS = 0.05  # of the progress bar
_TRAIN = ("on_train_batch_begin", "on_train_batch_end", "on_batch_begin", "on_batch_end")
_TEST = ("on_test_batch_begin", "on_test_batch_end")
_WRITERS = ("ModelCheckpoint", "CSVLogger", "TensorBoard", "RemoteMonitor")
_PREDICT = ("on_predict_batch_begin", "on_predict_batch_end")

_history_class: Optional[type] = None


def history_class() -> Any:
    """`keras.callbacks.History` with curves for notebooks."""
    global _history_class
    if _history_class is None:
        def show(self: Any) -> str:
            return history_curves(self.epoch, self.history)

        base = keras().callbacks.History
        _history_class = type("History", (base,), {"_repr_html_": show, "__module__": base.__module__})
    return _history_class


def overrides(callback: Any, name: str) -> bool:
    """Whether a callback has a method of its own for the event."""
    method = getattr(callback, name, None)
    return getattr(method, "__func__", method) is not getattr(keras().callbacks.Callback, name)


def _looks_at(callback: Any, events: tuple[str, ...]) -> bool:
    if not any(overrides(callback, name) for name in events):
        return False
    known = keras().callbacks
    saves = type(callback) in (known.ModelCheckpoint, known.BackupAndRestore)
    return not (saves and getattr(callback, "save_freq", None) == "epoch")  # whose batch event does nothing then


def _is_keras_own(callback: Any) -> bool:
    """Whether what it does for batches is Keras' alone, which uses variables through Keras."""
    kind = type(callback)
    return getattr(keras().callbacks, kind.__name__, None) is kind and kind.__name__ != "LambdaCallback"


def _of_this_process(listed: list[Any]) -> list[Any]:
    """The callbacks of this process: those of Keras that write files belong to process 0 alone."""
    if processes() == 1:
        return listed
    known = keras().callbacks
    if any(isinstance(callback, known.BackupAndRestore) for callback in listed):
        raise DataError("expected the arguments checkpoint and resume for several processes, found the callback "
                        "BackupAndRestore, which would restore each on its own")
    writers = tuple(getattr(known, name) for name in _WRITERS if hasattr(known, name))
    return listed if process() == 0 else [callback for callback in listed if not isinstance(callback, writers)]


class Caller:
    """A `CallbackList`, and which of its callbacks look at batches: only they are called for them.

    Attributes:
        list: all of them.
        train: those that look at batches of training; likewise `test` and `predict`.
        users: whether one of `train` is not Keras' own.
    """

    def __init__(self, model: Any, callbacks: Any, verbose: Any, epochs: int, steps: Optional[int],
                 history: bool = False) -> None:
        module = keras().callbacks
        if isinstance(callbacks, module.CallbackList):
            self.list: Any = callbacks
        else:
            listed = list(callbacks) if isinstance(callbacks, (list, tuple)) else [callbacks] if callbacks else []
            for callback in listed:
                if not isinstance(callback, module.Callback):
                    raise TypeError(f"expected callbacks of keras.callbacks.Callback, found {type(callback).__name__}")
            listed = _of_this_process(listed)
            if history and not any(isinstance(c, module.History) for c in listed):
                listed.append(history_class()())
            self.list = module.CallbackList(listed, add_history=history, add_progbar=verbose != 0, verbose=verbose,
                                            epochs=epochs, steps=steps, model=model)
        self.bars = [c for c in self.list.callbacks if isinstance(c, module.ProgbarLogger)]
        others = [c for c in self.list.callbacks if not isinstance(c, module.ProgbarLogger)]
        self.train = [c for c in others if _looks_at(c, _TRAIN)]
        self.users = not all(map(_is_keras_own, self.train))
        self.test = [c for c in others if _looks_at(c, _TEST)]
        self.predict = [c for c in others if _looks_at(c, _PREDICT)]
        self._drawn = 0.0

    def asks_metrics(self) -> bool:
        """Whether a callback watches a metric whose better values only the metric knows."""
        return any(getattr(c, "mode", None) == "auto" and getattr(c, "monitor", "").replace("val_", "", 1) != "loss"
                   for c in self.list.callbacks)

    def draws(self) -> bool:
        """Whether it is time to draw the progress bar."""
        if not self.bars:
            return False
        now = time.monotonic()
        if now - self._drawn < REDRAW_SECONDS:
            return False
        self._drawn = now
        return True

    def draw(self, event: str, step: int, logs: Optional[Logs]) -> None:
        """Shows the step in the progress bar."""
        for bar in self.bars:
            getattr(bar, event)(step, logs)


def call_each(callbacks: list[Any], event: str, step: int, logs: Optional[Logs] = None) -> None:
    """Tells some callbacks of a batch."""
    if not callbacks:
        return
    ordered = dict(sorted(logs.items())) if logs else logs  # as Keras gives them
    for callback in callbacks:
        getattr(callback, event)(step, ordered)
