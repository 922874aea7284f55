# SPDX-License-Identifier: Apache-2.0
"""Small Keras models whose meaning is Python code. ALL has functions that make a compiled `Case`."""

import dataclasses
from typing import Any

import jax
import keras
import numpy as np
from keras import layers as L
from keras import ops
from keras_layers import (Attention, Block, Cell, Focal, Linear, MaskedMean, Near, Norm, Operations, Residual,
                          Sampling, Sparse)
from models import begin

NUMBERS = np.random.default_rng(3)
X = NUMBERS.standard_normal((40, 6)).astype("float32")
LABELS = X[:, :3].argmax(1).astype("int32")
Y = (X[:, :1] - 2 * X[:, 1:2]).astype("float32")
IMAGES = NUMBERS.random((24, 8, 8, 2)).astype("float32")
KINDS = (IMAGES.mean((1, 2, 3)) > 0.5).astype("int32")
IDS = NUMBERS.integers(1, 12, (32, 7)).astype("int32")
IDS[::3, 5:] = 0
SERIES = NUMBERS.standard_normal((32, 6, 4)).astype("float32")


@dataclasses.dataclass
class Case:
    """A compiled model and its data. `file`: the importer of files takes it too."""

    model: Any
    x: Any
    y: Any = None
    sample_weight: Any = None
    file: bool = False
    random: bool = False


def cross_entropy():
    """Of logits. A loss computes in the type that Keras has when it is made."""
    return keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def compiled(model, loss=None, metrics=("accuracy",), optimizer=None, **options):
    model.compile(optimizer or keras.optimizers.Adam(0.01), loss or cross_entropy(), metrics=list(metrics), **options)
    return model


def custom_layer():
    class Net(keras.Model):
        def __init__(self):
            super().__init__(name="net")
            self.hidden = Linear(8, "relu", name="hidden")
            self.out = Linear(3, name="out")

        def call(self, x):
            return self.out(self.hidden(x))

    return Case(compiled(Net()), X, LABELS)


def custom_activation():
    def wave(x):
        return x * ops.sigmoid(1.7 * x) + 0.1 * ops.sin(x)

    model = keras.Sequential([keras.Input((6,)), L.Dense(8, activation=wave), L.Dense(3)], name="wave")
    return Case(compiled(model), X, LABELS)


def loss_function():
    def huber_like(y_true, y_pred):
        error = ops.abs(y_true - y_pred)
        return ops.mean(ops.where(error < 0.5, 0.5 * error**2, 0.5 * (error - 0.25)), axis=-1)

    model = keras.Sequential([keras.Input((6,)), L.Dense(8, activation="tanh"), L.Dense(1)], name="huber")
    return Case(compiled(model, huber_like, ["mae"]), X, Y)


def loss_class():
    model = keras.Sequential([keras.Input((6,)), L.Dense(8, activation="gelu"), L.Dense(3)], name="focal")
    return Case(compiled(model, Focal()), X, LABELS)


def custom_metric():
    model = keras.Sequential([keras.Input((6,)), L.Dense(8, activation="elu"), L.Dense(1)], name="near")
    return Case(compiled(model, "mse", [Near(), keras.metrics.RootMeanSquaredError(name="rms")]), X, Y)


def add_loss():
    i = keras.Input((6,))
    model = keras.Model(i, L.Dense(3)(Sparse()(L.Dense(8, activation="relu")(i))), name="sparse")
    return Case(compiled(model), X, LABELS)


def activity_regularizer():
    model = keras.Sequential([
        keras.Input((6,)), L.Dense(8, activation="relu", activity_regularizer=keras.regularizers.L2(0.01)),
        Linear(3)], name="activity")
    return Case(compiled(model), X, LABELS)


def kernel_regularizer():
    class Net(keras.Model):
        def __init__(self):
            super().__init__(name="net")
            self.hidden = L.Dense(8, "relu", kernel_regularizer="l2", bias_regularizer="l1")
            self.out = L.Dense(3, kernel_regularizer=keras.regularizers.L1L2(0.001, 0.002))

        def call(self, x):
            return self.out(self.hidden(x))

    return Case(compiled(Net()), X, LABELS)


