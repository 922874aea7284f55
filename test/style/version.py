# SPDX-License-Identifier: Apache-2.0
# RUN: %python %s
"""The version stands in runtime/abi/mt.h alone, and CHANGELOG.md has a section for it."""
import re
import sys

from tree import ROOT, code, files, name, text, verdict

sys.path.insert(0, str(ROOT / "python"))
from mtc import _headers  # noqa: E402

version = _headers.version()
ELSEWHERE = {"runtime/abi/mt.h"}  # in the comment that says what such a text is like
problems = []
others = [p for p in files("packaging", "docs") if p.suffix in {".md", ".toml", ".in", ".Dockerfile"}]
for path in [*code(), *others]:
    if name(path) not in ELSEWHERE and re.search(rf"(?<![\d.]){re.escape(version)}(?![\d.])", text(path)):
        problems.append(f"{name(path)}: expected no version, found {version}, which runtime/abi/mt.h says")
if f"## [{version}]" not in text(ROOT / "CHANGELOG.md"):
    problems.append(f"CHANGELOG.md: expected a section [{version}], found none")
verdict(problems, "version")
