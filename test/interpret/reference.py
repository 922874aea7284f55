# SPDX-License-Identifier: Apache-2.0
"""Runs models with mt-interpret, and draws the random numbers of docs/exactness.md in plain Python."""
import re
import subprocess


def run(model, programs, data, seed=0):
    """Variables and outputs by name, and the lists of each result's values, of a model in text."""
    lines = [f"// {kind} {name} = {' '.join(repr(float(x)) for x in values)}" for (kind, name), values in data.items()]
    done = subprocess.run(["mt-interpret", "-", f"--run={','.join(programs)}", f"--seed={seed}"],
                          input="\n".join([*lines, model]),
                          capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{model}\n{done.stderr}")
    tensors = {m[1]: [float(x) for x in m[2].split()] for m in re.finditer(r"^(\S+) \[.*?\] =(.*)$", done.stdout, re.M)}
    results = {}
    for m in re.finditer(r"^(\S+) = (\S+) weight (\S+)$", done.stdout, re.M):
        results.setdefault(m[1], []).append(float(m[2]))
    return tensors, results


def philox(counter, key):
    counter, key = list(counter), list(key)
    for _ in range(10):
        a, b = 0xD2511F53 * counter[0], 0xCD9E8D57 * counter[2]
        counter = [b >> 32 ^ counter[1] ^ key[0], b & 0xFFFFFFFF, a >> 32 ^ counter[3] ^ key[1], a & 0xFFFFFFFF]
        key = [(key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return counter


def uniform(seed, stream, step, element):
    hashed = 2166136261
    for byte in stream.encode():
        hashed = (hashed ^ byte) * 16777619 & 0xFFFFFFFF
    block = element // 4
    words = philox([block & 0xFFFFFFFF, block >> 32, step, hashed], [seed & 0xFFFFFFFF, seed >> 32])
    return (words[element % 4] >> 8) * 2.0**-24


def close(found, expected, what, tolerance=2e-5):
    for f, e in zip(found, expected, strict=True):
        if not abs(f - e) <= tolerance * max(1.0, abs(e)):
            raise SystemExit(f"{what}: expected {expected}, found {found}")
