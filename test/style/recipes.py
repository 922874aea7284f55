# SPDX-License-Identifier: Apache-2.0
# RUN: %python %s
"""The recipes of docs/contributing.md are true: the files that a row names hold what it says, and no file is left out.

A recipe is a section `### NAME` below `## Recipes`. A row of its tables is | `file` | what to add | `text in it` |. A
comment <!-- recipe: trace REGEX --> says that every source file with a match is in a row; ` : except PREFIX` leaves a
folder out. A comment <!-- recipe: files N --> says how many files of source a change touches: a row that is for some
changes only begins with "if", and does not count.
"""
import re

from tree import ROOT, code, name, text, verdict

PAGE = "docs/contributing.md"
RECIPES = ["Element-wise op", "Structured op", "Kernel kind", "Pass", "Keras layer", "PyTorch op", "JAX primitive",
           "ONNX op", "StableHLO op", "Data source", "Flag of `mtc` or of both programs",
           "Flag of `mtrun`", "Device back end", "CPU architecture"]
ROW = re.compile(r"\| `([^`]+)` \| (.+) \| `([^`]+)` \|")
FILES = re.compile(r"<!-- recipe: files (\d+) -->")
BESIDE = ("docs/", "test/")  # pages and tests are no files of source
TRACE = re.compile(r"<!-- recipe: trace (.+?)(?: : except (\S+))? -->")

problems = []
sources = {name(p): text(p) for p in code("compiler", "dialects", "frontend", "python", "runtime", "tools")}
sections = re.split(r"^### ", text(ROOT / PAGE).split("\n## Recipes\n")[1], flags=re.M)[1:]
found = [section.splitlines()[0] for section in sections]
problems += [f"{PAGE}: expected a recipe '{recipe}', found none" for recipe in RECIPES if recipe not in found]

for title, section in zip(found, sections):
    where = f"{PAGE}, {title}"
    listed, always = set(), set()
    for line in section.splitlines():
        if not line.startswith("| ") or line == "| file | add | as in |":
            continue
        row = ROW.fullmatch(line)
        if not row:
            problems.append(f"{where}: expected | `file` | what to add | `text in it` |, found {line}")
            continue
        path, what, example = row.groups()
        listed.add(path)
        if not path.startswith(BESIDE) and not what.startswith("if "):
            always.add(path)
        if not (ROOT / path).is_file():
            problems.append(f"{where}: expected a file {path}, found none")
        elif example not in text(ROOT / path):
            problems.append(f"{where}: expected `{example}` in {path}, found none")
    for cost in FILES.findall(section):
        if len(always) != int(cost):
            problems.append(f"{where}: expected {cost} files of source, found {len(always)}")
    traces = TRACE.findall(section)
    if not traces:
        problems.append(f"{where}: expected <!-- recipe: trace REGEX -->, found none")
    for regex, left_out in traces:
        for path, content in sources.items():
            match = re.search(regex, content)
            if match and path not in listed and not (left_out and path.startswith(left_out)):
                problems.append(f"{where}: expected a row for {path}, which has `{match[0]}`, found none")
verdict(problems, f"{len(found)} recipes")
