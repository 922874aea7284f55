# SPDX-License-Identifier: Apache-2.0
"""run.py PAGE.md: runs the indented commands of a guide, one after the other; each must succeed. Prints them and what they print."""
import pathlib
import subprocess
import sys

for line in pathlib.Path(sys.argv[1]).read_text().splitlines():
    if not line.startswith("    "):
        continue
    print("$", line.strip(), flush=True)
    done = subprocess.run(line.strip(), shell=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    print(done.stdout, end="", flush=True)
    if done.returncode:
        sys.exit(f"exit code {done.returncode}")
