# SPDX-License-Identifier: Apache-2.0
"""What Keras' own tests of layers, losses, metrics, optimizers, regularizers and constraints make.

    collect_keras.py FILE     runs these tests on Keras' NumPy back end, and pickles a dict of records by name

Layers are only written down, not tested.
"""

import ast
import hashlib
import json
import os
import pathlib
import pickle
import sys

os.environ["KERAS_BACKEND"] = "numpy"  # nothing is compiled
import keras  # noqa: E402
import numpy as np  # noqa: E402
import pytest  # noqa: E402
from keras.src.constraints import constraints  # noqa: E402
from keras.src.losses.loss import Loss  # noqa: E402
from keras.src.metrics.metric import Metric  # noqa: E402
from keras.src.optimizers.base_optimizer import BaseOptimizer  # noqa: E402
from keras.src.regularizers import regularizers  # noqa: E402
from keras.src.testing import test_case  # noqa: E402

KINDS = ("layers", "losses", "metrics", "optimizers", "regularizers", "constraints")
SOURCE = pathlib.Path(keras.__file__).parent / "src"
records, numbers = {}, {}


def plain(value):
    return keras.tree.map_structure(
        lambda x: x if x is None or isinstance(x, (bool, int, float, str)) else np.array(x), value)


def record(kind, made, **fields):
    fields = {"config": json.dumps(keras.saving.serialize_keras_object(made)), **fields}
    digest = hashlib.sha256(pickle.dumps((fields["config"], plain(fields)))).hexdigest()
    if (kind, digest) in numbers:
        return
    name = f"{kind}/{type(made).__name__}"
    numbers[kind, digest] = number = sum(1 for other in records if other.rpartition("/")[0] == name)
    records[f"{name}/{number}"] = {"kind": kind, **fields}


def layer_test(self, layer_cls, init_kwargs=None, input_shape=None, input_dtype=None, input_sparse=False,
               input_ragged=False, input_data=None, call_kwargs=None, **others):
    if not input_sparse and not input_ragged:
        record("layers", layer_cls(**(init_kwargs or {})), shape=input_shape, dtype=input_dtype,
               data=plain(input_data), call=plain(call_kwargs or {}))


def watched(method, write):
    """The method, whose calls that no other watched method makes are written down."""
    def call(self, *arguments, **keywords):
        if not watched.inside:
            try:
                write(self, *arguments, **keywords)
            except Exception:
                pass  # what cannot be written down is no case
        watched.inside += 1
        try:
            return method(self, *arguments, **keywords)
        finally:
            watched.inside -= 1

    call.__wrapped__ = method
    return call


watched.inside = 0


def of_call(kind):
    def write(self, y_true, y_pred, sample_weight=None, **others):
        if type(self).__module__.startswith("keras.src.") and "_test" not in type(self).__module__:
            record(kind, self, y_true=plain(y_true), y_pred=plain(y_pred), weight=plain(sample_weight))
    return write


def every(cls):
    for sub in cls.__subclasses__():
        yield sub
        yield from every(sub)


def install():
    test_case.TestCase.run_layer_test = layer_test
    Loss.__call__ = watched(Loss.__call__, of_call("losses"))
    for cls in set(every(Metric)):
        if "update_state" in cls.__dict__:
            cls.update_state = watched(cls.__dict__["update_state"], of_call("metrics"))
    BaseOptimizer.apply = watched(BaseOptimizer.apply, lambda self, *a, **k: record("optimizers", self))
    for base, kind in ((regularizers.Regularizer, "regularizers"), (constraints.Constraint, "constraints")):
        for cls in set(every(base)):
            if "__call__" in cls.__dict__:
                cls.__call__ = watched(cls.__dict__["__call__"], lambda self, value, kind=kind: record(kind, self))


class LayerTestsAlone:
    """Of the tests of layers, those that call `run_layer_test`."""

    def pytest_collection_modifyitems(self, items):
        known = {}
        kept = []
        for item in items:
            path = str(item.path)
            if "/layers/" in path:
                if path not in known:
                    known[path] = {(c.name, f.name) for c in ast.parse(pathlib.Path(path).read_text()).body
                                   if isinstance(c, ast.ClassDef) for f in c.body
                                   if isinstance(f, ast.FunctionDef) and "run_layer_test" in ast.dump(f)}
                own = item.cls.__name__ if item.cls else ""
                if not any(c == own and item.name.startswith(f) for c, f in known[path]):
                    continue
            kept.append(item)
        items[:] = kept


def main():
    install()
    files = [str(p) for kind in KINDS for p in sorted((SOURCE / kind).rglob("*_test.py"))]
    pytest.main(["-q", "-p", "no:cacheprovider", "-c", os.devnull, "--rootdir", str(SOURCE), "-W", "ignore", "--tb=no",
                 "--no-header", "--continue-on-collection-errors", *files], plugins=[LayerTestsAlone()])
    pathlib.Path(sys.argv[1]).write_bytes(pickle.dumps(records))


if __name__ == "__main__":
    main()
