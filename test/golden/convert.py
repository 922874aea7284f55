#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Turns golden runs (a folder a model, made by Keras) into the small files of test/golden/data. For maintainers.

    convert.py GOLDEN_DIR OUTPUT_DIR [--samples N]        needs numpy and h5py

A run's batches follow from seeds and are made again by the test. Start values are kept in full. Of later values,
tensors of more than N elements (2048; 0: all) keep every k-th one, k odd and so touching every column, and all keep the
sums of values and of magnitudes over all elements, so that a wrong element anywhere is seen.

A file is text lines, an empty line, then the tensors' elements as little-endian float32, in order of the lines:

    step ROWS LOSS ACCURACY                       one a step
    tensor SET NAME COUNT STRIDE SUM MAGNITUDE    SET: start, after1, short1, after, predict; ceil(COUNT / STRIDE)
                                                  elements follow
"""
import argparse
import io
import json
import pathlib
import struct
import zipfile

import h5py
import numpy as np

START = {"mlp": "start_mlp", "mlp_sgd": "start_mlp", "mlp_adamw": "start_mlp", "mlp_softmax": "start_softmax",
         "mlp_onehot": "start_softmax"}


def safetensors(path):
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    for name, entry in json.loads(data[8:8 + length]).items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            dtype = {"F32": "<f4", "I32": "<i4"}[entry["dtype"]]
            yield name, np.frombuffer(data[8 + length + begin:8 + length + end], dtype).reshape(entry["shape"])


def start(path):
    """Initial values of the layers, by Keras' path. Optimizer slots start at zero."""
    with zipfile.ZipFile(path) as archive:
        weights = h5py.File(io.BytesIO(archive.read("model.weights.h5")))
    for layer, group in weights["layers"].items():
        if "vars" in group and len(group["vars"]):
            for index, name in enumerate(("kernel", "bias")):
                yield f"{layer}/{name}", group["vars"][str(index)][()]


def stride(count, samples):
    return 1 if not samples or count <= samples else (count // samples) | 1


def write(path, lines, tensors, samples):
    blobs = []
    for which, name, value in tensors:
        flat = np.ascontiguousarray(value).reshape(-1).astype("<f4")
        step = 1 if which == "start" else stride(flat.size, samples)
        wide = flat.astype("f8")
        lines.append(f"tensor {which} {name} {flat.size} {step} {float(wide.sum())!r} {float(np.abs(wide).sum())!r}")
        blobs.append(flat[::step].tobytes())
    path.write_bytes(("\n".join(lines) + "\n\n").encode() + b"".join(blobs))
    print(path, path.stat().st_size)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("golden", type=pathlib.Path)
    parser.add_argument("output", type=pathlib.Path)
    parser.add_argument("--samples", type=int, default=2048)
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    starts = {}
    for model, shared in START.items():
        folder = arguments.golden / model
        values = dict(start(folder / "model.keras"))
        if shared in starts:
            assert all(np.array_equal(values[k], v) for k, v in starts[shared].items()), model
        else:
            starts[shared] = values
            write(arguments.output / f"{shared}.golden", [], [("start", k, v) for k, v in values.items()], 0)
        lines = [f"step {s['batch']} {s['loss']!r} {s['accuracy']!r}"
                 for s in json.loads((folder / "trajectory.json").read_text())["steps"]]
        tensors = [(which, name, value) for which in ("after1", "short1", "after")
                   for name, value in sorted(safetensors(folder / f"{which}.safetensors"))]
        tensors.append(("predict", "output", np.load(folder / "predict.npz")["y"]))
        write(arguments.output / f"{model}.golden", lines, tensors, arguments.samples)


if __name__ == "__main__":
    main()
