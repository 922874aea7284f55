# SPDX-License-Identifier: Apache-2.0
"""Damages a plan in every part and runs a command on each: damage.py PLAN COMMAND... with @ for the damaged file.

A byte is flipped in each field of the header, all over the tables, and in each page after them (sections and what pads
them); the file is cut in each part, and made longer. Every run must end with exit code 3 and a message, and never with
a signal.
"""
import pathlib
import struct
import subprocess
import sys

good = pathlib.Path(sys.argv[1]).read_bytes()
damaged = pathlib.Path(sys.argv[1] + ".damaged")
tables_offset, tables_size = struct.unpack_from("<QQ", good, 24)
tables_end = tables_offset + tables_size


def flip(place):
    return good[:place] + bytes([good[place] ^ 0x55]) + good[place + 1:]


def spread(begin, end, count):
    return sorted({begin + (end - begin - 1) * i // (count - 1) for i in range(count)})


cases = {f"byte {p} of the header flipped": flip(p) for p in (0, 8, 12, 16, 24, 32, 40, 48, 56, 63)}
cases |= {f"byte {p} of the tables flipped": flip(p) for p in spread(tables_offset, tables_end, 24)}
cases |= {f"byte {p} after the tables flipped": flip(p) for p in [tables_end, *spread(tables_end, len(good), 24)]}
cases |= {f"cut to {n} bytes": good[:n] for n in [0, 1, 63, 64, tables_end, len(good) - 1,
                                                  *spread(64, len(good) - 1, 8)]}
cases["one byte longer"] = good + b"\0"
cases["version 14"] = good[:8] + struct.pack("<I", 14) + good[12:]
problems = 0
for what, data in cases.items():
    damaged.write_bytes(data)
    command = [str(damaged) if argument == "@" else argument for argument in sys.argv[2:]]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    said = [line for line in done.stdout.splitlines() if "error: " in line]
    version = "expected plan format version 8 to 13, found version 14"
    if done.returncode != 3 or not said or (what == "version 14" and version not in done.stdout):
        print(f"{what}: expected exit code 3 and a message, found {done.returncode}: {done.stdout}")
        problems += 1
damaged.unlink()
print(f"{len(cases)} cases, {problems} problems")
sys.exit(1 if problems else 0)
