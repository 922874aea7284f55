# SPDX-License-Identifier: Apache-2.0
"""The package beside JAX, PyTorch and TensorFlow in one process: in which order they are imported does not matter.

Six of the 24 orders, each in a process of its own; `--all-orders` takes all.
"""

import itertools
import os
import pathlib
import random
import subprocess
import sys

import conftest
import pytest

MODULES = ("mtc", "jax", "torch", "tensorflow")
ORDERS = list(itertools.permutations(MODULES))

# After the imports a child of fork() takes a step, and then this process trains.
PROGRAM = """
import importlib, os, sys
for name in sys.argv[2:]:
    importlib.import_module(name)
import mtc, numpy as np

ones = np.ones((8, 2), "float32")
plan = mtc.load(sys.argv[1])
child = os.fork()
if child == 0:
    with plan.session("cpu:1") as session:
        session.train_step([ones, ones[:, :1]])
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
import keras
keras.utils.set_random_seed(1)
model = keras.Sequential([keras.Input((2,), name="x"), keras.layers.Dense(1, name="dense")], name="small")
model.compile("adam", "mse")
history = mtc.fit(model, ones, ones[:, :1], batch_size=8, epochs=3, verbose=0, devices="cpu:2")
print([w.tobytes().hex() for w in model.get_weights()], history.history["loss"])
"""

ALONE = """
import sys, keras, mtc, numpy as np
model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
model.compile("adam", "mse")
mtc.fit(model, np.ones((8, 2)), np.ones((8, 1)), verbose=0)
print("tensorflow" in sys.modules)
"""


@pytest.fixture(scope="module")
def plan(tmp_path_factory):
    import keras
    import mtc

    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    path = tmp_path_factory.mktemp("plan") / "m.mtp"
    mtc.compile(model, batch_size=8).save(path)
    return path


def test_fit_does_not_import_tensorflow(tmp_path):
    """Keras would when it writes a model, which takes seconds."""
    done = subprocess.run([sys.executable, "-c", ALONE], capture_output=True, text=True, timeout=300,
                          env={**os.environ, "MTC_CACHE": str(tmp_path)})
    assert done.stdout == "False\n", done.stderr[-2000:]


def test_orders(plan, pytestconfig):
    chosen = ORDERS if pytestconfig.getoption("--all-orders") else random.Random(1).sample(ORDERS, 6)
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}
    results = {}
    for order in chosen:
        done = subprocess.run([sys.executable, "-W", "ignore", "-c", PROGRAM, plan, *order], capture_output=True,
                              text=True, timeout=300, env=environment, cwd=conftest.ROOT)
        assert done.returncode == 0, (order, done.returncode, done.stderr[-2000:])
        results[order] = done.stdout
    assert len(set(results.values())) == 1, results


def test_libmtc_has_an_llvm_of_its_own():
    """Whatever the order: two LLVMs that see each other's symbols register each option twice, and the process ends."""
    library = next(pathlib.Path(f) / "libmtc.so" for f in os.environ["MTC_LIBRARY_PATH"].split(os.pathsep)
                   if (pathlib.Path(f) / "libmtc.so").exists())
    needed = subprocess.run(["readelf", "--wide", "--dynamic", library], capture_output=True, text=True, check=True)
    assert "libLLVM" not in needed.stdout and "libMLIR" not in needed.stdout, needed.stdout
    symbols = subprocess.run(["readelf", "--wide", "--dyn-syms", library], capture_output=True, text=True, check=True)
    rows = [line.split() for line in symbols.stdout.splitlines() if " UNIQUE " in line or "4llvm" in line]
    # A weak name is the initializer of a thread's variable, which is there or not.
    assert [row for row in rows if row[6:7] != ["UND"] or "WEAK" not in row and "4llvm" in row[-1]] == []
