# SPDX-License-Identifier: Apache-2.0
"""Layers, losses and metrics of the tests' own."""

import keras
import numpy as np
from keras import layers as L
from keras import ops


@keras.saving.register_keras_serializable("tests")
class Linear(L.Layer):
    def __init__(self, units, activation=None, **options):
        super().__init__(**options)
        self.units = units
        self.activation = keras.activations.get(activation)

    def build(self, shape):
        self.w = self.add_weight(shape=(shape[-1], self.units), name="w")
        self.b = self.add_weight(shape=(self.units,), initializer="zeros", name="b")

    def call(self, x):
        return self.activation(ops.matmul(x, self.w) + self.b)

    def get_config(self):
        return {**super().get_config(), "units": self.units, "activation": keras.activations.serialize(self.activation)}


class Focal(keras.losses.Loss):
    def call(self, y_true, y_pred):
        p = ops.take_along_axis(ops.softmax(y_pred), ops.expand_dims(ops.cast(y_true, "int32"), -1), axis=-1)
        return -ops.mean((1 - p) ** 2 * ops.log(p + 1e-6), axis=-1)


class Near(keras.metrics.Metric):
    """The share of targets that are less than a half away; a metric of its own with two sums."""

    def __init__(self, name="near"):
        super().__init__(name=name)
        self.hits = self.add_weight(name="hits", initializer="zeros")
        self.total = self.add_weight(name="total", initializer="zeros")

    def update_state(self, y_true, y_pred, sample_weight=None):
        near = ops.cast(ops.abs(y_true - y_pred) < 0.5, "float32")
        self.hits.assign_add(ops.sum(near))
        self.total.assign_add(ops.cast(ops.size(near), "float32"))

    def result(self):
        return self.hits / self.total


class Sparse(L.Layer):
    """Adds a loss of what goes through it."""

    def call(self, x):
        self.add_loss(0.03 * ops.mean(ops.abs(x)))
        return x


class Block(keras.Model):
    def __init__(self, units, **options):
        super().__init__(**options)
        self.first = Linear(units, "relu", name="first")
        self.inner = keras.Sequential([L.Dense(units, "tanh"), L.Dense(units)], name="inner")

    def call(self, x):
        x = self.first(x)
        return x + self.inner(x)


class Residual(L.Layer):
    def __init__(self, filters, **options):
        super().__init__(**options)
        self.convs = [L.Conv2D(filters, 3, padding="same", use_bias=False) for _ in range(2)]
        self.norms = [L.BatchNormalization(momentum=0.8) for _ in range(2)]
        self.skip = L.Conv2D(filters, 1)

    def call(self, x, training=None):
        y = ops.relu(self.norms[0](self.convs[0](x), training=training))
        return ops.relu(self.skip(x) + self.norms[1](self.convs[1](y), training=training))


class Attention(L.Layer):
    def __init__(self, width, heads, **options):
        super().__init__(**options)
        self.heads, self.width = heads, width
        self.qkv, self.out = L.Dense(3 * width), L.Dense(width)

    def call(self, x):
        t = x.shape[1]
        q, k, v = (ops.transpose(ops.reshape(p, (-1, t, self.heads, self.width // self.heads)), (0, 2, 1, 3))
                   for p in ops.split(self.qkv(x), 3, axis=-1))
        scores = ops.matmul(q, ops.transpose(k, (0, 1, 3, 2))) / np.sqrt(self.width // self.heads).item()
        made = ops.transpose(ops.matmul(ops.softmax(scores), v), (0, 2, 1, 3))
        return self.out(ops.reshape(made, (-1, t, self.width)))


class Operations(L.Layer):
    """keras.ops alone."""

    def call(self, x):
        low, high = ops.min(x, axis=-1, keepdims=True), ops.max(x, axis=-1, keepdims=True)
        scaled = (x - low) / (high - low + 0.1)
        return ops.concatenate([scaled, ops.log1p(ops.abs(x)), ops.clip(x, -0.5, 0.5), ops.flip(x, axis=1)], axis=-1)


class Cell(L.Layer):
    """A recurrent cell."""

    def __init__(self, units, **options):
        super().__init__(**options)
        self.units = self.state_size = units

    def build(self, shape):
        self.w = self.add_weight(shape=(shape[-1], self.units), name="w")
        self.u = self.add_weight(shape=(self.units, self.units), name="u")

    def call(self, x, states):
        h = ops.tanh(ops.matmul(x, self.w) + 0.9 * ops.matmul(states[0], self.u))
        return h, [h]


class MaskedMean(L.Layer):
    def __init__(self, **options):
        super().__init__(**options)
        self.supports_masking = True

    def call(self, x, mask=None):
        weights = ops.expand_dims(ops.cast(mask, x.dtype), -1)
        return ops.sum(x * weights, axis=1) / ops.sum(weights, axis=1)

    def compute_mask(self, inputs, mask=None):
        return None


class Sampling(L.Layer):
    def __init__(self, **options):
        super().__init__(**options)
        self.seeds = keras.random.SeedGenerator(5)

    def call(self, mean, log_variance):
        self.add_loss(-0.05 * ops.mean(1 + log_variance - ops.square(mean) - ops.exp(log_variance)))
        return mean + ops.exp(0.5 * log_variance) * keras.random.normal(ops.shape(mean), seed=self.seeds)


class Norm(L.Layer):
    def build(self, shape):
        self.gamma = self.add_weight(shape=shape[-1:], initializer="ones", name="gamma")

    def call(self, x):
        mean = ops.mean(x, axis=-1, keepdims=True)
        variance = ops.mean(ops.square(x - mean), axis=-1, keepdims=True)
        return (x - mean) * ops.rsqrt(variance + 1e-5) * self.gamma
