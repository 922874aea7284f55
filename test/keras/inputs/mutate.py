# SPDX-License-Identifier: Apache-2.0
"""Feeds damaged copies of the archives of a folder to mtc: mutate.py FOLDER COUNT [SEED]. Each must be an error or a model, in time.

A copy has bytes changed in the archive, or in a member that is then packed well, or a number or word of the config changed.
"""
import io
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import zipfile


def flip(data, r):
    data = bytearray(data)
    for _ in range(r.choice((1, 1, 2, 8))):
        at = r.randrange(len(data))
        data[at] = r.choice((0, 255, r.randrange(256), data[at] ^ 1 << r.randrange(8)))
    cut = r.randrange(len(data)) if r.random() < 0.1 else len(data)
    return bytes(data[:cut])


def reword(text, r):
    tokens = list(re.finditer(r'-?\d+(\.\d+)?|true|false|null|"[^"]*"', text))
    for _ in range(r.choice((1, 1, 2, 4))):
        token = r.choice(tokens)
        new = r.choice(("0", "-1", "1", "3", "2147483648", "9223372036854775807", "1e999", "null", "true", "[]", "{}", '""', '"relu"', r.choice(tokens).group()))
        text = text[:token.start()] + new + text[token.end():]
        tokens = list(re.finditer(r'-?\d+(\.\d+)?|true|false|null|"[^"]*"', text))
    return text


def mutate(data, r):
    kind = r.randrange(4)
    if kind == 0:
        return flip(data, r)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {n: archive.read(n) for n in archive.namelist()}
    if kind == 1:
        members["config.json"] = reword(members["config.json"].decode(), r).encode()
    else:
        members["model.weights.h5"] = flip(members["model.weights.h5"], r)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, member in members.items():
            archive.writestr(name, member)
    return packed.getvalue()


folder, count = pathlib.Path(sys.argv[1]), int(sys.argv[2])
r = random.Random(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
files = sorted(folder.glob("*.keras"))
problems = models = 0
with tempfile.TemporaryDirectory() as place:
    path = pathlib.Path(place) / "model.keras"
    for i in range(count):
        path.write_bytes(mutate(r.choice(files).read_bytes(), r))
        try:
            done = subprocess.run(["mtc", "import", path, "-o", "-"], capture_output=True, timeout=60)
            fine = done.returncode == 0 or (done.returncode in (1, 7) and b"error: " in done.stderr)
            said = f"exit code {done.returncode}: {done.stderr.decode(errors='replace')[:500]}"
        except subprocess.TimeoutExpired:
            fine, said = False, "no end in 60 s"
        models += fine and done.returncode == 0
        if not fine:
            problems += 1
            print(f"copy {i}: expected an error or a model, found {said}")
            kept = pathlib.Path(tempfile.gettempdir()) / f"mutated-{i}.keras"
            kept.write_bytes(path.read_bytes())
            print(f"kept as {kept}")
print(f"{count} copies, {models} still models, {problems} problems")
sys.exit(1 if problems else 0)
