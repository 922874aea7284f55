# SPDX-License-Identifier: Apache-2.0
"""renames.py PLAN SPEC: a run that stops early, restores its best epoch, and writes a history and files of epochs is
killed before and after each rename that it makes. Resumed, and then once more after its end, it leaves what a run that
was never killed leaves."""
import hashlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

MOST = 200  # renames


def run(plan, spec, folder, devices="cpu:1", **environment):
    library = pathlib.Path(shutil.which("mtrun")).parent.parent / "lib" / "slow-fsync.so"
    words = ["mtrun", "train", plan, "--data", spec, "--validation", spec, "--epochs", "9", "--devices", devices,
             "--early-stopping", "2", "--min-delta", "100", "--restore-best", "--checkpoint", folder / "checkpoints",
             "--keep", "1",
             "--resume", "auto", "--epoch-file", folder / "e-{epoch}.safetensors", "--best-only",
             "--checkpoint-monitor",
             "top_2", "--history", folder / "history", "--save", folder / "final.safetensors"]
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True,
                          env={**os.environ, "LD_PRELOAD": str(library), **environment})
    if done.returncode not in (0, -signal.SIGKILL):
        sys.exit(f"exit code {done.returncode}: {words}\n{done.stderr}")
    return done


def outcome(folder):
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()
            if path.is_file() and ".tmp-" not in path.name}


plan, spec = sys.argv[1:]
with tempfile.TemporaryDirectory() as root:
    folder = pathlib.Path(root) / "undisturbed"
    folder.mkdir()
    run(plan, spec, folder)
    expected = outcome(folder)
    kills = 0
    for when in ("BEFORE", "AFTER"):
        for number in range(1, MOST):
            folder = pathlib.Path(root) / f"{when}-{number}"
            folder.mkdir()
            killed = run(plan, spec, folder, **{f"DIE_{when}_RENAME": str(number)}).returncode != 0
            if not killed:
                break
            kills += 1
            run(plan, spec, folder, "cpu:2")
            again = run(plan, spec, folder)
            if "nothing left to do: early stopping ended the run after epoch 3" not in again.stdout:
                sys.exit(f"killed {when} rename {number}: the run went on after its end\n{again.stdout}")
            if outcome(folder) != expected:
                sys.exit(f"killed {when} rename {number}: expected {expected}, found {outcome(folder)}")
            shutil.rmtree(folder)
    files = ", ".join(sorted(expected))
    print(f"{kills} kills, each of the same end: {files}")
