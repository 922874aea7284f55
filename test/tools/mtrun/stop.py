# SPDX-License-Identifier: Apache-2.0
"""stop.py SIGNAL CODE FILE COMMAND...: runs a command, sends it SIGNAL once FILE is there, and expects the exit code
CODE (of a kill: minus the signal's number). No time is too short for this on a machine that has other work."""
import pathlib
import signal
import subprocess
import sys
import time

name, code, file, *command = sys.argv[1:]
signal.signal(signal.SIGINT, signal.SIG_DFL)  # a shell's jobs in the background ignore it, and so would the command
process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
while not pathlib.Path(file).exists():
    assert process.poll() is None, f"{command[0]} ended with {process.returncode} and made no {file}"
    time.sleep(0.05)
process.send_signal(signal.Signals[name])
process.wait()
if process.returncode != int(code):
    sys.exit(f"expected exit code {code}, found {process.returncode}")
