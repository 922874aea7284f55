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
seen, moment, again = 0, None, None
with open("cut.errors", "w+", encoding="utf-8") as errors:
    with subprocess.Popen(["bash", script, "3", *sys.argv[1:]], stdout=subprocess.PIPE, stderr=errors, text=True,
                          env={**os.environ, "CUT": str(cut)}) as run:
        for line in run.stdout:
            step = json.loads(line).get("total_step") if line.startswith("{") else None
            if step is None:
                continue
            if moment and again is None and time.monotonic() - moment > 2:
                again = (time.monotonic() - moment, step - seen)
            seen = step
            if step >= STEPS and moment is None:
                moment = time.monotonic()
                cut.touch()
        code = run.wait()
    errors.seek(0)
    print(f"exit code {code}, last step {seen}; first step again after {again[0]:.1f} s, {again[1]} after the last one"
          if again else f"exit code {code}, never again")
    print(f"the cut-off process ended after {ended.read_text().strip() if ended.exists() else 'no'} s")
    print(errors.read())
