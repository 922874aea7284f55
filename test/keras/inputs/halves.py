# SPDX-License-Identifier: Apache-2.0
"""The tensors of a .safetensors file as bfloat16, and one more: halves.py IN OUT NAME [flat]. flat: of one axis."""
import json
import struct
import sys

with open(sys.argv[1], "rb") as f:
    length, = struct.unpack("<Q", f.read(8))
    header, data = json.loads(f.read(length)), f.read()
made, out = {}, b""
header.pop("__metadata__", None)
for name, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"]) + [(sys.argv[3], None)]:
    begin, end = entry["data_offsets"] if entry else (0, 4)
    numbers = b"".join(data[i + 2:i + 4] for i in range(begin, end, 4))
    shape = [len(numbers) // 2] if not entry or "flat" in sys.argv else entry["shape"]
    made[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [len(out), len(out) + len(numbers)]}
    out += numbers
text = json.dumps(made).encode()
with open(sys.argv[2], "wb") as f:
    f.write(struct.pack("<Q", len(text)) + text + out)
