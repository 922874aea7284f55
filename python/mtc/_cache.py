# SPDX-License-Identifier: Apache-2.0
"""Plans that were compiled before, in memory and in a folder.

`MTC_CACHE` names the folder; "off" or "0" switches it off. Without it the folder is `mtc/plans` in the user's cache
folder. `MTC_CACHE_SIZE` is the most bytes that it holds, 2 GiB without it: the plans that were used longest ago go
first.
"""

from __future__ import annotations

import collections
import contextlib
import hashlib
import json
import os
import pathlib
import threading
from typing import Any, Optional

from mtc._errors import Error
from mtc._plan import Plan, write_atomically

IN_MEMORY = 8
DEFAULT_BYTES = 2 << 30

_lock = threading.Lock()
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
    path = place / f"{name}.mtp"
    try:
        plan = Plan(path.read_bytes())
        os.utime(path)
    except (OSError, Error):  # none, or one that is damaged: it is compiled again
        return None
    _remember(name, plan)
    return plan


def put(name: str, data: bytes) -> Plan:
    """Keeps a plan. A folder that cannot be written is no error."""
    plan = Plan(data)
    _remember(name, plan)
    place = folder()
    if place is not None and len(data) <= limit():
        with contextlib.suppress(OSError, Error):
            place.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_atomically(place / f"{name}.mtp", data)
            _shrink(place, limit())
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
    if place is not None and place.is_dir():
        _shrink(place, 0)


def _remember(name: str, plan: Plan) -> None:
    with _lock:
        _recent[name] = plan
        _recent.move_to_end(name)
        while len(_recent) > IN_MEMORY:
            _recent.popitem(last=False)


def _shrink(place: pathlib.Path, most: int) -> None:
    files = []
    for path in place.glob("*.mtp"):
        with contextlib.suppress(OSError):
            stat = path.stat()
            files.append((stat.st_mtime_ns, stat.st_size, path))
    total = 0
    for _, size, path in sorted(files, reverse=True):
        total += size
        if total > most:
            with contextlib.suppress(OSError):
                path.unlink()
