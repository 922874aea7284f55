# SPDX-License-Identifier: Apache-2.0
"""Writes small valid files for a fuzzer to start from: seeds.py FOLDER idx|safetensors|plan."""
import gzip
import json
import pathlib
import struct
import sys


def idx(shape):
    size = 1
    for dim in shape:
        size *= dim
    return bytes([0, 0, 8, len(shape)]) + struct.pack(f">{len(shape)}I", *shape) + bytes(i % 10 for i in range(size))


def safetensors(tensors):
    header, data = {"__metadata__": {"format": "mt"}}, b""
    for name, shape in tensors.items():
        size = 4
        for dim in shape:
            size *= dim
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + size]}
        data += bytes(size)
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


folder, kind = pathlib.Path(sys.argv[1]), sys.argv[2]
seeds = {}
if kind == "idx":
    # The first byte is the harness's: the rank asked for, less one.
    for rank, shape in ((1, [5]), (3, [2, 3, 4]), (3, [0, 28, 28])):
        plain = idx(shape)
        seeds[f"plain{rank}-{shape[0]}"] = bytes([rank - 1]) + plain
        seeds[f"gzip{rank}-{shape[0]}"] = bytes([rank - 1]) + gzip.compress(plain, mtime=0)
elif kind == "safetensors":
    seeds["empty"] = safetensors({})
    seeds["two"] = safetensors({"dense/kernel": [4, 3], "dense/bias": [3]})
    seeds["scalar"] = safetensors({"adam/learning_rate": []})
elif kind == "plan":
    seeds["short"] = b"MTPLAN\r\n" + bytes(56)
for name, data in seeds.items():
    (folder / name).write_bytes(data)
