# SPDX-License-Identifier: Apache-2.0
"""read_predictions.py P.npz P.npy P.csv: the same predictions in three files."""
import csv
import struct
import sys
import zipfile


def read(data):
    length = struct.unpack_from("<H", data, 8)[0]
    return eval(data[10 : 10 + length]), data[10 + length :]


archive = zipfile.ZipFile(sys.argv[1])
assert archive.testzip() is None
assert sorted(archive.namelist()) == ["classes.npy", "logits.npy", "names.npy"], archive.namelist()
header, logits = read(archive.read("logits.npy"))
assert header == {"descr": "<f4", "fortran_order": False, "shape": (10, 5)}, header
assert read(open(sys.argv[2], "rb").read()) == (header, logits)
header, texts = read(archive.read("names.npy"))
width = int(header["descr"][2:])
assert header["shape"] == (10,)
names = [texts[i * 4 * width : (i + 1) * 4 * width].decode("utf-32-le").rstrip("\0") for i in range(10)]
header, texts = read(archive.read("classes.npy"))
width = int(header["descr"][2:])
classes = [texts[i * 4 * width : (i + 1) * 4 * width].decode("utf-32-le").rstrip("\0") for i in range(5)]
assert classes == ["across", "along", "down", "rings", "up"], classes
rows = list(csv.reader(open(sys.argv[3])))
assert rows[0] == ["file", "class"] + classes
for i, row in enumerate(rows[1:]):
    values = struct.unpack_from("<5f", logits, 20 * i)
    assert row[0] == names[i], (row, names[i])
    text = struct.pack("<5f", *map(float, row[2:]))
    assert text == struct.pack("<5f", *values) or row[2] == "nan", (row, values)
    assert row[1] == ("" if row[2] == "nan" else classes[values.index(max(values))]), row
