# SPDX-License-Identifier: Apache-2.0
"""Damaged and crafted files: plans, checkpoints, models."""
import os
import shutil

from harness import DATA, MODEL, attack


def flips_and_cuts(trial, path, turns):
    """The file with a bit flipped, cut, or with bytes more; restored afterwards."""
    whole = path.read_bytes()
    for turn in range(turns):
        damaged = bytearray(whole)
        if turn % 3 < 2:
            at = trial.chance.randrange(len(whole))
            damaged[at] ^= 1 << trial.chance.randrange(8)
            what = f"bit of byte {at} flipped"
        else:
            size = trial.chance.randrange(len(whole))
            damaged = damaged[:size] if turn % 2 else damaged + bytes(size % 100 + 1)
            what = f"{len(damaged)} bytes"
        path.write_bytes(damaged)
        yield what
    path.write_bytes(whole)


@attack("damaged-plan", quick=True)
def damaged_plan(trial):
    """Bits and lengths of a plan"""
    plan = trial.plan()
    for what in flips_and_cuts(trial, plan, trial.turns(10, 300)):
        done = trial.run("mtrun", "train", plan, "--data", DATA, "--save", "w.safetensors")
        if done.code not in (0, 3):
            trial.finding(f"{what}: expected exit code 3, found {done}")
        elif done.code == 0 and "flipped" in what:
            trial.finding(f"{what}: a damaged plan was trained")


@attack("damaged-checkpoint", quick=True)
def damaged_checkpoint(trial):
    """Bits and lengths of a checkpoint's files, resumed"""
    plan = trial.plan()
    trial.train(plan, "--epochs", 1, "--checkpoint", "whole")
    step = next((trial.folder / "whole").glob("step-*")).name
    for name in ("manifest.json", "variables.safetensors"):
        for what in flips_and_cuts(trial, trial.folder / "whole" / step / name, trial.turns(6, 200)):
            shutil.rmtree(trial.folder / "c", ignore_errors=True)
            shutil.copytree(trial.folder / "whole", trial.folder / "c")
            trial.expect(3, "mtrun", "train", plan, "--data", DATA, "--epochs", 2, "--checkpoint", "c",
                         "--resume", "auto")


@attack("crafted-plans", quick=True)
def crafted_plans(trial):
    """Plans with right hashes whose launches do not fit their kernels"""
    plan = trial.plan()
    trial.craft("plan", plan, "same.mtp", "same")
    trial.train("same.mtp", "--epochs", 1)
    for change in ("metrics", "mapcount", "fewbuffers", "nobuffers", "smallvar"):
        trial.craft("plan", plan, "bad.mtp", change)
        for words in (["train"], ["evaluate"]):
            trial.expect((0, 3) if change == "metrics" else 3, "mtrun", *words, "bad.mtp", "--data", DATA,
                         *(["--save", "w.safetensors"] if words == ["train"] else []))


@attack("rate", quick=True)
def rate(trial):
    """A variable that is taken for the learning rate"""
    plan = trial.plan()
    trial.craft("plan", plan, "bad.mtp", "rate")
    for more in (["--lr-scaling", "linear", "--base-batch", "6"],
                 ["--plateau", "1", "--monitor", "loss", "--epochs", "4"]):
        trial.expect(3, "mtrun", "train", "bad.mtp", "--data", DATA, "--save", "w.safetensors", *more)
    schedule = ("%i = mt.iteration\n  %rate = mt.cosine_decay %i <{initial_learning_rate = 1.0e-3 : f32, decay_steps = "
                "30.0 : f32}>\n"
                "  mt.sgd rate(%rate)")
    text = MODEL.format(model="m", variable="x/learning_rate", metric="accuracy", optimizer=schedule)
    trial.compile(text, "named.mtp")
    trial.train("named.mtp", "--epochs", 1, "--lr-scaling", "linear", "--base-batch", "6", "--save", "w.safetensors",
                codes=1)
    trial.train("named.mtp", "--epochs", 4, "--plateau", "1", "--monitor", "loss", "--save", "w.safetensors", codes=1)
    trial.train("named.mtp", "--epochs", 2, "--history", "h")
    lines = (trial.folder / "h.csv").read_text().splitlines() if (trial.folder / "h.csv").exists() else ["", "", ""]
    column = lines[0].split(",").index("learning_rate") if "learning_rate" in lines[0] else None
    if column is not None and not all(0 < float(line.split(",")[column]) <= 1e-3 for line in lines[1:]):
        trial.finding(f"a weight was taken for the learning rate: {lines}")


@attack("names", quick=True)
def names(trial):
    """Names that are no UTF-8: refused before anything is trained that cannot be saved"""
    trial.compile(MODEL.format(model="m", variable="a\\FF\\FEb", metric="accuracy",
                               optimizer="mt.sgd <{learning_rate = 0.1 : f32}>"), "bytes.mtp",
                  codes=1)
    plan = trial.plan()
    trial.craft("plan", plan, "bad.mtp", "variable", os.fsdecode(b"a\xff\xfeb"))
    trial.expect(3, "mtrun", "train", "bad.mtp", "--data", DATA, "--save", "w.safetensors", says="UTF-8")


