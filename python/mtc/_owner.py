# SPDX-License-Identifier: Apache-2.0
"""Who uses a session of the library: one thread of one process, and no callback of it in every way."""

from __future__ import annotations

import contextlib
import ctypes
import os
import threading
import weakref
from typing import Any, Iterator, Optional

from mtc._errors import ClosedError


class Owner:
    """A session's handle. It is freed by `close`, or with this object, but never while it is in use.

    Attributes:
        closed: there is no session any more.
    """

    def __init__(self, library: Any, handle: ctypes.c_void_p, plan: Any) -> None:
        """`plan`: must live as long as the session."""
        self._handle: Optional[ctypes.c_void_p] = handle
        self._pid = os.getpid()
        self._lock = threading.RLock()
        self._calls: list[str] = []  # under way, each within the one before: a callback makes the second
        self._free = weakref.finalize(self, _free, library, handle, self._pid, self._lock, plan)

    @property
    def closed(self) -> bool:
        """Whether there is no session any more."""
        return self._handle is None

    @contextlib.contextmanager
    def use(self, alone: str = "") -> Iterator[ctypes.c_void_p]:
        """The handle, for this thread alone.

        `alone`: the name of a method that a callback of another one must not call: the outer one would go on with
        other variables or steps than it left.
        """
        if self._handle is None:
            raise ClosedError("expected an open session, found one that is closed")
        if os.getpid() != self._pid:
            raise ClosedError(f"expected a session of this process, {os.getpid()}, found one of process {self._pid}: "
                              "make a session after fork()")
        with self._held("one that another thread uses"):
            if self._handle is None:
                raise ClosedError("expected an open session, found one that is closed")
            if alone and self._calls:
                raise ClosedError(f"expected a callback of {self._calls[0]} to evaluate, to predict, and to read and "
                                  f"set variables, found {alone} of the same session")
            self._calls.append(alone or "a step")
            try:
                yield self._handle
            finally:
                self._calls.pop()

    def close(self) -> None:
        """Frees the session; ClosedError while somebody uses it."""
        if self._handle is None or os.getpid() != self._pid:
            self._handle = None
            return
        with self._held("close() while another thread uses it"):
            if self._calls:
                raise ClosedError(f"expected a session that is idle, found close() in a callback of {self._calls[0]}: "
                                  "a callback ends a fit by returning True")
            self._handle = None
            self._free()

    @contextlib.contextmanager
    def _held(self, found: str) -> Iterator[None]:
        if not self._lock.acquire(blocking=False):
            raise ClosedError(f"expected a session that is idle, found {found}")
        try:
            yield
        finally:
            self._lock.release()


def _free(library: Any, handle: ctypes.c_void_p, pid: int, lock: Any, _plan: Any) -> None:
    if os.getpid() != pid:  # its threads are not in a child of fork()
        return
    if lock.acquire(blocking=False):  # else the interpreter ends while another thread is in a step
        try:
            library.mtrun_session_free(handle)
        finally:
            lock.release()
