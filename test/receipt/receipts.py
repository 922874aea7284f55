# SPDX-License-Identifier: Apache-2.0
"""Receipts as a forger changes them."""
import hashlib
import json
import pathlib


def read(path):
    return [json.loads(line) for line in pathlib.Path(path).read_text(encoding="utf-8").splitlines()]


def write(path, lines):
    """Writes the lines with a chain of hashes that is right."""
    previous, text = "", ""
    for line in lines:
        line["prev"] = previous
        line = json.dumps(line, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        previous = hashlib.sha256(line.encode()).hexdigest()
        text += line + "\n"
    pathlib.Path(path).write_text(text, encoding="utf-8")
