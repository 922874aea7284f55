# SPDX-License-Identifier: Apache-2.0
"""A model's variables as a window on a session's, while the session trains.

Each variable of Keras becomes, for that time, an instance of a subclass that knows when its value is read and when it
is assigned. A read copies the value out of the session if steps ran since the last one; an assignment is copied in
before the next step. So it does not matter through what a callback looks at the model: `self.model`, a closure, or a
variable that it kept. What nobody looks at is copied once, at the end.
"""

from __future__ import annotations

import contextlib
import importlib
import threading
from typing import Any, Iterator

import numpy as np

from mtc._errors import DataError
from mtc._interrupt import deferred
from mtc._session import Session
from mtc._tensors import TensorInfo
from mtc.keras._match import match_variables
from mtc.keras._model import keras, value_of

_EAGER = {"jax": "ensure_compile_time_eval", "tensorflow": "init_scope"}  # what is computed within is not traced
_watched_classes: dict[type, type] = {}


def _watched(kind: type) -> type:
    """The subclass of a class of variables whose instances tell their window."""
    if kind in _watched_classes:
        return _watched_classes[kind]

    def read(self: Any) -> Any:
        window = self.__dict__.get("_mtc_window")
        if window is not None:
            window.refresh(self)
        return self.__dict__["_value"]

    def write(self: Any, value: Any) -> None:
        self.__dict__["_value"] = value

    def assign(self: Any, value: Any) -> None:
        window = self.__dict__.get("_mtc_window")
        with window.assigning(self) if window is not None else contextlib.nullcontext():
            kind._direct_assign(self, value)  # type: ignore[attr-defined]

    _watched_classes[kind] = type(kind.__name__, (kind,), {
        "_value": property(read, write), "_direct_assign": assign, "__module__": kind.__module__,
        "__qualname__": kind.__qualname__})
    return _watched_classes[kind]


class Window:
    """The variables of a model and of its optimizer, and those of a session."""

    def __init__(self, model: Any, session: Session, any_thread: bool = False) -> None:
        """`any_thread`: whichever thread reads a variable sees the session's value."""
        self.model = model
        self.session = session
        self.pairs: list[tuple[Any, TensorInfo]] = match_variables(model, session.plan.variables)
        self._infos = {id(variable): info for variable, info in self.pairs}
        # What other processes have parts of, until it is collected.
        self.divided = {id(variable) for variable, info in self.pairs
                        if session._divides and info.kind == "optimizer" and np.prod(info.shape) > 1}
        self._steps = 0  # that the session has made, and that the model may not have
        self._seen: dict[int, int] = {}  # of each variable: the steps that its value is after
        self._dirty: dict[int, Any] = {}
        self._thread = None if any_thread else threading.get_ident()
        self._open = True  # the session may be asked now
        self._taken = False  # another window showed its session's values, which this session is to have then
        self.pushed = False
        self._inside = False  # of a refresh
        backend = keras().backend.backend()
        self._graphs = backend == "tensorflow"  # whose functions, once traced, use variables without Python's knowledge
        self._eagerly: Any = contextlib.nullcontext
        if backend in _EAGER:
            self._eagerly = getattr(importlib.import_module(backend), _EAGER[backend])
        self._classes: dict[int, type] = {}

    def push(self) -> None:
        """Copies all values of the model into the session."""
        for variable, info in self.pairs:
            self.session.set_variable(info, value_of(variable))
            self._seen[id(variable)] = self._steps
        self._dirty.clear()
        self.pushed = True

    def watch(self) -> None:
        """From now on the model's variables show the session's, and those of no other session."""
        self._taken = False
        for variable, _ in self.pairs:
            other = variable.__dict__.get("_mtc_window")
            if other is not None:
                other.release()
                other._taken = True
            kind = type(variable)
            self._classes[id(variable)] = kind
            variable._mtc_window = self
            variable.__class__ = _watched(kind)

    def unwatch(self) -> None:
        """The model's variables are its own again, with the values that they show now."""
        for variable, _ in self.pairs:
            if id(variable) in self._classes:
                variable.__class__ = self._classes.pop(id(variable))
                variable.__dict__.pop("_mtc_window", None)

    @property
    def watching(self) -> bool:
        """Whether the model's variables show the session's."""
        return bool(self._classes)

    def release(self) -> None:
        """The model's variables are its own again, with the session's values."""
        with deferred():
            self.pull()
            self.unwatch()

    def stepped(self) -> None:
        """The session has other values now."""
        self._steps += 1

    def opened(self, callbacks: bool = True) -> None:
        """The session waits for the caller: it may be asked for values; `callbacks`: those of the user run now."""
        self._open = True
        if self._graphs and callbacks:
            self._show()

    def closed(self) -> None:
        """Copies what was assigned into the session, which goes on."""
        if self._open or self._taken:
            self.flush()
        self._open = False

    def _show(self) -> None:
        """Copies all values of the session into the model."""
        for variable, _ in self.pairs:
            if self._seen.get(id(variable)) != self._steps and id(variable) not in self.divided:
                self._copy(variable)

    def flush(self) -> None:
        """Copies what was assigned into the session, or may have been by a graph."""
        if self._taken:  # a callback trained the model by another session
            self.push()
            self.watch()
            return
        current = [v for v, _ in self.pairs if self._seen.get(id(v)) == self._steps] if self._graphs else []
        for variable in current or list(self._dirty.values()):
            self.session.set_variable(self._infos[id(variable)], value_of(variable))
        self._dirty.clear()

    def refresh(self, variable: Any) -> None:
        """The variable gets the session's value, if that may be another one."""
        if self._seen.get(id(variable)) == self._steps or not self._open or self._inside:
            return
        if self._thread not in (None, threading.get_ident()):
            return
        self._copy(variable)

    def _copy(self, variable: Any) -> None:
        if id(variable) in self.divided:
            raise DataError(f"expected a variable that each process has, found {self._infos[id(variable)].name}, which "
                            "is divided among the processes until fit ends (shard_optimizer)")
        self._inside = True
        try:
            value = self.session.get_variable(self._infos[id(variable)])
            with self._eagerly():  # the reader may be code that Keras traces
                variable._direct_assign(variable._convert_to_tensor(value, dtype=value.dtype))
            self._seen[id(variable)] = self._steps  # not before it is so: an interrupt would leave an old value
        finally:
            self._inside = False

    @contextlib.contextmanager
    def assigning(self, variable: Any) -> Iterator[None]:
        """The variable is assigned within: its value need not be the session's, and is another one then."""
        if self._inside:
            yield
            return
        before = self._seen.get(id(variable), -1)
        self._seen[id(variable)] = self._steps
        try:
            yield
            self._dirty[id(variable)] = variable
        except BaseException:  # it shows the session's value again
            self._seen[id(variable)] = before
            raise

    def pull(self) -> None:
        """Copies all values of the session into the model."""
        self.opened(callbacks=False)
        self.flush()
        self._show()
