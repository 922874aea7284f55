# SPDX-License-Identifier: Apache-2.0
"""mtc.fit on Keras' TensorFlow back end, whose traced functions use variables without Python's knowledge."""

import keras
import models
import mtc
import numpy as np
import pytest

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
