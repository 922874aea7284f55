# SPDX-License-Identifier: Apache-2.0
"""Training steps under tf.function, as `python -m mtc.keras` runs them: by MTC, or by TensorFlow with the reason."""

import re
import subprocess
import sys

import keras
import mtc
import numpy as np
import pytest
import step_files
import tensorflow as tf
from keras import layers
from mtc.keras import _tf_function, _tf_step

BATCH = 8


@pytest.fixture(autouse=True)
def restored():
    yield
    _tf_function.uninstall()


def images(count):
    numbers = np.random.default_rng(0)
    x = numbers.random((count, 10, 10, 1)).astype("float32")
    return x, (x.mean((1, 2, 3)) * 1000).astype("uint8") % 3


def guide():
    """The custom loop of the tutorial on several devices, under a strategy. Gives one epoch and the variables."""
    keras.utils.set_random_seed(1)
    strategy = tf.distribute.MirroredStrategy(["/cpu:0"])
    with strategy.scope():
        model = keras.Sequential([keras.Input((10, 10, 1)), layers.Conv2D(4, 3, activation="relu"),
                                  layers.MaxPooling2D(), layers.Flatten(), layers.Dense(8, activation="relu"),
                                  layers.Dense(3)])
        optimizer = keras.optimizers.Adam(0.01)
        loss_fn = keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="sum")
        accuracy = keras.metrics.SparseCategoricalAccuracy()

    @tf.function
    def train_step(inputs):
        def step(batch):
            x, y = batch
            with tf.GradientTape() as tape:
                predictions = model(x, training=True)
                loss = loss_fn(y, predictions) / BATCH
            optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
            accuracy.update_state(y, predictions)
            return loss
        return strategy.reduce(tf.distribute.ReduceOp.SUM, strategy.run(step, args=(inputs,)), axis=None)

    data = tf.data.Dataset.from_tensor_slices(images(4 * BATCH + 5)).batch(BATCH)

    def epoch():
        losses = [float(train_step(batch)) for batch in strategy.experimental_distribute_dataset(data)]
        return [*losses, float(accuracy.result())]

    return epoch, train_step, [*model.variables, *optimizer.variables, *accuracy.variables]


def test_the_loop_of_the_guide():
    """Losses, the metric and the variables are TensorFlow's; every step but the first is MTC's, the short one too; the
    bits are the same on any number of devices."""
    epoch, _, variables = guide()
    wanted, expected = epoch() + epoch(), [v.numpy() for v in variables]
    bits = []
    for devices in ("cpu:1", "cpu:2", "cpu:3", "cpu:8"):
        _tf_function.install(devices)
        epoch, step, variables = guide()
        found = epoch() + epoch()
        _tf_function.uninstall()
        np.testing.assert_allclose(found, wanted, rtol=1e-5)
        for variable, value in zip(variables, expected):
            np.testing.assert_allclose(variable.numpy(), value, rtol=1e-3, atol=1e-5, err_msg=variable.path)
        assert (step.in_plans, step.by_tensorflow, step.checked) == (9, 1, 2)
        assert step.line() == (f"train_step: 9 calls through MTC on {devices}, in which 2 plans agreed with "
                               "TensorFlow; 1 call by TensorFlow: the first, which makes the variables")
        bits.append(b"".join(v.numpy().tobytes() for v in variables))
    assert len(set(bits)) == 1


