# SPDX-License-Identifier: Apache-2.0
"""Finds the processes of a run that a test started."""
import os
import time

LAST = 40  # seconds that a worker without its launcher has to write its variables, and a few more
RUN = {"MTC_TEST_RUN": str(os.getpid())}  # the environment variable of the run's processes


def processes_by_rank():
    """The processes of mtrun in this run, by rank: the launcher's and its worker."""
    mark = f"MTC_TEST_RUN={os.getpid()}".encode()
    found = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/environ", "rb") as file:
                variables = file.read().split(b"\0")
        except OSError:
            continue
        ranks = [v.split(b"=")[1] for v in variables if v.split(b"=")[0] in (b"OMPI_COMM_WORLD_RANK", b"PMI_RANK")]
        if mark in variables and ranks:
            found.setdefault(int(ranks[0]), []).append(int(name))
    return found


def left_behind():
    """The processes of this run that do not end by themselves. A launcher does not wait for workers."""
    end = time.monotonic() + LAST
    while (left := processes_by_rank()) and time.monotonic() < end:
        time.sleep(0.1)
    return left
