# SPDX-License-Identifier: Apache-2.0
"""Runs that are killed, signalled, or started again when they are at their end: weights and history of a run that never
stopped."""
import hashlib
import json
import signal
import subprocess
import time

from harness import DATA, LIMIT, STOPPED, attack

DEVICES = ["cpu:1", "cpu:2", "cpu:3", "cpu:8", "cpu:2x2"]
EARLY = ["--early-stopping", "2", "--min-delta", "5", "--monitor", "loss", "--restore-best"]


def command(trial, plan, folder, more):
    words = ["mtrun", "train", plan, "--data", DATA, "--validation", DATA, "--devices", trial.chance.choice(DEVICES),
             "--checkpoint",
             folder / "c", "--every-steps", "1", "--keep", "2", "--resume", "auto",
             "--save", folder / "final.safetensors", "--history", folder / "h", *more]
    return [str(word) for word in words]


def outcome(folder):
    names = ("final.safetensors", "h.json", "h.csv")
    return {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() if (folder / name).exists() else "missing"
            for name in names}


def to_the_end(trial, plan, folder, more, number, most):
    """Runs until one comes to its end, each ended by the signal at a random moment. How many were."""
    ended, seconds = 0, 0.3
    while True:
        words = command(trial, plan, folder, more)
        begin = time.monotonic()
        process = subprocess.Popen(words, env=trial.environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        if ended < most:
            try:
                process.wait(trial.chance.uniform(0, seconds))
            except subprocess.TimeoutExpired:
                process.send_signal(number)
        try:
            errors = process.communicate(timeout=LIMIT)[1].decode(errors="replace")
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            trial.finding(f"hung, more than {LIMIT} s: {' '.join(words)}")
            return ended
        if process.returncode == 0:
            return ended
        if process.returncode not in (-number, STOPPED):
            trial.finding(f"after {ended} signals exit code {process.returncode}: {' '.join(words)}\n{errors}")
            return ended
        if "skipped" in errors:
            trial.finding(f"a checkpoint did not verify: {errors}")
        ended += 1
        seconds = max(0.05, time.monotonic() - begin)


def disturb(trial, number, most, more):
    plan = trial.plan()
    whole = trial.folder / "whole"
    whole.mkdir()
    to_the_end(trial, plan, whole, more, number, 0)
    expected, total, cycle = outcome(whole), 0, 0
    while total < most and not trial.findings:
        cycle += 1
        folder = trial.folder / f"cycle-{cycle}"
        folder.mkdir()
        total += to_the_end(trial, plan, folder, more, number, trial.chance.randint(1, 8)) or 1
        if outcome(folder) != expected:
            trial.finding(f"after {total} signals {number.name}: expected {expected}, found {outcome(folder)}")


@attack("kills", quick=True)
def kills(trial):
    """SIGKILL at random moments, resumed on other numbers of devices"""
    disturb(trial, signal.SIGKILL, trial.turns(6, 150), ["--epochs", "3"])


@attack("kills-early")
def kills_early(trial):
    """The same with early stopping, the best variables restored, and files of history"""
    disturb(trial, signal.SIGKILL, trial.turns(5, 100), ["--epochs", "12", *EARLY])


@attack("signals")
def signals(trial):
    """SIGTERM, SIGINT and SIGHUP at random moments"""
    for number in (signal.SIGTERM, signal.SIGINT,
                   signal.SIGHUP):  # whoever starts this may have them ignored, which runs respect
        signal.signal(number, signal.SIG_DFL if number != signal.SIGINT else signal.default_int_handler)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        disturb_folder = trial.folder
        trial.folder = disturb_folder / number.name
        trial.folder.mkdir()
        disturb(trial, number, trial.turns(3, 30), ["--epochs", "3"])
        trial.folder = disturb_folder


@attack("started-again", quick=True)
def started_again(trial):
    """A run that early stopping ended, started again with --resume auto: the same weights, no epoch more"""
    plan = trial.plan()
    for more in (["--early-stopping", "2", "--min-delta", "5", "--monitor", "loss"], EARLY):
        saved = []
        folder = f"c{len(more)}"
        for turn in range(3):
            trial.train(plan, "--epochs", 30, *more, "--checkpoint", folder, "--resume", "auto",
                        "--save", f"{turn}.safetensors", "--history", "h")
            file = trial.folder / f"{turn}.safetensors"
            saved.append((hashlib.sha256(file.read_bytes()).hexdigest() if file.exists() else "none",
                          (trial.folder / "h.csv").read_text()))
        if len(set(saved)) != 1:
            trial.finding(f"started again with --resume auto, the run went on: {' '.join(more)}")


@attack("last-row", quick=True)
def last_row(trial):
    """Killed between the last save and the write of the history, which is then written by the next run"""
    plan = trial.plan()
    words = ["--epochs", "3", "--checkpoint", "c", "--resume", "auto", "--history", "h"]
    trial.train(plan, *words)
    expected = json.loads((trial.folder / "h.json").read_text())
    for name in ("h.json", "h.csv"):  # as if the kill came before the last of its writes
        (trial.folder / name).unlink()
    trial.train(plan, *words)
    path = trial.folder / "h.json"
    if not path.exists() or json.loads(path.read_text()) != expected:
        trial.finding("the history of a finished run is not written again: "
                      f"{path.read_text() if path.exists() else 'no file'}")


@attack("pipe", quick=True)
def pipe(trial):
    """A reader of --json-logs that goes away: the run saves and exits with 75, or goes on"""
    plan = trial.plan()
    line = (f'mtrun train {plan} --data "{DATA}" --epochs 100000 --json-logs --checkpoint c | head -n 5 > /dev/null; '
            'echo "code ${PIPESTATUS[0]}"')
    done = trial.run("bash", "-c", line)
    if "code 75" not in done.output:
        trial.finding(f"expected exit code 75 after SIGPIPE, found {done}")
    if not list((trial.folder / "c").glob("step-*")):
        trial.finding("SIGPIPE ended the run without a checkpoint")
    full = trial.run("bash", "-c", f'mtrun train {plan} --data "{DATA}" --epochs 1 > /dev/full')
    if "No such file" in full.output or full.code == 0:
        trial.finding(f"expected that a full standard output is told as such, found {full}")


@attack("stops")
def stops(trial):
    """SIGSTOP and SIGCONT at random moments"""
    plan = trial.plan()
    whole, folder = trial.folder / "whole", trial.folder / "stopped"
    for each in (whole, folder):
        each.mkdir()
    to_the_end(trial, plan, whole, ["--epochs", "3"], signal.SIGKILL, 0)
    for _ in range(trial.turns(2, 10)):
        process = subprocess.Popen(command(trial, plan, folder, ["--epochs", "3"]), env=trial.environment,
                                   stdout=subprocess.DEVNULL)
        for _ in range(30):
            for number in (signal.SIGSTOP, signal.SIGCONT):
                try:
                    process.send_signal(number)
                except ProcessLookupError:
                    break
                time.sleep(trial.chance.uniform(0, 0.01))
        if process.wait(LIMIT) != 0 or outcome(folder) != outcome(whole):
            trial.finding("a run that was stopped and continued ended otherwise")
        subprocess.run(["rm", "-rf", str(folder)], check=True)
        folder.mkdir()


@attack("two-runs", quick=True)
def two_runs(trial):
    """A second run in the folder of a running one, whose lock file is removed"""
    plan = trial.plan()
    process = trial.start("mtrun", "train", plan, "--data", DATA, "--epochs", 1000000, "--checkpoint", "c")
    until = time.monotonic() + LIMIT
    while not list((trial.folder / "c").glob("step-*")) and time.monotonic() < until:
        time.sleep(0.02)
    for name in (".lock",):
        (trial.folder / "c" / name).unlink(missing_ok=True)
    trial.train(plan, "--checkpoint", "c", "--resume", "auto", codes=1)
    process.terminate()
    process.communicate(timeout=LIMIT)


