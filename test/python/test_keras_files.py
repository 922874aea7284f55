# SPDX-License-Identifier: Apache-2.0
"""Layers and losses of Keras files: predictions, the loss and the weights after a step are Keras' own."""

import keras
import mtc
import numpy as np
import pytest
from mtc.keras import _live

L = keras.layers
SETTINGS = {"devices": "cpu:1", "cpu": "native", "by": "file", "check": False}
NUMBERS = np.random.default_rng(0)
FIRST = {"data_format": "channels_first"}


def numbers(*shape):
    return NUMBERS.standard_normal(shape).astype("f4")


def trained(model, x, y):
    """The logs and weights of a step in Keras, whose model has the old ones again, then those in MTC."""
    start = model.get_weights()
    wanted = model.train_on_batch(x, y, return_dict=True)["loss"], model.get_weights()
    model.set_weights(start)
    found = _live.train_on_batch(model, x, y, return_dict=True, **SETTINGS)["loss"], model.get_weights()
    model.set_weights(start)
    return wanted, found


def lstm(axes, **options):
    kind = {1: L.ConvLSTM1D, 2: L.ConvLSTM2D}[axes]
    return kind(3, 2, bias_initializer="random_normal", **options), (4, 5, 6, 2)[:axes + 2]


LAYERS = {
    "center": lambda: (L.CenterCrop(3, 4), (6, 7, 2)), "enlarged": lambda: (L.CenterCrop(5, 3), (4, 7, 2)),
    "center of channels": lambda: (L.CenterCrop(3, 4, **FIRST), (2, 6, 7)),
    "deviation": lambda: (L.LayerNormalization(rms_scaling=True, gamma_initializer="random_normal"), (5, 3)),
    "of axes": lambda: (L.LayerNormalization([1, 2], rms_scaling=True, epsilon=0.1), (5, 3)),
    "lstm": lambda: lstm(1), "sequences": lambda: lstm(1, return_sequences=True, padding="same", strides=2),
    "images": lambda: lstm(2, return_sequences=True, go_backwards=True, use_bias=False),
    "dilated": lambda: lstm(2, padding="same", dilation_rate=(1, 2), activation="relu", recurrent_activation="tanh"),
    "translation": lambda: (L.RandomTranslation(0.0, 0.0, **FIRST), (2, 5, 6)),
    "crop of channels": lambda: (L.RandomCrop(5, 6, **FIRST), (2, 5, 6)),
    "flip": lambda: (L.RandomFlip(**FIRST), (2, 5, 6)), "alpha": lambda: (L.AlphaDropout(0.3), (7,)),
    "solarization": lambda: (L.Solarization(0.3, 0.2), (4, 5, 2)),
}
DRAWS = ("flip", "alpha", "solarization")


@pytest.mark.parametrize("name", LAYERS)
def test_layers(name):
    keras.utils.set_random_seed(1)
    layer, shape = LAYERS[name]()
    inputs = keras.Input(shape)
    inner = L.Dense(shape[-1], kernel_initializer="identity")(inputs)
    model = keras.Model(inputs, L.Dense(3)(L.Flatten()(layer(inner))))
    model.compile(keras.optimizers.SGD(0.1), "mse")
    x, y = numbers(4, *shape), numbers(4, 3)
    found = _live.predict_on_batch(model, x, **SETTINGS)
    np.testing.assert_allclose(found, model.predict_on_batch(x), rtol=1e-4, atol=1e-5)
    if name in DRAWS:
        return
    (loss, weights), (own, after) = trained(model, x, y)
    assert own == pytest.approx(loss, rel=1e-5)
    for variable, a, b in zip(model.weights, after, weights):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-5, err_msg=variable.path)


def test_alpha_dropout():
    """Variance stays that of the input, which is 1."""
    model = keras.Sequential([keras.Input((1000,)), L.AlphaDropout(0.25)])
    model.compile("sgd", "mse")
    x = numbers(64, 1000)
    loss = _live.train_on_batch(model, x, np.zeros_like(x), return_dict=True, **SETTINGS)["loss"]
    assert loss != pytest.approx(np.mean(x ** 2), rel=1e-6) and loss == pytest.approx(1, abs=0.03)


def test_loss_at_a_bound():
    """A probability of 0 has an infinite gradient; the other classes have none."""
    inputs = keras.Input((3,))
    model = keras.Model(inputs, L.Dense(3, use_bias=False, kernel_initializer="identity")(inputs))
    model.compile(keras.optimizers.SGD(0.1), keras.losses.CategoricalGeneralizedCrossEntropy())
    x, y = np.array([[0, 1, 0], [0.5, 0.2, 0.3]], "f4"), np.array([0, 1])
    (loss, weights), (own, after) = trained(model, x, y)
    assert own == pytest.approx(loss, rel=1e-5)
    np.testing.assert_allclose(after[0], weights[0], rtol=1e-4, atol=1e-6)
