# SPDX-License-Identifier: Apache-2.0
"""What Keras 3.15 on JAX predicts with mixed.keras (a policy of mixed_bfloat16, the last layer float32): mixed.py X.npy
T.npy writes images and labels, mixed.py Y.npy compares."""
import pathlib
import struct
import sys

EXPECTED = [
    0.092479, 0.144941, 0.360762, 0.401819,
    0.071409, 0.186021, 0.329510, 0.413059,
    0.129506, 0.215725, 0.268391, 0.386378,
    0.139475, 0.256977, 0.243996, 0.359552,
    0.081678, 0.152762, 0.326066, 0.439494,
    0.130570, 0.142002, 0.250520, 0.476907,
    0.092448, 0.115609, 0.281854, 0.510089,
    0.116347, 0.125256, 0.266353, 0.492044,
    0.081828, 0.139834, 0.290196, 0.488143,
]


def write(path, kind, shape, data):
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}"
    header += " " * (63 - (len(header) + 10) % 64) + "\n"
    pathlib.Path(path).write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data)


if len(sys.argv) == 3:
    count = 9 * 6 * 6 * 3
    write(sys.argv[1], "<f4", (9, 6, 6, 3),
          struct.pack(f"<{count}f", *((i * 37 % 101 - 50) / 50 for i in range(count))))
    write(sys.argv[2], "<i4", (9,), bytes(9 * 4))
else:
    found = struct.unpack("<36f", pathlib.Path(sys.argv[1]).read_bytes()[-36 * 4:])
    off = max(abs(f - e) for f, e in zip(found, EXPECTED, strict=True))
    print(f"off by {off:.6f}")
    sys.exit(off > 4e-3)
