# SPDX-License-Identifier: Apache-2.0
"""What the tests of the package share. They run on the build whose folder MTC_BUILD names."""

import gzip
import os
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("MTC_BUILD", ROOT / "build" / "release"))

sys.path.insert(0, str(ROOT / "python"))
os.environ.setdefault("MTC_LIBRARY_PATH", str(BUILD / "lib"))
os.environ.setdefault("KERAS_BACKEND", "jax")
os.environ["PYTHONPATH"] = str(ROOT / "python")  # of programs that a test starts


def pytest_addoption(parser):
    parser.addoption("--all-orders", action="store_true", help="test_orders.py: all 24 orders, in place of 6")
    parser.addoption("--fits", type=int, default=200, help="test_callbacks.py: trainings in search of leaks")


def tell_skipped(report):
    """Tells tools/check, in the file that MTC_SKIPPED names: for lit, a program whose tests are skipped passes."""
    if report.outcome == "skipped" and (told := os.environ.get("MTC_SKIPPED")):
        expected = getattr(report, "wasxfail", None)
        reason = report.longrepr[2] if expected is None else "expected to fail: " + expected
        with open(told, "a") as file:
            print(report.nodeid, " ".join(reason.removeprefix("Skipped: ").split()), sep="\t", file=file)


pytest_runtest_logreport = pytest_collectreport = tell_skipped


@pytest.fixture(scope="session", autouse=True)
def cache(tmp_path_factory):
    """A folder of plans of its own."""
    folder = tmp_path_factory.mktemp("plans")
    os.environ["MTC_CACHE"] = str(folder)
    return folder


@pytest.fixture(scope="session", autouse=True)
def this_cpu():
    """Plans have code for this CPU alone, which halves the time to compile them. Tests of lit have code for all. Gives
    what it replaces: the function that makes settings."""
    from mtc import _options

    settings = _options.fields
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_options, "fields", lambda *given: _options.for_this_cpu(settings(*given)))
        yield settings


@pytest.fixture
def session(plan):
    """A session of the plan that the module makes."""
    with plan.session("cpu:2") as session:
        yield session


@pytest.fixture(scope="session")
def mnist():
    """A thousand images of MNIST [n, 784] of float32 in [0, 1], and their labels [n] of uint8."""
    import numpy as np

    def read(name):
        return gzip.decompress((ROOT / "examples" / "mnist" / f"{name}.gz").read_bytes())

    images = np.frombuffer(read("t10k-images-idx3-ubyte"), "u1", offset=16).reshape(-1, 784)
    labels = np.frombuffer(read("t10k-labels-idx1-ubyte"), "u1", offset=8)
    return images[:1000].astype("float32") / 255, labels[:1000]


@pytest.fixture(scope="session")
def mtrun():
    """The program."""
    found = [pathlib.Path(f).parent / "bin" / "mtrun" for f in os.environ["MTC_LIBRARY_PATH"].split(os.pathsep)]
    return str(next(p for p in found if p.exists()))
