# SPDX-License-Identifier: Apache-2.0
"""Compares what runs count of memory with what the compiler promised.

    promise.py INSPECTED RUNS LIMIT
"""
import json
import sys

plan = json.load(open(sys.argv[1]))
promised = {entry["leaves"]: entry["peak_bytes"] for entry in plan["devices"]}
replicas, scratch = max(promised), plan["scratch_bytes"]
assert 0 < promised[replicas] <= int(sys.argv[3]), promised
assert scratch > 0


def shares(devices):
    """Replicas of each device: the largest subtree is split, until there are enough."""
    parts = [replicas]
    while len(parts) < devices:
        at = parts.index(max(parts))
        parts[at:at + 1] = [parts[at] // 2] * 2
    return parts


runs = [json.loads(line) for line in open(sys.argv[2])]
for run in runs:
    devices, threads = run["device_count"], run["threads_per_device"]
    most = sum(promised[leaves] + (threads - 1) * scratch for leaves in shares(devices))
    # Results of all-reduces that a lone device does not touch, and constants, are promised and not taken.
    if not 0.9 * most <= run["peak_bytes"] <= most:
        sys.exit(f"{run['devices']}: expected at most {most} bytes, found {run['peak_bytes']}")
print(len(runs), "runs as promised")
