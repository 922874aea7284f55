# SPDX-License-Identifier: Apache-2.0
"""Kills training runs at random moments and resumes them on another number of devices: variables and history must come out as if
nothing had happened.

    kills.py PLAN --data SPEC [--kills 25] [--epochs 3] [--every-steps 2] [--signal KILL] [--seed 1]

A kill counts as inside a save when it leaves an unfinished checkpoint behind. The long soak: --kills 10000.
"""
import argparse
import hashlib
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time


def command(arguments, folder, devices):
    return ["mtrun", "train", arguments.plan, "--data", arguments.data, "--validation", arguments.data, "--epochs", str(arguments.epochs),
            "--devices", devices, "--checkpoint", folder / "checkpoints", "--every-steps", str(arguments.every_steps), "--keep", "2",
            "--resume", "auto", "--save", folder / "final", "--history", folder / "history", "--json-logs"]


def outcome(folder):
    return {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in ("final", "history.json", "history.csv")}


def run(arguments, folder, devices, moment):
    """False: killed at that moment. True: it ended by itself, well."""
    process = subprocess.Popen(command(arguments, folder, devices), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        errors = process.communicate(timeout=moment)[1]
    except subprocess.TimeoutExpired:
        process.send_signal(getattr(signal, "SIG" + arguments.signal))
        errors = process.communicate()[1]
    if process.returncode == -signal.SIGKILL or process.returncode == 75:
        return False
    if process.returncode:
        sys.exit(f"{devices}: exit code {process.returncode}\n{errors}")
    if "skipped" in errors:
        sys.exit(f"{devices}: a checkpoint did not verify\n{errors}")
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("plan")
    parser.add_argument("--data", required=True)
    parser.add_argument("--kills", type=int, default=25)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--every-steps", type=int, default=1)
    parser.add_argument("--signal", choices=["KILL", "TERM", "INT", "HUP"], default="KILL")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    chance = random.Random(arguments.seed)
    devices = ["cpu:1", "cpu:2", "cpu:3", "cpu:8", "cpu:2x2"]
    with tempfile.TemporaryDirectory() as root:
        begin = time.monotonic()
        undisturbed = pathlib.Path(root) / "undisturbed"
        undisturbed.mkdir()
        run(arguments, undisturbed, devices[0], None)
        seconds = time.monotonic() - begin
        expected = outcome(undisturbed)
        kills = inside = cycles = 0
        while kills < arguments.kills:
            cycles += 1
            folder = pathlib.Path(root) / f"cycle-{cycles}"
            folder.mkdir()
            while not run(arguments, folder, chance.choice(devices),
                          chance.uniform(0, seconds) if kills < arguments.kills else None):
                kills += 1
                inside += any((folder / "checkpoints").glob(".tmp-*"))
            if outcome(folder) != expected:
                sys.exit(f"after {kills} kills: expected {expected}, found {outcome(folder)}")
    print(f"{kills} kills, {inside} inside a save, {cycles} runs came to their end: one result")


main()