def lambda_layer():
    model = keras.Sequential([keras.Input((6,)), L.Dense(8), L.Lambda(lambda x: x * ops.tanh(x)), L.Dense(3)],
                             name="lambda")
    return Case(compiled(model), X, LABELS)


def nested():
    class Net(keras.Model):
        def __init__(self):
            super().__init__(name="net")
            self.blocks = [Block(6, name="one"), Block(6, name="two")]
            self.out = L.Dense(3)

        def call(self, x):
            for block in self.blocks:
                x = block(x)
            return self.out(x)

    return Case(compiled(Net()), X, LABELS)


def residual_cnn():
    class Net(keras.Model):
        def __init__(self):
            super().__init__(name="net")
            self.block = Residual(6)
            self.pool = L.MaxPooling2D()
            self.more = Residual(8)
            self.out = L.Dense(2)

        def call(self, x, training=None):
            x = self.more(self.pool(self.block(x, training=training)), training=training)
            return self.out(ops.mean(x, axis=(1, 2)))

    return Case(compiled(Net()), IMAGES, KINDS)


def dropout():
    class Net(keras.Model):
        def __init__(self):
            super().__init__(name="net")
            self.hidden, self.drop, self.out = L.Dense(16, "relu"), L.Dropout(0.3), L.Dense(3)

        def call(self, x, training=False):
            return self.out(self.drop(self.hidden(x), training=training))

    return Case(compiled(Net()), X, LABELS, random=True)


def attention():
    i = keras.Input((7,), dtype="int32")
    x = L.Embedding(12, 8)(i)
    x = L.LayerNormalization()(x + Attention(8, 2)(x))
    return Case(compiled(keras.Model(i, L.Dense(3)(x[:, 0]), name="attention")), IDS, IDS[:, 0] % 3)


def operations():
    model = keras.Sequential([keras.Input((6,)), Operations(), L.Dense(3)], name="operations")
    return Case(compiled(model), X, LABELS)


def two_inputs():
    class Net(keras.Model):
        def __init__(self):
            super().__init__(name="net")
            self.left, self.right = Linear(4, "relu"), L.Dense(4, "relu")
            self.number, self.kind = L.Dense(1), L.Dense(3)

        def call(self, inputs):
            both = ops.concatenate([self.left(inputs["a"]), self.right(inputs["b"])], axis=-1)
            return {"number": self.number(both), "kind": self.kind(both)}

    model = Net()
    model.compile(keras.optimizers.SGD(0.05), {"number": "mse", "kind": cross_entropy()},
                  metrics={"kind": ["accuracy"]}, loss_weights={"number": 0.5, "kind": 2})
    return Case(model, {"a": X[:, :4], "b": X[:, 2:]}, {"number": Y, "kind": LABELS})


def recurrent_cell():
    model = keras.Sequential([keras.Input((6, 4)), L.RNN(Cell(5)), L.Dense(1)], name="recurrent")
    return Case(compiled(model, "mse", []), SERIES, SERIES.sum((1, 2))[:, None] / 5)


def lstm_and_gru():
    class Net(keras.Model):
        def __init__(self):
            super().__init__(name="net")
            self.first, self.second = L.Bidirectional(L.LSTM(4, return_sequences=True)), L.GRU(5)
            self.out = L.Dense(1)

        def call(self, x):
            return self.out(self.second(self.first(x)))

    return Case(compiled(Net(), "mse", []), SERIES, SERIES.sum((1, 2))[:, None] / 5)


def mask():
    model = keras.Sequential([keras.Input((7,), dtype="int32"), L.Embedding(12, 6, mask_zero=True), MaskedMean(),
                              L.Dense(3)], name="mask")
    return Case(compiled(model), IDS, IDS[:, 1] % 3)


def masked_loss():
    i = keras.Input((7,), dtype="int32")
    x = L.Embedding(12, 6, mask_zero=True)(i)
    model = keras.Model(i, Linear(12, name="out")(L.LSTM(6, return_sequences=True)(x)), name="tagger")
    return Case(compiled(model), IDS, np.roll(IDS, -1, 1))


def compute_loss():
    class Net(keras.Model):
        def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
            return ops.mean(ops.square(y - y_pred)) + 0.1 * ops.mean(ops.abs(y_pred)) + 0.01 * ops.mean(x * y_pred)

    i = keras.Input((6,))
    return Case(compiled(Net(i, L.Dense(1)(L.Dense(8, "relu")(i)), name="net"), None, []), X, Y)


