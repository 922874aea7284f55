# SPDX-License-Identifier: Apache-2.0
"""Random numbers of Keras in training steps under tf.function: TensorFlow draws them, and MTC computes the step."""

import subprocess
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers
from mtc.keras import _tf_function

BATCH = 8


@pytest.fixture(autouse=True)
def restored():
    yield
    _tf_function.uninstall()


def training(loss_of, count=4 * BATCH + 3):
    """Two epochs of a small network, the last batches of which are short. Gives its step, losses and variables."""
    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.Input((6,)), layers.Dense(8, activation="relu"), layers.Dropout(0.3, seed=4),
                              layers.GaussianNoise(0.1, seed=5), layers.Dense(3)])
    seeds = keras.random.SeedGenerator(7)
    optimizer = keras.optimizers.Adam(0.01)

    @tf.function
    def step(x, y):
        with tf.GradientTape() as tape:
            loss = loss_of(model, seeds, x, y)
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
        return loss

    numbers = np.random.default_rng(0)
    x = numbers.standard_normal((count, 6)).astype("f4")
    data = tf.data.Dataset.from_tensor_slices((x, x[:, :3])).batch(BATCH)
    losses = [float(step(*batch)) for _ in range(2) for batch in data]
    states = [model.layers[1].seed_generator.state, model.layers[2].seed_generator.state, seeds.state]
    return step, losses, [v.numpy() for v in model.trainable_variables], [state.value.numpy() for state in states]


def noisy(model, seeds, x, y):
    """Numbers for each sample, for each feature, whole ones, and a dropout that samples share."""
    shape = keras.ops.shape(x)
    x = x + 0.1 * keras.random.normal(shape, seed=seeds) * keras.random.uniform((1, 6), minval=0.5, seed=seeds)
    x = x * tf.cast(keras.random.randint((shape[0], 1), 1, 3, seed=seeds), "float32")
    x = x + 0.1 * keras.random.truncated_normal(shape, seed=seeds)
    x = keras.random.dropout(x, 0.2, noise_shape=(1, None), seed=seeds)
    return tf.reduce_mean((model(x, training=True) - y) ** 2)


def test_random_numbers_are_those_of_tensorflow():
    _, wanted, weights, states = training(noisy)
    found = set()
    for devices in ("cpu:1", "cpu:3", "cpu:8"):
        _tf_function.install(devices)
        step, losses, mine, after = training(noisy)
        _tf_function.uninstall()
        assert (step.in_plans, step.by_tensorflow) == (9, 1), step.line()
        np.testing.assert_allclose(losses, wanted, rtol=1e-5)
        for a, b in zip(mine, weights):
            np.testing.assert_allclose(a, b, atol=2e-5)
        assert [a.tolist() for a in after] == [b.tolist() for b in states]
        found.add(b"".join(a.tobytes() for a in mine))
    assert len(found) == 1


def in_a_branch(model, seeds, x, y):
    def more():
        return x + keras.random.normal((BATCH, 6), seed=seeds)
    return tf.reduce_mean((model(tf.cond(tf.reduce_mean(x) > 0, more, lambda: x), training=False) - y) ** 2)


def of_tensors(model, seeds, x, y):
    return tf.reduce_mean((model(x + keras.random.normal(keras.ops.shape(x), tf.reduce_mean(x), seed=seeds)) - y) ** 2)


REFUSED = {in_a_branch: "it draws random numbers in a branch or a loop",
           of_tensors: "it draws random numbers that MTC cannot ask TensorFlow for"}


@pytest.mark.parametrize("loss", list(REFUSED), ids=lambda loss: loss.__name__)
def test_draws_that_stay_with_tensorflow(loss):
    _, wanted, _, states = training(loss, 4 * BATCH)
    _tf_function.install("cpu:1")
    step, losses, _, after = training(loss, 4 * BATCH)
    assert step.in_plans == 0 and losses == wanted
    assert all(reason.startswith(REFUSED[loss]) for reason in step.reasons), step.reasons
    assert [a.tolist() for a in after] == [b.tolist() for b in states]


