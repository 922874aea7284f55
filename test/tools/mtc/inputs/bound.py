# SPDX-License-Identifier: Apache-2.0
"""Computes the liveness bound of every program and variant from `mtc inspect --json` and compares it with the plan's."""
import json
import sys

plan = json.load(open(sys.argv[1]))
problems = []


def up64(size):
    return (size + 63) // 64 * 64


def bound(program, variant, rows):
    worst = 0
    for phase in {step["phase"] for step in program["steps"]}:
        alive = [b for b in program["buffers"]
                 if b["space"] == "arena" and b.get("first_phase", phase + 1) <= phase <= b["last_phase"]]
        places = {(b["offsets"][variant], up64(b["fixed_bytes"] + b["row_bytes"] * rows))
                  for b in alive if "collective" not in b}
        buckets = {b["collective"] for b in alive if "collective" in b}
        worst = max(worst, sum(size for _, size in places) +
                    sum(up64(program["collectives"][c]["bytes"]) for c in buckets))
    return worst


for program in plan["programs"]:
    for i, variant in enumerate(program["variants"]):
        expected = bound(program, i, plan["leaf_rows"] * variant["leaves"])
        where = f"{program['name']}, {variant['leaves']} leaves"
        if variant["bound_bytes"] != expected:
            problems.append(f"{where}: expected a bound of {expected}, found {variant['bound_bytes']}")
        if variant["arena_bytes"] > 1.01 * expected:
            problems.append(f"{where}: expected at most 1.01 x {expected} bytes, found {variant['arena_bytes']}")
for device in plan["devices"]:
    if device["peak_bytes"] > 1.01 * device["bound_bytes"]:
        problems.append(f"{device['leaves']} leaves: expected at most 1.01 x {device['bound_bytes']}, found {device['peak_bytes']}")
print("\n".join(problems))
sys.exit(1 if problems else 0)
