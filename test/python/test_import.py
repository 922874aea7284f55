# SPDX-License-Identifier: Apache-2.0
"""Importing the package is cheap, and opens nothing."""

import os
import subprocess
import sys
import time

import pytest


def run(code, **options):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, **options)


def test_import_loads_nothing():
    done = run("import sys, mtc; print([m for m in ('numpy', 'keras', 'jax', 'ctypes', 'torch') if m in sys.modules])")
    assert done.stdout == "[]\n", done.stderr


def test_import_takes_less_than_a_tenth_of_a_second():
    def seconds(code):
        begin = time.perf_counter()
        run(code)
        return time.perf_counter() - begin

    assert min(seconds("import mtc") - seconds("pass") for _ in range(5)) < 0.1


def test_unknown_name():
    import mtc

    with pytest.raises(AttributeError, match="module 'mtc' has no attribute 'fitt'"):
        mtc.fitt()


def test_no_library():
    environment = {"MTC_LIBRARY_PATH": "/nowhere", "PYTHONPATH": os.environ["PYTHONPATH"]}
    done = run("import mtc; mtc.load('/dev/null')", env=environment, cwd="/")
    if "CorruptError" not in done.stderr:  # else the loader finds one
        assert "expected libmtrun.so in the package, in a folder of MTC_LIBRARY_PATH" in done.stderr
