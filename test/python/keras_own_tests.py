# SPDX-License-Identifier: Apache-2.0
"""Keras' own tests of training and of callbacks, run with `mtc.keras.install()`: how many go through MTC.

    python keras_own_tests.py [-k EXPRESSION] [FILE...]

FILE: below keras/src of the installed Keras, "trainers/trainer_test.py" and "callbacks/*_test.py" without one. A test
is "through MTC" if it passed and every call that it made of a method of `keras.Model` that MTC takes over ran there,
and "in Keras" if one did not. "no call": it made none. What failed is run again without MTC. The exit code is 1 if a
test failed that passes without MTC.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import conftest

FILES = ["trainers/trainer_test.py", "callbacks/*_test.py"]
METHODS = ["fit", "evaluate", "predict", "train_on_batch", "test_on_batch", "predict_on_batch"]
COLUMNS = ["through MTC", "in Keras", "no call", "failed", "failed without MTC too", "expected", "skipped"]
# What holds of Keras' own machinery alone, by the end of a test's name.
EXPECTED = {
    "::test_retracing": "it counts how often train_step is traced: the check does so for each size of batch",
}


class Watch:
    """A plugin of pytest: for each test the outcome, its calls, those that ran in Keras, and why."""

    def __init__(self):
        self.tests = collections.defaultdict(lambda: {"calls": 0, "in_keras": 0, "reasons": [], "outcome": "passed"})
        self.now = None

    def counted(self, method, what):
        def call(*arguments, **keywords):
            if self.now is not None:
                self.tests[self.now][what] += 1
            return method(*arguments, **keywords)

        call.__wrapped__ = method  # whose signature is Keras'
        return call

    def install(self):
        """Counts calls of the methods, and of Keras' own ones under MTC's."""
        import keras
        import mtc.keras

        for name in METHODS:
            setattr(keras.Model, name, self.counted(getattr(keras.Model, name), "in_keras"))
        mtc.keras.install(devices="cpu:1", cpu="native")
        for name in METHODS:
            setattr(keras.Model, name, self.counted(getattr(keras.Model, name), "calls"))

    def pytest_runtest_logstart(self, nodeid):
        self.now = nodeid

    def pytest_warning_recorded(self, warning_message, nodeid):
        if warning_message.category.__name__ == "FallbackWarning":
            self.tests[nodeid]["reasons"].append(str(warning_message.message))

    def pytest_collectreport(self, report):
        if report.failed:  # a file that cannot be imported
            self.pytest_runtest_logreport(report)

    def pytest_runtest_logreport(self, report):
        test = self.tests[report.nodeid]
        if report.outcome != "passed":
            test["outcome"] = report.outcome
        if report.failed:
            crash = getattr(report.longrepr, "reprcrash", None)
            test["error"] = (crash.message if crash else str(report.longrepr)).strip().splitlines()[-1]


def inside(options):
    """In a process of its own, in an empty folder: runs pytest and writes what the plugin saw."""
    import pytest

    watch = Watch()
    if options.installed:
        watch.install()
    arguments = ["-q", "-p", "no:cacheprovider", "-c", os.devnull, "--rootdir", str(options.source), "-W", "ignore",
                 "--continue-on-collection-errors", "-W", "always::mtc.FallbackWarning", *options.files]
    pytest.main([*arguments, *(["-k", options.k] if options.k else [])], plugins=[watch])
    options.inside.write_text(json.dumps(watch.tests))


def run(files, k, source, installed):
    """The tests of files, or tests by their names: what `Watch` saw of each."""
    with tempfile.TemporaryDirectory() as folder:
        results = pathlib.Path(folder) / "results.json"
        command = [sys.executable, __file__, "--inside", results, "--source", source, *(["-k", k] if k else []),
                   *(["--installed"] if installed else []), *files]
        done = subprocess.run(list(map(str, command)), cwd=folder, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, env={**os.environ, "MTC_CACHE": folder + "/plans"})
        if not results.exists():
            sys.exit(f"pytest ended with {done.returncode}: {done.stdout[-2000:]}")
        return json.loads(results.read_text())


def column(test):
    if test["outcome"] != "passed":
        return test["outcome"]
    return "in Keras" if test["in_keras"] else "through MTC" if test["calls"] else "no call"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", metavar="FILE")
    parser.add_argument("-k", help="tests whose names fit, as of pytest")
    parser.add_argument("--inside", type=pathlib.Path, help=argparse.SUPPRESS)
    parser.add_argument("--source", type=pathlib.Path, help=argparse.SUPPRESS)
    parser.add_argument("--installed", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        return inside(options)
    import keras

    source = pathlib.Path(keras.__file__).parent / "src"
    files = [path for name in options.files or FILES for path in sorted(source.glob(name))]
    if not files:
        sys.exit(f"Keras {keras.__version__} was installed without its tests")
    tests = run(files, options.k, source, installed=True)
    failed = [name for name, test in tests.items() if test["outcome"] == "failed"]
    if failed:
        for name, test in run([source / name for name in failed], None, source, installed=False).items():
            if test["outcome"] == "failed":
                tests[name]["outcome"] = "failed without MTC too"
    for name in failed:
        if tests[name]["outcome"] == "failed" and (why := EXPECTED.get(name[name.rfind("::"):])):
            tests[name].update(outcome="expected", error=why)
    table = collections.defaultdict(collections.Counter)
    for name, test in tests.items():
        table[name.split("::")[0]][column(test)] += 1
    print(f"Keras {keras.__version__} on {keras.backend.backend()}, with mtc.keras.install()")
    for name, counts in [*sorted(table.items()), ("all", sum(table.values(), collections.Counter()))]:
        print(f"{name}: " + ", ".join(f"{counts[c]} {c}" for c in COLUMNS if counts[c]))
    reasons = collections.Counter(re.sub(r"^[^:]*: \w+ runs in Keras and not through MTC: ", "", reason)
                                  for test in tests.values() for reason in test["reasons"])
    for reason, count in reasons.most_common():
        print(f"in Keras, {count}: {reason}")
    for name, test in tests.items():
        if test["outcome"].startswith(("failed", "expected")):
            print(f"{test['outcome']}: {name}: {test['error']}")
    return int(any(test["outcome"] == "failed" for test in tests.values()))


if __name__ == "__main__":
    sys.exit(main())
