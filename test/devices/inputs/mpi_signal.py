# SPDX-License-Identifier: Apache-2.0
"""mpi_signal.py SIGNAL RANK|all|launcher COMMAND...: runs a launcher of MPI, and sends a signal to its process of this
rank, to all processes or to the launcher when some steps have been logged. Prints the exit code and what was written to
standard error. No process may be left."""
import os
import signal
import subprocess
import sys
import time

LIMIT = 120  # seconds after which a command hangs
# In the first steps processes still ask MPICH's proxy for the addresses of others, and it fails if one is killed then.
STEPS = 30
LAST = 40  # seconds that a worker without its launcher has to write its variables, and a few more

number, rank, command = getattr(signal, "SIG" + sys.argv[1]), sys.argv[2], sys.argv[3:]


def environment(process):
    try:
        with open(f"/proc/{process}/environ", "rb") as file:
            return file.read().split(b"\0")
    except OSError:  # it has ended, or is another user's
        return []


def ours(wanted=None):
    """The processes of mtrun in this run: those of a rank, or all."""
    names = [name + b"=" + (wanted or "").encode() for name in (b"OMPI_COMM_WORLD_RANK", b"PMI_RANK")]
    mark = b"MTC_TEST_RUN=" + str(os.getpid()).encode()
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        variables = environment(name)
        if mark in variables and any(v.startswith(n) if wanted is None else v == n for v in variables for n in names):
            found.append(int(name))
    return found


run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                       env={**os.environ, "MTC_TEST_RUN": str(os.getpid())})
steps = 0
while steps < STEPS:
    steps += "step" in run.stdout.readline()
    if run.poll() is not None:
        sys.exit(f"ended after {steps} lines about steps: {run.stderr.read()}")
begin = time.monotonic()
for process in [run.pid] if rank == "launcher" else ours(None if rank == "all" else rank):
    os.kill(process, number)
try:
    errors = run.communicate(timeout=LIMIT)[1]
except subprocess.TimeoutExpired:
    run.kill()
    sys.exit(f"hung, more than {LIMIT} s")
print(f"exit code {run.returncode} after {time.monotonic() - begin:.0f} s\n{errors}")
# mpirun does not wait for workers, which end by themselves.
end = time.monotonic() + LAST
while ours() and time.monotonic() < end:
    time.sleep(0.1)
if left := ours():
    for process in left:
        os.kill(process, signal.SIGKILL)
    print(f"left behind: {left}")
