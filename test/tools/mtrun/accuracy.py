# SPDX-License-Identifier: Apache-2.0
"""accuracy.py LOGITS.npy LABELS.gz FIRST LEAST: fails if the share of right answers is below LEAST. Reads the files by
itself."""
import ast
import gzip
import struct
import sys

raw = open(sys.argv[1], "rb").read()
assert raw[:8] == b"\x93NUMPY\x01\x00"
size = struct.unpack("<H", raw[8:10])[0]
header = ast.literal_eval(raw[10:10 + size].decode())
assert header["descr"] == "<f4" and not header["fortran_order"], header
samples, classes = header["shape"]
logits = struct.unpack(f"<{samples * classes}f", raw[10 + size:])
labels = gzip.open(sys.argv[2]).read()[8 + int(sys.argv[3]):]
right = sum(max(range(classes), key=lambda c: logits[s * classes + c]) == labels[s] for s in range(samples))
print(f"{right} of {samples} right")
sys.exit(right < float(sys.argv[4]) * samples)
