# SPDX-License-Identifier: Apache-2.0
"""Models of Flax (linen and nnx) and of Equinox for test_flax_models.py: losses, parameters, and data of seven batches.

All are without random numbers in the loss, except for `noisy_vae`.
"""

import dataclasses
import itertools
from typing import Any, Callable, Optional

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import linen, nnx

BATCH = 8
BATCHES = 7


@dataclasses.dataclass
class Model:
    """A loss function, what it starts with, and BATCHES * BATCH samples for it."""

    loss: Callable
    params: Any
    data: Any
    optimizer: Any
    state: Any = None
    layer: Optional[str] = None  # the name of one that the plan has

    def batch(self, index):
        return jax.tree.map(lambda a: a[index * BATCH:(index + 1) * BATCH], self.data)


# JAX compiles a program that runs a few times faster without these.
QUICK = {"xla_backend_optimization_level": "0", "xla_llvm_disable_expensive_passes": True,
         "xla_disable_hlo_passes": "fusion"}


def values(shapes, seed):
    """Random first values for a tree of shapes, which JAX would first compile a program for."""
    rng = np.random.default_rng([seed, 99])

    def make(path, shape):
        name = [entry.key for entry in path if hasattr(entry, "key")][-1]
        drawn = rng.standard_normal(shape.shape).astype("float32")
        if name in ("mean", "var"):
            return jnp.full(shape.shape, float(name == "var"))
        if name in ("scale", "bias"):
            return jnp.asarray((name == "scale") + 0.1 * drawn)
        return jnp.asarray(drawn / np.sqrt(np.float32(np.prod(shape.shape[:-1]))))

    return jax.tree.map_with_path(make, shapes)


def first_values(net, seed, *arguments):
    """The variables of a module of linen."""
    return values(jax.eval_shape(lambda: net.init(jax.random.key(0), *arguments)), seed)


def split(make):
    """The definition of a module of nnx, and its parameters."""
    definition, shapes = nnx.split(nnx.eval_shape(lambda: make(nnx.Rngs(0))), nnx.Param)
    return definition, values(shapes, 0)


def samples(seed, *shape):
    return np.random.default_rng(seed).standard_normal((BATCHES * BATCH, *shape)).astype("float32")


def labels(seed, classes, *shape):
    return np.random.default_rng(seed).integers(0, classes, (BATCHES * BATCH, *shape), "int32")


def cross_entropy(logits, wanted):
    return optax.softmax_cross_entropy_with_integer_labels(logits, wanted).mean()


def classifier(net, data, optimizer, **options):
    """A module of linen that needs no state."""
    params = first_values(net, 0, data[0][:1])["params"]
    return Model(lambda params, batch: cross_entropy(net.apply({"params": params}, batch[0]), batch[1]), params, data,
                 optimizer, **options)


# The same network in four ways, with the same first weights

SIZES = (12, 32, 16, 4)


def mlp_weights():
    rng = np.random.default_rng(1)
    return [(rng.standard_normal((a, b)).astype("float32") / np.sqrt(np.float32(a)),
             0.1 * rng.standard_normal(b).astype("float32")) for a, b in itertools.pairwise(SIZES)]


def mlp_data():
    x = samples(1, SIZES[0])
    return x, x[:, :SIZES[-1]].argmax(1).astype("int32")


def mlp_linen():
    class MLP(linen.Module):
        @linen.compact
        def __call__(self, x):
            for size in SIZES[1:-1]:
                x = linen.relu(linen.Dense(size)(x))
            return linen.Dense(SIZES[-1])(x)

    model = classifier(MLP(), mlp_data(), optax.adam(1e-2), layer="MLP/Dense_1")
    model.params = {f"Dense_{i}": {"kernel": w, "bias": b} for i, (w, b) in enumerate(mlp_weights())}
    return model


def mlp_nnx():
    class MLP(nnx.Module):
        def __init__(self, rngs):
            self.layers = nnx.List([nnx.Linear(a, b, rngs=rngs) for a, b in itertools.pairwise(SIZES)])

        def __call__(self, x):
            for layer in self.layers[:-1]:
                x = nnx.relu(layer(x))
            return self.layers[-1](x)

    definition, params = split(MLP)
    for i, (w, b) in enumerate(mlp_weights()):
        params["layers"][i]["kernel"][...], params["layers"][i]["bias"][...] = w, b
    return Model(lambda params, batch: cross_entropy(nnx.merge(definition, params)(batch[0]), batch[1]), params,
                 mlp_data(), optax.adam(1e-2))


