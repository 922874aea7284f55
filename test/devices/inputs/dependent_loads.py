# SPDX-License-Identifier: Apache-2.0
"""How many loads a block of each kernel of a plan waits for, one behind the other, before it can load the first element
of a buffer: by the plan's PTX, line by line. A load whose address another load has brought waits for that one, and so
does what stands behind a branch that a loaded value decides. The most of any kernel is printed, with its kernels.

    dependent_loads.py PLAN
"""
import collections
import pathlib
import re
import sys


def texts(plan):
    """Each kernel's name and instructions."""
    begin = plan.index(b".version")
    text = plan[begin:plan.index(b"\0", begin)].decode()
    for kernel in re.split(r"\.visible \.entry ", text)[1:]:
        yield kernel.split("(")[0], kernel[kernel.index("{"):].splitlines()


def loads_before_data(lines):
    """None: the kernel loads no element."""
    waits, pointers, branch = collections.Counter(), set(), 0  # by register; registers that have a pointer to a buffer
    for line in lines:
        registers = re.findall(r"%[a-z]+\d+", line)
        if match := re.match(r"\s*@!?(%p\d+) bra", line):
            branch = max(branch, waits[match[1]])
        elif re.match(r"\s*(ld|cp\.async)\S*\.global", line):
            address = registers[-1] if "cp.async" not in line else re.findall(r"\[(%rd\d+)", line)[-1]
            after = max(waits[address], branch)
            if address in pointers:
                return after
            for loaded in re.findall(r"%[a-z]+\d+", line.split("[")[0]):
                waits[loaded] = after + 1
                pointers.add(loaded)
        elif registers and not re.match(r"\s*(@\S+\s+)?st\.", line):
            waits[registers[0]] = max((waits[each] for each in registers[1:]), default=0)
            if pointers.intersection(registers[1:]):
                pointers.add(registers[0])
    return None


def main():
    by_count = collections.defaultdict(list)
    for name, lines in texts(pathlib.Path(sys.argv[1]).read_bytes()):
        by_count[loads_before_data(lines)].append(name)
    by_count.pop(None, None)
    most = max(by_count)
    print(f"kernels: {sum(map(len, by_count.values()))}\nmost: {most}: {' '.join(by_count[most])}")


main()
