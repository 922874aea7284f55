# SPDX-License-Identifier: Apache-2.0
# 100 samples of 37 features and a target each, float32, as two .npy files.
import random
import struct
import sys

random.seed(7)
for path, shape in ((sys.argv[1], (100, 37)), (sys.argv[2], (100,))):
    count = shape[0] * (shape[1] if len(shape) > 1 else 1)
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
        file.write(struct.pack(f"<{count}f", *(random.uniform(-0.2, 0.2) for _ in range(count))))
