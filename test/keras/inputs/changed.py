# SPDX-License-Identifier: Apache-2.0
"""changed.py BEFORE AFTER: which tensors of two .safetensors files have the same bytes."""
import json
import sys


def tensors(path):
    data = open(path, "rb").read()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8:8 + size])
    return {name: data[8 + size + t["data_offsets"][0]:8 + size + t["data_offsets"][1]] for name,
            t in header.items() if name != "__metadata__"}


before, after = map(tensors, sys.argv[1:])
print("same:", *sorted(name for name in before if before[name] == after.get(name)))
print("changed:", *sorted(name for name in before if before[name] != after.get(name)))
