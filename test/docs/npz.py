# SPDX-License-Identifier: Apache-2.0
"""npz.py FILE: writes an archive as Keras' mnist.npz, of 200 and 50 pictures, without NumPy."""
import random
import struct
import sys
import zipfile

draw = random.Random(1)
with zipfile.ZipFile(sys.argv[1], "w") as archive:
    for part, count in (("train", 200), ("test", 50)):
        for name, shape in ((f"x_{part}", (count, 28, 28)), (f"y_{part}", (count,))):
            header = f"{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}, }}"
            header += " " * (-(len(header) + 11) % 64) + "\n"
            size = count * (784 if len(shape) == 3 else 1)
            values = bytes(draw.choices(range(256 if len(shape) == 3 else 10), k=size))
            archive.writestr(f"{name}.npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode()
                             + values)
