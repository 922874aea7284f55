# SPDX-License-Identifier: Apache-2.0
# RUN: %python %s
"""95 of 100 source files have at most 400 lines; none has more than 800."""
from tree import code, name, text, verdict

lengths = sorted((len(text(p).splitlines()), name(p)) for p in code())
problems = [f"{n}: expected at most 800 lines, found {count}" for count, n in lengths if count > 800]
count, where = lengths[int(0.95 * (len(lengths) - 1))]
if count > 400:
    problems.append(f"expected at most 400 lines at the 95th percentile, found {count} ({where})")
    problems += [f"  {c} {n}" for c, n in lengths if c > 400]
verdict(problems, "file sizes")
