# SPDX-License-Identifier: Apache-2.0
"""shares.py TEXT TRACE: what mtc inspect --trace printed adds up to a step, and its times are those of the trace."""
import json
import re
import sys

with open(sys.argv[1]) as file:
    text = file.read()
with open(sys.argv[2]) as file:
    events = json.load(file)["traceEvents"]
step = float(re.search(r": ([0-9.]+) us per step", text).group(1))
layers = text[text.index("  layer"):text.index("  kernel, the longest")]
rows = [(line.split("  ")[1].strip(), float(re.search(r"([0-9.]+) +[0-9.]+ %", line).group(1)))
        for line in layers.splitlines()[1:] if line.strip()]
assert abs(sum(us for _, us in rows) - step) <= 0.01 * step + len(rows) * 0.1, (rows, step)

steps = [e for e in events if e.get("cat") == "step"]
assert abs(sum(e["dur"] for e in steps) / len(steps) - step) <= 0.06, step
# A thread's mean of each layer.
for name, us in rows:
    if not name.startswith("("):
        spent = sum(e["dur"] for e in events if e.get("cat") == "kernel" and e["args"]["layer"] == name)
        assert abs(spent / len(steps) - us) <= 0.06, (name, us, spent / len(steps))
