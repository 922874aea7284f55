# SPDX-License-Identifier: Apache-2.0
"""Runs the loops in Python of docs/from-keras.md, with the guides' models and a thousand images."""
import gzip
import os
import pathlib
import sys

os.environ.setdefault("KERAS_BACKEND", "jax")
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "test/docs")]
import keras  # noqa: E402
import numpy as np  # noqa: E402
from run import blocks  # noqa: E402

L = keras.layers


def mnist():
    files = [gzip.decompress((ROOT / "examples/mnist" / f"t10k-{name}.gz").read_bytes())
             for name in ("images-idx3-ubyte", "labels-idx1-ubyte")]
    images = np.frombuffer(files[0], "u1", offset=16).reshape(-1, 28, 28, 1)[:1000]
    return images.astype("float32"), np.frombuffer(files[1], "u1", offset=8)[:1000].astype("int32")


def convnet():
    """Of the guide to JAX: not compiled, with Rescaling, batch normalisation and dropout."""
    x = inputs = keras.Input((28, 28, 1))
    x = L.Rescaling(1.0 / 255.0)(x)
    for filters, size, strides, padding in ((12, 3, 1, "same"), (24, 6, 2, "valid"), (32, 6, 2, "same")):
        x = L.Conv2D(filters, size, strides=strides, padding=padding, use_bias=False)(x)
        x = L.ReLU()(L.BatchNormalization(scale=False, center=True)(x))
    x = L.Dropout(0.5)(L.Dense(256, activation="relu")(L.GlobalAveragePooling2D()(x)))
    return keras.Model(inputs, L.Dense(10)(x), name="convnet")


def tutorial():
    model = keras.Sequential([keras.Input((28, 28, 1)), L.Conv2D(32, 3, activation="relu"), L.MaxPooling2D(),
                              L.Flatten(), L.Dense(10)], name="tutorial")
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    return model


def main():
    x, y = mnist()
    batches = [(x[i:i + 64] / 255, y[i:i + 64]) for i in range(0, len(x), 64)]
    given = {"x_train": x, "y_train": y, "x_test": x / 255, "y_test": y, "train_dataset": batches}
    loops = ["\n".join(lines) for _, _, lines in blocks((ROOT / "docs/from-keras.md").read_text())
             if lines[0] == "import mtc"]
    for model, loop in zip([convnet(), tutorial()], loops):
        exec(loop, {**given, "model": model})
    trained = keras.models.load_model("convnet-trained.keras")
    shapes = [[w.shape for w in model.weights] for model in (trained, convnet())]
    print("loops:", len(loops), "same layers:", shapes[0] == shapes[1])


main()
