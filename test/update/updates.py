# SPDX-License-Identifier: Apache-2.0
"""Trains a model with updates that the text gives: each agrees with NumPy, has the same bits on any number of devices
and in micro-batches, and goes on after a stop.

    updates.py FOLDER [CASE ...]
"""
import json
import pathlib
import shutil
import subprocess
import sys

import numpy as np
from tracing import Computed, Traced, computed, type_of

ROWS, BATCH, INPUTS, OUTPUTS = 43, 20, 8, 16  # the last batch has 3 samples
WEIGHTS = {"w": (INPUTS, OUTPUTS), "b": (OUTPUTS,)}


def sgd(v, rate=0.1):
    return {"b": v["b"] - v.gradient("b") * rate}


def momentum(v):
    m = v["m"] * 0.9 + v.gradient("w")
    return {"m": m, "w": v["w"] - m * v["rate"], **sgd(v)}


def adamw(v):
    count = v["count"] + 1
    new = {"count": count}
    for name in WEIGHTS:
        g = v.gradient(name)
        first = v["first/" + name] * 0.9 + g * 0.1
        second = v["second/" + name] * 0.999 + (g * g) * 0.001
        t = count.float()
        step = (first / (1 - 0.9**t)) / ((second / (1 - 0.999**t)).sqrt() + 1e-6) + v[name] * 0.01
        new |= {"first/" + name: first, "second/" + name: second, name: v[name] - step * v["rate"]}
    return new


def clip(v):
    gradients = {name: v.gradient(name) for name in WEIGHTS}
    norm = sum((g * g).sum() for g in gradients.values()).sqrt()
    factor = (norm > 0.5).where(0.5 / norm, 1.0)
    return {name: v[name] - g * factor * v["rate"] for name, g in gradients.items()}


def factored(v):
    g = v.gradient("w")
    rows = v["rows"] * 0.9 + (g * g + 1e-8).sum([1]) * (0.1 / OUTPUTS)
    columns = v["columns"] * 0.9 + (g * g + 1e-8).sum([0]) * (0.1 / INPUTS)
    scale = (rows / (rows.sum() / INPUTS)).reshape((INPUTS, 1)) * columns.reshape((1, OUTPUTS))
    return {"rows": rows, "columns": columns, "w": v["w"] - g / scale.sqrt() * v["rate"], **sgd(v)}


def orthogonal(v):
    m = v["m"] * 0.9 + v.gradient("w")
    x = m / ((m * m).sum().sqrt() + 1e-7)
    for _ in range(5):
        square = x @ x.transpose()
        x = x * 3.4445 + (square * -4.775 + (square @ square) * 2.0315) @ x
    return {"m": m, "w": v["w"] - x * v["rate"], **sgd(v)}


def looped(v):
    """The same in a loop of the text."""
    m = v["m"] * 0.9 + v.gradient("w")
    x = m / ((m * m).sum().sqrt() + 1e-7)

    def step(x):
        square = x @ x.transpose()
        return x * 3.4445 + (square * -4.775 + (square @ square) * 2.0315) @ x
    return {"m": m, "w": v["w"] - x.loop(5, step) * v["rate"], **sgd(v)}


def lookahead(v):
    fast = v["w"] - v.gradient("w") * v["rate"]
    count = v["count"] + 1
    now = count == 3
    slow = now.where(v["slow"] + (fast - v["slow"]) * 0.5, v["slow"])
    return {"w": now.where(slow, fast), "slow": slow, "count": now.where(0, count), **sgd(v)}


def moves(v):
    """Values of other ops than element-wise ones; two variables change places, in shapes of one and of two kernels."""
    return {"w": v["w"] - v.gradient("w") * v["rate"], "left": v["right"], "right": v["left"], "up": v["down"] + 1,
            "down": v["up"] * 2, "turned": v["w"].transpose(), "flat": v["w"].reshape((INPUTS * OUTPUTS,)),
            "twice": v["b"].join(v.gradient("b")), "same": v["same"], "one": v["w"].full(1, (3,)), **sgd(v)}


