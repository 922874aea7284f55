# SPDX-License-Identifier: Apache-2.0
"""Checks that a plan stores logits for a block of classes at a time: no buffer of a sample's logits of all classes in
train_step and eval_step, and one block at a time, with the sizes of the largest two blocks of each step.

    class-blocks.py PLAN.json BYTES BLOCK_BYTES     of a sample's logits, and of its largest block
"""
import json
import sys


def main():
    plan, whole, block = json.load(open(sys.argv[1])), int(sys.argv[2]), int(sys.argv[3])
    for program in plan["programs"]:
        if program["name"] not in ("train_step", "eval_step"):
            continue
        large = [b for b in program["buffers"] if b["space"] == "arena" and b["row_bytes"] > block // 2]
        if not large:
            sys.exit(f"expected blocks of logits in {program['name']}, found none")
        for buffer in large:
            if buffer["row_bytes"] > block:
                sys.exit(f"expected at most {block} of {whole} bytes a sample, found {buffer['row_bytes']}: "
                         f"{buffer['name']} of {program['name']}")
        for phase in range(max(b["last_phase"] for b in large) + 1):
            alive = {b["offsets"][-1] for b in large if b["first_phase"] <= phase <= b["last_phase"]}
            if len(alive) > 1:
                sys.exit(f"expected one block at a time, found {len(alive)} in phase {phase} of {program['name']}")
        print(f"{program['name']}: {len(large)} values of a block")


main()
