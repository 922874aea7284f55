# SPDX-License-Identifier: Apache-2.0
"""Writes the tensors of a .safetensors file that are named, every byte of them 0: part.py FROM TO NAME..."""
import json
import struct
import sys

source, target, names = sys.argv[1], sys.argv[2], sys.argv[3:]
with open(source, "rb") as file:
    header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
kept, size = {}, 0
for name in names:
    begin, end = header[name]["data_offsets"]
    kept[name] = header[name] | {"data_offsets": [size, size + end - begin]}
    size += end - begin
text = json.dumps(kept).encode()
with open(target, "wb") as file:
    file.write(struct.pack("<Q", len(text)) + text + bytes(size))
