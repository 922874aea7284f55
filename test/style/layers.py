# SPDX-License-Identifier: Apache-2.0
# RUN: %python %s
"""Folders include only what they may know of. The two sides meet in runtime/abi and runtime/support alone."""
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
MEET = ("compiler", "dialects", "frontend", "tools/mtc", "tools/mtrun")  # of runtime/, they see abi and support
C_HEADERS = ("mt.h", "mtc.h", "mtrun.h", "kernel.h", "gpu_kernel.h")  # in runtime/abi: they include one another only
problems = []
for folder, prefixes in FORBIDDEN.items():
    for p in files(folder):
        if p.suffix not in {".h", ".cpp", ".c", ".td"}:
            continue
        for header in INCLUDE.findall(text(p)):
            # The declaration of what a file itself defines for the C interface of a stage stays in its own folder.
            if header.startswith(prefixes):
                problems.append(f"{name(p)}: {folder}/ must not include {header}")
for folder in MEET:
    for p in files(folder):
        if p.suffix in {".h", ".cpp", ".c"}:
            problems += [f"{name(p)}: expected nothing of runtime/ but abi/ and support/, found {h}"
                         for h in INCLUDE.findall(text(p))
                         if h.startswith("runtime/") and not h.startswith(("runtime/abi/", "runtime/support/"))]
for p in files("runtime/abi"):
    if p.name in C_HEADERS:
        problems += [f"{name(p)}: expected only C headers of runtime/abi/, found {h}"
                     for h in INCLUDE.findall(text(p)) if not h.startswith("std") and h not in C_HEADERS]
verdict(problems, "layers")
