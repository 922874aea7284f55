# SPDX-License-Identifier: Apache-2.0
# RUN: %python %s
"""No line that people wrote for people has more than 120 columns.

A line may be longer where a break would change what it says to a program, or to the test that compares it: a line with
an address on the web; in test/ the directives of lit and FileCheck, IR as MLIR prints it, and messages of a protocol;
in a page what a command prints, below a line that begins with "$ ". Data has no lines to read.
"""
import re

from tree import files, name, text, verdict

COLUMNS = 120
DATA = {".abi", ".csv", ".golden", ".gz", ".json", ".keras", ".lock", ".npz", ".safetensors", ".svg"}
ADDRESS = re.compile(r"https?://")
# Of lit, of FileCheck, whose prefix may be any word in capitals, and of MLIR's checker of diagnostics.
DIRECTIVE = re.compile(r"\s*(#|//)?\s*([A-Z][A-Z0-9_-]*:|expected-(error|warning|note|remark))|\{\"jsonrpc\"")


def is_data(path):
    return path.suffix in DATA or (path.suffix == ".txt" and path.name != "CMakeLists.txt")


def printed(lines):
    """The numbers of the lines that show what a command prints: an indented block, behind its first "$ "."""
    found, inside = set(), False
    for number, line in enumerate(lines, 1):
        inside = line.startswith("    ") and (inside or line.startswith("    $ "))
        if inside and not line.startswith("    $ "):
            found.add(number)
    return found


def may_be_long(path, line):
    in_test = name(path).startswith("test/")
    ir = path.suffix == ".mlir" and not line.lstrip().startswith("//")
    return ADDRESS.search(line) or (in_test and (ir or DIRECTIVE.match(line)))


problems = []
for p in files():
    if is_data(p):
        continue
    try:
        lines = text(p).splitlines()
    except UnicodeDecodeError:
        continue  # data, whatever its name
    if not any(len(line) > COLUMNS for line in lines):
        continue
    output = printed(lines) if p.suffix == ".md" else set()
    problems += [f"{name(p)}:{number}: expected at most {COLUMNS} columns, found {len(line)}"
                 for number, line in enumerate(lines, 1)
                 if len(line) > COLUMNS and number not in output and not may_be_long(p, line)]
verdict(problems, "columns")