def judging(count):
    """A generator and a discriminator, which judges generated and real samples in one batch."""
    keras.utils.set_random_seed(2)
    judge = keras.Sequential([keras.Input((8, 8, 1)), layers.Conv2D(3, 3, strides=2, padding="same"),
                              layers.LeakyReLU(0.2), layers.Flatten(), layers.Dense(1)])
    maker = keras.Sequential([keras.Input((4,)), layers.Dense(64), layers.Reshape((8, 8, 1))])
    seeds, optimizers = keras.random.SeedGenerator(3), [keras.optimizers.Adam(0.01) for _ in range(2)]
    loss_of = keras.losses.BinaryCrossentropy(from_logits=True)

    @tf.function
    def step(images):
        n = tf.shape(images)[0]
        both = tf.concat([maker(keras.random.normal((images.shape[0], 4), seed=seeds)), images], 0)
        labels = keras.ops.concatenate([tf.ones((n, 1)), tf.zeros((n, 1))], axis=0)
        labels += 0.05 * keras.random.uniform(tf.shape(labels), seed=seeds)
        with tf.GradientTape() as tape:
            loss = loss_of(labels, judge(both))
        optimizers[0].apply_gradients(zip(tape.gradient(loss, judge.trainable_weights), judge.trainable_weights))
        points = keras.random.normal((images.shape[0], 4), seed=seeds)
        with tf.GradientTape() as tape:
            other = loss_of(tf.zeros((n, 1)), judge(maker(points)))
        optimizers[1].apply_gradients(zip(tape.gradient(other, maker.trainable_weights), maker.trainable_weights))
        return loss, other

    images = np.random.default_rng(1).random((count, 8, 8, 1)).astype("f4")
    losses = [[float(x) for x in step(batch)] for batch in tf.data.Dataset.from_tensor_slices(images).batch(BATCH)]
    return step, losses, [v.numpy() for v in judge.trainable_weights + maker.trainable_weights]


def test_batches_that_are_concatenated():
    _, wanted, weights = judging(6 * BATCH)
    found = set()
    for devices in ("cpu:1", "cpu:3"):
        _tf_function.install(devices)
        step, losses, mine = judging(6 * BATCH)
        _tf_function.uninstall()
        assert (step.in_plans, step.by_tensorflow) == (5, 1), step.line()
        np.testing.assert_allclose(losses, wanted, rtol=1e-5)
        for a, b in zip(mine, weights):
            np.testing.assert_allclose(a, b, atol=2e-5)
        found.add(b"".join(a.tobytes() for a in mine))
    assert len(found) == 1


OWN_LOSS = """
import keras, numpy as np
keras.utils.set_random_seed(1)
class Distiller(keras.Model):
    def __init__(self, student, teacher):  # Keras cannot save it
        super().__init__()
        self.student, self.teacher = student, teacher
    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, allow_empty=False):
        soft = keras.ops.softmax(self.teacher(x, training=False) / 10, axis=1)
        own = keras.losses.SparseCategoricalCrossentropy(from_logits=True)(y, y_pred)
        return 0.1 * own + 90 * keras.losses.KLDivergence()(soft, keras.ops.softmax(y_pred / 10, axis=1))
    def call(self, x):
        return self.student(x)
student, teacher = [keras.Sequential([keras.Input((6,)), keras.layers.Dense(n, "relu"), keras.layers.Dense(3)])
                    for n in (4, 8)]
model = Distiller(student, teacher)
model.compile(optimizer=keras.optimizers.Adam(0.01), metrics=["sparse_categorical_accuracy"])
numbers = np.random.default_rng(0)
x, y = numbers.random((96, 6)).astype("f4"), numbers.integers(0, 3, 96)
made = model.fit(x, y, epochs=2, batch_size=16, shuffle=False, verbose=0).history
print(*made["loss"], *made["sparse_categorical_accuracy"])
"""


def test_a_loss_of_a_model_that_keras_cannot_save(tmp_path):
    path = tmp_path / "script.py"
    path.write_text(OWN_LOSS)
    wanted, done = (subprocess.run([sys.executable, *words, str(path)], capture_output=True, text=True, check=True)
                    for words in ([], ["-m", "mtc.keras", "--devices", "cpu:2"]))
    assert "Distiller.train_step: 11 calls through MTC on cpu:2, in which 1 plan agreed with TensorFlow" in done.stderr
    numbers = [[float(word) for word in run.stdout.split()] for run in (wanted, done)]
    np.testing.assert_allclose(numbers[1], numbers[0], rtol=1e-5)
