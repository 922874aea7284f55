# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C while a loop of the library runs, and while variables are copied."""

from __future__ import annotations

import contextlib
import signal
import threading
import types
from typing import Any, Iterator, Optional


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
