# SPDX-License-Identifier: Apache-2.0
"""Files of whole steps on the command line: mtc compile --step, then mtrun train on a file of data."""

import json
import os
import pathlib
import subprocess

import mtc
import numpy as np

BUILD = pathlib.Path(os.environ.get("MTC_BUILD", "build/release"))
DEVICES = ("cpu:1", "cpu:2", "cpu:3", "cpu:8")


def run(*words):
    done = subprocess.run([BUILD / "bin" / words[0], *map(str, words[1:])], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def losses_of(text):
    """The loss of each step in logs in JSON."""
    found = (json.loads(line) for line in text.splitlines() if line.startswith("{"))
    return [entry["loss"] for entry in found if "step" in entry and "loss" in entry]


def check(folder, *, state, split, weights, data, batch, losses, final):
    """Compiles `step.mlir` of a folder and trains its plan on data, in order: on several numbers of devices, and
    stopped and resumed. The losses and the variables are the framework's, and the variables have the same bits."""
    np.savez(folder / "data.npz", **data)
    run("mtc", "compile", folder / "step.mlir", "--step", "--state", state, "--split", split, "--batch", batch,
        "-o", folder / "step.mtp")
    plan = mtc.load(folder / "step.mtp")
    with mtc.Session(plan, "cpu:1") as session:
        for name, value in weights.items():
            session.variables[name] = value
        session.save(folder / "start.safetensors")

    def train(end, devices, *words):
        """The losses of each step, and the variables' bytes."""
        saved = folder / f"{end}.safetensors"
        text = run("mtrun", "train", folder / "step.mtp", "--data", f"npz:{folder / 'data.npz'}", "--no-shuffle",
                   "--json-logs", "--devices", devices, "--save", saved, "--load", folder / "start.safetensors", *words)
        return losses_of(text), saved.read_bytes()

    rows = len(next(iter(data.values())))
    epochs = len(losses) // -(-rows // batch)
    runs = {devices: train(devices.replace(":", ""), devices, "--epochs", epochs) for devices in DEVICES}
    found, variables = runs["cpu:1"]
    np.testing.assert_allclose(found, losses, rtol=1e-5, atol=1e-6)
    assert all(other == (found, variables) for other in runs.values())
    with mtc.Session(plan, "cpu:1") as session:
        session.load(folder / "cpu1.safetensors")
        for name, value in final.items():
            np.testing.assert_allclose(session.variables[name], value, rtol=1e-3, atol=1e-5, err_msg=name)
    first, _ = train("first", "cpu:3", "--epochs", epochs - 1, "--checkpoint", folder / "run")
    rest, again = train("again", "cpu:2", "--epochs", epochs, "--checkpoint", folder / "run", "--resume", "auto")
    assert first + rest == found and again == variables
