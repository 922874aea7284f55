# SPDX-License-Identifier: Apache-2.0
# RUN: %python %s
"""A test runs the commands of every page, and a block that it leaves out says why."""
import sys

from tree import ROOT, files, name, text, verdict

sys.path.insert(0, str(ROOT / "test" / "docs"))
from run import blocks, commands, is_command

problems = []
tests = "".join(text(p) for folder in ("test/docs", "test/guides") for p in files(folder) if p.suffix == ".test")
for page in [ROOT / "README.md", *(p for p in files("docs") if p.suffix == ".md")]:
    found = False
    for mark, reason, lines in blocks(text(page)):
        found |= bool(commands(lines))
        if mark == "skip" and not reason:
            problems.append(f"{name(page)}: expected a reason why `{lines[0]}` is not run, found none")
        if mark is None and not commands(lines) and any(is_command(line) for line in lines):
            problems.append(f"{name(page)}: expected commands alone, or each behind '$ ', found `{lines[0]}`")
    if found and f"%source/{name(page)}" not in tests:
        problems.append(f"{name(page)}: expected a test that runs its commands, found none")
verdict(problems, "commands of pages")
