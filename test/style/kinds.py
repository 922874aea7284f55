# SPDX-License-Identifier: Apache-2.0
# RUN: %python %s
"""A kind of device is a row of a registry: nothing else asks for one by its name. The specification of plans describes
every kind of kernel."""
import re

from tree import ROOT, files, name, text, verdict

NAME = '"cuda"'
REGISTRIES = ("runtime/support/device_spec.h", "compiler/codegen/gpu/Gpu.h")  # of kinds of devices; of targets
FOLDER = "runtime/device/cuda/"  # the back end itself

problems = []
for p in files("compiler", "runtime", "tools"):
    if name(p) in REGISTRIES or name(p).startswith(FOLDER):
        continue
    for number, line in enumerate(text(p).splitlines(), 1):
        if NAME in line:
            problems.append(f"{name(p)}:{number}: expected no {NAME} outside {FOLDER} and {', '.join(REGISTRIES)}")
problems += [f"{r}: expected {NAME}, found none" for r in REGISTRIES if NAME not in text(ROOT / r)]

kinds = re.search(r"enum KernelKind .*?}", text(ROOT / "runtime/abi/plan.fbs"), re.S)[0]
table = re.search(r"^\*\*Kinds\*\*.*?\n\n(\|.*?)\n\n", text(ROOT / "docs/plan-format.md"), re.M | re.S)[1]
listed = re.findall(r"(\w+) = \d+", kinds)
described = re.findall(r"^\| ([A-Z]\w+) \|", table, re.M)
if not listed or listed != described:
    problems.append(f"expected the kernel kinds of plan.fbs in docs/plan-format.md, {listed}, found {described}")
verdict(problems, "kinds of devices and kernels")
