# SPDX-License-Identifier: Apache-2.0
"""killed.py KILLS COMMAND...: runs a command that writes `out` in an empty folder, and ends it at times that are spread
over its duration, by SIGTERM and SIGKILL in turns. There is the whole file or nothing, and nothing else, neither in the
folder nor in the folder of temporary files."""
import os
import pathlib
import signal
import subprocess
import sys
import time

kills, command = int(sys.argv[1]), sys.argv[2:]
temporary, output = pathlib.Path("tmp"), pathlib.Path("out")
temporary.mkdir()
environment = dict(os.environ, TMPDIR=str(temporary.absolute()))


def start():
    return subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def names():
    return sorted(str(path) for path in pathlib.Path(".").rglob("*"))


began = time.monotonic()
assert start().wait() == 0
duration, whole = time.monotonic() - began, output.read_bytes()
ended = 0
for number in range(kills):
    output.unlink(missing_ok=True)
    process = start()
    time.sleep(duration * (number + 1) / kills)
    process.send_signal((signal.SIGTERM, signal.SIGKILL)[number % 2])
    ended += process.wait() < 0
    assert names() in (["tmp"], ["out", "tmp"]), f"kill {number}: {names()}"
    assert not output.exists() or output.read_bytes() == whole, f"kill {number}: half a file"
print(f"{ended} of {kills} were ended")
assert ended > 0
