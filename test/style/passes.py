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
# docs/ir.md lists the passes of stages in the order of Pipeline.cpp.
flags = {re.sub(r"Pass$", "", record): flag for _, record, flag in records} | {"CSE": "cse"}
built = [flags.get(re.sub(r"Pass$", "", made), made)
         for made in re.findall(r"addPass\(create(\w+)\(", text(ROOT / "compiler" / "Pipeline.cpp"))]
page = text(ROOT / "docs" / "ir.md")
for table in re.findall(r"runs these passes, in this order:\n\n\|.*\n\|.*\n((?:\|.*\n)+)", page):
    listed = re.findall(r"^\| `([\w-]+)` \|", table, re.M)
    first = built.index(listed[0]) if listed[0] in built else 0
    if listed != built[first:first + len(listed)]:
        problems.append(f"docs/ir.md: expected passes in the order {', '.join(built[first:first + len(listed)])}, "
                        f"found {', '.join(listed)}")
verdict(problems, f"{len(records)} passes")
