# SPDX-License-Identifier: Apache-2.0
"""both_ways.py FOLDER MODEL...: compiles each model, and what `mtc import` makes of it, up to where every value has its
place."""
import pathlib
import subprocess
import sys


def mtc(*arguments):
    subprocess.run(["mtc", *map(str, arguments)], check=True, stdout=subprocess.DEVNULL)


folder = pathlib.Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
for model in map(pathlib.Path, sys.argv[2:]):
    text, places = folder / f"{model.stem}.mlir", []
    mtc("import", model, "-o", text)
    for way in model, text:
        places.append(folder / f"{model.stem}{len(places)}.places")
        mtc("compile", way, "--batch", 16, "--stop-after", "allocate", "-o", places[-1])
    if places[0].read_text() != places[1].read_text():
        print(f"{model.name} differs")
print(f"{len(sys.argv) - 2} models, equal by both ways")
