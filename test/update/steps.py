# SPDX-License-Identifier: Apache-2.0
"""Trains models that are whole steps: each agrees with NumPy, has the same bits on any number of devices, and goes on
after a stop. Micro-batches give the same bits too, or are refused.

    steps.py FOLDER [CASE ...]
"""
import json
import pathlib
import shutil
import subprocess
import sys

import numpy as np
from updates import load, run, save

INPUTS = pathlib.Path(__file__).parent / "inputs"
ROWS, BATCH = 43, 20  # the last batch has 3 samples


def derivative(function, at):
    """Of a function of an array, by central differences."""
    found, step = np.zeros_like(at), 1e-5
    for index in np.ndindex(at.shape):
        there = np.zeros_like(at)
        there[index] = step
        found[index] = (function(at + there) - function(at - there)) / (2 * step)
    return found


def softplus(x):
    return np.logaddexp(x, 0)


def mean(values):
    return values.sum() / len(values)


def descend(loss, weights, names, rate=0.1):
    """The named weights after a step against a loss, which is a function of all weights."""
    return {name: weights[name] - rate * derivative(lambda value, name=name: loss(weights | {name: value}),
                                                    weights[name]) for name in names}


def mlp(v, batch):
    def loss(w):
        return np.square(np.maximum(batch["x"] @ w["w1"] + w["b1"], 0) @ w["w2"] - batch["t"]).mean()
    return descend(loss, v, ("w1", "b1", "w2")), {"loss": loss(v)}


def penalty(v, batch):
    def parts(w):
        hidden = np.tanh(batch["x"] @ w["w1"] + w["b1"])
        gradient = ((1 - hidden**2) * w["w2"][:, 0]) @ w["w1"].T
        return (mean(np.square(np.sqrt(np.square(gradient).sum(1)) - 1)),
                mean(np.square(hidden @ w["w2"] - batch["t"])))

    def loss(w):
        return parts(w)[0] * 0.5 + parts(w)[1]
    return descend(loss, v, ("w1", "b1", "w2")), {"penalty": parts(v)[0], "loss": loss(v)}


def gan(v, batch):
    g, d1, d2 = "generator/w", "discriminator/w1", "discriminator/w2"

    def judge(w, values):
        return np.tanh(values @ w[d1]) @ w[d2]

    def first(w):
        return mean(softplus(-judge(w, batch["x"])) + softplus(judge(w, batch["z"] @ v[g])))
    new = descend(first, v, (d1, d2), 0.2)

    def second(w):
        return mean(softplus(-judge(w, batch["z"] @ w[g])))
    m = v["generator/m"] * 0.5 + derivative(lambda value: second(v | new | {g: value}), v[g])
    return (new | {"generator/m": m, g: v[g] - 0.2 * m},
            {"discriminator": first(v), "generator": second(v | new)})


def target(v, batch):
    aim = batch["next"] @ v["target/w"] * 0.9 + batch["reward"]

    def loss(w):
        return mean(np.square(batch["x"] @ w["w"] - aim))
    new = descend(loss, v, ("w",))
    return (new | {"target/w": new["w"] + (v["target/w"] - new["w"]) * 0.9, "seen": v["seen"] + 1}, {"loss": loss(v)})


def meta(v, batch):
    def inner(w):
        return mean(np.square(np.tanh(batch["x"] @ w["w"]) - batch["t"]))

    def slope(w):
        made = np.tanh(batch["x"] @ w["w"])
        return batch["x"].T @ ((1 - made**2) * 2 * (made - batch["t"])) / len(made)

    def outer(w):
        return mean(np.square(np.tanh(batch["y"] @ (w["w"] - 0.1 * slope(w))) - batch["u"]))
    return descend(outer, v, ("w",)), {"outer": outer(v), "inner": inner(v)}


def backward(v, batch):
    def loss(w):
        return mean(np.square(np.tanh(batch["x"] @ w["w1"] + w["b1"]) @ w["w2"] - batch["t"]))
    moment = np.einsum("bij,bik->jk", batch["s"], batch["s"]) / len(batch["s"])
    return descend(loss, v, ("w1", "b1", "w2")) | {"k": v["k"] + 0.1 * moment}, {"loss": loss(v)}


