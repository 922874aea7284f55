# SPDX-License-Identifier: Apache-2.0
"""The liveness bound of each arena, computed anew from the steps that `mtc inspect --json` prints: liveness.py
PLAN.json

No place for temporaries can be smaller than what is alive at once. Steps between two waits may run at the same time, so
they are one phase; a buffer is alive from the phase that first names it to the one that last does. A bucket's partials
lie side by side and are the results where there is one device, so they are alive from the first partial sum's phase to
the last reader of a result. A result that was written over its operand is one place with it. Places are multiples of 64
bytes.
"""
import json
import sys

ALIGNMENT = 64
MOST = 1.01


def phases(steps):
    found, phase, after_reduce = [], 0, False
    for step in steps:
        reduce = "collective" in step
        if reduce or after_reduce or step["wait"] not in ("none", "tail"):
            phase += 1
        after_reduce = reduce
        found.append(phase)
    return found


def uses(program):
    """For each buffer, the steps that name it."""
    found = [[] for _ in program["buffers"]]
    for number, step in enumerate(program["steps"]):
        for segment in step.get("segments", []):
            for buffer in segment["buffers"]:
                found[buffer].append(number)
    return found


def members(program, used, collective):
    """The partials of a bucket (arena) and the buffers of its results (shared)."""
    begin, size = collective["partial_offsets"], collective["bytes"]
    partials, taken = [], []
    by_last_use = sorted((b for b in range(len(used)) if used[b]), key=lambda b: -used[b][0])
    for b in by_last_use:
        buffer = program["buffers"][b]
        if buffer["space"] != "arena" or buffer["row_bytes"] or used[b][0] > collective["step"]:
            continue
        place = buffer["offsets"][0] - begin[0]
        inside = all(o - r == place for o,
                     r in zip(buffer["offsets"], begin)) and 0 <= place <= size - buffer["fixed_bytes"]
        if inside and all(place >= end or place + buffer["fixed_bytes"] <= start for start, end in taken):
            partials.append(b)
            taken.append((place, place + buffer["fixed_bytes"]))
    results = [b for b, buffer in enumerate(program["buffers"]) if buffer["space"] == "shared"
               and 0 <= buffer["offsets"][0] - collective["result_offset"] <= size - buffer["fixed_bytes"]]
    return partials, results


def tenants(program, variant, rows):
    """(bytes, first phase, last phase) of everything in the arena."""
    phase, used, found, in_bucket = phases(program["steps"]), uses(program), [], set()
    metrics = {m[k] for m in program["metrics"] for k in ("value", "weight")}
    for collective in program["collectives"]:
        partials, results = members(program, used, collective)
        in_bucket.update(partials)
        alive = [phase[s] for b in partials + results for s in used[b]] + [phase[collective["step"]]]
        if metrics & set(results):
            alive.append(phase[-1])
        found.append([collective["bytes"], min(alive), max(alive), None])
    for b, buffer in enumerate(program["buffers"]):
        if buffer["space"] != "arena" or b in in_bucket or not used[b]:
            continue
        size = buffer["fixed_bytes"] + buffer["row_bytes"] * rows
        found.append([size, phase[used[b][0]], phase[used[b][-1]], tuple(buffer["offsets"])])
    # Written in place: the same offset in every variant, the same size, alive in a common phase.
    found.sort(key=lambda t: t[1])
    merged = []
    for tenant in found:
        same = next((m for m in merged if tenant[3] is not None and m[3] == tenant[3] and m[0] == tenant[0]
                     and tenant[1] <= m[2]), None)
        if same:
            same[2] = max(same[2], tenant[2])
        else:
            merged.append(tenant)
    return [(-(-size // ALIGNMENT) * ALIGNMENT, first, last) for size, first, last, _ in merged]


plan = json.load(open(sys.argv[1]))
checked, problems = 0, []
for program in plan["programs"]:
    for index, variant in enumerate(program["variants"]):
        alive = tenants(program, index, variant["shards"] * plan["shard_rows"])
        last = max((t[2] for t in alive), default=-1)
        bound = max((sum(size for size, first, end in alive if first <= p <= end) for p in range(last + 1)), default=0)
        arena = variant["arena_bytes"]
        place = f"{program['name']}, {variant['shards']} shards"
        if variant["bound_bytes"] != bound:
            problems.append(f"{place}: expected a bound of {bound} bytes, found {variant['bound_bytes']}")
        if not bound <= arena <= MOST * bound:
            problems.append(f"{place}: expected an arena of {bound} to {int(MOST * bound)} bytes, found {arena}")
        checked += 1
for share in plan["devices"]:
    if share["peak_bytes"] > MOST * share["bound_bytes"]:
        problems.append(f"{share['shards']} shards: expected a peak of at most {MOST} times {share['bound_bytes']}, "
                        f"found {share['peak_bytes']}")
print("\n".join(problems) or f"{checked} arenas within {MOST} of their bounds")
sys.exit(1 if problems or not checked else 0)
