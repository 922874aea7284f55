# SPDX-License-Identifier: Apache-2.0
"""supervised.py LOSSES SIGNALS SEED complete|TERM -- COMMAND...: runs mtrun supervise, and sends random processes of
its run one of the signals, LOSSES times, each after some steps. Then it waits for the end of the run, or sends
SIGTERM to the supervisor. Each start goes on where the one before was lost: at most one step is computed again.
No process may be left. Prints the exit code and times: to the first step after each loss, and to the end after
SIGTERM."""
import json
import os
import random
import signal
import subprocess
import sys
import time

from mpi_processes import RUN, left_behind, processes_by_rank

losses, kinds, end = int(sys.argv[1]), sys.argv[2].split(","), sys.argv[4]
random.seed(int(sys.argv[3]))
command = sys.argv[sys.argv.index("--") + 1:]


errors = open(f"errors.{os.getpid()}", "w+", encoding="utf-8")
run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True,
                       env={**os.environ, **RUN})


def starts_again():
    """How often the supervisor has started the run again."""
    with open(errors.name, encoding="utf-8") as file:
        return file.read().count("a process was lost; restart")


seen, lost, wait, times, asked, again = 0, None, random.randint(20, 400), [], None, 0
for line in run.stdout:
    step = json.loads(line).get("total_step") if line.startswith("{") else None
    if step is None:
        continue
    if step < seen:
        run.kill()
        sys.exit(f"expected step {seen} or a later one, found {step}")
    # Steps that are not logged may have been computed while the launcher ended.
    again += step == seen
    if lost and starts_again() > len(times):
        times.append(time.monotonic() - lost)
        lost = None
    seen, wait = step, wait - 1
    if lost is None and wait <= 0 and len(times) < losses:
        if processes := processes_by_rank():
            rank = random.choice(list(processes))
            lost, wait = time.monotonic(), random.randint(20, 400)
            os.kill(random.choice(processes[rank]), getattr(signal, "SIG" + random.choice(kinds)))
    elif len(times) == losses and wait <= 0 and end == "TERM" and asked is None:
        asked = time.monotonic()
        run.send_signal(signal.SIGTERM)
code = run.wait()
if lost:
    times.append(time.monotonic() - lost)
seconds = f", {time.monotonic() - asked:.1f} s after SIGTERM" if asked else ""
errors.seek(0)
text = errors.read()
if left := left_behind():
    sys.exit(f"left behind: {left}\n{text}")
print(f"exit code {code}{seconds}; {len(times)} lost; {again} steps computed again; to the first step again at most "
      f"{max(times, default=0):.1f} s; last step {seen}")
print(text)
