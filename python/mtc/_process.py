# SPDX-License-Identifier: Apache-2.0
"""The place of this process among those that a launcher of MPI started."""

from __future__ import annotations

import ctypes
import functools
import os
from typing import Any, Union

from mtc import _library, _structs
from mtc._errors import DataError, check

_CPU_KINDS = ("cpu", "null")


@functools.lru_cache(maxsize=1)
def _launched() -> tuple[int, int]:
    try:
        options = options_for("cpu:1")
    except DataError:  # the session that is made here says why
        return 0, 1
    return options["process"], options["processes"]


def process() -> int:
    """The number of this process, from 0, where mpirun, mpiexec or srun started the script in several; else 0.

    All processes of a script train together. Code that prints or writes files belongs in process 0 alone.
    """
    return _launched()[0]


def processes() -> int:
    """The number of processes in which mpirun, mpiexec or srun started the script; else 1."""
    return _launched()[1]


def options_for(devices: str) -> dict[str, Any]:
    """The fields of mtrun_options that a session of the launcher's processes has. Only CPU devices have such sessions.

    Raises:
        DataError: a launcher without MPI started several processes.
    """
    if devices.partition(":")[0] not in _CPU_KINDS:
        return {}
    library = _library.runtime()
    options = _structs.sized(_structs.Options)
    check(library, library.mtrun_options_launched(ctypes.byref(options)))
    fields = {name: getattr(options, name) for name in ("processes", "process", "local_process")}
    address, port = os.environ.get("MASTER_ADDR"), os.environ.get("MASTER_PORT")
    if options.processes > 1 and address and port:
        fields["rendezvous"] = f"tcp:{address}:{port}"
    return fields


def own_verbosity(verbose: Union[int, str]) -> Union[int, str]:
    """The verbosity of this process: only process 0 prints."""
    return 0 if process() > 0 else verbose
