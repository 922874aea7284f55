# SPDX-License-Identifier: Apache-2.0
"""pictures.py FOLDER DOCS: the pictures in FOLDER are those that the pages show, of the same width; none is blank."""
import pathlib
import re
import struct
import sys
import zlib

folder, docs = map(pathlib.Path, sys.argv[1:])
shown = {name for page in docs.rglob("*.md") for name in re.findall(r"pictures/([a-z-]+\.png)", page.read_text())}
made = {file.name for file in folder.glob("*.png")}
kept = {file.name for file in (docs / "pictures").glob("*.png")}
assert made == shown == kept, (made, shown, kept)


def pixels(file):
    """Width, height, and the picture's lines, still filtered."""
    data = file.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n", file
    at, packed, size = 8, b"", None
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + length]
        if kind == b"IHDR":
            size = struct.unpack(">II", body[:8])
        elif kind == b"IDAT":
            packed += body
        at += 12 + length
    return *size, zlib.decompress(packed)


for name in sorted(made):
    (width, height, lines), (old, *_) = pixels(folder / name), pixels(docs / "pictures" / name)
    assert width == old == 1200, (name, width, old)
    # Text and bars on much of the height: behind the filter's byte not all of a line is zero.
    stride = len(lines) // height
    written = sum(any(lines[y * stride + 1:(y + 1) * stride]) for y in range(1, height))
    assert written > height / 3, (name, written, height)
    print(name, width, height)