REFUSED = "expected layers that do not wait for the whole batch, for micro-batches"
# The step; shapes of variables that start with numbers, of the other variables, and of the data. What micro-batches
# give: the same bits, or an error.
CASES = {
    "mlp": (mlp, {"w1": (4, 8), "b1": (8,), "w2": (8, 3)}, {}, {"x": (4,), "t": (3,)}, None),
    "mlp-step": (mlp, {"w1": (4, 8), "b1": (8,), "w2": (8, 3)}, {}, {"x": (4,), "t": (3,)}, None),
    "penalty": (penalty, {"w1": (4, 8), "b1": (8,), "w2": (8, 1)}, {}, {"x": (4,), "t": (1,)}, None),
    "gan": (gan, {"generator/w": (3, 4), "discriminator/w1": (4, 8), "discriminator/w2": (8, 1)},
            {"generator/m": (3, 4)}, {"x": (4,), "z": (3,)}, REFUSED),
    "target": (target, {"w": (4, 3), "target/w": (4, 3)}, {"seen": ()}, {"x": (4,), "next": (4,), "reward": (3,)},
               None),
    "meta": (meta, {"w": (4, 3)}, {}, {"x": (4,), "t": (3,), "y": (4,), "u": (3,)},
             REFUSED),
    "backward": (backward, {"w1": (4, 8), "b1": (8,), "w2": (8, 3), "k": (4, 4)}, {},
                 {"x": (4,), "t": (3,), "s": (5, 4)}, None),
}


def reports(text):
    """The numbers of the last line of an epoch that mtrun prints as JSON."""
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def check(name, folder):
    step, trained, others, shapes, refused = CASES[name]
    rng = np.random.default_rng(7)
    data = {key: rng.normal(size=(ROWS, *shape)).astype(np.float32) for key, shape in shapes.items()}
    start = {key: (rng.normal(size=shape) * 0.5).astype(np.float32) for key, shape in trained.items()}
    plan, arrays = folder / f"{name}.mtp", folder / f"{name}.npz"
    np.savez(arrays, **data)
    save(folder / "start.safetensors", start)

    def compile_to(path):
        return ["mtc", "compile", INPUTS / f"{name}.mlir", "-o", path, "--batch", BATCH, "--shards", 8, "--weights",
                folder / "start.safetensors"]
    run(*compile_to(plan))
    train = ("mtrun", "train", plan, "--data", f"npz:{arrays}", "--no-shuffle")
    saved, file = {}, folder / "saved.safetensors"
    for configuration in ("cpu:1", "cpu:2", "cpu:3", "cpu:8", "cpu:1x3", "cpu:3 --private-variables"):
        run(*train, "--epochs", 2, "--save", file, "--devices", *configuration.split())
        saved[configuration] = file.read_bytes()
    checkpoints = folder / f"{name}.checkpoints"
    shutil.rmtree(checkpoints, ignore_errors=True)
    run(*train, "--epochs", 1, "--checkpoint", checkpoints, "--devices", "cpu:2")
    run(*train, "--epochs", 2, "--checkpoint", checkpoints, "--resume", "auto", "--save", file, "--devices", "cpu:3")
    saved["resumed"] = file.read_bytes()
    for count in (2, 8):
        small = folder / f"{name}.{count}.mtp"
        command = [*compile_to(small), "--micro-batches", count]
        if refused:
            done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
            if not done.returncode or refused not in done.stderr:
                sys.exit(f"{name}: {count} micro-batches: expected '{refused}', found {done.stderr}")
            continue
        run(*command)
        run("mtrun", "train", small, *train[3:], "--epochs", "2", "--save", file, "--devices", "cpu:1")
        saved[f"{count} micro-batches"] = file.read_bytes()
    for configuration, found in saved.items():
        if found != saved["cpu:1"]:
            sys.exit(f"{name}: expected the bits of cpu:1 with {configuration}, found others")
    compare(name, step, {**start, **{key: np.zeros(shape) for key, shape in others.items()}}, data,
            run(*train, "--epochs", 2, "--save", file, "--json-logs"), load(file))
    print(f"{name}: {len(saved)} runs")


def compare(name, step, values, data, printed, found):
    values = {key: np.asarray(value, np.float64) for key, value in values.items()}
    for epoch in range(2):
        totals = {}
        for begin in range(0, ROWS, BATCH):
            batch = {key: array[begin:begin + BATCH].astype(np.float64) for key, array in data.items()}
            new, told = step(values, batch)
            values |= new
            for key, value in told.items():
                totals[key] = totals.get(key, 0) + value * len(next(iter(batch.values()))) / ROWS
        logged = [line for line in reports(printed) if line.get("epoch") == epoch + 1][-1]
        for key, value in totals.items():
            if not abs(logged[key] - value) <= 1e-4 * max(1, abs(value)):
                sys.exit(f"{name}: {key} of epoch {epoch + 1}: expected {value}, found {logged[key]}")
    for key, value in values.items():
        scale = max(1.0, np.abs(value).max())
        if not (found[key].shape == value.shape and np.abs(found[key] - value).max() <= 2e-5 * scale):
            sys.exit(f"{name}: {key}: expected {value}, found {found[key]}")


if __name__ == "__main__":
    for case in sys.argv[2:] or CASES:
        check(case, pathlib.Path(sys.argv[1]))