def adversaries():
    """Two models, two optimizers and two losses; what a script assigns between steps counts."""
    keras.utils.set_random_seed(1)
    g = keras.Sequential([keras.Input((3,)), layers.Dense(8, activation="gelu"), layers.Dense(4)])
    d = keras.Sequential([keras.Input((4,)), layers.Dense(8, activation="leaky_relu"), layers.LayerNormalization(),
                          layers.Dense(1)])
    first, second = keras.optimizers.Adam(1e-3, beta_1=0.5), keras.optimizers.RMSprop(1e-3)
    loss = keras.losses.BinaryCrossentropy(from_logits=True)
    mean = keras.metrics.Mean()

    class Trainer:
        @tf.function
        def step(self, x, z, scale, *, smooth):
            with tf.GradientTape() as of_g, tf.GradientTape() as of_d:
                fake = g(z, training=True)
                a, b = d(x, training=True), d(fake, training=True)
                for_g = loss(tf.ones_like(b), b)
                for_d = (loss(smooth * tf.ones_like(a), a) + loss(tf.zeros_like(b), b)) * scale
            first.apply_gradients(zip(of_g.gradient(for_g, g.trainable_variables), g.trainable_variables))
            second.apply_gradients(zip(of_d.gradient(for_d, d.trainable_variables), d.trainable_variables))
            mean.update_state(for_d)
            return {"g": for_g, "d": for_d, "none": None}

    trainer, numbers = Trainer(), np.random.default_rng(0)
    x, z = numbers.standard_normal((40, 4)).astype("f4"), numbers.standard_normal((40, 3)).astype("f4")

    def epochs():
        seen = []
        for epoch in range(3):
            for i in range(0, 40, BATCH):
                logs = trainer.step(tf.constant(x[i:i + BATCH]), tf.constant(z[i:i + BATCH]), tf.constant(0.5 + epoch),
                                    smooth=0.9)
                assert logs["none"] is None
                seen += [float(logs["g"]), float(logs["d"])]
            seen.append(float(mean.result()))
            mean.reset_state()
            g.layers[0].kernel.assign(g.layers[0].kernel * 0.5)
            first.learning_rate = 5e-4
        return seen

    return epochs, [*g.variables, *d.variables, *first.variables, *second.variables]


def test_two_optimizers():
    epochs, variables = adversaries()
    wanted, expected = epochs(), [v.numpy() for v in variables]
    _tf_function.install("cpu:1")
    epochs, variables = adversaries()
    np.testing.assert_allclose(epochs(), wanted, rtol=1e-5, atol=1e-6)
    for variable, value in zip(variables, expected):
        np.testing.assert_allclose(variable.numpy(), value, rtol=1e-3, atol=1e-5, err_msg=variable.path)
    (step,) = _tf_function.functions
    assert (step.in_plans, step.by_tensorflow) == (14, 1)


def attention():
    q = keras.Input((5, 6))
    made = layers.LayerNormalization()(layers.MultiHeadAttention(2, 3)(q, q))
    return keras.Model(q, layers.Dense(3)(layers.GlobalAveragePooling1D()(made)))


# name -> layers, the shape of a sample, the optimizer
MODELS = {
    "embedding": (lambda: keras.Sequential([keras.Input((5,), dtype="int64"), layers.Embedding(11, 6), layers.Flatten(),
                                            layers.BatchNormalization(), layers.Dense(3, kernel_regularizer="l2")]),
                  (5,), lambda: keras.optimizers.SGD(0.1, momentum=0.9)),
    "recurrent": (lambda: keras.Sequential([keras.Input((5, 6)), layers.GRU(4), layers.Dense(3)]), (5, 6),
                  lambda: keras.optimizers.RMSprop(0.01)),
    "attention": (attention, (5, 6), lambda: keras.optimizers.AdamW(0.01, clipnorm=1.0)),
    "images": (lambda: keras.Sequential([
        keras.Input((9, 9, 2)), layers.Conv2D(6, 3, strides=2, padding="same", use_bias=False),
        layers.BatchNormalization(), layers.ReLU(), layers.DepthwiseConv2D(3, padding="same"),
        layers.AveragePooling2D(2, padding="same"), layers.Conv2DTranspose(4, 3, strides=2, padding="same"),
        layers.GlobalAveragePooling2D(), layers.Dense(3)]), (9, 9, 2),
        lambda: keras.optimizers.Adam(keras.optimizers.schedules.CosineDecay(0.01, 100), use_ema=True)),
}


@pytest.mark.parametrize("name", list(MODELS))
def test_layers(name):
    """Their gradients as TensorFlow writes them."""
    def losses():
        keras.utils.set_random_seed(1)
        model, optimizer = MODELS[name][0](), MODELS[name][2]()
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)

        @tf.function
        def step(x, y):
            with tf.GradientTape() as tape:
                value = loss(y, model(x, training=True)) + sum(model.losses)
            optimizer.apply_gradients(zip(tape.gradient(value, model.trainable_variables), model.trainable_variables))
            return value

        numbers = np.random.default_rng(0)
        x = numbers.random((48, *MODELS[name][1])).astype("f4")
        x, y = (10 * x).astype("int64") if name == "embedding" else x, numbers.integers(0, 3, 48)
        return [float(step(tf.constant(x[i:i + 16]), tf.constant(y[i:i + 16]))) for i in (0, 16, 32, 0, 16, 32)]

    wanted = losses()
    _tf_function.install("cpu:2")
    np.testing.assert_allclose(losses(), wanted, rtol=1e-5)
    (step,) = _tf_function.functions
    assert (step.in_plans, step.by_tensorflow) == (5, 1), step.line()


