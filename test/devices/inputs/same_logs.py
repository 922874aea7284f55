# SPDX-License-Identifier: Apache-2.0
"""same_logs.py A B: two logs of a run have as many lines, and every loss in one is within 1e-5 of the other's."""
import re
import sys

first, second = ([re.findall(r'"(\w+)": ([-\d.e]+)', line) for line in open(path)] for path in sys.argv[1:])
assert first and len(first) == len(second), (len(first), len(second))
for a, b in zip(first, second):
    for (name, x), (other, y) in zip(a, b):
        close = name.startswith("seconds") or abs(float(x) - float(y)) <= 1e-5 * abs(float(x)) + 1e-7
        assert name == other and close, (a, b)
