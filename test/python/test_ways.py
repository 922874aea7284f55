# SPDX-License-Identifier: Apache-2.0
"""One transformer block by several ways in: the plans have the same kernels and need the same memory."""

import math
import os
import warnings

os.environ.setdefault("KERAS_BACKEND", "jax")

import jax
import jax.numpy as jnp
import keras
import mtc
import mtc.jax
import mtc.torch
import numpy as np
import optax
import pytest
import stablehlo_text
import torch
from plans import kernels
from torch import nn

BATCH, PLACES, WIDTH, HEADS, HIDDEN, CLASSES = 8, 64, 32, 4, 64, 10
SETTINGS = {"loss": "sparse_categorical_crossentropy,from_logits=true", "optimizer": "sgd,learning_rate=0.1"}
CAUSAL = [False, True]


class Block(nn.Module):
    def __init__(self, causal):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(WIDTH, eps=1e-3), nn.LayerNorm(WIDTH, eps=1e-3)
        self.q, self.k, self.v, self.o = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.up, self.down, self.head = nn.Linear(WIDTH, HIDDEN), nn.Linear(HIDDEN, WIDTH), nn.Linear(WIDTH, CLASSES)
        self.causal = causal

    def forward(self, x):
        b, t, d = x.shape
        y = self.ln1(x)
        q, k, v = (f(y).reshape(b, t, HEADS, d // HEADS).transpose(1, 2) for f in (self.q, self.k, self.v))
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        x = x + self.o(y.transpose(1, 2).reshape(b, t, d))
        x = x + self.down(nn.functional.gelu(self.up(self.ln2(x))))
        return self.head(x.mean(1))


def parameters():
    r = np.random.default_rng(0)
    shapes = {**{f"w{n}": (WIDTH, WIDTH) for n in "qkvo"}, **{f"b{n}": (WIDTH,) for n in "qkvo"},
              "up": (WIDTH, HIDDEN), "bup": (HIDDEN,), "down": (HIDDEN, WIDTH), "bdown": (WIDTH,),
              "head": (WIDTH, CLASSES), "bhead": (CLASSES,), **{f"ln{n}": (WIDTH,) for n in "abcd"}}
    return {name: np.float32(r.standard_normal(shape) * 0.1) for name, shape in shapes.items()}


def normalized(x, scale, centre):
    mean = x.mean(-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(variance + 1e-3) * scale + centre


def block(p, x, causal):
    b, t, d = x.shape
    y = normalized(x, p["lna"], p["lnb"])
    q, k, v = ((y @ p["w" + n] + p["b" + n]).reshape(b, t, HEADS, d // HEADS) for n in "qkv")
    scores = jnp.einsum("bthd,bshd->bhts", q, k) / math.sqrt(d // HEADS)
    if causal:
        scores = jnp.where(jnp.tril(jnp.ones((t, t), bool)), scores, -1e30)
    y = jnp.einsum("bhts,bshd->bthd", jax.nn.softmax(scores, -1), v).reshape(b, t, d)
    x = x + y @ p["wo"] + p["bo"]
    y = jax.nn.gelu(normalized(x, p["lnc"], p["lnd"]) @ p["up"] + p["bup"], approximate=False)
    x = x + y @ p["down"] + p["bdown"]
    return x.mean(1) @ p["head"] + p["bhead"]


def samples():
    generator = np.random.default_rng(1)
    return (generator.standard_normal((BATCH, PLACES, WIDTH)).astype("float32"),
            generator.integers(0, CLASSES, BATCH).astype("int32"))


def by_torch(causal, _path):
    x, y = (torch.tensor(a) for a in samples())
    module = Block(causal)
    step = mtc.torch.compile(module, (x, y.long()), loss=nn.functional.cross_entropy,
                             optimizer=torch.optim.SGD(module.parameters(), 0.1), batch_size=BATCH)
    return step.plan


def by_jax(causal, _path):
    def loss(p, batch):
        logits = block(p, batch["x"], causal)
        return optax.softmax_cross_entropy_with_integer_labels(logits, batch["y"]).mean()

    x, y = samples()
    return mtc.jax.compile(loss, parameters(), {"x": x, "y": y}, optimizer=mtc.jax.sgd(0.1), batch_size=BATCH).plan


def exported(causal, path, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(Block(causal).train(), (torch.tensor(samples()[0]),), path / "model.onnx", **options)
    return mtc.compile(path / "model.onnx", batch_size=BATCH, **SETTINGS)


def by_onnx_script(causal, path):
    return exported(causal, path, dynamo=False, training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False,
                    input_names=["x"], dynamic_axes={"x": {0: "batch"}})


def by_onnx_dynamo(causal, path):
    return exported(causal, path, dynamo=True, optimize=False, dynamic_shapes=({0: torch.export.Dim("batch")},))


def by_keras_file(causal, path):
    layers = keras.layers
    x = inputs = keras.Input((PLACES, WIDTH))
    y = layers.LayerNormalization()(x)
    x = x + layers.MultiHeadAttention(HEADS, WIDTH // HEADS)(y, y, use_causal_mask=causal)
    y = layers.Dense(HIDDEN, activation="gelu")(layers.LayerNormalization()(x))
    x = layers.GlobalAveragePooling1D()(x + layers.Dense(WIDTH)(y))
    model = keras.Model(inputs, layers.Dense(CLASSES)(x))
    model.compile(keras.optimizers.SGD(0.1), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.save(path / "model.keras")
    return mtc.compile(path / "model.keras", batch_size=BATCH)


def by_stablehlo(causal, path):
    shapes = {name: stablehlo_text.shaped(*array.shape) for name, array in parameters().items()}
    text = stablehlo_text.generic(lambda p, x: block(p, x, causal), shapes,
                                  stablehlo_text.shaped(stablehlo_text.BATCH, PLACES, WIDTH))
    (path / "model.mlir").write_text(text)
    return mtc.compile(path / "model.mlir", batch_size=BATCH, **SETTINGS)


@pytest.mark.parametrize("causal", CAUSAL, ids=["full", "causal"])
@pytest.mark.parametrize("way", [by_jax, by_keras_file, by_onnx_script, by_onnx_dynamo, by_stablehlo])
def test_same_kernels_and_memory(way, causal, tmp_path):
    expected = by_torch(causal, tmp_path)
    plan = way(causal, tmp_path)
    assert kernels(plan) == kernels(expected)
    assert kernels(plan)["attention"] == 1
    assert plan.memory(1) == pytest.approx(expected.memory(1), rel=0.02)
