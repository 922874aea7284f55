# SPDX-License-Identifier: Apache-2.0
"""Compares what runs count of memory with what the compiler promised.

    promise.py INSPECTED RUNS LIMIT [--shard-optimizer]
"""
import json
import sys

plan = json.load(open(sys.argv[1]))
promised = {entry["shards"]: entry["peak_bytes"] for entry in plan["devices"]}
divided = {entry["devices"]: entry["variables_bytes"] for entry in plan["sharded_optimizer"]}
if "--shard-optimizer" not in sys.argv:
    divided = {}
shards, scratch = max(promised), plan["scratch_bytes"]
assert 0 < promised[shards] <= int(sys.argv[3]), promised
assert scratch > 0


def shares(devices):
    """Shards of each device: the largest subtree is split, until there are enough."""
    parts = [shards]
    while len(parts) < devices:
        at = parts.index(max(parts))
        parts[at:at + 1] = [parts[at] // 2] * 2
    return parts


runs = [json.loads(line) for line in open(sys.argv[2])]
for run in runs:
    devices, threads = run["device_count"], run["threads_per_device"]
    most = sum(promised[shards] + (threads - 1) * scratch for shards in shares(devices))
    if divided:
        saved = plan["variables_bytes"] - divided[devices]
        assert saved > plan["variables_bytes"] * (devices - 1) / devices / 2, divided  # Adam has two slots of three
        most -= devices * saved
    # Results of all-reduces that a lone device does not touch, and constants, are promised and not taken.
    if not 0.9 * most <= run["peak_bytes"] <= most:
        sys.exit(f"{run['devices']}: expected at most {most} bytes, found {run['peak_bytes']}")
print(len(runs), "runs as promised")
