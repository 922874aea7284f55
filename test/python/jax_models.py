# SPDX-License-Identifier: Apache-2.0
"""Small models of plain JAX for the tests of mtc.jax: loss functions, parameters and data with fixed seeds."""

import dataclasses
from typing import Any, Callable, Optional

import jax
import jax.numpy as jnp
import numpy as np


@dataclasses.dataclass
class Model:
    """A loss function, what it starts with, and data [n, ...] for it."""

    loss: Callable
    params: Any
    data: Any
    predict: Optional[Callable] = None
    state: Any = None

    def some(self, count, first=0):
        return jax.tree.map(lambda a: a[first:first + count], self.data)


def numbers(seed):
    rng = np.random.default_rng(seed)
    return rng, lambda *shape: (rng.standard_normal(shape) * 0.3).astype("float32")


def cross_entropy(logits, labels):
    picked = jnp.take_along_axis(jax.nn.log_softmax(logits), labels[..., None], -1)[..., 0]
    return -picked.mean()


def mlp():
    """A classifier with an L2 term and an accuracy."""
    rng, normal = numbers(1)
    params = {"dense": {"kernel": normal(12, 16), "bias": normal(16)}, "out": {"kernel": normal(16, 4)}}

    def predict(params, batch):
        return jax.nn.relu(batch[0] @ params["dense"]["kernel"] + params["dense"]["bias"]) @ params["out"]["kernel"]

    def loss(params, batch):
        logits = predict(params, batch)
        decay = 1e-3 * sum(jnp.sum(layer["kernel"] ** 2) for layer in params.values())
        return cross_entropy(logits, batch[1]) + decay, {"accuracy": jnp.mean(logits.argmax(-1) == batch[1])}

    return Model(loss, params, (normal(40, 12), rng.integers(0, 4, 40, "int32")), predict)


def cnn():
    """Convolutions with a stride, in groups, a max and a mean pool, dropout while training."""
    rng, normal = numbers(2)
    params = [normal(3, 3, 2, 8), normal(3, 3, 1, 8), normal(8, 3)]

    def convolve(x, w, groups=1, stride=1):
        return jax.lax.conv_general_dilated(x, w, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"),
                                            feature_group_count=groups)

    def loss(params, batch, key, training):
        x = jax.nn.relu(convolve(batch["image"], params[0], stride=2))
        x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 1, 1, 1), "SAME")
        x = jax.nn.gelu(convolve(x, params[1], groups=8)).mean((1, 2))
        if training:
            x = jnp.where(jax.random.bernoulli(key, 0.8, x.shape), x / 0.8, 0.0)
        return cross_entropy(x @ params[2], batch["label"])

    return Model(loss, params, {"image": normal(24, 8, 8, 2), "label": rng.integers(0, 3, 24, "int32")})


def resnet():
    """A residual block with batch normalisation, whose moving averages are the state."""
    rng, normal = numbers(3)
    params = {"first": normal(3, 3, 1, 4), "second": normal(3, 3, 4, 4), "out": normal(4, 2),
              "norm": {"scale": 1 + normal(4), "bias": normal(4)}}
    state = {"mean": np.zeros(4, "float32"), "var": np.ones(4, "float32")}

    def convolve(x, w):
        return jax.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))

    def loss(params, state, batch, training):
        x = jax.nn.relu(convolve(batch[0], params["first"]))
        y = convolve(x, params["second"])
        mean, var, new = state["mean"], state["var"], state
        if training:
            mean, var = y.mean((0, 1, 2)), y.var((0, 1, 2))
            new = {"mean": 0.9 * state["mean"] + 0.1 * mean, "var": 0.9 * state["var"] + 0.1 * var}
        y = (y - mean) * jax.lax.rsqrt(var + 1e-3) * params["norm"]["scale"] + params["norm"]["bias"]
        x = jax.nn.relu(x + y).mean((1, 2))
        return cross_entropy(x @ params["out"], batch[1]), (new, {"mean_logit": jnp.mean(x)})

    return Model(loss, params, (normal(24, 6, 6, 1), rng.integers(0, 2, 24, "int32")), state=state)


