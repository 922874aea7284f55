# SPDX-License-Identifier: Apache-2.0
# RUN: %python %s
"""docs/import.md lists the ops of ONNX and StableHLO that frontend/ builds, and no others."""
import re

from tree import ROOT, files, text, verdict

built = {op for p in files("frontend/onnx/ops") for op in re.findall(r'\{"(\w+)", build', text(p))}
built |= set(re.findall(r'node\.op == "(\w+)"', text(ROOT / "frontend/onnx/OpTable.cpp")))  # of graphs inside of nodes
page = text(ROOT / "docs/import.md")
listed = page[page.index("## Ops"):page.index("All ops of a file")]
told = set(re.findall(r"\b[A-Z]\w+", re.sub(r"\([^)]*\)|\*\*[^*]*\*\*", "", listed))) - {"Ops"}
problems = [f"docs/import.md: expected {op} in the list of ops, found none" for op in sorted(built - told)]
problems += [f"docs/import.md: {op} is listed, and nothing builds it" for op in sorted(told - built)]

built = {op for p in files("frontend/stablehlo/ops") for op in re.findall(r'\{"(\w+)", build', text(p))}
listed = page[page.index("* **Functions**: abs"):page.index("**Loops and branches.**")]
told = set(re.findall(r"\b[a-z]\w+", re.sub(r"\([^)]*\)|\*\*[^*]*\*\*|func.call|custom_call of[^;]*", "", listed)))
problems += [f"docs/import.md: expected {op} in the list of ops, found none"
             for op in sorted(built - told - {"custom_call"})]
problems += [f"docs/import.md: {op} is listed, and nothing builds it" for op in sorted(told - built)]
verdict(problems, "ops of ONNX and StableHLO")
