# SPDX-License-Identifier: Apache-2.0
"""Small Keras models of the tests."""

import keras
import numpy as np

L = keras.layers


def begin(seed):
    """The same weights and names of layers every time."""
    keras.backend.clear_session()
    keras.utils.set_random_seed(seed)


def mlp(optimizer=None, dropout=0.0, name="mlp", **options):
    """A classifier of MNIST's images, compiled; the same weights every time."""
    begin(1)
    layers = [keras.Input((784,)), L.Dense(16, activation="relu")]
    layers += [L.Dropout(dropout)] if dropout else []
    model = keras.Sequential([*layers, L.Dense(10)], name=name)
    options = {"metrics": ["accuracy"], **options}
    model.compile(optimizer or keras.optimizers.Adam(0.002),
                  keras.losses.SparseCategoricalCrossentropy(from_logits=True), **options)
    return model


def line(optimizer=None, name="line", **options):
    """One number of two, compiled; it learns y = 2 a - 3 b + 1."""
    begin(2)
    model = keras.Sequential([keras.Input((2,)), L.Dense(1)], name=name)
    # Keras computes three steps sooner than it compiles one.
    model.compile(optimizer or keras.optimizers.SGD(0.1), "mean_squared_error", run_eagerly=True, **options)
    return model


def two_inputs(name="two"):
    """Two inputs and two outputs, by names."""
    begin(3)
    a, b = keras.Input((3,), name="a"), keras.Input((2,), name="b")
    both = L.Concatenate()([L.Dense(4, name="left")(a), b])
    model = keras.Model([a, b], [L.Dense(1, name="sum")(both), L.Dense(3, activation="softmax", name="kind")(both)],
                        name=name)
    model.compile("sgd", {"sum": "mse", "kind": "sparse_categorical_crossentropy"}, metrics={"kind": ["accuracy"]})
    return model


def points(count=96):
    """Data of `line`."""
    x = np.random.default_rng(0).random((count, 2), dtype="float32")
    return x, (2 * x[:, :1] - 3 * x[:, 1:] + 1).astype("float32")


def pairs(first, second):
    """Pairs of the items of two lists, which must be as long as each other (zip's `strict` came with Python 3.10)."""
    first, second = list(first), list(second)
    assert len(first) == len(second)
    return zip(first, second)


def values(model):
    """All variables of a model and its optimizer, as arrays."""
    variables = [*model.variables, *model.optimizer.variables]
    return [keras.ops.convert_to_numpy(v.value) for v in variables if "seed_generator" not in v.path]


def same(model, other):
    """Whether all variables have the same bits."""
    return all(np.array_equal(a, b) for a, b in pairs(values(model), values(other)))
