# SPDX-License-Identifier: Apache-2.0
"""outcome.py CODE COMMAND...: runs a command that must exit with CODE, and prints both of its streams."""
import subprocess
import sys

done = subprocess.run(sys.argv[2:], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
print(done.stdout, end="")
if done.returncode != int(sys.argv[1]):
    sys.exit(f"expected exit code {sys.argv[1]}, found {done.returncode}")