def dropout(model, x):
    return tf.reduce_mean(tf.nn.dropout(model(x), 0.5) ** 2)


def reverse(model, x):
    return tf.reduce_mean((model(x) - model(tf.reverse(x, [0]))) ** 2)


def best(model, x):
    return tf.reduce_mean(tf.sort(model(x), axis=0)[:2])


def part(model, x):
    return tf.reduce_mean(model(x[:4]) ** 2)


def samples(model, x):
    return tf.reduce_mean(model(x) @ tf.transpose(model(x)))


def predictions(model, x):
    made = model(x)
    return tf.reduce_mean(made ** 2), made


REFUSED = {dropout: "it draws random numbers that MTC cannot ask TensorFlow for",
           reverse: "op stablehlo.reverse: a part of the samples",
           best: "op stablehlo.set_dimension_size", part: "op stablehlo.slice: a part of the samples of a batch",
           samples: "each sample with every other|a product of every sample with every other",
           predictions: r"a result with the batch as an axis, \[b, 2\]"}


def looping(loss):
    """Steps of SGD of this loss."""
    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.Input((3,)), layers.Dense(4, activation="tanh"), layers.Dense(2)])
    optimizer = keras.optimizers.SGD(0.1)

    @tf.function
    def step(x):
        tf.random.set_seed(5)
        with tf.GradientTape() as tape:
            made = loss(model, x)
        value = made[0] if isinstance(made, tuple) else made
        optimizer.apply_gradients(zip(tape.gradient(value, model.trainable_variables), model.trainable_variables))
        return made

    numbers = np.random.default_rng(0)
    tf.random.set_seed(5)
    for _ in range(4):
        step(tf.constant(numbers.standard_normal((BATCH, 3)).astype("f4")))
    return step, [v.numpy() for v in model.variables]


@pytest.mark.parametrize("loss", list(REFUSED), ids=lambda loss: loss.__name__)
def test_what_tensorflow_goes_on_with(loss):
    """The reason is said, and nothing is trained twice."""
    _, expected = looping(loss)
    _tf_function.install("cpu:1")
    step, found = looping(loss)
    assert step.in_plans == 0 and step.by_tensorflow == 4
    (reason,) = step.reasons
    assert step.reasons[reason] == 3
    assert re.search(REFUSED[loss], reason), reason
    for a, b in zip(found, expected):
        assert a.tobytes() == b.tobytes()


def test_a_step_that_differs_stays_with_tensorflow(monkeypatch):
    _, expected = looping(lambda model, x: tf.reduce_mean(model(x) ** 2))
    _tf_function.install("cpu:1")
    original = _tf_step.TensorFlowStep.__call__

    def wrong(self, tensors):
        outcome = original(self, tensors)
        outcome.state[0] = outcome.state[0] + np.float32(1e-3)
        return outcome

    monkeypatch.setattr(_tf_step.TensorFlowStep, "__call__", wrong)
    step, found = looping(lambda model, x: tf.reduce_mean(model(x) ** 2))
    assert step.in_plans == 0 and "the step differs from TensorFlow's in 1 of" in step.line()
    for a, b in zip(found, expected):
        assert a.tobytes() == b.tobytes()


def test_functions_that_do_not_train():
    _tf_function.install("cpu:1")

    @tf.function
    def forward(x):
        return 2 * x

    @tf.function(reduce_retracing=True)
    def outer(x):
        return forward(x) + 1

    for _ in range(3):
        assert float(outer(tf.constant(1.0))) == 3 and float(forward(tf.constant(1.0))) == 2
    assert _tf_function.lines() == []
    assert forward.get_concrete_function(tf.constant(1.0)) is not None


