# SPDX-License-Identifier: Apache-2.0
# RUN: %python %s
"""A kind of device is a row of a registry: nothing else asks for one by its name. Kinds of kernels have the same
numbers in the IR and in the plan."""
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

in_ir = re.search(r"def Mt_KernelKind .*?;\n", text(ROOT / "dialects/mt/MtBase.td"), re.S)[0]
in_plan = re.search(r"enum KernelKind .*?}", text(ROOT / "runtime/abi/plan.fbs"), re.S)[0]
ours = dict(re.findall(r'I32EnumAttrCase<"(\w+)", (\d+)>', in_ir))
theirs = {re.sub(r"(?<!^)([A-Z])", r"_\1", n).lower(): value for n, value in re.findall(r"(\w+) = (\d+)", in_plan)}
if not ours or ours != theirs:
    problems.append(f"expected the kernel kinds of MtBase.td in plan.fbs, {ours}, found {theirs}")
verdict(problems, "kinds of devices and kernels")