def gpt():
    """Two blocks of causal attention with layer normalisation and tied embeddings, in one dict of parameters."""
    length, width, heads, words = 6, 8, 2, 11
    rng, normal = numbers(4)
    params = {"embed": normal(words, width), "place": normal(length, width)}
    for i in range(2):
        params[f"block{i}"] = {"qkv": normal(width, 3 * width), "out": normal(width, width), "up": normal(width, 16),
                               "down": normal(16, width), "norm": 1 + normal(width)}

    def norm(x, scale):
        mean = x.mean(-1, keepdims=True)
        return (x - mean) * jax.lax.rsqrt(((x - mean) ** 2).mean(-1, keepdims=True) + 1e-5) * scale

    def attend(x, w):
        q, k, v = (y.reshape(*x.shape[:2], heads, -1) for y in jnp.split(norm(x, w["norm"]) @ w["qkv"], 3, -1))
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / np.sqrt(width // heads)
        seen = jnp.tril(jnp.ones((length, length), bool))
        weights = jax.nn.softmax(jnp.where(seen, scores, -1e9))
        return jnp.einsum("bhqk,bkhd->bqhd", weights, v).reshape(x.shape) @ w["out"]

    def loss(params, batch):
        x = params["embed"][batch["text"]] + params["place"]
        for i in range(2):
            w = params[f"block{i}"]
            x = x + attend(x, w)
            x = x + jax.nn.gelu(norm(x, w["norm"]) @ w["up"]) @ w["down"]
        logits = x.reshape(-1, width) @ params["embed"].T
        return cross_entropy(logits, batch["next"].reshape(-1))

    text = rng.integers(0, words, (24, length), "int32")
    return Model(loss, params, {"text": text, "next": np.roll(text, -1, 1)})


def vae():
    """A variational autoencoder: normal random numbers, two terms of the loss, one of them a metric."""
    rng, normal = numbers(5)
    params = {"enter": normal(6, 8), "mean": normal(8, 3), "log_var": normal(8, 3), "leave": normal(3, 6)}

    def loss(params, batch, key):
        h = jnp.tanh(batch @ params["enter"])
        mean, log_var = h @ params["mean"], h @ params["log_var"]
        z = mean + jnp.exp(0.5 * log_var) * jax.random.normal(jax.random.fold_in(key, 1), mean.shape)
        logits = z @ params["leave"]
        likelihood = jnp.sum(jax.nn.softplus(logits) - batch * logits, -1)
        divergence = -0.5 * jnp.sum(1 + log_var - mean**2 - jnp.exp(log_var), -1)
        return jnp.mean(likelihood + divergence), {"divergence": divergence.mean()}

    return Model(loss, params, rng.random((24, 6), "float32"))


def tokens():
    """A recurrent network by scan, and a mean over the tokens that count."""
    rng, normal = numbers(6)
    params = (normal(3, 5), normal(5, 5), normal(5, 2))

    def loss(params, batch):
        def cell(h, x):
            h = jnp.tanh(x @ params[0] + h @ params[1])
            return h, h @ params[2]

        x, targets, weights = batch
        start = jnp.zeros((x.shape[0], 5))
        _, out = jax.lax.scan(cell, start, jnp.swapaxes(x, 0, 1))
        errors = jnp.square(jnp.swapaxes(out, 0, 1) - targets).mean(-1)
        return jnp.sum(errors * weights) / jnp.maximum(jnp.sum(weights), 1.0)

    weights = (rng.random((24, 4)) < 0.7).astype("float32")
    return Model(loss, params, (normal(24, 4, 3), normal(24, 4, 2), weights))


def contrastive():
    """InfoNCE: two views of each sample, against those of all samples of a batch of up to 24."""
    rng, normal = numbers(7)
    params = {"left": normal(6, 5), "right": normal(4, 5)}
    most = 24

    def loss(params, batch):
        a, b = batch["a"] @ params["left"], jnp.tanh(batch["b"] @ params["right"])
        count = a.shape[0]
        every = jnp.zeros((most, 5)).at[jnp.arange(count)].add(b)  # a table of all samples
        logits = jnp.where(jnp.arange(most) < count, a @ every.T, -1e9)
        picked = jnp.take_along_axis(jax.nn.log_softmax(logits), jnp.arange(count)[:, None], -1)
        return -jnp.mean(picked)

    return Model(loss, params, {"a": normal(24, 6), "b": normal(24, 4)})


ALL = (mlp, cnn, resnet, gpt, vae, tokens, contrastive)
