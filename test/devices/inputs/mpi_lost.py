# SPDX-License-Identifier: Apache-2.0
"""mpi_lost.py LAUNCHERS FAILURES SIGNALS SEED -- COMMAND...: runs a command of mtrun train with 2 to 4 processes of the
launchers in turn, ends a random process of each start by a random signal at a random moment, and starts again, until
FAILURES processes were lost and the last start is complete. Each start goes on where the one before was lost: at most
one step is computed again, or with --shard-optimizer the steps since the last checkpoint, but no checkpoint is
skipped."""
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import time

from mpi_processes import RUN, processes_by_rank

LIMIT = 60  # seconds after which a start hangs

launchers, failures, kinds = sys.argv[1].split(","), int(sys.argv[2]), sys.argv[3].split(",")
random.seed(int(sys.argv[4]))
command = sys.argv[sys.argv.index("--") + 1:]
# A divided optimizer goes back to a checkpoint, and one may be unfinished.
back = 2 * int(command[command.index("--every-steps") + 1]) if "--shard-optimizer" in command else 0


def steps_of(line):
    """The step of a line of the log, or None."""
    if not line.startswith("{"):
        return None
    return json.loads(line).get("total_step")


def start(number, lost):
    """Runs the command once. Returns its exit code, its first and its last step, errors, and the seconds to the end."""
    launcher = launchers[number % len(launchers)]
    size = random.randint(2, 4)
    errors = pathlib.Path(f"errors.{os.getpid()}")
    with errors.open("w") as file, subprocess.Popen(
            ["bash", launcher, "-np", str(size), *command], stdout=subprocess.PIPE, stderr=file, text=True,
            env={**os.environ, **RUN}) as run:
        first, last, killed, moment = None, None, None, None
        for line in run.stdout:
            if "skipped" in line:
                sys.exit(f"start {number}: {line}")
            step = steps_of(line)
            if step is None:
                continue
            first, last = first or step, step
            if lost and moment is None:
                moment = time.monotonic() + random.random() * 0.3
            if lost and killed is None and time.monotonic() >= moment:
                killed = time.monotonic()
                rank = random.randrange(size)
                if processes := processes_by_rank().get(rank):
                    os.kill(processes[-1], getattr(signal, "SIG" + random.choice(kinds)))
        try:
            code = run.wait(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            run.kill()
            sys.exit(f"start {number} hung")
    seconds = time.monotonic() - killed if killed else 0
    return code, first, last, errors.read_text(), seconds


seen, worst, done, named = 0, 0, 0, 0
for number in range(10 * failures + 10):
    code, first, last, errors, seconds = start(number, done < failures)
    if first is not None and (first > seen + 2 or first < seen - back) or "skipped" in errors:
        sys.exit(f"start {number}: expected step {seen - back} to {seen + 2} first, found {first}\n{errors}")
    seen = last or seen
    end = time.monotonic() + 25
    while processes_by_rank() and time.monotonic() < end:
        time.sleep(0.02)
    if left := processes_by_rank():
        sys.exit(f"start {number}: left behind: {left}\n{errors}")
    if code == 0:
        break
    if code not in (9, 137):  # 137 is Open MPI's, for a process that was killed
        sys.exit(f"start {number}: exit code {code}\n{errors}")
    done, worst, named = done + 1, max(worst, seconds), named + ("was lost" in errors)
else:
    sys.exit("never complete")
print(f"{done} lost, {named} named, {number + 1} starts, the last step is {seen}, "
      f"at most {worst:.1f} s to the end of a start")