@attack("history-names", quick=True)
def history_names(trial):
    """Metrics called a,"b" or epoch: JSON and CSV that can be read"""
    import csv
    import json
    for metric in ('a,\\22b\\22', "epoch", "learning_rate", "val_loss"):
        text = MODEL.format(model="m", variable="kernel", metric=metric,
                            optimizer="mt.sgd <{learning_rate = 0.1 : f32}>")
        if trial.compile(text, codes=(0, 1)).code:
            continue
        done = trial.train("model.mtp", "--epochs", 2, "--history", "h", "--validation", DATA, codes=(0, 1))
        if done.code:
            continue
        try:
            pairs = json.loads((trial.folder / "h.json").read_text(), object_pairs_hook=list)
        except ValueError as error:
            trial.finding(f"metric {metric}: history that is no JSON: {error}")
            continue
        keys = [key for key, _ in pairs]
        rows = list(csv.reader((trial.folder / "h.csv").open()))
        if len(set(keys)) != len(keys):
            trial.finding(f"metric {metric}: the history has two columns of one name: {keys}")
        if len({len(row) for row in rows}) != 1:
            trial.finding(f"metric {metric}: rows of {sorted({len(row) for row in rows})} columns in h.csv")


@attack("long-names", quick=True)
def long_names(trial):
    """Names of 1010 to 1025 bytes: a message for the user, no internal error"""
    for size in (1000, 1010, 1024, 1025):
        text = MODEL.format(model="m", variable="v" * size, metric="accuracy",
                            optimizer="mt.adam <{learning_rate = 0.1 : f32}>")
        done = trial.compile(text, codes=(0, 1))
        if "does not verify" in done.output:
            trial.finding(f"a name of {size} bytes: {done}")


@attack("long-literal", quick=True)
def long_literal(trial):
    """A number of 100,000 digits"""
    for digits in (35000, 100000):
        for number in ("0." + "1" * digits, "1" * digits + ".0", "0x" + "F" * digits, "1." + "3" * digits + "e-5"):
            text = MODEL.format(model="m", variable="v", metric="accuracy",
                                optimizer=f"mt.adam <{{learning_rate = {number} : f32}}>")
            trial.compile(text, codes=1)


@attack("chain")
def chain(trial):
    """20,000 operations one after the other: compiled in seconds"""
    lines = [f"  %c{i + 1} = mt.relu %c{i} : tensor<?x10xf32>" for i in range(20000)]
    text = MODEL.format(model="m", variable="v", metric="accuracy", optimizer="mt.sgd <{learning_rate = 0.1 : f32}>")
    text = text.replace("%logits = mt.add", "%c0 = mt.add").replace("  %l = mt.sparse",
                                                                    "\n".join(lines) + "\n  %l = mt.sparse",
                                                                    1).replace("%logits", "%c20000")
    done = trial.compile(text, within=300)
    if done.code == 0 and done.cpu > 30:
        trial.finding(f"20,000 operations took {done.cpu:.0f} s")


@attack("readers")
def readers(trial):
    """4,000 operations that read one value: compiled in seconds"""
    lines = []
    for i in range(2000):
        lines += [f"  %r{i} = mt.relu %c{i} : tensor<?x10xf32>",
                  f"  %c{i + 1} = mt.mul %r{i}, %m : tensor<?x10xf32>, tensor<?x10xf32>"]
    text = MODEL.format(model="m", variable="v", metric="accuracy", optimizer="mt.sgd <{learning_rate = 0.1 : f32}>")
    text = text.replace("%logits = mt.add", "%m = mt.add").replace(
        "  %l = mt.sparse", "  %c0 = mt.relu %m : tensor<?x10xf32>\n" + "\n".join(lines) + "\n  %l = mt.sparse",
        1).replace("%logits", "%c2000")
    done = trial.compile(text, within=300)
    if done.code == 0 and done.cpu > 30:
        trial.finding(f"4,000 operations that read one value took {done.cpu:.0f} s")


@attack("overwritten", quick=True)
def overwritten(trial):
    """A plan that is overwritten in place, or cut, while it is trained"""
    import time
    for how in ("cut", "zeros"):
        plan = trial.plan()
        process = trial.start("mtrun", "train", plan, "--data", DATA, "--epochs", "100000", "--checkpoint", f"c-{how}",
                              "--every-seconds", "0.2")
        until = time.monotonic() + 30
        saved = trial.folder / f"c-{how}"
        while not list(saved.glob("step-*")) and time.monotonic() < until and process.poll() is None:
            time.sleep(0.02)
        with open(plan, "r+b") as file:
            if how == "cut":
                file.truncate(100)
            else:
                file.write(bytes(plan.stat().st_size))
        time.sleep(1)
        process.terminate()
        output = process.communicate(timeout=60)[0].decode(errors="replace")
        if process.returncode != 75:
            trial.finding(f"the plan was overwritten ({how}): expected exit code 75, found "
                          f"{process.returncode}\n{output[-400:]}")
