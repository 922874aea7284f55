# SPDX-License-Identifier: Apache-2.0
"""Writes small valid files for a fuzzer to start from: seeds.py FOLDER KIND, a name of test/fuzz/run."""
import gzip
import json
import pathlib
import struct
import sys
import zlib


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


def png(width, height, kind, depth=8, interlace=0):
    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
    channels = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[kind]
    rows = b"".join(b"\0" + bytes(i % 4 for i in range((width * channels * depth + 7) // 8)) for _ in range(height))
    palette = chunk(b"PLTE", bytes(range(12))) + chunk(b"tRNS", b"\x80") if kind == 3 else b""
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, kind, 0, 0, interlace))
            + palette
            + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(data):
    crc = crc32c(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def field(number, data):
    return bytes([number << 3 | 2, len(data)]) + data


def example(features):
    entries = b"".join(field(1, field(1, name) + field(2, field(kind, field(1, values)))) for name, kind,
                       values in features)
    return field(1, entries)


def record(data):
    length = struct.pack("<Q", len(data))
    return length + masked(length) + data + masked(data)


folder, kind = pathlib.Path(sys.argv[1]), sys.argv[2]
seeds = {}
if kind == "idx":
    # The first byte is the harness's: the rank asked for, less one.
    for rank, shape in ((1, [5]), (3, [2, 3, 4]), (3, [0, 28, 28])):
        plain = idx(shape)
        seeds[f"plain{rank}-{shape[0]}"] = bytes([rank - 1]) + plain
        seeds[f"gzip{rank}-{shape[0]}"] = bytes([rank - 1]) + gzip.compress(plain, mtime=0)
elif kind == "picture":
    for first, (colours, depth) in enumerate(((0, 8), (0, 1), (0, 16), (2, 8), (2, 16), (3, 8), (3, 2), (4, 8),
                                              (6, 8))):
        seeds[f"png{colours}-{depth}"] = bytes([first % 8 & ~2]) + png(3, 2, colours, depth)
    seeds["png-quick"] = b"\2" + png(3, 2, 2)
elif kind == "records":
    all_kinds = example([(b"b", 1, b"abc"), (b"f", 2, struct.pack("<2f", 1, 2)), (b"i", 3, b"\1\xff\1\3")])
    seeds["example"] = all_kinds
    seeds["one"] = record(all_kinds)
    seeds["two"] = record(all_kinds) + record(b"")
elif kind == "safetensors":
    seeds["empty"] = safetensors({})
    seeds["two"] = safetensors({"dense/kernel": [4, 3], "dense/bias": [3]})
    seeds["scalar"] = safetensors({"adam/learning_rate": []})
elif kind == "receipt":
    # The harness gives the lines their chain of hashes.
    zeros = "0" * 64
    head = {"chunk": 1048576, "class": "cpu", "data": {}, "every": 5, "format": "mtc-receipt", "plan": {}, "prev": "",
            "run": {"seed": 1, "monitor": "loss", "plateau_factor": "0x1p-1"}, "variables": [["w", 8]], "version": 1}
    records = [{"chunks": "00000000", "step": 0, "variables": zeros, "prev": ""},
               {"chunks": "00000000", "step": 5, "variables": zeros, "prev": "", "epoch": 0, "position": 5,
                "rows": zeros, "metrics": {"loss": "0x1p-1"}},
               {"chunks": "00000000", "step": 7, "variables": zeros, "prev": "", "end": True, "epochs": 1,
                "rows": zeros, "by_name": {"w": zeros}}]
    for count in range(4):
        lines = [json.dumps(line, sort_keys=True, separators=(",", ":")) for line in [head, *records[:count]]]
        seeds[f"lines{count}"] = "".join(line + "\n" for line in lines).encode()
elif kind == "manifest":
    # The harness gives each its hash.
    state = {"seed": 1, "epoch": 1, "position": 2, "step": 7, "sums": ["0x1p+0"], "totals": ["nan"],
             "data": {"samples": 9, "batch": 2, "steps_per_epoch": 5, "shuffle": True, "window": 0,
                      "drop_remainder": False},
             "history": {"names": ["loss"], "values": ["0x1p-1"]},
             "callbacks": {"early_stop": ["0x1p+0", "inf", "0x0p+0", "0x1p+1", "0x1p+2"]},
             "stopped_early": False, "rate": {"scheduled": "nan", "given": "0x0p+0"}}
    tensors = [{"name": "w", "dtype": "f32", "shape": [2, 3], "hash": "0" * 32}]
    whole = {"format": "mtc checkpoint", "version": 1, "model": "m", "plan": "0" * 32, "state": state,
             "tuning": "1" * 32,
             "monitor": {"name": "loss", "value": "0x1p-1"},
             "variables": {"file": "variables.safetensors", "bytes": 99, "header": "0" * 32, "tensors": tensors}}
    for name, entries in (("whole", whole), ("short", {**whole, "variables": {**whole["variables"], "tensors": []}})):
        seeds[name] = json.dumps(entries, indent=1).encode()[:-2]
elif kind == "tuning":
    kernels = [{"name": "k", "algorithm": "a", "us": 1.5, "own_us": 2},
               {"name": "l", "algorithm": "", "us": 1, "own_us": 1}]
    for name, listed in (("two", kernels), ("none", [])):
        seeds[name] = json.dumps({"format": "mtrun tuning", "version": 1, "gpu": "g", "capability": "9.0",
                                  "driver": 12040,
                                  "libraries": ["l 1"], "plan": "0" * 32, "kernels": listed}, indent=1).encode()[:-2]
    # Numbers that are whole and fit no integer were undefined behaviour.
    for number in ("2e60", "-2e60", "4294967297", "18446744073709551615"):
        for key in (b'"version": 1', b'"driver": 12040'):
            seeds[f"{key[1]}{number}"] = seeds["two"].replace(key, key.split(b":")[0] + b": " + number.encode())
elif kind == "rendezvous":
    # The first two bytes are the harness's: to whom, and in pieces of what size.
    def message(letter, text):
        return letter + struct.pack("<I", len(text)) + text
    hello = message(b"h", b"1\ncuda:1\nprocesses: 2\nplan: 1\nseed: 7")
    seeds["response"] = bytes([0, 99]) + bytes(48)
    seeds["challenge"] = bytes([1, 99]) + b"mtrun processes\n" + bytes(48)
    seeds["messages"] = bytes([2, 99]) + hello + message(b"s", b"12") + message(b"x", b"9gone") + message(b"e", b"7")
elif kind == "csv":
    # The first byte is the harness's: the keys.
    for first, text in enumerate((b"a,b,c,y\n1,2,3,0\n4,5,6,1\n", b"1,2,3,0\n", b'"a","b ""x""",c,y\r\n1,"2",3,0\r\n',
                                  b"\xef\xbb\xbfa;b;c;y\n1,5;2;3;0\n", b"id,a,b,c,y\n7,1,2,3,cat\n8,1e5,nan,-3,dog\n")):
        for keys in range(7):
            seeds[f"{first}-{keys}"] = bytes([keys]) + text
elif kind == "onnx":
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "onnx"))
    import make
    for name in dir(make):
        maker = getattr(make, name)
        if callable(maker) and not name.startswith("_") and maker.__code__.co_argcount == 0:
            seeds[name] = maker()
elif kind == "choices":
    # Of a grammar: any bytes are a whole model.
    for n in range(64):
        seeds[f"{n}"] = bytes((n * 37 + i * (2 * n + 1)) % 256 for i in range(n + 1))
elif kind == "plan":
    seeds["short"] = b"MTPLAN\r\n" + bytes(56)
for name, data in seeds.items():
    (folder / name).write_bytes(data)
