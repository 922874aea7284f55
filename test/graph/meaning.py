# SPDX-License-Identifier: Apache-2.0
# RUN: %python %s 0 40
"""Random models of the dialect graph compute what NumPy does, whatever their layouts become.

meaning.py FIRST COUNT: the models of these seeds; of one model the text is printed.
"""
import re
import subprocess
import sys

import numpy as np
from graphs import SAMPLES
from random_graphs import Model


class Wrong(Exception):
    """A model's text, and what is wrong."""


def lower(model):
    """The text in `mt`, the values that are put out, and why others are refused."""
    refused, reasons = set(), []
    for _ in range(2):
        text, outputs = model.text(refused)
        done = subprocess.run(["mt-opt", "-", "--graph-layout"], input=text, capture_output=True, text=True)
        if not done.returncode:
            return text, done.stdout, outputs, reasons
        lines = text.splitlines()
        found = re.findall(r"^<stdin>:(\d+):\d+: error: (.*)$", done.stderr, re.M)
        refused |= {lines[int(number) - 1].split(" = ")[0].strip() for number, _ in found}
        reasons += [reason for _, reason in found]
        if "error: expected a result" in done.stderr:  # the shapes in the text are right
            break
    raise Wrong(text, done.stderr)


def check(seed):
    model = Model(seed)
    model.build()
    text, lowered, outputs, reasons = lower(model)
    data = {**model.data, ("INPUT", "y"): np.zeros(SAMPLES)}
    header = [f"// {kind} {name} = {' '.join(repr(float(x)) for x in array)}" for (kind, name), array in data.items()]
    done = subprocess.run(["mt-interpret", "-", "--run=predict"], input="\n".join([*header, lowered]),
                          capture_output=True, text=True)
    if done.returncode:
        raise Wrong(text + lowered, done.stderr)
    results = {m[1]: np.array(m[2].split(), "f8") for m in re.finditer(r"^(\S+) \[.*?\] =(.*)$", done.stdout, re.M)}
    for value in outputs:
        expected, got = value.flat() * 1.0, results[value.name[1:]]
        if got.shape != expected.shape or not np.allclose(got, expected, rtol=1e-4, atol=1e-4):
            raise Wrong(text + lowered, f"{value.name}: expected {expected}, found {got}")
    return len(outputs), reasons


def main():
    first, count = map(int, sys.argv[1:3])
    values, reasons, failed = 0, [], []
    for seed in range(first, first + count):
        try:
            made, refused = check(seed)
        except Wrong as wrong:
            failed.append(seed)
            print(wrong.args[0] if count == 1 else "", f"seed {seed}: {wrong.args[1][-700:]}", sep="\n")
            continue
        values += made
        reasons += [re.sub(r"\[.*?\]", "[...]", reason) for reason in refused]
    print(f"{count - len(failed)} models, {values} values as NumPy has them")
    for reason in sorted(set(reasons)):
        print(f"{reasons.count(reason)} refused: {reason}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
