# SPDX-License-Identifier: Apache-2.0
"""Scripts of Keras as they are: `mtc.keras.install()` and `python -m mtc.keras`."""

import os
import subprocess
import sys
import warnings

import keras
import models
import mtc
import mtc.keras
import numpy as np
import pytest
from keras.src.backend.common.symbolic_scope import in_symbolic_scope

L = keras.layers


@pytest.fixture
def installed():
    mtc.keras.install(devices="cpu:1", cpu="native")
    yield
    mtc.keras.uninstall()


class Unknown(L.Layer):
    def call(self, x):
        return keras.ops.i0(x)


def unsupported(name="odd"):
    model = keras.Sequential([keras.Input((4, 2)), Unknown(), L.Flatten(), L.Dense(1)], name=name)
    model.compile("sgd", "mse")
    return model


def test_the_same_as_mtc_fit(installed):
    x, y = models.points()
    ours, wanted = models.line(), models.line()
    with warnings.catch_warnings():
        warnings.simplefilter("error", mtc.FallbackWarning)
        history = ours.fit(x, y, epochs=2, batch_size=16, verbose=0, validation_split=0.25)
        score = ours.evaluate(x, y, verbose=0)
        outputs = ours.predict(x, verbose=0)
    expected = mtc.fit(wanted, x, y, epochs=2, batch_size=16, verbose=0, validation_split=0.25, devices="cpu:2",
                       cpu="native")
    assert models.same(ours, wanted) and history.history == expected.history
    assert score == mtc.evaluate(wanted, x, y, verbose=0, cpu="native")
    assert np.array_equal(outputs, mtc.predict(wanted, x, verbose=0, cpu="native"))


def test_fallback(installed):
    """One warning for a model, with the layer and the reason; a generator loses nothing."""
    x, y = np.zeros((32, 4, 2), "f4"), np.zeros((32, 1), "f4")
    model = unsupported()
    reason = "(?s)odd: fit runs in Keras and not through MTC: .*test_install.py:[0-9:]+ bessel_i0e: .*Unknown"
    with pytest.warns(mtc.FallbackWarning, match=reason) as caught:
        model.fit(x, y, verbose=0, validation_data=(x, y))
        model.evaluate(x, y, verbose=0)
        model.fit(((x[i:i + 16], y[i:i + 16]) for i in (0, 16)), verbose=0)
    assert sum(w.category is mtc.FallbackWarning for w in caught) == 1
    assert int(model.optimizer.iterations) == 3

    class Own(keras.Model):
        def make_train_function(self, force=False):
            return super().make_train_function(force)

    i = keras.Input((2,))
    own = Own(i, L.Dense(1)(i), name="own")
    own.compile("sgd", "mse")
    with pytest.warns(mtc.FallbackWarning, match="own: .*expected Keras' own make_train_function, found one of Own"):
        own.fit(*models.points(), verbose=0)
    with pytest.raises(TypeError):
        model.fit(x, y, epoch=3)


def close(ours, wanted):
    """Whether results of Keras and of MTC have the same structure, and values within 1e-5."""
    assert type(ours) is type(wanted)
    if isinstance(ours, dict):
        assert list(ours) == list(wanted)
        ours, wanted = list(ours.values()), list(wanted.values())
    if isinstance(ours, list):
        assert len(ours) == len(wanted)
        return all(close(a, b) for a, b in zip(ours, wanted))
    return np.allclose(ours, wanted, rtol=1e-5, atol=1e-5)


def batches_of_line(model):
    """What the steps of a script give: batches of several sizes, weights, and values that the script assigns."""
    x, y = models.points()
    results = [model.predict_on_batch(x[:3])]
    for step, rows in enumerate([8, 16, 5, 16]):
        batch = x[step * 16:step * 16 + rows], y[step * 16:step * 16 + rows]
        results += [model.train_on_batch(*batch), model.test_on_batch(x[:6], y[:6], return_dict=True)]
    model.layers[0].kernel.assign(model.layers[0].kernel * 0.5)
    model.optimizer.learning_rate = 0.02
    results += [model.train_on_batch(x, y, np.linspace(0, 1, 96), return_dict=True)]
    results += [model.train_on_batch(x[:8], np.float32([0, 1] * 4).reshape(8, 1), class_weight={0: 2.0, 1: 0.5})]
    model.compile("adam", "mae", metrics=["mse"])
    results += [model.train_on_batch(x[:8], y[:8]), model.train_on_batch(x[:8], y[:8])]
    return [*results, model.get_weights(), int(model.optimizer.iterations), model.predict_on_batch(x[:3])]


