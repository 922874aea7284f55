# SPDX-License-Identifier: Apache-2.0
# RUN: %python %s
"""The reader of plan files looks where the elements of every vector of 8-byte numbers lie: FlatBuffers 2.0 does not."""
import re

from tree import ROOT, text, verdict

reader = text(ROOT / "runtime/abi/plan_file.cpp")
problems, fields = [], 0
for table, body in re.findall(r"^table (\w+) \{(.*?)\}", text(ROOT / "runtime/abi/plan.fbs"), re.M | re.S):
    for field in re.findall(r"(\w+):\s*\[(?:long|ulong|double)\]", body):
        fields += 1
        name = table[0].lower() + table[1:] if table != "SignatureEntry" else "entry"
        if f"aligned({name}->{field}())" not in reader:
            problems.append(f"runtime/abi/plan_file.cpp: expected aligned({name}->{field}()) for {table}.{field}")
if not fields:
    problems.append("runtime/abi/plan.fbs: expected vectors of 8-byte numbers, found none")
verdict(problems, f"{fields} vectors of 8-byte numbers in plan.fbs")