# State with its shape, start and element type, and the update.
RATE = {"rate": ((), 0.05, "f4")}
CASES = {
    "momentum": ({**RATE, "m": (WEIGHTS["w"], 0, "f4")}, momentum),
    "adamw": ({**RATE, "count": ((), 0, "i4")} | {f"{word}/{name}": (shape, 0, "f4") for name, shape in WEIGHTS.items()
                                                  for word in ("first", "second")}, adamw),
    "clip": (RATE, clip),
    "factored": ({**RATE, "rows": ((INPUTS,), 0.5, "f4"), "columns": ((OUTPUTS,), 0.5, "f4")}, factored),
    "orthogonal": ({**RATE, "m": (WEIGHTS["w"], 0, "f4")}, orthogonal),
    "looped": ({**RATE, "m": (WEIGHTS["w"], 0, "f4")}, looped),
    "lookahead": ({**RATE, "count": ((), 0, "i4"), "slow": (WEIGHTS["w"], 0.125, "f4")}, lookahead),
    "moves": ({**RATE, "left": ((5,), 1, "f4"), "right": ((5,), 2, "f4"), "up": ((7, 2), 3, "f4"),
               "down": ((7, 2), 4, "f4"), "turned": ((OUTPUTS, INPUTS), 0, "f4"),
               "flat": ((INPUTS * OUTPUTS,), 0, "f4"), "twice": ((2 * OUTPUTS,), 0, "f4"), "same": ((6,), 7, "i4"),
               "one": ((3,), 0, "f4")}, moves),
}


# State that starts with values of the file of weights.
GIVEN = {"adamw": {"count": 2}, "lookahead": {"count": 1}}


class Values(dict):
    """Values of variables, and gradients."""

    def __init__(self, values, gradient):
        super().__init__(values)
        self.gradient = gradient


def text(state, update):
    lines, variables = [], []
    traced = {}
    for name, (shape, start, kind) in [*((n, (s, None, "f4")) for n, s in WEIGHTS.items()), *state.items()]:
        init = "zeros" if not start else f"constant = {float(start)}"
        word = "" if name in WEIGHTS else " frozen role(learning_rate)" if name == "rate" else " slot"
        full = name if name in WEIGHTS else "optimizer/" + name
        traced[name] = Traced(lines, f"%v{len(variables)}", shape, kind)
        variables.append(f'%v{len(variables)} = mt.variable "{full}" init({init}){word} : {type_of(shape, kind)}')
    gradients = {}

    def gradient(name):
        if name not in gradients:
            gradients[name] = traced[name].make(f'gradient "{name}" : {traced[name].type}', traced[name].shape)
        return gradients[name]
    for name, value in update(Values(traced, gradient)).items():
        full = name if name in WEIGHTS else "optimizer/" + name
        lines.append(f'mt.assign "{full}", {value.name} : {value.type}')
    return f"""mt.model @updated {{
  %x = mt.input "x" : tensor<?x{INPUTS}xf32>
  %t = mt.target "t" : tensor<?x{OUTPUTS}xf32>
  %i = mt.variable "optimizer/iteration" init(zeros) frozen role(iteration) : tensor<i32>
  {chr(10).join(variables)}
  %0 = mt.matmul %x, %v0 : tensor<?x{INPUTS}xf32>, {type_of(WEIGHTS["w"], "f4")}
  %p = mt.add %0, %v1 : tensor<?x{OUTPUTS}xf32>, {type_of(WEIGHTS["b"], "f4")}
  %l = mt.mean_squared_error %p, %t : tensor<?x{OUTPUTS}xf32>, tensor<?x{OUTPUTS}xf32>
  mt.loss "loss", %l scale = 8.0 : tensor<?xf32>
  mt.output "p", %p : tensor<?x{OUTPUTS}xf32>
  mt.update {{
    {chr(10).join(lines)}
  }}
}}
"""


