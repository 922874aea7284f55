# SPDX-License-Identifier: Apache-2.0
"""faults.py FAULTY-RUN COUNT: trains COUNT times with one bit flipped in the result of one launch, and finds the step
by mtrun verify and the kernel by the digests of launches. The working directory has m.mtp, x.npy and y.npy."""
import pathlib
import random
import re
import subprocess
import sys

import receipts

program, count, draw = sys.argv[1], int(sys.argv[2]), random.Random(5)
DATA = "npy:x.npy,y.npy"


def run(*words, code=0):
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != code:
        sys.exit(f"{words}: expected exit code {code}, found {done.returncode}\n{done.stdout}")
    return done.stdout


def honest(*words):
    run("mtrun", "train", "m.mtp", "--data", DATA, "--epochs", "1", "--devices", "cpu:1", "--save", "w.safetensors",
        *words)


def kernels(file):
    return [line["kernel"] for line in receipts.read(file)[1:]]


honest("--receipt", "run.mtr", "--receipt-every", "1", "--hash-launches", "1", "--launch-file", "first.mtl")
steps, launches = receipts.read("run.mtr")[-1]["step"], kernels("first.mtl")
# The reports and the step counter change no variable but themselves; a flip there is found too.
found = 0
for number in range(count):
    step, launch = draw.randrange(1, steps + 1), number % len(launches)
    for file in ("bad.mtr", "bad.mtl", "good.mtl"):
        pathlib.Path(file).unlink(missing_ok=True)
    run(program, "m.mtp", DATA, str(step), str(launch), "bad.mtr", "bad.mtl")
    text = run("mtrun", "verify", "bad.mtr", "--plan", "m.mtp", "--data", DATA, code=10)
    if f"differs first at step {step}: " not in text:
        sys.exit(f"step {step}, launch {launch}: expected the step, found\n{text}")
    honest("--hash-launches", str(step), "--launch-file", "good.mtl")
    text = run("mtrun", "diff", "good.mtl", "bad.mtl", code=10)
    if not re.match(rf"launch {launch}, kernel {re.escape(launches[launch])}: ", text):
        sys.exit(f"step {step}: expected launch {launch}, kernel {launches[launch]}, found\n{text}")
    found += 1
print(f"found {found} of {count} faults in {len(set(launches))} kernels")
