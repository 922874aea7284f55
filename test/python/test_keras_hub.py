# SPDX-License-Identifier: Apache-2.0
"""Models of KerasHub train as in Keras: the gradients of a step within 1e-5, in float32 and float64, and the losses of
three epochs within 1e-3."""

import os

import keras
import mtc
import numpy as np
import pytest

pytest.importorskip("keras_hub")
import interpreter  # noqa: E402
import keras_float64  # noqa: E402
import keras_hub_models  # noqa: E402  needs keras_hub

# Ten to fifty seconds in each test: the first one, or all with MTC_ALL_MODELS=1.
MODELS = keras_hub_models.ALL if os.environ.get("MTC_ALL_MODELS") else keras_hub_models.ALL[:1]
RATE = 0.1


def compiled(make):
    """A model with the same weights every time, its inputs and its targets."""
    keras.backend.clear_session()
    keras.utils.set_random_seed(1)
    model, x, y = make()
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.SGD(RATE, momentum=0.9), loss)
    return model, x, y


def trained(fit, make, **options):
    """The losses of a fit, and the momenta: after one step they are the gradients times the rate."""
    model, x, y = compiled(make)
    history = fit(model, x, y, batch_size=8, shuffle=False, verbose=0, **options).history["loss"]
    return np.array(history), [v.numpy() for v in model.optimizer.variables if "momentum" in v.path]


@pytest.mark.parametrize("make", MODELS, ids=lambda make: make.__name__)
def test_trains_as_in_keras(make):
    here = {"devices": "cpu:1", "cpu": "native"}  # fit checks the loss and all gradients of a batch, too
    one_step = {"epochs": 1, "steps_per_epoch": 1}
    (loss, gradients), (wanted, expected) = trained(mtc.fit, make, **one_step, **here), trained(
        keras.Model.fit, make, **one_step)
    assert np.allclose(loss, wanted, rtol=1e-5)
    largest = max(np.abs(b).max() for b in expected)
    for a, b in zip(gradients, expected, strict=True):
        assert np.abs(a - b).max() <= 1e-5 * max(np.abs(b).max(), largest / 100)
    losses, wanted = (trained(fit, make, epochs=3, **options)[0]
                      for fit, options in ((mtc.fit, here), (keras.Model.fit, {})))
    assert np.allclose(losses, wanted, rtol=1e-3)


@pytest.mark.parametrize("make", MODELS, ids=lambda make: make.__name__)
def test_a_step_in_float64(make, tmp_path):
    """The loss, all gradients and the state after a step in the interpreter are those of Keras in float64."""
    errors = keras_float64.errors(lambda: compiled(make), tmp_path / "model.mlir")
    assert not {n: e for n, e in errors.items() if not e <= interpreter.TOLERANCE}
