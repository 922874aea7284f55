# SPDX-License-Identifier: Apache-2.0
"""names.py HISTORY.json HISTORY.csv LOGS: reads them as every reader would; no key is there twice, every row has all
columns."""
import csv
import json
import pathlib
import sys


def once(pairs):
    names = [name for name, value in pairs]
    if len(set(names)) != len(names):
        sys.exit(f"names that are there twice: {names}")
    return dict(pairs)


history, table, logs = map(pathlib.Path, sys.argv[1:])
print("h.json:", " | ".join(json.loads(history.read_text(), object_pairs_hook=once)))
rows = list(csv.reader(table.read_text().splitlines()))
if len({len(row) for row in rows}) != 1:
    sys.exit(f"rows of different lengths: {rows}")
print("h.csv:", " | ".join(rows[0]))
lines = [json.loads(line, object_pairs_hook=once) for line in logs.read_text().splitlines()]
print("logs:", len(lines), "objects")
