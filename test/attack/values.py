# SPDX-License-Identifier: Apache-2.0
"""Numbers that nobody looked at: in data, in options."""
import math
import struct

from harness import DATA, attack, npy

IDS = """mt.model @ids {
  %x = mt.input "x" : tensor<?x4xi32>
  %y = mt.target "y" : tensor<?xi32>
  %t = mt.variable "table" init(glorot_uniform) : tensor<6x3xf32>
  %e = mt.gather %t, %x : tensor<6x3xf32>, tensor<?x4xi32>
  %f = mt.reshape %e : tensor<?x4x3xf32> to tensor<?x12xf32>
  %w = mt.variable "kernel" init(glorot_uniform) : tensor<12x5xf32>
  %z = mt.matmul %f, %w : tensor<?x12xf32>, tensor<12x5xf32>
  %l = mt.sparse_categorical_crossentropy %z, %y from_logits : tensor<?x5xf32>, tensor<?xi32>
  mt.loss "loss", %l : tensor<?xf32>
  mt.sgd <{learning_rate = 0.1 : f32}>
}
"""


@attack("ids", quick=True)
def ids(trial):
    """Ids and labels outside of their range: an error that names the sample, no clamping"""
    trial.compile(IDS, batch=8)
    good, labels = [i % 6 for i in range(64)], [i % 5 for i in range(16)]
    cases = {"all in range": (good, "<i4", labels, 0), "id 6": (good[:-1] + [6], "<i4", labels, 1),
             "id -1": ([-1] + good[1:], "<i4", labels, 1),
             "id 2^32 * 5 + 3": ([2**32 * 5 + 3] + good[1:], "<i8", labels, 1),
             "label 5": (good, "<i4", labels[:-1] + [5], 1),
             "label 10^9": (good, "<i4", [10**9] + labels[1:], 1), "label -1": (good, "<i4", [-1] + labels[1:], 1)}
    for what, (x, code, y, expected) in cases.items():
        npy(trial.folder / "x.npy", (16, 4), code, x)
        npy(trial.folder / "y.npy", (16,), "<i4", y)
        done = trial.run("mtrun", "train", "model.mtp", "--data", "npy:x.npy,y.npy", "--epochs", 1,
                         "--save", "w.safetensors")
        if (done.code != 0) != bool(expected):
            trial.finding(f"{what}: expected exit code {expected}, found {done}")


@attack("caffe", quick=True)
def caffe(trial):
    """preprocess=caffe of rows that are no three channels: refused"""
    text = """mt.model @four {
  %x = mt.input "x" : tensor<?x4xf32>
  %y = mt.target "y" : tensor<?xf32>
  %w = mt.variable "w" init(zeros) : tensor<4x1xf32>
  %z = mt.matmul %x, %w : tensor<?x4xf32>, tensor<4x1xf32>
  %p = mt.reshape %z : tensor<?x1xf32> to tensor<?xf32>
  %l = mt.squared_difference %p, %y : tensor<?xf32>, tensor<?xf32>
  mt.loss "loss", %l : tensor<?xf32>
  mt.sgd <{learning_rate = 0.1 : f32}>
}
"""
    if trial.compile(text.replace("mt.squared_difference", "mt.sub"), batch=6).code:
        return
    npy(trial.folder / "y.npy", (6,), "<f4", [0.0] * 6)
    for code in ("<f4", "|u1"):
        npy(trial.folder / "x.npy", (6, 4), code, list(range(1, 25)))
        trial.expect(1, "mtrun", "train", "model.mtp", "--data", "npy:x.npy,y.npy,preprocess=caffe,mean=1",
                     "--save", "w.safetensors")


@attack("infinity", quick=True)
def infinity(trial):
    """Values of 3e38: no checkpoint holds an infinity"""
    pixels = [0.5] * (64 * 784)
    pixels[784 * 20] = 3e38
    npy(trial.folder / "x.npy", (64, 784), "<f4", pixels)
    npy(trial.folder / "y.npy", (64,), "<i4", [i % 10 for i in range(64)])
    trial.plan("few.mtp", batch=8)
    trial.run("mtrun", "train", "few.mtp", "--data", "npy:x.npy,y.npy", "--epochs", 2, "--every-steps", 1, "--keep", 99,
              "--checkpoint", "c", "--no-shuffle")
    for step in sorted((trial.folder / "c").glob("step-*")):
        data = (step / "variables.safetensors").read_bytes()
        header = int.from_bytes(data[:8], "little")
        body = data[8 + header:]
        bad = sum(not math.isfinite(value) for (value,) in struct.iter_unpack("<f", body[:len(body) // 4 * 4]))
        if bad:
            trial.finding(f"{step.name} holds {bad} values that are not finite")
            break


@attack("options", quick=True)
def options(trial):
    """NaN and infinities as values of options: refused"""
    plan = trial.plan()
    for option, more in (("--plateau-factor", ["--plateau", "1"]), ("--plateau-min", ["--plateau", "1"]),
                         ("--min-delta", ["--early-stopping", "1"]),
                         ("--every-seconds", ["--checkpoint", "c"])):
        for value in ("nan", "-nan", "inf", "1e999"):
            if (option, value) in (("--every-seconds", "inf"), ("--min-delta", "inf")):
                continue
            done = trial.run("mtrun", "train", plan, "--data", DATA, "--epochs", 1, "--save", "w.safetensors", *more,
                             option, value)
            if done.code not in (1, 2):
                trial.finding(f"{option} {value}: expected exit code 1 or 2, found {done}")
