# SPDX-License-Identifier: Apache-2.0
# REQUIRES: keras
# RUN: %python %s
"""C++ is formatted by the clang-format of test/python/requirements.txt.

`test/style/format.py --write` formats all files.
"""
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from tree import BUILD, files, name, verdict

FORMATTER = BUILD.parent / "keras-venv/bin/clang-format"
FILES_OF_A_PROCESS = 100

sources = [p for p in files() if p.suffix in {".cpp", ".h"}]
how = ["-i"] if "--write" in sys.argv else ["--dry-run", "-Werror"]


def unformatted(part):
    done = subprocess.run([FORMATTER, *how, *part], capture_output=True, text=True, check=False)
    lines = {line.partition(":")[0] for line in done.stderr.splitlines() if "[-Wclang-format-violations]" in line}
    return [p for p in part if str(p) in lines] if done.returncode == 0 or lines else part


parts = [sources[i:i + FILES_OF_A_PROCESS] for i in range(0, len(sources), FILES_OF_A_PROCESS)]
with ThreadPoolExecutor(2) as pool:
    problems = [f"{name(p)}: expected the format of test/style/format.py --write, found another"
                for found in pool.map(unformatted, parts) for p in found]
verdict(problems, f"{len(sources)} files")
