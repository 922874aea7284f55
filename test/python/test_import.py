# SPDX-License-Identifier: Apache-2.0
"""Importing the package is cheap, and opens nothing."""

import os
import subprocess
import sys

import pytest


def run(code, **options):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, **options)


def test_import_loads_nothing():
    done = run("import sys, mtc; print([m for m in ('numpy', 'keras', 'jax', 'ctypes', 'torch') if m in sys.modules])")
    assert done.stdout == "[]\n", done.stderr


def test_import_takes_less_than_a_tenth_of_a_second():
    """Of the processor: what else runs on the machine is not counted."""
    code = "import time; begin = time.process_time(); import mtc; print(time.process_time() - begin)"
    assert min(float(run(code).stdout) for _ in range(5)) < 0.1


def test_unknown_name():
    import mtc

    with pytest.raises(AttributeError, match="module 'mtc' has no attribute 'fitt'"):
        mtc.fitt()


def test_no_library():
    environment = {"MTC_LIBRARY_PATH": "/nowhere", "PYTHONPATH": os.environ["PYTHONPATH"]}
    done = run("import mtc; mtc.load('/dev/null')", env=environment, cwd="/")
    if "CorruptError" not in done.stderr:  # else the loader finds one
        assert "expected libmtrun.so in the package, in a folder of MTC_LIBRARY_PATH" in done.stderr


def test_newer_frameworks(monkeypatch):
    """One that no test ran with is told of, once."""
    import types

    import mtc
    from mtc import _versions

    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(__version__="2.99.1+cpu"))
    _versions.warn_if_newer.cache_clear()
    with pytest.warns(mtc.VersionWarning, match=r"torch 2.99.1\+cpu is newer than 2.15, the newest that") as caught:
        _versions.warn_if_newer("torch")
        _versions.warn_if_newer("torch")
    assert len(caught) == 1
    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(__version__="2.3.0"))
    _versions.warn_if_newer.cache_clear()
    _versions.warn_if_newer("torch")
    _versions.warn_if_newer.cache_clear()
