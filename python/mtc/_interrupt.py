# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C while a loop of the library runs."""

from __future__ import annotations

import contextlib
import signal
import threading
import types
from typing import Iterator, Optional


class Interrupt:
    """Ctrl-C asks a loop to end after its step; a second one interrupts what runs then.

    Attributes:
        asked: it was pressed.
    """

    def __init__(self) -> None:
        self.asked = False

    @contextlib.contextmanager
    def caught(self) -> Iterator[None]:
        """Where it is Python's own that Ctrl-C does, and the thread is the one that signals come to."""
        ours = (threading.current_thread() is threading.main_thread()
                and signal.getsignal(signal.SIGINT) is signal.default_int_handler)

        def interrupt(number: int, frame: Optional[types.FrameType]) -> None:
            if self.asked:
                signal.default_int_handler(number, frame)
            self.asked = True

        if ours:
            signal.signal(signal.SIGINT, interrupt)
        try:
            yield
        finally:
            if ours:
                signal.signal(signal.SIGINT, signal.default_int_handler)
