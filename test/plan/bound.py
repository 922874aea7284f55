# SPDX-License-Identifier: Apache-2.0
"""bound.py FILE: recomputes, from `mtc inspect --json` alone, how many bytes of each arena are alive at once, and fails where a plan
takes more than 1.01 times that, or where the bound that it reports is another."""
import json
import sys

ALIGNMENT = 64


def phases(program):
    """Steps between two barriers may run at the same time: they are one phase."""
    phase, after_reduce = 0, False
    for step in program["steps"]:
        reduce = "collective" in step
        phase += reduce or after_reduce or step["wait"] != "none"
        after_reduce = reduce
        yield phase


def alive(program, leaf_rows, variant, index):
    """(first phase, last phase, begin, end) of every range of the arena that holds a value."""
    of_step = list(phases(program))
    uses = [[] for _ in program["buffers"]]
    for phase, step in zip(of_step, program["steps"]):
        for segment in step.get("segments", []):
            for buffer in segment["buffers"]:
                uses[buffer].append(phase)
    for metric in program["metrics"]:
        for buffer in (metric["value"], metric["weight"]):
            uses[buffer].append(of_step[-1])
    for buffer, used in zip(program["buffers"], uses):
        if buffer["space"] == "arena" and used and "collective" not in buffer:
            begin = buffer["offsets"][index]
            size = buffer["fixed_bytes"] + buffer["row_bytes"] * variant["leaves"] * leaf_rows
            yield min(used), max(used), begin, begin + size
    # A bucket is one range: from its first root to the last reader of its sums, which one device finds in the roots' place.
    for number, collective in enumerate(program["collectives"]):
        used = [p for b, u in zip(program["buffers"], uses) if b.get("collective") == number for p in u] + [of_step[collective["step"]]]
        begin = collective["root_offsets"][index]
        yield min(used), max(used), begin, begin + collective["bytes"]


def most(ranges):
    """The most bytes covered in any phase; values that share a place count once."""
    result = 0
    for phase in {r[0] for r in ranges}:
        end = total = 0
        for _, _, first, last in sorted((r for r in ranges if r[0] <= phase <= r[1]), key=lambda r: r[2]):
            last = -(-last // ALIGNMENT) * ALIGNMENT
            total += max(0, last - max(first, end))
            end = max(end, last)
        result = max(result, total)
    return result


def main():
    with open(sys.argv[1]) as file:
        plan = json.load(file)
    problems = 0
    for program in plan["programs"]:
        for index, variant in enumerate(program["variants"]):
            bound = most(list(alive(program, plan["leaf_rows"], variant, index)))
            line = f"{program['name']}, {variant['leaves']} leaves: arena {variant['arena_bytes']}, bound {bound}, reported {variant['bound_bytes']}"
            good = variant["arena_bytes"] <= 1.01 * bound and abs(bound - variant["bound_bytes"]) <= 0.01 * bound
            problems += not good
            print(line if good else f"error: {line}")
    print(f"{problems} problems")
    sys.exit(1 if problems else 0)


main()