def mlp_equinox():
    class MLP(eqx.Module):
        layers: list

        def __call__(self, x):
            for layer in self.layers[:-1]:
                x = jax.nn.relu(layer(x))
            return self.layers[-1](x)

    layers = [eqx.filter_eval_shape(eqx.nn.Linear, a, b, key=jax.random.key(0)) for a, b in itertools.pairwise(SIZES)]
    params = MLP([eqx.tree_at(lambda node: (node.weight, node.bias), layer, (jnp.asarray(w.T), jnp.asarray(b)))
                  for layer, (w, b) in zip(layers, mlp_weights())])
    return Model(lambda params, batch: cross_entropy(jax.vmap(params)(batch[0]), batch[1]), params, mlp_data(),
                 optax.adam(1e-2))


def mlp_plain():
    def loss(params, batch):
        x = batch[0]
        for w, b in params[:-1]:
            x = jax.nn.relu(x @ w + b)
        logits = x @ params[-1][0] + params[-1][1]
        return -jnp.take_along_axis(jax.nn.log_softmax(logits), batch[1][:, None], 1).mean()

    return Model(loss, mlp_weights(), mlp_data(), optax.adam(1e-2))


# Images


def cnn():
    class CNN(linen.Module):
        @linen.compact
        def __call__(self, x):
            x = linen.max_pool(linen.relu(linen.Conv(8, (3, 3))(x)), (2, 2), (2, 2))
            x = linen.relu(linen.Conv(8, (3, 3), strides=2, padding="VALID", feature_group_count=2)(x))
            x = linen.avg_pool(x, (2, 2), (1, 1))
            return linen.Dense(5)(x.reshape(x.shape[0], -1))

    return classifier(CNN(), (samples(2, 12, 12, 3), labels(2, 5)), optax.sgd(0.05, 0.9, nesterov=True),
                      layer="CNN/Conv_1")


class ResidualBlock(linen.Module):
    filters: int
    stride: int

    @linen.compact
    def __call__(self, x, train):
        def norm(y):
            return linen.BatchNorm(use_running_average=not train, momentum=0.9)(y)

        y = linen.Conv(self.filters, (3, 3), self.stride, use_bias=False)(x)
        y = linen.Conv(self.filters, (3, 3), use_bias=False)(linen.relu(norm(y)))
        y = norm(y)
        if x.shape != y.shape:
            x = norm(linen.Conv(self.filters, (1, 1), self.stride, use_bias=False)(x))
        return linen.relu(x + y)


def resnet_batch_statistics():
    class ResNet(linen.Module):
        @linen.compact
        def __call__(self, x, train):
            x = linen.Conv(8, (3, 3), use_bias=False)(x)
            x = linen.relu(linen.BatchNorm(use_running_average=not train, momentum=0.9)(x))
            for filters, stride in ((8, 1), (16, 2)):
                x = ResidualBlock(filters, stride)(x, train)
            return linen.Dense(5)(x.mean((1, 2)))

    net, data = ResNet(), (samples(3, 8, 8, 3), labels(3, 5))
    start = first_values(net, 0, data[0][:1], False)

    def loss(params, state, batch, training):
        logits, new = net.apply({"params": params, "batch_stats": state}, batch[0], training, mutable=["batch_stats"])
        return cross_entropy(logits, batch[1]), new["batch_stats"]

    return Model(loss, start["params"], data, optax.sgd(0.05, 0.9), start["batch_stats"],
                 layer="ResNet/ResidualBlock_1")


