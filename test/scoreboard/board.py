#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The frameworks' own tests, through MTC: how many are right, refused and wrong.

    board.py                     the cases of sample.json; exit code 1 if one is worse than it says
    board.py --suite NAME        of one suite
    board.py --long              all cases; results go to DIR/SUITE.jsonl, and what is there is not run again
    board.py --long --write      then writes the table and the refusals of docs/coverage.md
    board.py --sample            makes sample.json anew of the results: cases that are right, and that are refused

A suite is a file of this folder with `cases()`, a list of names, and `run(name)`, a dict with "status" and "message":

    right       what the framework computes, forward and backward
    refused     an mtc.Error before anything was computed
    wrong       computed, and it differs
    error       another exception: an internal error
    crash, timeout
    na          the framework itself cannot do it, or it is no case of numbers

A case runs in another process, which is replaced after a crash, and when a case takes too long.
"""

import argparse
import collections
import hashlib
import json
import os
import pathlib
import random
import re
import select
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
PAGE = HERE.parents[1] / "docs" / "coverage.md"
SAMPLE = HERE / "sample.json"
SUITES = {"keras": "Keras: layers, losses, metrics, optimizers, regularizers, constraints",
          "jax": "JAX: harnesses of primitives, float32",
          "onnx": "ONNX: node tests",
          "opinfo": "PyTorch: OpInfo, float32 with gradients",
          "modules": "PyTorch: ModuleInfo",
          "optims": "PyTorch: OptimizerInfo",
          "random": "PyTorch: random modules, of this project"}
if os.environ.get("MTC_BUILD"):  # as the tests of the package have it
    os.environ["PYTHONPATH"] = str(HERE.parents[1] / "python")
    os.environ.setdefault("MTC_LIBRARY_PATH", os.path.join(os.environ["MTC_BUILD"], "lib"))
BAD = ("wrong", "error", "crash", "timeout")
ORDER = ("right", "refused", "na", *BAD)


class Worker:
    """A process that runs cases of a suite."""

    def __init__(self, suite):
        self.log = tempfile.TemporaryFile()
        down, up = os.pipe()
        self.process = subprocess.Popen([sys.executable, __file__, "--worker", str(up), "--suite", suite],
                                        stdin=subprocess.PIPE, stdout=self.log, stderr=self.log, pass_fds=[up])
        os.close(up)
        self.down, self.buffer = down, b""
        if self.line(600) is None:
            self.log.seek(0)
            text = self.log.read().decode(errors="replace")[-2000:]
            raise RuntimeError(f"the suite {suite} does not start:\n{text}")

    def line(self, seconds):
        """The next line; None if the process ended or takes longer."""
        until = time.monotonic() + seconds
        while b"\n" not in self.buffer:
            if not select.select([self.down], [], [], max(0, until - time.monotonic()))[0]:
                self.process.kill()
                self.process.wait()
                return None
            data = os.read(self.down, 1 << 20)
            if not data:
                return None
            self.buffer += data
        line, _, self.buffer = self.buffer.partition(b"\n")
        return line

    def run(self, case, seconds):
        try:
            self.process.stdin.write(json.dumps(case).encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass
        line = self.line(seconds)
        if line is not None:
            return json.loads(line)
        code = self.process.wait()
        if code == -signal.SIGKILL:
            return {"status": "timeout", "message": f"more than {seconds} s"}
        return {"status": "crash", "message": f"exit code {code}"}

    def stop(self):
        self.process.kill()
        self.process.wait()
        os.close(self.down)
        self.log.close()


def work(suite, up):
    """Runs the cases that come as lines."""
    import mtc

    module = __import__(f"suite_{suite}")
    with os.fdopen(up, "w") as out:
        print("ready", file=out, flush=True)
        for line in sys.stdin:
            try:
                result = module.run(json.loads(line))
            except Exception as error:
                result = of_error(error, mtc)
            print(json.dumps(result), file=out, flush=True)


def of_error(error, mtc):
    refused = isinstance(error, mtc.Error)
    return {"status": "refused" if refused else "error", "message": f"{'' if refused else type(error).__name__ + ': '}"
            f"{error}"[:1500]}


def run(suite, cases, seconds, done=None, file=None):
    """The results of cases by name. Those in `done` are not run again."""
    results, worker = dict(done or {}), None
    for case in cases:
        if case in results:
            continue
        worker = worker or Worker(suite)
        results[case] = worker.run(case, seconds)
        if results[case]["status"] in ("crash", "timeout"):
            worker = None
        if file:
            file.write(json.dumps({"case": case, **results[case]}) + "\n")
            file.flush()
    if worker:
        worker.stop()
    return {case: results[case] for case in cases}


def read(path):
    """The last result of each case."""
    lines = path.read_text().splitlines() if path.exists() else []
    return {record["case"]: record for record in map(json.loads, lines)}


def is_held_out(case):
    """A third of the cases: who lifts refusals does not look at them, so that they judge whether it was general."""
    return int(hashlib.sha256(case.encode()).hexdigest(), 16) % 3 == 0


def reason(message):
    """A refusal without what differs between cases."""
    lines = [line.strip() for line in message.splitlines() if line.strip() and not line.rstrip().endswith(":")]
    line = next((line for line in lines if "error: " in line), lines[0] if lines else message)
    line = line.rpartition("error: ")[2]
    line = re.sub(r"^\S+\.(py|mlir|keras|onnx)(:\d+)*:? ?", "", line)
    line = re.sub(r'"[^"]*"|\'[^\']*\'', "X", line)
    return " ".join(re.sub(r"\b\d+(\.\d+)?\b", "N", line).split())[:85]


def table(results):
    """Lines of a table in Markdown."""
    lines = ["| suite | cases | right | refused | wrong, error, crash | not a case |", "|---|---|---|---|---|---|"]
    for suite, found in results.items():
        count = collections.Counter(r["status"] for r in found.values())
        counted = len(found) - count["na"]
        bad = sum(count[kind] for kind in BAD)
        share = f" ({100 * count['right'] / counted:.0f} %)" if counted else ""
        lines.append(f"| {SUITES[suite]} | {counted} | {count['right']}{share} | {count['refused']} | {bad} | "
                     f"{count['na']} |")
    return lines


def page(results):
    """docs/coverage.md."""
    refusals = collections.Counter()
    for suite, found in results.items():
        refusals.update((suite, reason(r["message"])) for r in found.values() if r["status"] == "refused")
    begin, end = "<!-- table: made by test/scoreboard/board.py --long --write -->\n", "\n<!-- end -->\n"
    lines = [*table(results), "", "The ten most frequent refusals:", "", "| cases | suite | refusal |", "|---|---|---|"]
    lines += [f"| {n} | {suite} | {text.replace('|', '/')} |" for (suite, text), n in refusals.most_common(10)]
    text = PAGE.read_text()
    head, tail = text[:text.index(begin)], text[text.index(end):]
    PAGE.write_text(head + begin + "\n" + "\n".join(lines) + "\n" + tail)


def sample(results, most):
    """Cases of each suite for sample.json: four in five that are right."""
    chosen = {}
    for suite, found in results.items():
        by = {kind: sorted(c for c, r in found.items() if r["status"] == kind) for kind in ("right", "refused")}
        numbers = random.Random(suite)
        picked = {kind: numbers.sample(names, min(len(names), most * (4 if kind == "right" else 1) // 5))
                  for kind, names in by.items()}
        chosen[suite] = {case: kind for kind in picked for case in sorted(picked[kind])}
    SAMPLE.write_text(json.dumps(chosen, indent=1) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suite", choices=SUITES)
    parser.add_argument("--worker", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--only", default="", help="with --long: cases whose names contain this text")
    parser.add_argument("--part", default="0/1", help="with --long: K/N, each Nth case from the Kth")
    parser.add_argument("--results", type=pathlib.Path, default=pathlib.Path("scoreboard"), metavar="DIR")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--sample", action="store_true")
    parser.add_argument("--seconds", type=int, default=120, help="of a case")
    options = parser.parse_args()
    suites = [options.suite] if options.suite else list(SUITES)
    if options.worker is not None:
        return work(options.suite, options.worker)
    if options.sample:
        sample({suite: read(options.results / f"{suite}.jsonl") for suite in suites}, 10)
        return None
    expected = json.loads(SAMPLE.read_text()) if not options.long else {}
    results, failed = {}, []
    for suite in suites:
        if not options.long:
            results[suite] = run(suite, list(expected.get(suite, {})), options.seconds)
            continue
        options.results.mkdir(parents=True, exist_ok=True)
        path = options.results / f"{suite}.jsonl"
        k, n = map(int, options.part.split("/"))
        code = f"import json, suite_{suite} as s; print('CASES' + json.dumps(s.cases()))"
        listed = subprocess.run([sys.executable, "-c", code], cwd=HERE, stdout=subprocess.PIPE,
                                check=True).stdout.decode()
        cases = json.loads(listed.rpartition("CASES")[2])
        cases = [c for c in cases if options.only in c][k::n]
        with path.open("a") as file:
            run(suite, cases, options.seconds, read(path), file)
        results[suite] = {c: r for c, r in read(path).items() if c in set(cases)}
    for suite, found in results.items():
        for case, result in found.items():
            worse = expected.get(suite, {}).get(case) == "right" and result["status"] != "right"
            if worse or result["status"] in BAD:
                failed.append(f"{suite}: {case}: {result['status']}: {result.get('message', '')[:300]}")
    if options.write:
        page(results)
    print("\n".join([*table(results), *failed]))
    print(f"scoreboard: {len(failed)} failed")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
