# SPDX-License-Identifier: Apache-2.0
# RUN: %python %s
"""An enumeration that stands in several places, as an attribute of a dialect, in a plan and in the C API, has the same
cases with the same numbers in each."""
import re

from tree import ROOT, files, name, text, verdict

PLAN = "runtime/abi/plan.fbs"
# Enumerations of plan.fbs that no dialect has, with the reason.
PLAN_ALONE = {"DType": "MLIR's element types", "KernelKind": "the dialect's is made from it by the build",
              "PieceKind": "the writer of plans makes it"}
# Enumerations of the C API that are one of plan.fbs under another name.
C_NAMES = {"mt_dtype": "DType", "mtrun_role": "Role"}


def plain(case):
    """A case's letters and digits alone: RootMean, root_mean and ROOT_MEAN are one."""
    return re.sub(r"\W|_", "", case).lower()


def of_plan():
    cases = r"(\w+) = (\d+)"
    return {match[1]: {plain(c): int(n) for c, n in re.findall(cases, match[2])}
            for match in re.finditer(r"^enum (\w+) : \w+ {(.*?)}", text(ROOT / PLAN), re.M | re.S)}


def of_dialects():
    """(file, name of the enumeration, its cases) of every definition."""
    for path in files("dialects"):
        if path.suffix == ".td":
            # One whose cases are a list of another file (KernelKind) does not match.
            for match in re.finditer(r"^def \w+?_(\w+)\s*:\s*\w+_I32Enum<((?:(?!^def ).)*?)\]>;", text(path),
                                     re.M | re.S):
                yield name(path), match[1], {plain(c): int(n) for c, n in
                                             re.findall(r'I32EnumAttrCase<"(\w+)", (\d+)>', match[2])}


def of_headers():
    for path in files("runtime", "compiler"):
        if path.suffix == ".h":
            for match in re.finditer(r"^typedef enum (\w+) {(.*?)} \1;", text(path), re.M | re.S):
                cases = re.findall(r"\b(MT\w+) = (\d+)", match[2])
                yield name(path), match[1], cases


plan, seen, problems = of_plan(), set(), []
first = {}
for place, enumeration, cases in of_dialects():
    other, other_place = (plan[enumeration], PLAN) if enumeration in plan else first.get(enumeration, (cases, place))
    first.setdefault(enumeration, (cases, place))
    seen.add(enumeration)
    if cases != other:
        problems.append(f"{place}: {enumeration}: expected {other} as in {other_place}, found {cases}")
for enumeration in plan:
    if (enumeration in seen) == (enumeration in PLAN_ALONE):
        problems.append(f"{PLAN}: {enumeration}: expected it either in a dialect or in the list of this test")
for place, enumeration, cases in of_headers():
    if enumeration in C_NAMES:
        other = plan[C_NAMES.pop(enumeration)]
        found = {plain(re.sub("^MT(RUN)?_", "", case)): int(number) for case, number in cases}
        if found != other:
            problems.append(f"{place}: {enumeration}: expected {other} as in {PLAN}, found {found}")
problems += [f"expected the C enumeration {c}, found none" for c in C_NAMES]
verdict(problems, "enumerations that stand in several places")
