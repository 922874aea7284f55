# SPDX-License-Identifier: Apache-2.0
# RUN: %python %s
"""One version: what CMake, the C headers, Python and the packages say."""
import re

from tree import ROOT, text, verdict

PLACES = {
    "CMakeLists.txt": r"project\(mtc VERSION ([\d.]+)",
    "python/mtc/__init__.py": r'__version__ = "([\d.]+)"',
    "packaging/wheels/mtc/pyproject.toml": r'"mtc-runtime==([\d.]+)"',
    "packaging/deb/changelog": r"mtc \(([\d.]+)-",
    "packaging/docker/mtc.Dockerfile": r"-t mtc:([\d.]+)",
    "packaging/docker/mtrun.Dockerfile": r"-t mtrun:([\d.]+)",
}
header = text(ROOT / "runtime/abi/mt.h")
version = ".".join(re.search(rf"MT_VERSION_{part} (\d+)", header).group(1) for part in ("MAJOR", "MINOR", "PATCH"))
problems = []
for place, pattern in PLACES.items():
    found = re.search(pattern, text(ROOT / place))
    if not found or found.group(1) != version:
        problems.append(f"{place}: expected the version {version} of runtime/abi/mt.h, found "
                        f"{found.group(1) if found else 'none'}")
if f"## [{version}]" not in text(ROOT / "CHANGELOG.md"):
    problems.append(f"CHANGELOG.md: expected a section [{version}], found none")
verdict(problems, "version")
