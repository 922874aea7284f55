# SPDX-License-Identifier: Apache-2.0
"""ragged.py FILE.npz SAMPLES POSITIONS LONGEST...: ids and tags of samples whose lengths vary. In the order of the
file, each 12 samples begin with one of the next length in LONGEST, and have no longer one."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools/mtrun/inputs"))
import arrays
import zipfile

path, samples, positions, *longest = [sys.argv[1], *map(int, sys.argv[2:])]
ids, tags = [], []
for i in range(samples):
    most = longest[i // 12 % len(longest)]
    length = most if i % 12 == 0 or most < 0 else 1 + i * i * 7 % most
    length = abs(length)  # of -N: each sample has N
    ids += [1 + (i * 31 + t * t * 7) % 99 if t < length else 0 for t in range(positions)]
    tags += [(i + t * t) % 5 if t < length else 0 for t in range(positions)]
with zipfile.ZipFile(path, "w") as archive:
    for name, values in (("ids", ids), ("tags", tags)):
        archive.writestr(name + ".npy", arrays.npy("<i4", (samples, positions), values))
