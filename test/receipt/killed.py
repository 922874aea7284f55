# SPDX-License-Identifier: Apache-2.0
"""killed.py EXPECTED SEED COMMAND...: runs the training COMMAND, which writes k.mtr, kills it twice after random steps,
and runs it until it ends, each time on other devices. The receipt must have the bytes of EXPECTED."""
import pathlib
import random
import subprocess
import sys

expected, draw, command = pathlib.Path(sys.argv[1]), random.Random(int(sys.argv[2])), sys.argv[3:]
for number, devices in enumerate(["cpu:1", "cpu:3", "cpu:2"]):
    process = subprocess.Popen([*command, "--devices", devices], stdout=subprocess.PIPE, text=True)
    lines = draw.randrange(2, 18) if number < 2 else None
    for line in process.stdout:
        if lines is not None and line.startswith('{"epoch"'):
            lines -= 1
            if lines == 0:
                process.kill()
    process.wait()
    if number < 2 and process.returncode == 0:
        print("ended before it was killed")
if process.returncode != 0:
    sys.exit(f"expected exit code 0, found {process.returncode}")
if pathlib.Path("k.mtr").read_bytes() != expected.read_bytes():
    sys.exit("the receipts differ")
