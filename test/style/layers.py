# SPDX-License-Identifier: Apache-2.0
# RUN: %python %s
"""Folders include only what they may know of. The two sides meet in runtime/abi and runtime/support alone."""
import re

from tree import ROOT, files, name, text, verdict

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
C_HEADERS = ("mt.h", "mtc.h", "mtrun.h", "mtrun_data.h", "mtrun_loop.h", "mtrun_plan.h", "mtrun_receipt.h",
             "mtrun_session.h", "mtrun_trace.h", "kernel.h",
             "gpu_kernel.h")  # in runtime/abi: they include one another only
ORDER = [("abi", "support"), ("plan",), ("device",), ("session",), ("data", "trace"), ("checkpoint",), ("receipt",),
         ("loop",), ("api",)]  # of runtime/: each includes of itself and of what is before it
LEVEL = {folder: level for level, folders in enumerate(ORDER) for folder in folders}
BACKWARD = {}  # file: (header, why it may)
CALL = re.compile(r"\b(mtrun_[a-z_]+)\(")
PLUG_INS = ("mtrun_images_", "mtrun_cuda_", "mtrun_mpi_")  # the C interfaces of libraries that the runtime opens itself
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
for p in files("runtime"):
    if p.suffix not in {".h", ".cpp"} or p.parent == ROOT / "runtime":
        continue
    folder = p.relative_to(ROOT / "runtime").parts[0]
    for header in INCLUDE.findall(text(p)):
        parts = header.split("/")
        level = LEVEL.get(parts[1], 0) if parts[0] == "runtime" else 0
        allowed = level < LEVEL[folder] or parts[:2] == ["runtime", folder] or level == LEVEL[folder] == 0
        if not allowed and BACKWARD.get(name(p), ("",))[0] != header:
            problems.append(f"{name(p)}: expected nothing of a later folder than runtime/{folder}/, found {header}")
    # The C API is the last layer: nobody inside calls it.
    if folder not in ("abi", "api"):
        problems += [f"{name(p)}: expected C++ behind the C API, found a call or a definition of {call}"
                     for call in CALL.findall(text(p)) if not call.startswith(PLUG_INS)]
problems += [f"{name(p)}: expected a folder of runtime/, found a file beside them"
             for p in files("runtime") if p.parent == ROOT / "runtime" and p.name != "CMakeLists.txt"]
verdict(problems, "layers")
