# SPDX-License-Identifier: Apache-2.0
"""arrays.py FILE.npz NAME=DESCR:SHAPE:VALUES...: an archive of arrays; VALUES is a Python expression of all
elements."""
import struct
import sys
import zipfile

CODES = {"<f2": "e", "<f4": "f", "<f8": "d", "<i4": "i", "<i8": "q", "|u1": "B"}


def npy(descr, shape, values):
    header = repr({"descr": descr, "fortran_order": False, "shape": shape}).encode()
    header = header.ljust((10 + len(header)) // 64 * 64 + 53) + b"\n"
    data = b"".join(struct.pack("<" + CODES[descr], v) for v in values) if descr in CODES else values
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data


if __name__ == "__main__":
    with zipfile.ZipFile(sys.argv[1], "w") as archive:
        for argument in sys.argv[2:]:
            name, rest = argument.split("=", 1)
            descr, shape, values = rest.split(":", 2)
            archive.writestr(name + ".npy", npy(descr, eval(shape), eval(values)))
