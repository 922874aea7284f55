# SPDX-License-Identifier: Apache-2.0
# RUN: %python %s
"""A pass is a record in Passes.td, a source file and a lit test, all three of the same name."""
import re

from tree import ROOT, files, name, text, verdict

RECORD = re.compile(r'^def\s+(\w+)\s*:\s*(?:\w*Pass)\s*<\s*"([\w-]+)"', re.M)
sources = {p.stem: p for p in files("compiler", "dialects", "frontend") if p.suffix == ".cpp"}
tests = {p.stem for p in files("test") if p.suffix in {".mlir", ".test"}}
records = [(p, *m.groups()) for p in files("compiler", "dialects") if p.suffix == ".td"
           for m in RECORD.finditer(text(p))]


def spellings(record, flag):
    """PartitionPass "mt-partition": Partition, partition, mt-partition, and the last two with underscores."""
    base = re.sub(r"Pass$", "", record)
    short = re.sub(r"^mtc?-", "", flag)
    dashed = re.sub(r"(?<!^)(?=[A-Z])", "-", base).lower()
    return {base, flag, short, dashed} | {s.replace("-", "_") for s in (flag, short, dashed)}


problems = []
if (ROOT / "compiler" / "Passes.td").exists() and not records:
    problems.append('compiler/Passes.td: expected records of the form def NamePass : Pass<"flag">, found none')
for where, record, flag in records:
    names = spellings(record, flag)
    if not names & set(sources):
        problems.append(f"{name(where)}: {record}: expected a source file named {min(names, key=len)}.cpp, found none")
    if not names & tests:
        problems.append(f"{name(where)}: {record}: expected a test named {flag}.mlir, found none")
verdict(problems, f"{len(records)} passes")
