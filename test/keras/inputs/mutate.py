# SPDX-License-Identifier: Apache-2.0
"""Feeds damaged copies of the archives of a folder to the importer: mutate.py FOLDER COUNT PROGRAM [SEED]. Each must be
an error or a model, in time.

PROGRAM is build/release/test/keras/keras-import-each, which takes a few milliseconds a copy.

A copy has bytes changed in the archive, or in a member that is then packed well, or a number or word of the config
changed.
"""
import io
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
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
        new = r.choice(("0", "-1", "1", "3", "2147483648", "9223372036854775807", "1e999", "null", "true", "[]", "{}",
                        '""', '"relu"', r.choice(tokens).group()))
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


class Importer:
    """The program that imports file after file; started again when it ends."""

    def __init__(self, program):
        self.program, self.process = program, None

    def ask(self, path):
        """What it says about a file: "model", or a code and a message; else what became of the program."""
        if not self.process:
            self.process = subprocess.Popen([self.program], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                            stderr=subprocess.DEVNULL)
        self.process.stdin.write(f"{path}\n".encode())
        self.process.stdin.flush()
        timer = threading.Timer(60, self.process.kill)
        timer.start()
        line = self.process.stdout.readline()
        timer.cancel()
        if line.endswith(b"\n"):
            return line.decode(errors="replace").strip()
        code, self.process = self.process.wait(), None
        return "no end in 60 s" if code == -signal.SIGKILL else f"the end of the program with {code}"


folder, count, program = pathlib.Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
r = random.Random(int(sys.argv[4]) if len(sys.argv) > 4 else 1)
files = sorted(folder.glob("*.keras"))
importer, problems, models = Importer(program), 0, 0
with tempfile.TemporaryDirectory() as place:
    path = pathlib.Path(place) / "model.keras"
    for i in range(count):
        path.write_bytes(mutate(r.choice(files).read_bytes(), r))
        said = importer.ask(path)
        models += said == "model"
        if said == "model" or re.match(r"[17] .", said):
            continue
        problems += 1
        kept = pathlib.Path(tempfile.gettempdir()) / f"mutated-{i}.keras"
        kept.write_bytes(path.read_bytes())
        print(f"copy {i}: expected an error or a model, found {said}; kept as {kept}")
print(f"{count} copies, {models} still models, {problems} problems")
sys.exit(1 if problems else 0)
