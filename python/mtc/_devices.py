# SPDX-License-Identifier: Apache-2.0
"""The devices of this machine."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING

from mtc import _library
from mtc._dataset import with_lines
from mtc._errors import check

if TYPE_CHECKING:
    from mtc._plan import Plan


def devices() -> list[str]:
    """The GPUs of this machine, a line for each as `mtrun devices` prints them; none: NoDeviceError says why."""
    library = _library.runtime()
    lines: list[str] = []
    check(library, with_lines(library.mtrun_list_devices, into=lines))
    return lines


def default_devices(plan: Plan) -> str:
    """The GPUs that the plan has code for, at most one a shard; else a CPU device of all CPUs that it has work for."""
    library = _library.runtime()
    text = ctypes.create_string_buffer(64)
    check(library, library.mtrun_default_devices(plan._handle, text, len(text)))
    return text.value.decode()
