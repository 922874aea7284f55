# SPDX-License-Identifier: Apache-2.0
# RUN: %python %s
"""Nothing is left for later, no file is a drawer, no line ends with a space, and no constant is a kConstant."""
import re

from tree import code, files, name, text, verdict

LATER = re.compile(r"\b(TO" r"DO|FIX" r"ME|X" r"XX)\b")
DRAWER = re.compile(r"Utils|Common|Helpers|Misc")
PREFIXED = re.compile(r"\bk(?!Dynamic|Hz\b)[A-Z][a-z]\w*")  # with MLIR's own, and a unit
problems = [f"{name(p)}: expected a name that says what is inside" for p in files() if DRAWER.search(p.name)]
for p in [*code(), *(q for q in files() if q.suffix in {".md", ".mlir", ".test"})]:
    for number, line in enumerate(text(p).splitlines(), 1):
        where = f"{name(p)}:{number}"
        if LATER.search(line):
            problems.append(f"{where}: expected finished work, found '{LATER.search(line).group()}'")
        if p.suffix in {".cpp", ".h"} and (found := PREFIXED.search(line)):
            problems.append(f"{where}: expected a name without a k, found '{found.group()}'")
        if line != line.rstrip() and p.suffix != ".test":  # a test may expect one
            problems.append(f"{where}: trailing space")
        if "\t" in line and p.suffix != ".md":
            problems.append(f"{where}: tab")
verdict(problems, "words")
