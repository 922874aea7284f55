# SPDX-License-Identifier: Apache-2.0
"""peak.py PLAN: the bytes that mtc inspect says are alive at the peak of each program are the bound of its arena."""
import json
import re
import subprocess
import sys

text, facts = (subprocess.run(["mtc", "inspect", sys.argv[1], *more], check=True, capture_output=True, text=True).stdout
               for more in ([], ["--json"]))
found = {}
program = None
for line in text.splitlines():
    if line.startswith("program "):
        program = line.split()[1]
    elif peak := re.match(r" alive at the peak of a device with (\d+) shards?, phase \d+: (\d+) bytes", line):
        found[program] = [int(n) for n in peak.groups()]
checked = 0
for program in json.loads(facts)["programs"]:
    bounds = {v["shards"]: v["bound_bytes"] for v in program["variants"]}
    if program["name"] in found:
        shards, peak = found[program["name"]]
        assert bounds[shards] == peak, (program["name"], bounds, peak)
        checked += 1
assert checked >= 2 and "train_step" in found, found