def reference(state, update, start, x, t, epochs):
    values = {name: computed(np.full(shape, value, np.float64), kind) for name, (shape, value, kind) in state.items()}
    values |= {name: computed(value, value.dtype.str[1:]) for name, value in start.items()}
    for begin in [*range(0, ROWS, BATCH)] * epochs:
        a, b = (array[begin:begin + BATCH].astype(np.float64) for array in (x, t))
        difference = 8.0 * 2 * (a @ np.asarray(values["w"]) + np.asarray(values["b"]) - b) / b.size
        gradients = {"w": computed(a.T @ difference), "b": computed(difference.sum(0))}
        values |= update(Values(values, gradients.get))
        assert all(isinstance(value, Computed) for value in values.values())
    return values


def run(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def save(path, tensors):
    header, data = {}, b""
    for name, value in tensors.items():
        header[name] = {"dtype": value.dtype.kind.upper() + "32", "shape": list(value.shape),
                        "data_offsets": [len(data), len(data) + value.nbytes]}
        data += value.tobytes()
    encoded = json.dumps(header).encode()
    path.write_bytes(len(encoded).to_bytes(8, "little") + encoded + data)


def load(path):
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    kinds = {"F32": "<f4", "I32": "<i4"}
    return {name: np.frombuffer(data[8 + size:][slice(*entry["data_offsets"])], kinds[entry["dtype"]]).reshape(
        entry["shape"]) for name, entry in json.loads(data[8:8 + size]).items() if name != "__metadata__"}


def check(name, folder):
    state, update = CASES[name]
    rng = np.random.default_rng(5)
    x, t = (rng.normal(size=(ROWS, size)).astype(np.float32) for size in (INPUTS, OUTPUTS))
    start = {n: (rng.normal(size=shape) * 0.3).astype(np.float32) for n, shape in WEIGHTS.items()}
    model, plan, data = folder / f"{name}.mlir", folder / f"{name}.mtp", folder / "data.npz"
    model.write_text(text(state, update))
    np.savez(data, x=x, t=t)
    given = {word: np.full(state[word][0], value, state[word][2]) for word, value in GIVEN.get(name, {}).items()}
    save(folder / "start.safetensors", start | {"optimizer/" + word: value for word, value in given.items()})
    run("mtc", "compile", model, "-o", plan, "--batch", BATCH, "--shards", 8, "--weights", folder / "start.safetensors")
    train = ("mtrun", "train", plan, "--data", f"npz:{data}", "--no-shuffle")
    saved = {}
    for configuration in ("cpu:1", "cpu:2", "cpu:3", "cpu:8", "cpu:1x3", "cpu:3 --private-variables",
                          "cpu:1 --micro-batches 2", "cpu:3 --micro-batches 8 --private-variables"):
        file = folder / "saved.safetensors"
        run(*train, "--epochs", 2, "--save", file, "--devices", *configuration.split())
        saved[configuration] = file.read_bytes()
    checkpoints = folder / f"{name}.checkpoints"
    shutil.rmtree(checkpoints, ignore_errors=True)
    run(*train, "--epochs", 1, "--checkpoint", checkpoints, "--devices", "cpu:2")
    run(*train, "--epochs", 2, "--checkpoint", checkpoints, "--resume", "auto", "--save", file, "--devices", "cpu:3")
    saved["resumed"] = file.read_bytes()
    for configuration, found in saved.items():
        if found != saved["cpu:1"]:
            sys.exit(f"{name}: expected the bits of cpu:1 with {configuration}, found others")
    found = load(file)
    expected = reference(state, update, start | given, x, t, epochs=2)
    if found.pop("optimizer/iteration") != 6:
        sys.exit(f"{name}: expected 6 steps")
    for variable, value in expected.items():
        one = found.pop(variable if variable in WEIGHTS else "optimizer/" + variable)
        scale = max(1.0, np.abs(value).max())
        if not (one.shape == value.shape and np.abs(one - value).max() <= 2e-5 * scale):
            sys.exit(f"{name}: {variable}: expected {value}, found {one}")
    if found:
        sys.exit(f"{name}: expected no other variables, found {sorted(found)}")
    print(f"{name}: {len(saved)} runs, {len(expected)} variables")


if __name__ == "__main__":
    for case in sys.argv[2:] or CASES:
        check(case, pathlib.Path(sys.argv[1]))