def test_a_file_of_tensorflow(tmp_path):
    """The text that TensorFlow writes of a step of Keras, compiled and trained on a file of data."""
    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.Input((5, 5, 2)), keras.layers.Conv2D(3, 3, activation="relu"),
                              keras.layers.Flatten(), keras.layers.Dense(2)])
    optimizer = keras.optimizers.Adam(0.01)
    optimizer.build(model.trainable_variables)

    @tf.function(jit_compile=True)
    def step(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(x) - y) ** 2)
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
        return loss

    numbers = np.random.default_rng(0)
    x, y = numbers.standard_normal((24, 5, 5, 2)).astype("f4"), numbers.standard_normal((24, 2)).astype("f4")
    text = step.experimental_get_compiler_ir(tf.constant(x[:8]), tf.constant(y[:8]))(stage="stablehlo")
    (tmp_path / "step.mlir").write_text(text if isinstance(text, str) else text.decode())
    # Behind the arguments of the call are the variables that the function reads; behind its result those it assigns.
    graph = step.get_concrete_function(x[:8], y[:8]).graph
    of_handle = {id(variable.handle): variable for variable in graph.variables}
    found = [of_handle[id(tensor)] for tensor, _ in graph.captures]
    variables = {variable.name.partition(":")[0]: variable for variable in found}
    state, results = [], 1
    for i, name in enumerate(variables):
        assigned = not name.endswith("learning_rate")
        state.append(f"{2 + i}:{results}={name}" if assigned else f"{2 + i}={name}")
        results += assigned
    start = {name: variable.numpy() for name, variable in variables.items()}
    losses = [float(step(tf.constant(x[i:i + 8]), tf.constant(y[i:i + 8]))) for i in 2 * [0, 8, 16]]
    step_files.check(tmp_path, state=",".join(state), split="0=x,1=y", weights=start, batch=8, losses=losses,
                     data={"x": x, "y": y}, final={name: variable.numpy() for name, variable in variables.items()})


SCRIPT = """
import keras, numpy as np, tensorflow as tf
keras.utils.set_random_seed(1)
model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
optimizer = keras.optimizers.Adam()
@tf.function
def train(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(model(x) ** 2)
    optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
    return loss
for _ in range(5):
    train(tf.ones((4, 3)))
"""


OWN_STEP = """
import tensorflow as tf
import keras, numpy as np
keras.utils.set_random_seed(1)
class Distiller(keras.Model):
    def __init__(self):
        super().__init__()
        self.student, self.teacher = [keras.Sequential([keras.Input((6,)), keras.layers.Dense(n, "relu"),
                                                        keras.layers.Dense(3)]) for n in (4, 8)]
        self.tracker = keras.metrics.Mean(name="loss")
    def call(self, x):
        return self.student(x)
    def train_step(self, data):
        x, y = data
        soft = tf.nn.softmax(self.teacher(x, training=False) / 3)
        with tf.GradientTape() as tape:
            made = self.student(x, training=True)
            loss = tf.reduce_mean(keras.losses.sparse_categorical_crossentropy(y, made, from_logits=True)
                                  + keras.losses.kl_divergence(soft, tf.nn.softmax(made / 3)))
        variables = self.student.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        self.tracker.update_state(loss)
        return {"loss": self.tracker.result()}
model = Distiller()
model.compile(optimizer=keras.optimizers.Adam(0.01))
numbers = np.random.default_rng(0)
x, y = numbers.random((100, 6)).astype("f4"), numbers.integers(0, 3, 100)
for epochs in (2, 1):
    print(model.fit(x, y, epochs=epochs, batch_size=16, shuffle=False, verbose=0).history["loss"])
"""


def test_a_train_step_of_a_model(tmp_path):
    """Keras has the loop; its steps are those of a plan, but the first."""
    path = tmp_path / "script.py"
    path.write_text(OWN_STEP)
    wanted, done = (subprocess.run([sys.executable, *words, str(path)], capture_output=True, text=True, check=True)
                    for words in ([], ["-m", "mtc.keras", "--devices", "cpu:2"]))
    lines = done.stderr.splitlines()
    assert lines[-2] == ("mtc: Distiller.train_step: 20 calls through MTC on cpu:2, in which 2 plans agreed with "
                         "TensorFlow; 1 call by TensorFlow: the first, which makes the variables")
    assert lines[-1].startswith("mtc: 2 calls of fit in Keras (distiller: expected Keras' own train_step")
    losses = [[float(n) for n in re.findall(r"[0-9.]+", run.stdout)] for run in (wanted, done)]
    assert len(losses[0]) == 3
    np.testing.assert_allclose(losses[1], losses[0], rtol=1e-5)


def test_a_script(tmp_path):
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    done = subprocess.run([sys.executable, "-m", "mtc.keras", "--devices", "cpu:2", str(path)], capture_output=True,
                          text=True, check=True)
    assert done.stderr.splitlines()[-1] == (
        "mtc: train: 4 calls through MTC on cpu:2, in which 1 plan agreed with TensorFlow; 1 call by TensorFlow: the "
        "first, which makes the variables")
