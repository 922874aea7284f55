# SPDX-License-Identifier: Apache-2.0
"""The devices of this machine."""

from __future__ import annotations

import os

from mtc import _library
from mtc._dataset import with_lines
from mtc._errors import NoDeviceError, check
from mtc._plan import Plan


def devices() -> list[str]:
    """The GPUs of this machine, a line for each as `mtrun devices` prints them; none: NoDeviceError says why."""
    library = _library.runtime()
    lines: list[str] = []
    check(library, with_lines(library.mtrun_list_devices, into=lines))
    return lines


def default_devices(plan: Plan) -> str:
    """The GPUs that the plan has code for, at most one a shard; else a CPU device of all CPUs of this process."""
    if plan.has_code("cuda"):
        try:
            count = len(devices())
        except NoDeviceError:
            count = 0
        if count:
            return f"cuda:0-{min(count, plan.shards) - 1}"
    return f"cpu:1x{len(os.sched_getaffinity(0))}"
