# SPDX-License-Identifier: Apache-2.0
"""make.py FOLDER: writes the models of Keras' multi-GPU guides as JSON, as model.to_json() does. Needs Keras 3.

The pages' tests compile them and write the .keras files that a reader would have saved (prepare.py)."""
import os
import pathlib
import sys

os.environ.setdefault("KERAS_BACKEND", "jax")
import keras
from keras import layers


def mlp():
    inputs = keras.Input(shape=(784,))
    x = layers.Dense(256, activation="relu")(inputs)
    x = layers.Dense(256, activation="relu")(x)
    return keras.Model(inputs, layers.Dense(10)(x), name="mlp")


def photos():
    """A small network in place of ResNet-50, which takes minutes on a CPU."""
    return keras.Sequential(
        [keras.Input((32, 32, 3)), layers.Conv2D(8, 3, activation="relu"), layers.MaxPooling2D(4), layers.Flatten(),
         layers.Dense(5, activation="softmax")], name="photos")


def convnet():
    inputs = keras.Input(shape=(28, 28, 1))
    x = layers.Rescaling(1.0 / 255.0)(inputs)
    for filters, size, strides, padding in ((12, 3, 1, "same"), (24, 6, 2, "valid"), (32, 6, 2, "same")):
        x = layers.Conv2D(filters, size, strides=strides, padding=padding, use_bias=False)(x)
        x = layers.BatchNormalization(scale=False, center=True)(x)
        x = layers.ReLU()(x)
    x = layers.GlobalAveragePooling2D()(x)
    x = layers.Dropout(0.5)(layers.Dense(256, activation="relu")(x))
    return keras.Model(inputs, layers.Dense(10)(x), name="convnet")


def article():
    return keras.Sequential(
        [keras.Input((28, 28, 1)), layers.Conv2D(32, 3, activation="relu"), layers.MaxPooling2D(), layers.Flatten(),
         layers.Dense(64, activation="relu"), layers.Dense(10, activation="softmax")], name="article")


def tutorial():
    return keras.Sequential(
        [keras.Input((28, 28, 1)), layers.Conv2D(32, 3, activation="relu"), layers.MaxPooling2D(),
         layers.Conv2D(64, 3, activation="relu"), layers.MaxPooling2D(), layers.Flatten(),
         layers.Dense(128, activation="relu"), layers.Dense(10)], name="tutorial")


def cifar():
    return keras.Sequential(
        [keras.Input((32, 32, 3)), layers.Rescaling(1.0 / 255.0), layers.Conv2D(8, 3, strides=2, activation="relu"),
         layers.GlobalAveragePooling2D(), layers.Dense(10)], name="cifar")


def compiled(model, from_logits=True, rate=0.001):
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=from_logits)
    model.compile(optimizer=keras.optimizers.Adam(rate), loss=loss, metrics=["accuracy"])
    return model


models = [compiled(mlp()), compiled(photos(), False, 0.0001), convnet(), compiled(article(), False),
          compiled(tutorial()),
          compiled(cifar())]
for model in models:
    (pathlib.Path(sys.argv[1]) / f"{model.name}.json").write_text(model.to_json(indent=1) + "\n")
