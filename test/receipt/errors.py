# SPDX-License-Identifier: Apache-2.0
"""errors.py DATA: mtrun verify of receipts that are damaged, hostile, or of another run. The folder has m.mtp,
other.mtp and r.mtr."""
import copy
import pathlib
import subprocess
import sys

import receipts

DATA = sys.argv[1]
good = pathlib.Path("r.mtr").read_text()
lines = good.splitlines(keepends=True)
failures = []


def verify(expected, *words, text=None, code=1, plan="m.mtp", data=DATA):
    if text is not None:
        pathlib.Path("bad.mtr").write_text(text) if isinstance(text, str) else pathlib.Path("bad.mtr").write_bytes(text)
    done = subprocess.run(["mtrun", "verify", "r.mtr" if text is None else "bad.mtr", "--plan", plan, "--data", data,
                           "--devices", "cpu:1", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    errors = [line for line in done.stderr.splitlines() if line.startswith("mtrun: error: ")]
    if done.returncode != code or len(errors) != 1 or expected not in errors[0]:
        failures.append(f"{words}: expected {code}, {expected}; found {done.returncode}, {done.stdout}{done.stderr}")


def forged(change):
    changed = copy.deepcopy(receipts.read("r.mtr"))
    change(changed)
    receipts.write("forged.mtr", changed)
    return pathlib.Path("forged.mtr").read_text()


verify("expected a newline at its end, found the end of the file; the receipt is cut", text=good[:-1])
verify("line 4: expected a newline at its end", text="".join(lines[:3]) + lines[3][:40])
verify("expected a first line and the record of step 0, found 0 lines", text="")
verify("expected a first line and the record of step 0, found 1 line", text=lines[0])
verify("line 3: expected the SHA-256 of the line before", text=lines[0] + lines[1] + lines[3] + lines[2])
verify("line 4: expected the SHA-256 of the line before", text=good.replace('"position":3', '"position":4', 1))
verify("expected an object with sorted members and without blanks", text=good.replace(":", ": ", 1))
verify("line 1: expected at most 8 levels of brackets, found more", text="[" * 100000 + "\n")
verify("line 1: expected at most 16777216 bytes, found 20000000", text="1" * 20000000 + "\n")
verify("line 1: ", text=b"\xff\xfe\n")
verify("line 1: ", text="{}\n")
verify("expected a receipt of version 1, found version 2", text=forged(lambda l: l[0].update(version=2)))
verify('found a member "more"', text=forged(lambda l: l[2].update(more=1)))
verify("expected the record of step 3, found one of step 6", text=forged(lambda l: l.pop(2)))
verify("expected no line after the end of the run, found one", text=forged(lambda l: l.append(dict(l[-1]))))
verify("expected a number of at least 1", text=forged(lambda l: l[0].update(every=0)))
verify("expected a number of at least 1", text=forged(lambda l: l[0].update(every=-3)))
verify("line 1: ", text=forged(lambda l: l[0].update(every=10 ** 30)))
verify("expected 64 hexadecimal digits", text=forged(lambda l: l[2].update(variables="00")))
verify('expected options of this version, found "speed"', text=forged(lambda l: l[0]["run"].update(speed=3)))
verify('for "plateau_patience", found "x"', text=forged(lambda l: l[0]["run"].update(plateau_patience="x")))
verify("class: expected \"cuda", text=forged(lambda l: l[0].update({"class": "cuda:sm_90"})))
verify("the data of the steps since the record before", text=forged(lambda l: l[3].update(rows="0" * 64)), code=10)
verify("metrics.loss: expected", text=forged(lambda l: l[3]["metrics"].update(loss="0x1p+0")), code=10)
verify("made by another run: data.train.batch: expected 16, found 32", plan="other.mtp")
verify("data.train.content: expected", data=DATA.replace("0:99", "1:100"))
verify("made by another run: data.train.", data=DATA.replace("0:99", "0:98"))
verify("expected a window inside steps 0 to 14, found steps 3 to 15", "--window", "3:15")
verify("--window: expected two steps A:B with A below B, found 3", "--window", "3")
verify("expected checkpoints in none, found none", "--checkpoints", "none")
if failures:
    sys.exit("\n".join(failures))
print("each is one line")