def resnet_group_norm():
    class Block(nnx.Module):
        def __init__(self, inputs, filters, stride, rngs):
            self.norm1 = nnx.GroupNorm(inputs, num_groups=4, rngs=rngs)
            self.conv1 = nnx.Conv(inputs, filters, (3, 3), stride, rngs=rngs)
            self.norm2 = nnx.GroupNorm(filters, num_groups=4, rngs=rngs)
            self.conv2 = nnx.Conv(filters, filters, (3, 3), rngs=rngs)
            self.skip = nnx.Conv(inputs, filters, (1, 1), stride, rngs=rngs)

        def __call__(self, x):
            y = nnx.silu(self.norm1(x))
            return self.skip(y) + self.conv2(nnx.silu(self.norm2(self.conv1(y))))

    class ResNet(nnx.Module):
        def __init__(self, rngs):
            self.first = nnx.Conv(3, 8, (3, 3), rngs=rngs)
            self.blocks = nnx.List([Block(8, 8, 1, rngs), Block(8, 16, 2, rngs)])
            self.last = nnx.Linear(16, 5, rngs=rngs)

        def __call__(self, x):
            x = self.first(x)
            for block in self.blocks:
                x = block(x)
            return self.last(nnx.silu(x).mean((1, 2)))

    definition, params = split(ResNet)
    return Model(lambda params, batch: cross_entropy(nnx.merge(definition, params)(batch[0]), batch[1]), params,
                 (samples(4, 8, 8, 3), labels(4, 5)), optax.adamw(3e-3, weight_decay=0.01))


# Text


def gpt():
    words, length, width = 17, 8, 16

    class Block(linen.Module):
        @linen.compact
        def __call__(self, x, mask):
            x = x + linen.MultiHeadDotProductAttention(4)(linen.LayerNorm()(x), mask=mask)
            return x + linen.Dense(width)(linen.gelu(linen.Dense(4 * width)(linen.LayerNorm()(x))))

    class GPT(linen.Module):
        @linen.compact
        def __call__(self, ids):
            embed = linen.Embed(words, width)
            x = embed(ids) + linen.Embed(length, width)(jnp.arange(length))
            for _ in range(2):
                x = Block()(x, linen.make_causal_mask(ids))
            return embed.attend(linen.LayerNorm()(x))

    text = labels(5, words, length + 1)
    rate = optax.warmup_cosine_decay_schedule(1e-3, 1e-2, 2, 20)
    return classifier(GPT(), (text[:, :-1], text[:, 1:]),
                      optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(rate, eps=1e-4)), layer="GPT/Block_1")


# Generative models


class VAE(nnx.Module):
    def __init__(self, rngs):
        self.enter = nnx.Linear(10, 16, rngs=rngs)
        self.mean = nnx.Linear(16, 3, rngs=rngs)
        self.log_var = nnx.Linear(16, 3, rngs=rngs)
        self.decoder = nnx.Sequential(nnx.Linear(3, 16, rngs=rngs), nnx.tanh, nnx.Linear(16, 10, rngs=rngs))

    def loss(self, x, noise):
        h = nnx.tanh(self.enter(x))
        mean, log_var = self.mean(h), self.log_var(h)
        logits = self.decoder(mean + jnp.exp(log_var / 2) * noise)
        likelihood = optax.sigmoid_binary_cross_entropy(logits, x).sum(-1)
        divergence = 0.5 * (mean**2 + jnp.exp(log_var) - 1 - log_var).sum(-1)
        return jnp.mean(likelihood + divergence)


def vae():
    """The noise is part of the data, so that JAX has the same."""
    definition, params = split(VAE)
    pixels = (samples(6, 10) > 0).astype("float32")
    return Model(lambda params, batch: nnx.merge(definition, params).loss(*batch), params, (pixels, samples(7, 3)),
                 optax.adam(1e-2))


def noisy_vae():
    """The step draws the noise."""
    model = vae()
    definition, _ = split(VAE)

    def loss(params, batch, key):
        noise = jax.random.normal(key, (batch.shape[0], 3))
        return nnx.merge(definition, params).loss(batch, noise)

    return dataclasses.replace(model, loss=loss, data=model.data[0])


class Generator(linen.Module):
    @linen.compact
    def __call__(self, noise):
        return linen.Dense(6)(linen.relu(linen.Dense(16)(noise)))


class Discriminator(linen.Module):
    @linen.compact
    def __call__(self, x):
        return linen.Dense(1)(linen.leaky_relu(linen.Dense(16)(x), 0.2))[:, 0]