def vae():
    class Autoencoder(keras.Model):
        def __init__(self):
            super().__init__(name="vae")
            self.hidden, self.mean, self.spread = L.Dense(8, "relu"), L.Dense(2), L.Dense(2)
            self.sampling = Sampling()
            self.decoder = keras.Sequential([L.Dense(8, "relu"), L.Dense(6)])

        def call(self, x):
            h = self.hidden(x)
            return self.decoder(self.sampling(self.mean(h), self.spread(h)))

    return Case(compiled(Autoencoder(), "mse", []), X, X, random=True)


def no_targets():
    """A loss of its own, without targets."""
    class Autoencoder(keras.Model):
        def __init__(self):
            super().__init__(name="auto")
            self.encoder, self.decoder = Linear(3, "tanh"), L.Dense(6)

        def call(self, x):
            made = self.decoder(self.encoder(x))
            self.add_loss(ops.mean(ops.square(made - x)))
            return made

    model = Autoencoder()
    model.compile(keras.optimizers.RMSprop(0.01))
    return Case(model, X)


def shared_weights():
    class Siamese(keras.Model):
        def __init__(self):
            super().__init__(name="siamese")
            self.tower, self.out = keras.Sequential([L.Dense(5, "relu"), Linear(4)]), L.Dense(1)

        def call(self, inputs):
            a, b = inputs
            return self.out(ops.abs(self.tower(a) - self.tower(b)))

    same = (LABELS == np.roll(LABELS, 1)).astype("float32")[:, None]
    loss = keras.losses.BinaryCrossentropy(from_logits=True)
    return Case(compiled(Siamese(), loss, []), [X, np.roll(X, 1, 0)], same)


def tied_embedding():
    class Language(keras.Model):
        def __init__(self):
            super().__init__(name="language")
            self.table, self.mix = L.Embedding(12, 6), L.Dense(6, "gelu")

        def call(self, ids):
            return ops.matmul(self.mix(self.table(ids)), ops.transpose(self.table.embeddings))

    return Case(compiled(Language()), IDS, np.roll(IDS, -1, 1))


def layer_norm():
    i = keras.Input((6,))
    entropy = keras.metrics.SparseCategoricalCrossentropy(from_logits=True, name="ce")
    return Case(compiled(keras.Model(i, L.Dense(3)(Norm()(L.Dense(8)(i))), name="norm"), metrics=[entropy]), X, LABELS)


def weighted():
    class Net(keras.Model):
        def __init__(self):
            super().__init__(name="net")
            self.hidden, self.out = Linear(8, "relu"), L.Dense(3)

        def call(self, x):
            return self.out(self.hidden(x))

    model = compiled(Net(), weighted_metrics=[keras.metrics.SparseCategoricalAccuracy(name="weighted")])
    return Case(model, X, LABELS, np.linspace(0.1, 2, len(X)).astype("float32"))


def depthwise():
    class Net(keras.Model):
        def __init__(self):
            super().__init__(name="net")
            self.layers_ = [L.DepthwiseConv2D(3, padding="same"), L.Conv2D(4, 3, strides=2), L.AveragePooling2D(2),
                            L.Flatten(), L.Dense(2)]

        def call(self, x):
            for layer in self.layers_:
                x = layer(x)
            return x

    return Case(compiled(Net(), optimizer=keras.optimizers.SGD(0.05, momentum=0.9)), IMAGES, KINDS)


def schedule():
    class Net(keras.Model):
        def __init__(self):
            super().__init__(name="net")
            self.out = Linear(1)

        def call(self, x):
            return self.out(x)

    class Falling(keras.optimizers.schedules.LearningRateSchedule):
        def __call__(self, step):
            return 0.1 / (1.0 + 0.5 * ops.cast(step, "float32"))

    return Case(compiled(Net(), "mse", ["mae"], keras.optimizers.AdamW(Falling(), weight_decay=0.02)), X, Y)


def mlp():
    model = keras.Sequential([keras.Input((6,)), L.Dense(8, "relu"), L.LayerNormalization(), L.Dense(3)], name="mlp")
    return Case(compiled(model), X, LABELS, file=True)


