# SPDX-License-Identifier: Apache-2.0
"""mtc.fit on Keras' TensorFlow back end, whose traced functions use variables without Python's knowledge."""

import keras
import models
import mtc
import numpy as np
import pytest
import tensorflow as tf
from mtc.keras import _window

QUIET = {"verbose": 0, "devices": "cpu:1", "cpu": "native"}


def graph_model(**options):
    """`models.line`, not run eagerly."""
    model = models.line()
    model.compile(keras.optimizers.SGD(0.1, **options), "mse", metrics=["mse"])
    return model


def test_functions_see_the_values_of_each_epoch():
    """One that is traced in the first epoch too, and it leaves the session's values alone."""
    x, y = models.points()
    model = graph_model()
    seen = []

    def look(epoch, logs=None):
        kernel, bias = model.get_weights()
        seen.append((model.predict_on_batch(x), x @ kernel + bias))

    looking = keras.callbacks.LambdaCallback(on_epoch_end=look)
    mtc.fit(model, x, y, epochs=3, validation_data=(x, y), callbacks=[looking], **QUIET)
    expected = graph_model()
    mtc.fit(expected, x, y, epochs=3, **QUIET)
    assert models.same(model, expected)
    for outputs, wanted in seen:
        np.testing.assert_allclose(outputs, wanted, rtol=1e-5, atol=1e-6)
    assert len(seen) == 3 and not np.array_equal(seen[0][0], seen[2][0])


def test_what_a_graph_assigns():
    """SwapEMAWeights assigns by functions of TensorFlow."""
    x, y = models.points()
    model = graph_model(use_ema=True, ema_momentum=0.9)
    history = mtc.fit(model, x, y, epochs=2, validation_data=(x, y), callbacks=[keras.callbacks.SwapEMAWeights()],
                      **QUIET)
    ours = mtc.evaluate(model, x, y, return_dict=True, **QUIET)
    assert history.history["val_mse"][-1] == pytest.approx(ours["mse"], rel=1e-6)


def test_datasets():
    """Batches of tensors, cached and fetched ahead; the steps are those of arrays."""
    x, y = models.points()
    data = tf.data.Dataset.from_tensor_slices({"x": x, "y": y}).map(lambda d: (d["x"], d["y"])).cache().batch(16)
    model, expected = graph_model(), graph_model()
    mtc.fit(model, data.prefetch(tf.data.AUTOTUNE), epochs=2, validation_data=data, **QUIET)
    mtc.fit(expected, x, y, epochs=2, batch_size=16, shuffle=False, **QUIET)
    assert models.same(model, expected)
    ragged = tf.data.Dataset.from_tensors((tf.ragged.constant([[1.0], [2.0, 3.0]]), y[:2]))
    with pytest.raises(mtc.DataError, match="expected numbers for \"x\", found an array of object"):
        mtc.fit(model, ragged, **QUIET)


def test_callbacks_of_batches(tmp_path, monkeypatch):
    """Keras' own read variables through Keras, one by one; before those of a user all are copied."""
    x, y = models.points()
    copied = []
    real = _window.Window._show
    monkeypatch.setattr(_window.Window, "_show", lambda self: copied.append(1) or real(self))

    def fit(*callbacks):
        model = graph_model()
        copied.clear()
        mtc.fit(model, x, y, batch_size=32, epochs=2, shuffle=False, callbacks=list(callbacks), **QUIET)
        return len(copied)

    few = fit()
    assert fit(keras.callbacks.ModelCheckpoint(str(tmp_path / "{epoch}-{batch}.weights.h5"), save_freq=1,
                                               save_weights_only=True)) == few
    seen = []

    class Own(keras.callbacks.Callback):
        def on_train_begin(self, logs=None):
            self.held = self.model.layers[-1].kernel.value  # of TensorFlow

        def on_train_batch_end(self, batch, logs=None):
            seen.append(self.held.numpy())

    assert fit(Own()) == few + 4  # ends of epochs count already
    for step, kernel in enumerate(seen):
        model = graph_model()
        model.load_weights(tmp_path / f"{step // 3 + 1}-{step % 3 + 1}.weights.h5")
        assert np.array_equal(model.get_weights()[0], kernel), step
    assert len(seen) == 6
