# SPDX-License-Identifier: Apache-2.0
"""mpi_cut.py COMMAND...: runs mpi_hosts.sh with a supervised run on 3 hosts, and cuts off the last host after some
steps. Prints when the cut-off process has ended, when the others have computed their next step, and the errors."""
import json
import os
import pathlib
import subprocess
import sys
import time

STEPS = 60
cut = pathlib.Path(f"cut.{os.getpid()}").resolve()
ended = pathlib.Path(f"{cut}.ended")
script = pathlib.Path(__file__).with_name("mpi_hosts.sh")
# Processes that wait for a lost one are silent for 15 seconds; between other steps there are milliseconds, or seconds
# on a loaded machine.
SILENCE = 8


def follow(errors):
    """Runs the job: its exit code, its last step, and (seconds of silence, steps from the last one) at the loss."""
    seen, moment, again = 0, time.monotonic(), None
    with subprocess.Popen(["bash", script, "3", *sys.argv[1:]], stdout=subprocess.PIPE, stderr=errors, text=True,
                          env={**os.environ, "CUT": str(cut)}) as run:
        for line in run.stdout:
            step = json.loads(line).get("total_step") if line.startswith("{") else None
            if step is None:
                continue
            silence = time.monotonic() - moment
            if seen >= STEPS and again is None and silence > SILENCE:
                again = (silence, step - seen)
            seen, moment = step, time.monotonic()
            if step >= STEPS and not cut.exists():
                cut.touch()
        return run.wait(), seen, again


with open("cut.errors", "w+", encoding="utf-8") as errors:
    code, seen, again = follow(errors)
    if seen == 0:  # Now and then the daemon of a host does not come up.
        errors.seek(0)
        errors.truncate()
        code, seen, again = follow(errors)
    errors.seek(0)
    print(f"exit code {code}, last step {seen}; first step again after {again[0]:.1f} s, {again[1]} after the last one"
          if again else f"exit code {code}, never again")
    print(f"the cut-off process ended after {ended.read_text().strip() if ended.exists() else 'no'} s")
    print(errors.read())
