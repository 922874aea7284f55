# SPDX-License-Identifier: Apache-2.0
# RUN: %python %s
"""Folders include only what they may know of. The two sides meet in runtime/abi alone."""
import re

from tree import files, name, text, verdict

INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^">]+)[">]', re.M)
FORBIDDEN = {  # folder: prefixes that it must not include
    "runtime": ("mlir/", "mlir-c/", "llvm/", "llvm-c/", "compiler/", "dialects/", "frontend/", "tools/"),
    "dialects": ("compiler/", "frontend/", "tools/"),
    "frontend": ("compiler/", "tools/"),
    "compiler": ("tools/",),
    "tools/mtrun": ("mlir/", "llvm/", "compiler/", "dialects/", "frontend/"),
    "examples": ("mlir/", "llvm/", "compiler/", "dialects/", "frontend/"),
}
ABI_ONLY = ("compiler", "dialects", "frontend", "tools/mtc", "tools/mtrun")  # of runtime/, they see runtime/abi
problems = []
for folder, prefixes in FORBIDDEN.items():
    for p in files(folder):
        if p.suffix not in {".h", ".cpp", ".c", ".td"}:
            continue
        for header in INCLUDE.findall(text(p)):
            # The declaration of what a file itself defines for the C interface of a stage stays in its own folder.
            if header.startswith(prefixes):
                problems.append(f"{name(p)}: {folder}/ must not include {header}")
for folder in ABI_ONLY:
    for p in files(folder):
        if p.suffix in {".h", ".cpp", ".c"}:
            problems += [f"{name(p)}: expected nothing of runtime/ but runtime/abi/, found {h}"
                         for h in INCLUDE.findall(text(p)) if h.startswith("runtime/") and not h.startswith("runtime/abi/")]
verdict(problems, "layers")