def batches_of_two(model):
    """The same of a model with two inputs and two outputs."""
    x = [np.random.default_rng(n).random((12, n), dtype="float32") for n in (3, 2)]
    y = {"sum": x[0][:, :1], "kind": (3 * x[1][:, 0]).astype("int32")}
    data = {"a": x[0], "b": x[1]}
    return [model.train_on_batch(x, [y["sum"], y["kind"]]), model.train_on_batch(data, y, return_dict=True),
            model.test_on_batch(x, y), model.predict_on_batch(data), model.get_weights(),
            model.evaluate(x, y, verbose=0), model.evaluate(data, y, verbose=0, return_dict=True)]


@pytest.mark.parametrize("make, script", [
    (lambda: models.line(metrics=["mae", keras.metrics.MeanSquaredError(name="a")]), batches_of_line),
    (models.two_inputs, batches_of_two)])
def test_batches(make, script):
    wanted = script(make())
    mtc.keras.install(strict=True, devices="cpu:1", cpu="native")
    try:
        ours = script(make())
    finally:
        mtc.keras.uninstall()
    for index, (a, b) in enumerate(models.pairs(ours, wanted)):
        assert close(a, b), (index, a, b)


def test_a_session_stays_from_batch_to_batch(installed, tmp_path):
    """It goes on after `fit`, after a model that shares variables, and in Keras, with the values of the last step."""
    x, y = models.points()
    model = models.line(name="first")
    other = keras.Sequential([keras.Input((2,)), model.layers[0]], name="other")
    other.compile("sgd", "mse", run_eagerly=True)

    def session():
        return model.__dict__["_mtc_live"].session

    model.train_on_batch(x, y)
    first = session()
    before = model.layers[0].kernel.numpy()
    other.train_on_batch(x, y)
    after = model.layers[0].kernel.numpy()
    assert not np.array_equal(before, after) and np.array_equal(other.get_weights()[0], after)
    model.train_on_batch(x[:16], y[:16])
    model.fit(x, y, verbose=0)
    model.train_on_batch(x, y)
    assert session() is first and int(model.optimizer.iterations) == 6
    model.save(tmp_path / "m.keras")
    assert models.same(keras.saving.load_model(tmp_path / "m.keras"), model)
    mtc.keras.uninstall()
    assert type(model.layers[0].kernel) is type(models.line().layers[0].kernel)
    model.train_on_batch(x, y)
    assert int(model.optimizer.iterations) == 7


def test_batches_that_fall_back(installed):
    x, y = np.zeros((16, 4, 2), "f4"), np.zeros((16, 1), "f4")
    model = unsupported()
    with pytest.warns(mtc.FallbackWarning, match="(?s)odd: train_on_batch runs in Keras .*Unknown") as caught:
        for _ in range(3):
            assert isinstance(model.train_on_batch(x, y), float)
    assert sum(w.category is mtc.FallbackWarning for w in caught) == 1 and int(model.optimizer.iterations) == 3
    text = "no call of this script ran through MTC; 3 calls of train_on_batch in Keras ("
    assert mtc.keras.summary().startswith(text)
    model = models.line()
    model.train_on_batch(*models.points())
    with pytest.warns(mtc.FallbackWarning, match="line: train_on_batch .*expected"), pytest.raises(Exception):
        model.train_on_batch(np.zeros((4, 3), "f4"), np.zeros((4, 1), "f4"))
    assert int(model.optimizer.iterations) == 1


def test_constraints_hold(installed):
    """Keras applies a constraint behind each update, and so does the trace of its optimizer's step."""
    x, y = np.ones((8, 3), "f4"), -np.ones((8, 2), "f4")
    model = keras.Sequential([keras.Input((3,)), L.Dense(2, kernel_constraint="non_neg")])
    model.compile("sgd", "mse")
    with warnings.catch_warnings():
        warnings.simplefilter("error", mtc.FallbackWarning)
        model.fit(x, y, epochs=3, verbose=0)
    assert keras.ops.convert_to_numpy(model.layers[0].kernel).min() >= 0


