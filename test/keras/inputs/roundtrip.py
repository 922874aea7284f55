# SPDX-License-Identifier: Apache-2.0
"""Writes models back to Keras' format and reads them again: roundtrip.py NAME.keras..., into the working folder.

The archive must be one that Python's zipfile finds whole, and the importer must find the same model and the same bytes
in it.
"""
import pathlib
import subprocess
import sys
import zipfile


def run(*command):
    done = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}: exit code {done.returncode}: {done.stdout}")


for source in map(pathlib.Path, sys.argv[1:]):
    name = source.stem
    written = pathlib.Path(f"{name}.back.keras")
    run("mtc", "compile", source, "-o", f"{name}.mtp", "--cpu", "x86-64-v3", "--batch", 8)
    run("mtrun", "export", f"{name}.mtp", "-o", written)
    with zipfile.ZipFile(written) as archive, zipfile.ZipFile(source) as original:
        bad = archive.testzip()
        names = archive.namelist()
        if bad or names != ["metadata.json", "config.json", "model.weights.h5"]:
            sys.exit(f"{name}: expected a whole archive, found {names}, bad: {bad}")
        for member in names[:2]:
            if archive.read(member) != original.read(member):
                sys.exit(f"{name}: expected the same {member}, found another")
        if any(info.compress_type != zipfile.ZIP_STORED for info in archive.infolist()):
            sys.exit(f"{name}: expected stored members, found others")
    for path in (source, written):
        run("mtc", "import", path, "-o", f"{path.stem}.mlir")
    for ending in (".mlir", ".safetensors"):
        if pathlib.Path(name + ending).read_bytes() != pathlib.Path(f"{name}.back{ending}").read_bytes():
            sys.exit(f"{name}: expected the same {ending} from what was written back, found another")
    print(f"{name}: the same model")
