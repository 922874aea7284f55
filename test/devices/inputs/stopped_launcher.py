# SPDX-License-Identifier: Apache-2.0
"""stopped_launcher.py RANK COMMAND...: runs mtrun supervise, and stops the launcher's process of a rank, which only
waits for its worker. The run completes all the same. No process may be left. Prints the exit code."""
import os
import signal
import subprocess
import sys
import time

from mpi_processes import RUN, left_behind, processes_by_rank

LIMIT = 110  # seconds after which a command hangs


def parent(process):
    with open(f"/proc/{process}/stat", encoding="utf-8") as file:
        return int(file.read().rsplit(")", 1)[1].split()[1])


def launchers():
    """The launcher's processes of the rank that have a worker."""
    own = processes_by_rank().get(int(sys.argv[1]), [])
    return [p for p in own if any(parent(other) == p for other in own)]


run = subprocess.Popen(sys.argv[2:], stdout=subprocess.DEVNULL, env={**os.environ, **RUN})
while not (found := launchers()):
    if run.poll() is not None:
        sys.exit(f"ended at once: exit code {run.returncode}")
    time.sleep(0.01)
for process in found:
    os.kill(process, signal.SIGSTOP)
try:
    print(f"exit code {run.wait(timeout=LIMIT)}")
except subprocess.TimeoutExpired:
    print(f"hung, more than {LIMIT} s")
    run.kill()
    for processes in processes_by_rank().values():
        for process in processes:
            os.kill(process, signal.SIGKILL)
if left := left_behind():
    print(f"left behind: {left}")
