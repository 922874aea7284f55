# SPDX-License-Identifier: Apache-2.0
"""Callbacks of the library's loops: Ctrl-C while a loop runs or variables are copied, and errors of callbacks."""

from __future__ import annotations

import contextlib
import signal
import threading
import types
from typing import Any, Callable, Iterator, Optional


class Interrupt:
    """Ctrl-C asks a loop to end after its step; a second one interrupts the callback that runs then.

    Attributes:
        asked: it was pressed.
    """

    def __init__(self) -> None:
        self.asked = False
        self._breaks = False  # a second one raises where it comes

    @contextlib.contextmanager
    def caught(self) -> Iterator[None]:
        """Ctrl-C is noted within, and raised as a KeyboardInterrupt at the end.

        Where it is Python's own that Ctrl-C does, and the thread is the one that signals come to.
        """
        ours = (threading.current_thread() is threading.main_thread()
                and signal.getsignal(signal.SIGINT) is signal.default_int_handler)
        try:
            if ours:
                signal.signal(signal.SIGINT, self._press)
            yield
        finally:
            if ours:
                signal.signal(signal.SIGINT, signal.default_int_handler)
        if ours and self.asked:
            raise KeyboardInterrupt

    @contextlib.contextmanager
    def breaking(self) -> Iterator[None]:
        """A second Ctrl-C interrupts what runs within."""
        try:
            self._breaks = True
            yield
        finally:
            self._breaks = False

    def _press(self, _number: int, _frame: Optional[types.FrameType]) -> None:
        breaks, self.asked = self._breaks and self.asked, True
        if breaks:
            raise KeyboardInterrupt


@contextlib.contextmanager
def deferred() -> Iterator[None]:
    """What handlers of SIGINT and SIGTERM do waits until the end: what is half done within would be wrong.

    Whatever handlers of Python there are. Other threads than the first have none.
    """
    pressed: list[tuple[int, Optional[types.FrameType]]] = []
    handlers: dict[int, Any] = {}
    try:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                if callable(signal.getsignal(number)):
                    handlers[number] = signal.getsignal(number)
                    signal.signal(number, lambda *what: pressed.append(what))
        yield
    finally:
        for which, handler in handlers.items():
            signal.signal(which, handler)
    for which, frame in pressed:
        handlers[which](which, frame)


def guarded(function: Callable[..., int], errors: list[BaseException]) -> Callable[..., int]:
    """For C: what is raised is kept, and ends the loop."""

    def call(*arguments: Any) -> int:
        try:
            return function(*arguments)
        except BaseException as error:  # noqa: BLE001 - KeyboardInterrupt too
            errors.append(error)
            return 1

    return call