def cnn():
    model = keras.Sequential([keras.Input((8, 8, 2)), L.Conv2D(4, 3, padding="same"), L.BatchNormalization(),
                              L.ReLU(), L.MaxPooling2D(), L.GlobalAveragePooling2D(), L.Dense(2)], name="cnn")
    return Case(compiled(model), IMAGES, KINDS, file=True)


def transformer():
    i = keras.Input((7,), dtype="int32")
    x = L.Embedding(12, 8)(i)
    x = L.LayerNormalization()(x + L.MultiHeadAttention(2, 4)(x, x))
    x = L.LayerNormalization()(x + L.Dense(8)(L.Dense(16, activation="gelu")(x)))
    return Case(compiled(keras.Model(i, L.Dense(3)(L.GlobalAveragePooling1D()(x)), name="transformer")), IDS,
                IDS[:, 0] % 3, file=True)


def own_step():
    """As in Keras' guide to custom steps on JAX. Its loss is a mean over batches, so the batches have one size."""
    class Net(keras.Model):
        def train_step(self, state, data):
            trainable, others, optimizer, metrics = state
            x, y = data
            loss_of = jax.value_and_grad(self.loss_and_more, has_aux=True)
            (loss, (predicted, others)), gradients = loss_of(trainable, others, x, y)
            trainable, optimizer = self.optimizer.stateless_apply(optimizer, gradients, trainable)
            logs, updated = {}, []
            for metric in self.metrics:
                now = metrics[len(updated):len(updated) + len(metric.variables)]
                given = (loss,) if metric.name == "loss" else (y, predicted)
                now = metric.stateless_update_state(now, *given)
                logs[metric.name] = metric.stateless_result(now)
                updated += now
            return logs, (trainable, others, optimizer, updated)

        def loss_and_more(self, trainable, others, x, y):
            predicted, others = self.stateless_call(trainable, others, x, training=True)
            return self.compute_loss(x, y, predicted), (predicted, others)

    i = keras.Input((6,))
    x = L.BatchNormalization()(L.Dense(8, activation="relu")(i))
    return Case(compiled(Net(i, L.Dense(3)(x), name="net"), metrics=[keras.metrics.SparseCategoricalAccuracy()]),
                X[:32], LABELS[:32])


def mixup_step():
    """A step with a loss of its own: of each sample and the mean of its features."""
    class Net(keras.Model):
        def train_step(self, state, data):
            trainable, others, optimizer, metrics = state
            x, y = data

            def loss_of(trainable):
                outputs = [self.stateless_call(trainable, others, part)[0]
                           for part in (x, 0.5 * (x + ops.mean(x, axis=1, keepdims=True)))]
                return ops.mean((outputs[0] - y)**2) + 0.3 * ops.mean((outputs[1] - y)**2)

            loss, gradients = jax.value_and_grad(loss_of)(trainable)
            trainable, optimizer = self.optimizer.stateless_apply(optimizer, gradients, trainable)
            logs, metrics = self._update_metrics_variables(
                metrics, loss, x, y, self.stateless_call(trainable, others, x)[0], None)
            return logs, (trainable, others, optimizer, metrics)

    i = keras.Input((6,))
    return Case(compiled(Net(i, L.Dense(1)(L.Dense(8, activation="tanh")(i)), name="mixup"), "mse", []), X, Y)


def squeeze_and_excite():
    class Squeeze(L.Layer):
        def build(self, shape):
            self.down, self.up = L.Dense(2, "relu"), L.Dense(shape[-1], "sigmoid")

        def call(self, x):
            return x * self.up(self.down(ops.mean(x, axis=(1, 2), keepdims=True)))

    model = keras.Sequential([keras.Input((8, 8, 2)), L.Conv2D(6, 3, activation="swish"), Squeeze(),
                              L.GlobalAveragePooling2D(), L.Dense(2)], name="squeeze")
    return Case(compiled(model), IMAGES, KINDS)


def experts():
    """A mixture of experts whose gate weighs all of them."""
    class Experts(L.Layer):
        def build(self, shape):
            self.gate = L.Dense(3, "softmax")
            self.weights_of = self.add_weight(shape=(3, shape[-1], 8), name="experts")

        def call(self, x):
            return ops.einsum("bf,efo,be->bo", x, self.weights_of, self.gate(x))

    model = keras.Sequential([keras.Input((6,)), Experts(), L.ReLU(), L.Dense(3)], name="experts")
    return Case(compiled(model), X, LABELS)


