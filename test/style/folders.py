# SPDX-License-Identifier: Apache-2.0
# RUN: %python %s
"""docs/architecture.md says what each folder of source does, and names no folder that is not there."""
import re

from tree import ROOT, files, name, text, verdict

SOURCE = ("compiler", "dialects", "frontend", "runtime", "tools")
folders = {name(p.parent) for p in files(*SOURCE)}
folders |= {name(p).split("/")[0] for p in files() if "/" in name(p)} - {".ci", ".github"}
rows = re.findall(r"^\| (`[^|]*`) \|", text(ROOT / "docs/architecture.md"), re.M)
told = {folder for row in rows for folder in re.findall(r"`([\w/-]+)`", row)}
problems = [f"docs/architecture.md: expected a row on {f}, found none" for f in sorted(folders - told)]
problems += [f"docs/architecture.md: {f} is not there" for f in sorted(told) if not (ROOT / f).exists()]
verdict(problems, "folders")
