# SPDX-License-Identifier: Apache-2.0
"""flips.py COUNT [SEED]: changes COUNT runs or receipts by one bit, a line or a value, and checks that mtrun verify
says what differs and where. The working directory has mlp.mlir."""
import pathlib
import random
import re
import shutil
import struct
import subprocess
import sys

import numpy as np
import receipts

count, draw = int(sys.argv[1]), random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 1)
DATA = "npy:x.npy,y.npy"


def run(*words):
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.returncode, done.stdout


def must(*words):
    code, text = run(*words)
    assert code == 0, (words, text)


def train(receipt, *words):
    pathlib.Path(receipt).unlink(missing_ok=True)
    must("mtrun", "train", "m.mtp", "--data", DATA, "--epochs", "2", "--devices", "cpu:1", "--save", "w.safetensors",
         "--receipt", receipt, "--receipt-every", "3", *words)


def verify(receipt, *words, plan="m.mtp", data=DATA):
    return run("mtrun", "verify", receipt, "--plan", plan, "--data", data, "--devices", "cpu:2", *words)


def flip(source, target, low, high):
    """Copies a file with one bit flipped in the bytes [low, high)."""
    bytes_ = bytearray(pathlib.Path(source).read_bytes())
    at = draw.randrange(low, high if high else len(bytes_))
    bytes_[at] ^= 1 << draw.randrange(8)
    pathlib.Path(target).write_bytes(bytes_)
    return at


def tensor_range(file, name):
    data = pathlib.Path(file).read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    begin, end = __import__("json").loads(data[8:8 + size])[name]["data_offsets"]
    return 8 + size + begin, 8 + size + end


def data_bit():
    # The lowest bits of a pixel keep the value finite.
    x = np.load("x.npy")
    at = draw.randrange(x.size)
    x.reshape(-1).view(np.uint32)[at] ^= 1 << draw.randrange(23)
    np.save("x2.npy", x)
    # Rows in the hash of some values are found before the first step.
    return verify("run.mtr", data="npy:x2.npy,y.npy"), 10, r"step \d+: the data|", 1, r"data\.train\.content"


def plan_bit():
    flip("m.mtp", "bad.mtp", 64, None)
    return verify("run.mtr", plan="bad.mtp"), 1, r"hash|bytes|expected"


def other_plan():
    text = pathlib.Path("mlp.mlir").read_text().replace(
        "1.0e-3 : f32", f"1.0e-3 : f32, beta_2 = 0.99{draw.randrange(1, 9)} : f32")
    pathlib.Path("other.mlir").write_text(text)
    must("mtc", "compile", "other.mlir", "-o", "other.mtp", "--batch", "16", "--cpu", "x86-64-v3")
    return verify("run.mtr", plan="other.mtp"), 1, r"plan\.sha256: expected"


def variable_bit(name):
    flip("start.safetensors", "bad.safetensors", *tensor_range("start.safetensors", name))
    try:
        train("bad.mtr", "--load", "bad.safetensors")
    except AssertionError: # the bit made a value infinite
        return None
    return (verify("bad.mtr", "--load", "start.safetensors"), 10,
            rf"differs first at step 0: variable {re.escape(name)}, chunk 0")


def weight_bit():
    return variable_bit(draw.choice(["dense/kernel", "dense/bias", "dense_1/kernel", "dense_2/bias"]))


def optimizer_bit():
    return variable_bit(draw.choice(["adam/dense_kernel_momentum", "adam/dense_1_kernel_velocity",
                                     "adam/learning_rate"]))


def seed():
    lines = receipts.read("run.mtr")
    lines[0]["run"]["seed"] ^= 1 << draw.randrange(1, 30)
    receipts.write("bad.mtr", lines)
    return verify("bad.mtr"), 10, r"differs first at step 0: variable dense/kernel"


def rate():
    train("bad.mtr", "--learning-rate", repr(0.001 * (1 + 2.0 ** -draw.randrange(2, 20))))
    lines = receipts.read("bad.mtr")
    del lines[0]["run"]["learning_rate"]
    receipts.write("bad.mtr", lines)
    return verify("bad.mtr"), 10, r"differs first at step 0: variable adam/learning_rate"


def exchanged():
    lines = pathlib.Path("run.mtr").read_text().splitlines(keepends=True)
    a, b = sorted(draw.sample(range(1, len(lines)), 2))
    lines[a], lines[b] = lines[b], lines[a]
    pathlib.Path("bad.mtr").write_text("".join(lines))
    return verify("bad.mtr"), 1, rf"line {a + 1}: expected the SHA-256 of the line before"


def forged():
    lines = receipts.read("run.mtr")
    a, b = sorted(draw.sample(range(2, len(lines) - 1), 2))
    for member in ("variables", "chunks"):
        lines[a][member], lines[b][member] = lines[b][member], lines[a][member]
    receipts.write("bad.mtr", lines)
    return verify("bad.mtr"), 10, rf"differs first at step {lines[a]['step']}: variable dense/kernel, chunk 0"


def checkpoint_bit():
    shutil.rmtree("bad", ignore_errors=True)
    shutil.copytree("ck", "bad")
    flip("bad/step-000000000006/variables.safetensors", "bad/step-000000000006/variables.safetensors", 0, None)
    code, text = verify("run.mtr", "--window", "6:9", "--checkpoints", "bad")
    assert code == 0 and "steps 3 to 9 agree" in text, text # it begins at the checkpoint before
    return (code, text), 0, r"skipped bad/step-000000000006: .*(hash|expected)"


KINDS = [data_bit, plan_bit, other_plan, weight_bit, optimizer_bit, seed, rate, exchanged, forged, checkpoint_bit]
rng = np.random.default_rng(3)
np.save("x.npy", rng.random((150, 28, 28), np.float32))
np.save("y.npy", rng.integers(0, 10, 150, np.int32))
must("mtc", "compile", "mlp.mlir", "-o", "m.mtp", "--batch", "16", "--cpu", "x86-64-v3")
must("mtrun", "train", "m.mtp", "--data", DATA, "--epochs", "1", "--save", "start.safetensors")
train("run.mtr", "--checkpoint", "ck", "--every-steps", "3", "--keep", "20")
code, text = verify("run.mtr")
assert code == 0, text
found = {}
for number in range(count):
    kind = KINDS[number % len(KINDS)]
    outcome = None
    while outcome is None:
        outcome = kind()
    (code, text), *expected = outcome
    if not any(code == expected[i] and re.search(expected[i + 1], text) for i in range(0, len(expected), 2)):
        sys.exit(f"{kind.__name__}: expected {expected}, found exit code {code}:\n{text}")
    found[kind.__name__] = found.get(kind.__name__, 0) + 1
print(f"found {sum(found.values())} of {count}: {found}")
