# SPDX-License-Identifier: Apache-2.0
"""best.py CHECKPOINTS FILE: is the file the best checkpoint's model with the last one's optimizer?"""
import json
import pathlib
import sys


def tensors(path):
    data = pathlib.Path(path).read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8:8 + size])
    return {name: data[8 + size + at["data_offsets"][0]:8 + size + at["data_offsets"][1]]
            for name, at in header.items() if name != "__metadata__"}


folders = sorted(pathlib.Path(sys.argv[1]).glob("step-*"))
if len(folders) != 2:
    sys.exit(f"expected two checkpoints, the best and the last, found {[f.name for f in folders]}")
best, last = (tensors(folder / "variables.safetensors") for folder in folders)
for name, value in tensors(sys.argv[2]).items():
    if value != (last if name.startswith("adam/") else best)[name]:
        sys.exit(f"{name} differs")
print("the model's variables are those of the best checkpoint, the optimizer's those of the last")
