# SPDX-License-Identifier: Apache-2.0
"""Removes each wait and each all-reduce of a plan in turn and runs plan-check on the rest."""
import re
import subprocess
import sys

lines = open(sys.argv[1]).read().split("\n")
removed, missed = 0, []
for number, line in enumerate(lines):
    changed = []
    if re.search(r"plan\.launch .*wait\s+(device|all)", line):
        changed.append(re.sub(r"(wait\s+)(device|all)", r"\1none", line))
        if re.search(r"wait\s+all", line):
            changed.append(re.sub(r"(wait\s+)all", r"\1device", line))
    if "plan.all_reduce" in line:
        changed.append("")
    for text in changed:
        removed += 1
        plan = "\n".join(lines[:number] + [text] + lines[number + 1:])
        run = subprocess.run(["mt-opt", "-", "--plan-check"], input=plan, capture_output=True, text=True)
        if run.returncode == 0 or not re.search("expected (a barrier|bytes)", run.stderr):
            missed.append((number + 1, line.strip(), run.stderr))
for miss in missed:
    print("not caught:", *miss)
print(f"{removed} orderings removed, {len(missed)} not caught")
