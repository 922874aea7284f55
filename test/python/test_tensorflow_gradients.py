# SPDX-License-Identifier: Apache-2.0
"""A step of TensorFlow with every kind of convolution and pool, whose gradients TensorFlow wrote."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers
from mtc.keras import _tf_function

BATCH, STEPS = 8, 20


@pytest.fixture(autouse=True)
def restored():
    yield
    _tf_function.uninstall()


def trained():
    """The losses, the variables after the last step, and the step."""
    keras.utils.set_random_seed(1)
    model = keras.Sequential([
        keras.Input((12, 12, 1)), layers.Conv2D(6, 3, padding="same", use_bias=False), layers.BatchNormalization(),
        layers.ReLU(), layers.MaxPooling2D(3, 2, padding="same"), layers.Conv2D(8, 3, strides=2, activation="relu"),
        layers.Conv2D(8, 1, activation="relu"), layers.DepthwiseConv2D(3, padding="same", activation="relu"),
        layers.Conv2DTranspose(4, 3, strides=2, padding="same", activation="relu"),
        layers.SeparableConv2D(6, 3, padding="same"), layers.AveragePooling2D(2, padding="same"), layers.Flatten(),
        layers.Dense(3)])
    optimizer = keras.optimizers.SGD(0.05, momentum=0.9)
    loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    @tf.function
    def step(x, y):
        with tf.GradientTape() as tape:
            loss = loss_of(y, model(x, training=True))
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
        return loss

    numbers = np.random.default_rng(0)
    losses = [float(step(tf.constant(numbers.random((BATCH, 12, 12, 1)), tf.float32),
                         tf.constant(numbers.integers(0, 3, BATCH)))) for _ in range(STEPS)]
    return losses, [v.numpy() for v in model.variables], step


def test_gradients_of_convolutions_and_pools():
    """All steps but the first are MTC's; they are TensorFlow's, to the same bits on any number of devices."""
    wanted, expected, _ = trained()
    bits = []
    for devices in ("cpu:1", "cpu:3"):
        _tf_function.install(devices)
        found, variables, step = trained()
        _tf_function.uninstall()
        assert (step.in_plans, step.by_tensorflow) == (STEPS - 1, 1), step.line()
        np.testing.assert_allclose(found, wanted, atol=1e-5)
        for variable, value in zip(variables, expected):
            np.testing.assert_allclose(variable, value, atol=1e-5)
        bits.append(b"".join(v.tobytes() for v in variables))
    assert bits[0] == bits[1]