def discriminator():
    """Its data are real samples and what the generator makes."""
    net = Discriminator()

    def loss(params, batch):
        real, made = (net.apply({"params": params}, batch[name]) for name in ("real", "made"))
        return jnp.mean(jax.nn.softplus(-real) + jax.nn.softplus(made)), {"real": real.mean(), "made": made.mean()}

    real = 0.5 * samples(8, 6) + np.arange(6, dtype="float32") / 6
    return Model(loss, first_values(net, 1, real[:1])["params"], {"real": real, "made": samples(13, 6)},
                 optax.adam(1e-2, b1=0.5))


def generator():
    """The discriminator's parameters are the state, which the loss does not change."""
    net, other = Generator(), Discriminator()

    def loss(params, state, batch):
        logits = other.apply({"params": state["discriminator"]}, net.apply({"params": params}, batch))
        return jnp.mean(jax.nn.softplus(-logits)), state

    noise = samples(9, 4)
    return Model(loss, first_values(net, 2, noise[:1])["params"], noise, optax.adam(1e-2, b1=0.5),
                 {"discriminator": discriminator().params})


def zero_logits():
    """A classifier of two classes whose last layer starts with zeros."""
    class Net(linen.Module):
        @linen.compact
        def __call__(self, x):
            x = linen.tanh(linen.Dense(8)(x))
            return linen.Dense(1)(x)[:, 0]

    net, x = Net(), samples(14, 6)

    def loss(params, batch):
        return optax.sigmoid_binary_cross_entropy(net.apply({"params": params}, batch[0]), batch[1]).mean()

    params = first_values(net, 0, x[:1])["params"]
    params["Dense_1"] = jax.tree.map(jnp.zeros_like, params["Dense_1"])
    return Model(loss, params, (x, (x[:, 0] > 0).astype("float32")), optax.sgd(0.1))


# Contrastive models


class Encoder(linen.Module):
    @linen.compact
    def __call__(self, x):
        z = linen.Dense(8)(linen.relu(linen.Dense(16)(x)))
        return z / jnp.sqrt((z * z).sum(-1, keepdims=True) + 1e-6)


def contrastive():
    """All pairs of a batch: each sample's view against the other views of all samples, which are rows of a table."""
    net = Encoder()
    most = 64

    def loss(params, batch):
        a, b = (net.apply({"params": params}, x) for x in batch)
        count = a.shape[0]
        every = jnp.zeros((most, 8)).at[jnp.arange(count)].add(b)
        logits = jnp.where(jnp.arange(most) < count, a @ every.T / 0.1, -1e9)
        return -jnp.take_along_axis(jax.nn.log_softmax(logits), jnp.arange(count)[:, None], -1).mean()

    x = samples(13, 12)
    return Model(loss, first_values(net, 0, x[:1])["params"], (x, x + 0.1 * samples(14, 12)), optax.adam(1e-2))


def contrastive_own_negatives():
    """Each sample brings its negatives: an anchor, a positive and five others [n, 7, 12]."""
    net = Encoder()

    def loss(params, batch):
        z = net.apply({"params": params}, batch)
        logits = jnp.einsum("nd,nkd->nk", z[:, 0], z[:, 1:]) / 0.1
        return -jax.nn.log_softmax(logits)[:, 0].mean()

    views = samples(10, 7, 12)
    views[:, 1] = views[:, 0] + 0.1 * views[:, 1]
    return Model(loss, first_values(net, 0, views[:1])["params"], views, optax.adam(1e-2))


def barlow_twins():
    """The cross-correlation of the two views' features over the batch."""
    net = Encoder()

    def loss(params, batch):
        a, b = (net.apply({"params": params}, x) for x in batch)
        a, b = ((z - z.mean(0)) / jnp.sqrt(z.var(0) + 1e-4) for z in (a, b))
        correlation = a.T @ b / a.shape[0]
        return ((correlation - jnp.eye(8)) ** 2).sum()

    x = samples(11, 12)
    return Model(loss, first_values(net, 0, x[:1])["params"], (x, x + 0.1 * samples(12, 12)), optax.adam(1e-2))


COMPARED = (mlp_linen, mlp_nnx, mlp_equinox, mlp_plain, cnn, resnet_batch_statistics, resnet_group_norm, gpt, vae,
            contrastive, contrastive_own_negatives, barlow_twins)
MLPS = (mlp_linen, mlp_nnx, mlp_plain, mlp_equinox)
