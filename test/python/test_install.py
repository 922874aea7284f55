# SPDX-License-Identifier: Apache-2.0
"""Scripts of Keras as they are: `mtc.keras.install()` and `python -m mtc.keras`."""

import subprocess
import sys
import warnings

import keras
import models
import mtc
import mtc.keras
import numpy as np
import pytest

L = keras.layers


@pytest.fixture
def installed():
    mtc.keras.install(devices="cpu:1", cpu="native")
    yield
    mtc.keras.uninstall()


class Ranked(L.Layer):
    def call(self, x):
        return keras.ops.sort(x, axis=1)


def unsupported(name="odd"):
    model = keras.Sequential([keras.Input((4, 2)), Ranked(), L.Flatten(), L.Dense(1)], name=name)
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
    reason = "(?s)odd: fit runs in Keras and not through MTC: .*test_install.py:[0-9:]+ sort: .*Ranked"
    with pytest.warns(mtc.FallbackWarning, match=reason) as caught:
        model.fit(x, y, verbose=0, validation_data=(x, y))
        model.evaluate(x, y, verbose=0)
        model.fit(((x[i:i + 16], y[i:i + 16]) for i in (0, 16)), verbose=0)
    assert sum(w.category is mtc.FallbackWarning for w in caught) == 1
    assert int(model.optimizer.iterations) == 3

    class Own(keras.Model):
        def train_step(self, *arguments):
            return super().train_step(*arguments)

    i = keras.Input((2,))
    own = Own(i, L.Dense(1)(i), name="own")
    own.compile("sgd", "mse")
    with pytest.warns(mtc.FallbackWarning, match="own: .*expected Keras' own train_step, found one of Own"):
        own.fit(*models.points(), verbose=0)
    with pytest.raises(TypeError):
        model.fit(x, y, epoch=3)


def test_strict():
    mtc.keras.install(strict=True)
    try:
        with pytest.raises(mtc.ModelError, match="Ranked"):
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
