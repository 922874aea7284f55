# SPDX-License-Identifier: Apache-2.0
"""The versions and the sizes of the tables of two plans, of a short and of a long loop: tables.py SHORT LONG."""
import struct
import sys

versions, sizes = [], []
for path in sys.argv[1:3]:
    with open(path, "rb") as file:
        header = file.read(64)
    versions.append(struct.unpack_from("<I", header, 8)[0])
    sizes.append(struct.unpack_from("<Q", header, 32)[0])
print(", ".join(f"version {version}" for version in versions))
small = sizes[1] <= 1.2 * sizes[0]
print(f"the tables are {'small' if small else 'large'}: {sizes[0]} and {sizes[1]} bytes")