class Counting(L.Layer):
    calls = 0

    def call(self, x):
        Counting.calls += 1
        return keras.ops.sin(x)


@pytest.mark.parametrize("asked", [{"run_eagerly": True}, {"jit_compile": False}])
def test_code_that_runs_at_each_step(installed, asked):
    """A trace would run the layer's code once."""
    x, y = np.ones((32, 3), "f4"), np.ones((32, 1), "f4")
    model = keras.Sequential([keras.Input((3,)), Counting(), L.Dense(1)])
    model.compile("sgd", "mse", **asked)
    Counting.calls = 0
    with pytest.warns(mtc.FallbackWarning, match="Counting"):
        model.fit(x, y, batch_size=4, verbose=0)
    assert Counting.calls >= 8


class Noise(L.Layer):
    def __init__(self):
        super().__init__()
        self.numbers = keras.random.SeedGenerator(1)

    def call(self, x):
        return x + keras.random.normal(keras.ops.shape(x), seed=self.numbers)


def test_predictions_with_random_numbers(installed):
    model = keras.Sequential([keras.Input((3,)), Noise()])
    x = np.ones((8, 3), "f4")
    with pytest.warns(mtc.FallbackWarning, match="SeedGenerator"):
        first = model.predict(x, verbose=0)
    assert np.abs(first - model.predict(x, verbose=0)).max() > 0


class Strict(keras.Model):
    """Its `compute_loss` raises where MTC traces it, with losses of layers under way."""

    def __init__(self):
        super().__init__()
        self.penalty = keras.metrics.Mean(name="penalty")
        self.dense = L.Dense(2, activity_regularizer="l2")

    def call(self, x):
        return self.dense(x)

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        if not training and not in_symbolic_scope():  # where Keras builds the metrics
            raise ValueError("for training alone")
        loss = super().compute_loss(x, y, y_pred, sample_weight, training)
        self.penalty.update_state(sum(self.losses))
        return loss


def test_a_trace_that_failed_leaves_nothing_behind(installed):
    model = Strict()
    model.compile("sgd", "mse")
    with pytest.warns(mtc.FallbackWarning, match="for training alone"):
        history = model.fit(np.ones((32, 4), "f4"), np.ones((32, 2), "f4"), verbose=0)
    assert history.history["penalty"][0] > 0


def test_strict():
    mtc.keras.install(strict=True)
    try:
        with pytest.raises(mtc.ModelError, match="Unknown"):
            unsupported().fit(np.zeros((8, 4, 2), "f4"), np.zeros((8, 1), "f4"), verbose=0)
    finally:
        mtc.keras.uninstall()
    assert "mtc" not in keras.Model.fit.__code__.co_filename


def test_module(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("""
import sys
import keras, numpy as np
model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)], name="small")
model.compile("sgd", "mse")
history = model.fit(np.ones((64, 2)), np.ones((64, 1)), epochs=2, verbose=0)
print(sys.argv[1:], type(history).__mro__[1] is keras.callbacks.History, len(history.history["loss"]))
""")
    done = subprocess.run([sys.executable, "-m", "mtc.keras", "--strict", "--devices", "cpu:2", str(script), "--own"],
                          capture_output=True, text=True, timeout=100, check=True)
    assert done.stdout == "['--own'] True 2\n" and "mtc: fit of small runs through MTC" in done.stderr
    assert done.stderr.splitlines()[-1] == "mtc: 1 call of fit ran through MTC"


def test_the_script_chooses_the_back_end(tmp_path):
    """Keras is imported by the script and not before, so that what it says of the back end holds."""
    script = tmp_path / "script.py"
    script.write_text("""
import os, sys
assert "keras" not in sys.modules
os.environ["KERAS_BACKEND"] = "numpy"
import keras
print(keras.config.backend(), "mtc" in keras.Model.fit.__code__.co_filename)
""")
    environment = {k: v for k, v in os.environ.items() if k != "KERAS_BACKEND"}
    done = subprocess.run([sys.executable, "-m", "mtc.keras", str(script)], capture_output=True, text=True, timeout=100,
                          env=environment)
    assert done.stdout == "numpy True\n", done.stderr
    assert "mtc: no call of this script ran through MTC: it made none of fit, evaluate, predict and" in done.stderr
