# SPDX-License-Identifier: Apache-2.0
"""Kills training runs at random moments and resumes them on another number of devices: variables, history and files of
epochs must come out as if nothing had happened. The runs stop early, after three epochs, and end with the variables of
the first.

    kills.py PLAN --data SPEC [--kills 25] [--every-steps 1] [--signal KILL] [--seed 1] [--fsync-ms 3]

Every fsync of the runs takes --fsync-ms longer, by a library that is preloaded (slow_fsync.c), and half of the kills
wait for a save to begin. A kill counts as inside a save when it leaves an unfinished checkpoint behind; of 100 and more
kills that leave no time to finish one (KILL), at least 30 % must. A signal that comes before the run handles it counts
as a kill. The long soak: --kills 10000.
"""
import argparse
import hashlib
import os
import pathlib
import random
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

INSIDE, ENOUGH = 0.3, 100  # the share of kills that must fall inside a save, if there are so many
LIMIT = 120  # seconds after which a run hangs


def command(arguments, folder, devices):
    return ["mtrun", "train", arguments.plan, "--data", arguments.data, "--validation", arguments.data, "--epochs", "9",
            "--early-stopping",
            "2", "--min-delta", "100", "--restore-best", "--epoch-file", folder / "epoch-{epoch}.safetensors",
            "--devices", devices, "--checkpoint", folder / "checkpoints", "--every-steps", str(arguments.every_steps),
            "--keep", "2",
            "--resume", "auto", "--save", folder / "final.safetensors", "--history", folder / "history", "--json-logs"]


def outcome(folder):
    names = ("final.safetensors", "history.json", "history.csv", *(f"epoch-{epoch}.safetensors" for epoch in (1, 2, 3)))
    return {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in names}


def saving(folder):
    return any((folder / "checkpoints").glob(".tmp-step-*"))


def slow_disk(milliseconds):
    library = pathlib.Path(shutil.which("mtrun")).parent.parent / "lib" / "slow-fsync.so"
    if milliseconds and not library.exists():
        sys.exit(f"expected {library}, which ninja slow-fsync builds, found none")
    return {**os.environ, "LD_PRELOAD": str(library),
            "SLOW_FSYNC_MS": str(milliseconds)} if milliseconds else dict(os.environ)


def wait_until(process, line, limit, reached):
    """Until `reached` or the process ended: whether it has not. A process that does neither hangs."""
    while process.poll() is None:
        if time.monotonic() > limit:
            process.kill()
            process.wait(LIMIT)
            sys.exit(f"hung, more than {LIMIT} s: {line}")
        if reached():
            return True
        time.sleep(0.0005)
    return False


def run(arguments, folder, devices, moment, aimed):
    """False: killed `moment` seconds after its start, or `aimed` seconds into the next save. True: it ended by itself,
    well."""
    words = [str(word) for word in command(arguments, folder, devices)]
    line = shlex.join(words)
    errors = folder / "errors"
    with open(errors, "w") as stream:
        process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=stream, env=slow_disk(arguments.fsync_ms))
    begin, number = time.monotonic(), getattr(signal, "SIG" + arguments.signal)
    limit = begin + LIMIT
    if moment is not None and wait_until(process, line, limit, lambda: time.monotonic() >= begin + moment):
        if aimed is None or wait_until(process, line, limit, lambda: saving(folder)):
            time.sleep(aimed or 0)
            process.send_signal(number)
    wait_until(process, line, limit, lambda: False)
    if process.returncode in (-number, 75):
        return False
    if process.returncode:
        sys.exit(f"exit code {process.returncode}: {line}\n{errors.read_text()}")
    if "skipped" in errors.read_text():
        sys.exit(f"a checkpoint did not verify: {line}\n{errors.read_text()}")
    return True


def duration(work):
    begin = time.monotonic()
    work()
    return time.monotonic() - begin


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("plan")
    parser.add_argument("--data", required=True)
    parser.add_argument("--kills", type=int, default=25)
    parser.add_argument("--every-steps", type=int, default=1)
    parser.add_argument("--signal", choices=["KILL", "TERM", "INT", "HUP"], default="KILL")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--fsync-ms", type=int, default=3)
    arguments = parser.parse_args()
    # Whoever starts this may have it ignored, which runs respect.
    signal.signal(getattr(signal, "SIG" + arguments.signal), signal.SIG_DFL) if arguments.signal != "KILL" else None
    chance = random.Random(arguments.seed)
    devices = ["cpu:1", "cpu:2", "cpu:3", "cpu:8", "cpu:2x2"]
    with tempfile.TemporaryDirectory() as root:
        undisturbed = pathlib.Path(root) / "undisturbed"
        undisturbed.mkdir()
        seconds = duration(lambda: run(arguments, undisturbed, devices[0], None, None))
        expected = outcome(undisturbed)
        kills = inside = cycles = 0
        while kills < arguments.kills:
            cycles += 1
            before = kills
            folder = pathlib.Path(root) / f"cycle-{cycles}"
            folder.mkdir()
            while not run(arguments, folder, chance.choice(devices),
                          chance.uniform(0, seconds) if kills < arguments.kills else None,
                          chance.uniform(0, 4 * arguments.fsync_ms / 1000) if chance.random() < 0.5 else None):
                kills += 1
                inside += saving(folder)
            # It came to its end too soon: a machine that was busy at first must not make the rest endless.
            if kills == before:
                seconds /= 2
            if outcome(folder) != expected:
                sys.exit(f"after {kills} kills: expected {expected}, found {outcome(folder)}")
            shutil.rmtree(folder)
    if arguments.signal == "KILL" and kills >= ENOUGH and inside < INSIDE * kills:
        sys.exit(f"expected at least {INSIDE:.0%} of {kills} kills inside a save, found {inside}")
    print(f"{kills} kills, {inside} inside a save, {cycles} runs came to their end: one result")


main()
