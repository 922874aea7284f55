# SPDX-License-Identifier: Apache-2.0
"""The Python blocks of the pages that need no framework but Keras."""

import gzip
import struct

import keras
import numpy as np
import pages
import pytest

import mtc

L = keras.layers


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """The pages write files."""
    monkeypatch.chdir(tmp_path)
    keras.utils.set_random_seed(1)
    return tmp_path


def run(page, names):
    for _ in pages.run(page, names):
        pass


def test_every_page_with_python_is_run():
    assert pages.pages() == pages.KERAS | pages.FRAMEWORKS


def mnist(count):
    files = [gzip.decompress((pages.ROOT / "examples/mnist" / f"t10k-{name}.gz").read_bytes())
             for name in ("images-idx3-ubyte", "labels-idx1-ubyte")]
    images = np.frombuffer(files[0], "u1", offset=16).reshape(-1, 28, 28, 1)[:count]
    return images.astype("float32"), np.frombuffer(files[1], "u1", offset=8)[:count].astype("int32")


def write_mnist(folder, images, labels):
    folder.mkdir(parents=True)
    for part in ("train", "t10k"):
        (folder / f"{part}-images-idx3-ubyte").write_bytes(
            struct.pack(">4i", 0x803, len(images), 28, 28) + images.astype("u1").tobytes())
        (folder / f"{part}-labels-idx1-ubyte").write_bytes(
            struct.pack(">2i", 0x801, len(labels)) + labels.astype("u1").tobytes())


def classifier():
    model = keras.Sequential([keras.Input((28, 28, 1)), L.Flatten(), L.Dense(16, activation="relu"), L.Dense(10)])
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    return model


def samples():
    x, y = mnist(1000)
    x /= 255
    return {"x": x[:800], "y": y[:800], "xv": x[800:], "yv": y[800:]}


def test_readme(folder, capsys):
    names = {"model": classifier(), **samples()}
    run("README.md", names)
    assert len(names["history"].history["val_accuracy"]) == 2 and (folder / "model.mtp").exists()


def test_python(folder):
    write_mnist(folder / "data" / "mnist", *mnist(200))
    given = samples()
    names = {"model": classifier(), "batches": [(given["x"][:64], given["y"][:64])], **given}
    try:
        for _ in pages.run("docs/python.md", names):
            if "session" in names:  # the block's `with` has closed it
                names["session"] = names["plan"].session(devices="cpu:2")
    finally:
        mtc.keras.uninstall()
    assert names["outputs"].shape == (64, 10)
    assert (folder / "w.safetensors").exists() and (folder / "step.json").exists()
    assert len(names["result"].history["val_accuracy"]) == 2


def convnet():
    """The model of the guide to JAX: not compiled, with Rescaling, batch normalisation and dropout."""
    x = inputs = keras.Input((28, 28, 1))
    x = L.Rescaling(1.0 / 255.0)(x)
    for filters, size, strides, padding in ((12, 3, 1, "same"), (24, 6, 2, "valid"), (32, 6, 2, "same")):
        x = L.Conv2D(filters, size, strides=strides, padding=padding, use_bias=False)(x)
        x = L.ReLU()(L.BatchNormalization(scale=False, center=True)(x))
    x = L.Dropout(0.5)(L.Dense(256, activation="relu")(L.GlobalAveragePooling2D()(x)))
    return keras.Model(inputs, L.Dense(10)(x), name="convnet")


def test_from_keras(capsys):
    x, y = mnist(1000)
    batches = [(x[i:i + 64] / 255, y[i:i + 64]) for i in range(0, len(x), 64)]
    names = {"model": convnet(), "x_train": x, "y_train": y, "x_test": x / 255, "y_test": y,
             "train_dataset": batches}
    for number in pages.run("docs/from-keras.md", names):
        if number == 0:
            names["model"] = classifier()
    trained = keras.models.load_model("convnet-trained.keras")
    assert [w.shape for w in trained.weights] == [w.shape for w in convnet().weights]
    printed = capsys.readouterr().out
    assert printed.count("loss:") >= 2 and "Accuracy: 0." in printed


def test_the_bound_of_inspect():
    plan = mtc.compile(classifier(), batch_size=64, shards=4)
    names = {"up64": lambda size: -(-size // 64) * 64}
    run("docs/inspect.md", names)
    document = plan.inspect()
    for program in document["programs"]:
        for v, variant in enumerate(program["variants"]):
            rows = document["shard_rows"] * variant["shards"]
            assert names["bound"](program, v, rows) == variant["bound_bytes"]


def test_keras_models():
    ids = keras.Input((8,), dtype="int32")
    names = {"ids": ids, "T": 8, "V": 20, "C": 4, "ops": keras.ops, "Embedding": L.Embedding,
             "ReversibleEmbedding": L.ReversibleEmbedding, "blocks": L.Dense(4)}
    run("docs/keras.md", names)
    for outputs, variables in ((names["x"], 2), (names["logits"], 3)):
        model = keras.Model(ids, outputs)
        model.compile("sgd", "mse")
        plan = mtc.compile(model, batch_size=8)
        assert len(plan.variables) >= variables


def test_traces(capsys, folder):
    names = {}
    run("docs/keras-traces.md", names)
    assert "(4, 8)" in capsys.readouterr().out and (folder / "autoencoder.mtp").exists()
