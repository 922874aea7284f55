# SPDX-License-Identifier: Apache-2.0
# RUN: %python %s
"""The C headers compile as strict C99 and as C++, each on its own; mtrun.hpp as C++."""
import subprocess

from tree import ROOT, name, verdict

LANGUAGES = [["clang-22", "-xc", "-std=c99"], ["clang++-22", "-xc++", "-std=c++20"]]
problems = []
for header in sorted(ROOT.glob("runtime/abi/mt*.h*")) + [ROOT / "runtime/abi/kernel.h"]:
    for language in LANGUAGES[header.suffix == ".hpp":]:
        done = subprocess.run([*language, "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only", "-I", ROOT,
                               "-"],
                              input=f'#include "{name(header)}"\n', capture_output=True, text=True)
        if done.returncode:
            problems.append(f"{name(header)}: {' '.join(language)}: {done.stderr.strip()}")
verdict(problems, "headers")
