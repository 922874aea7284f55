# SPDX-License-Identifier: Apache-2.0
"""Plans that were compiled before, in memory and in a folder.

`MTC_CACHE` names the folder; "off" or "0" switches it off. Without it the folder is `mtc/plans` in the user's cache
folder. `MTC_CACHE_SIZE` is the most bytes that it holds, 2 GiB without it: the plans that were used longest ago go
first.

A plan is a program: whoever writes into the folder could have his own run here. So the folder and its files must be
this user's, and nobody else may write there; links are not followed.
"""

from __future__ import annotations

import collections
import contextlib
import hashlib
import json
import os
import pathlib
import stat
import threading
import time
import warnings
from typing import Any, Iterator, Optional

from mtc import _files
from mtc._errors import Error
from mtc._plan import Plan

IN_MEMORY = 8
DEFAULT_BYTES = 2 << 30
ABANDONED_SECONDS = 3600  # after which nobody writes a file any more

_lock = threading.Lock()
_warned: set[pathlib.Path] = set()
_recent: collections.OrderedDict[str, Plan] = collections.OrderedDict()


def folder() -> Optional[pathlib.Path]:
    """The folder of plans; None: there is none."""
    named = os.environ.get("MTC_CACHE", "")
    if named.lower() in ("off", "0"):
        return None
    if named:
        return pathlib.Path(named)
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return pathlib.Path(base) / "mtc" / "plans"


def key(*parts: Any) -> str:
    """A name for what is compiled: a hash of the parts."""
    text = json.dumps(parts, sort_keys=True, default=str)
    return hashlib.blake2b(text.encode(), digest_size=20).hexdigest()


def get(name: str) -> Optional[Plan]:
    """The plan of this name, if there is one that is whole."""
    with _lock:
        plan = _recent.get(name)
        if plan is not None:
            _recent.move_to_end(name)
            return plan
    place = folder()
    if place is None:
        return None
    with _opened(place, create=False) as holder:
        data = _read(holder, f"{name}.mtp") if holder is not None else None
    try:
        plan = Plan(data) if data is not None else None
    except Error:  # damaged: it is compiled again
        plan = None
    if plan is not None:
        _remember(name, plan)
    return plan


def put(name: str, data: bytes) -> Plan:
    """Keeps a plan. A folder that cannot be written is no error."""
    plan = Plan(data)
    _remember(name, plan)
    place = folder()
    if place is not None and len(data) <= limit():
        with _opened(place, create=True) as holder, contextlib.suppress(OSError):
            if holder is not None:
                _files.write(holder, f"{name}.mtp", data, 0o600)
                _shrink(holder, limit())
    return plan


def limit() -> int:
    """The most bytes of plans that the folder holds."""
    try:
        return int(os.environ.get("MTC_CACHE_SIZE", DEFAULT_BYTES))
    except ValueError:
        return DEFAULT_BYTES


def clear() -> None:
    """Forgets all plans, in memory and in the folder."""
    with _lock:
        _recent.clear()
    place = folder()
    if place is not None:
        with _opened(place, create=False) as holder:
            if holder is not None:
                _shrink(holder, 0)


def _remember(name: str, plan: Plan) -> None:
    with _lock:
        _recent[name] = plan
        _recent.move_to_end(name)
        while len(_recent) > IN_MEMORY:
            _recent.popitem(last=False)


@contextlib.contextmanager
def _opened(place: pathlib.Path, create: bool) -> Iterator[Optional[int]]:
    """A descriptor of the folder; None: there is none that may be used. What happens by it happens in this folder."""
    holder = None
    try:
        with contextlib.suppress(OSError):
            if create:
                place.mkdir(mode=0o700, parents=True, exist_ok=True)
            holder = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        if holder is not None and not _is_private(holder):
            _warn(place, os.fstat(holder).st_uid)
            os.close(holder)
            holder = None
        yield holder
    finally:
        if holder is not None:
            os.close(holder)


def _is_private(holder: int) -> bool:
    """Whether the folder is this user's; others lose the right to write there."""
    facts = os.fstat(holder)
    if facts.st_uid != os.geteuid():
        return False
    if facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        try:
            os.fchmod(holder, stat.S_IMODE(facts.st_mode) & ~(stat.S_IWGRP | stat.S_IWOTH))
        except OSError:
            return False
    return True


def _warn(place: pathlib.Path, owner: int) -> None:
    if place not in _warned:
        _warned.add(place)
        warnings.warn(f"plans are not kept: expected a folder of this user for them, as plans are programs, found "
                      f"{place} of user {owner}: MTC_CACHE names another", UserWarning, stacklevel=2)


def _is_ours(facts: os.stat_result) -> bool:
    return (stat.S_ISREG(facts.st_mode) and facts.st_uid == os.geteuid()
            and not facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH))


def _read(holder: int, name: str) -> Optional[bytes]:
    """A file of the folder; None: there is none that is this user's alone."""
    try:
        # A pipe of this name, or a link to elsewhere, is not waited for.
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=holder)
        with os.fdopen(descriptor, "rb") as file:
            if not _is_ours(os.fstat(descriptor)):
                return None
            data = file.read()
            with contextlib.suppress(OSError):
                os.utime(descriptor)
            return data
    except OSError:
        return None


def _shrink(holder: int, most: int) -> None:
    """Removes what was used longest ago, and what writers left that were killed."""
    files = []
    now = time.time()
    for name in os.listdir(holder):
        unfinished = name.startswith(".") and ".mtp." in name
        if not (unfinished or name.endswith(".mtp")):
            continue
        with contextlib.suppress(OSError):
            facts = os.stat(name, dir_fd=holder, follow_symlinks=False)
            if unfinished and now - facts.st_mtime > ABANDONED_SECONDS:
                os.unlink(name, dir_fd=holder)
            elif stat.S_ISREG(facts.st_mode):
                files.append((unfinished, facts.st_mtime_ns, facts.st_size, name))
    total = 0
    for unfinished, _, size, name in sorted(files, reverse=True):
        total += size
        if total > most and not unfinished:
            with contextlib.suppress(OSError):
                os.unlink(name, dir_fd=holder)