def causal_convolutions():
    class Gated(L.Layer):
        def __init__(self, rate):
            super().__init__()
            self.filter = L.Conv1D(4, 2, padding="causal", dilation_rate=rate)
            self.gate = L.Conv1D(4, 2, padding="causal", dilation_rate=rate)

        def call(self, x):
            return x + ops.tanh(self.filter(x)) * ops.sigmoid(self.gate(x))

    model = keras.Sequential([keras.Input((6, 4)), Gated(1), Gated(2), L.Flatten(), L.Dense(1)], name="wave")
    return Case(compiled(model, "mse", ["mae"]), SERIES, SERIES[:, -1, :1])


def twins():
    """Two inputs through the same layers, and the cosine of the results."""
    tower = keras.Sequential([L.Dense(8, activation="tanh"), L.Dense(4)])
    a, b = keras.Input((6,), name="a"), keras.Input((6,), name="b")
    x, y = tower(a), tower(b)
    cosine = ops.sum(ops.normalize(x, axis=-1) * ops.normalize(y, axis=-1), axis=-1, keepdims=True)
    model = keras.Model({"b": b, "a": a}, cosine, name="twins")
    return Case(compiled(model, "mse", []), {"b": X[::-1].copy(), "a": X}, np.sign(Y))


def gated_unit():
    class Unit(L.Layer):
        def build(self, shape):
            self.wide, self.narrow = L.Dense(32), L.Dense(shape[-1])
            self.scale = self.add_weight(shape=(shape[-1],), initializer="ones", name="scale")

        def call(self, x):
            normal = x * ops.rsqrt(ops.mean(ops.square(x), axis=-1, keepdims=True) + 1e-6) * self.scale
            a, b = ops.split(self.wide(normal), 2, axis=-1)
            return x + self.narrow(ops.silu(a) * b)

    model = keras.Sequential([keras.Input((6, 4)), Unit(), Unit(), L.GlobalMaxPooling1D(), L.Dense(1)], name="gated")
    return Case(compiled(model, "mse", []), SERIES, SERIES[:, 0, :1])


def quantiles():
    """Two outputs, each with a loss of its own: pinball losses of 0.1 and 0.9."""
    def pinball(q):
        def loss(y_true, y_pred):
            error = y_true - y_pred
            return ops.mean(ops.maximum(q * error, (q - 1) * error), axis=-1)

        return loss

    i = keras.Input((6,))
    x = L.Dense(8, activation="softplus")(i)
    model = keras.Model(i, {"low": L.Dense(1, name="low")(x), "high": L.Dense(1, name="high")(x)}, name="quantiles")
    return Case(compiled(model, {"low": pinball(0.1), "high": pinball(0.9)}, []), X, {"low": Y, "high": Y})


def both_directions():
    """A cell of the user's in both directions."""
    i = keras.Input((6, 4))
    x = L.Concatenate()([L.RNN(Cell(5))(i), L.RNN(Cell(5), go_backwards=True)(i)])
    return Case(compiled(keras.Model(i, L.Dense(1)(x), name="both"), "mse", []), SERIES, SERIES[:, 0, :1])


ALL = [custom_layer, custom_activation, loss_function, loss_class, custom_metric, add_loss, activity_regularizer,
       kernel_regularizer, lambda_layer, nested, residual_cnn, dropout, attention, operations, two_inputs,
       recurrent_cell, lstm_and_gru, mask, masked_loss, compute_loss, vae, no_targets, shared_weights, tied_embedding,
       layer_norm, weighted, depthwise, schedule, mlp, cnn, transformer, own_step, mixup_step, squeeze_and_excite,
       experts, causal_convolutions, twins, gated_unit, quantiles, both_directions]


def lines():
    """Its classes can be loaded by another process."""
    model = keras.Sequential([keras.Input((6,)), Linear(8, "tanh"), L.Dense(1)], name="lines")
    return Case(compiled(model, "mse", []), X, Y)


def make(function):
    """The same weights and names of layers every time."""
    begin(4)
    return function()
