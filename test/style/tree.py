# SPDX-License-Identifier: Apache-2.0
"""What the style rules look at: the files of the repository, and how a rule reports."""
import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("MTC_BUILD", ROOT / "build" / "release"))
LLVM = pathlib.Path("/usr/lib/llvm-22/bin")
CODE = {".cpp", ".h", ".def", ".c", ".td", ".fbs", ".py", ".cmake", ".S"}


def files(*folders):
    """Tracked files and new ones that are not ignored, below `folders` (all: everything)."""
    git = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *folders]
    listed = subprocess.run(git, cwd=ROOT, capture_output=True, text=True) if shutil.which("git") else None
    if listed and listed.returncode == 0:
        paths = (ROOT / p for p in listed.stdout.split("\0") if p)
    else:  # an unpacked archive, or a machine without git
        paths = (p for f in folders or ["."] for p in (ROOT / f).rglob("*") if "build" not in p.relative_to(ROOT).parts)
    return sorted(p for p in set(paths) if p.is_file())


def is_script(path):
    with path.open("rb") as f:
        return f.read(2) == b"#!"


def code(*folders):
    """Source files: by suffix, CMakeLists.txt, and programs without a suffix."""
    return [p for p in files(*folders)
            if p.suffix in CODE or p.name == "CMakeLists.txt" or (p.suffix == "" and is_script(p))]


def text(path):
    return path.read_text(encoding="utf-8")


def name(path):
    return str(path.relative_to(ROOT))


def verdict(problems, what):
    """Prints the problems and ends the program."""
    for problem in problems:
        print(problem)
    print(f"{what}: {len(problems)} problem{'' if len(problems) == 1 else 's'}")
    sys.exit(1 if problems else 0)
