# SPDX-License-Identifier: Apache-2.0
"""mtc.jax.step: random numbers are those of jax.random, from keys in the state."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from test_jax_steps import mlp, numbers, train_on_devices, weights

import mtc
import mtc.jax

STEPS = 12


def descent(loss_of, rate=0.05):
    """A step of gradient descent; `loss_of`: of (weights, batch, key)."""
    def train_step(state, batch):
        p, key = state
        key, own = jax.random.split(key)
        loss, gradient = jax.value_and_grad(loss_of)(p, batch, own)
        return (jax.tree.map(lambda a, g: a - rate * g, p, gradient), key), {"loss": loss}
    return train_step


def dropout():
    def loss_of(p, batch, key):
        keep = jax.random.bernoulli(key, 0.7, (batch["x"].shape[0], 8))
        hidden = jnp.where(keep, jnp.tanh(batch["x"] @ p["w1"] + p["b1"]) / 0.7, 0)
        return jnp.mean((hidden @ p["w2"] + p["b2"] - batch["y"]) ** 2)
    return descent(loss_of), (weights(4, 8, 3), jax.random.key(0)), {"x": numbers(8, 4), "y": numbers(8, 3)}


def variational():
    """A VAE: two heads of the encoder, a sample, and the divergence."""
    optimizer = optax.adam(1e-2)

    def loss_of(p, batch, key):
        mean, spread = jnp.split(mlp(p["encoder"], batch["x"]), 2, -1)
        sample = mean + jnp.exp(0.5 * spread) * jax.random.normal(key, mean.shape)
        shown = mlp(p["decoder"], sample)
        divergence = -0.5 * jnp.sum(1 + spread - mean ** 2 - jnp.exp(spread), -1)
        return jnp.mean(jnp.sum((shown - batch["x"]) ** 2, -1) + divergence)

    def train_step(state, batch):
        p, inner, key, count = state
        loss, gradient = jax.value_and_grad(loss_of)(p, batch, jax.random.fold_in(key, count))
        updates, inner = optimizer.update(gradient, inner, p)
        return (optax.apply_updates(p, updates), inner, key, count + 1), {"loss": loss}

    p = {"encoder": weights(5, 8, 4), "decoder": weights(2, 8, 5)}
    return train_step, (p, optimizer.init(p), jax.random.key(3), jnp.int32(0)), {"x": numbers(8, 5)}


def diffusion():
    """A time and a noise for each sample; the noise is predicted."""
    def loss_of(p, batch, key):
        first, second = jax.random.split(key)
        time = jax.random.uniform(first, (batch["x"].shape[0], 1), minval=0.05, maxval=0.95)
        noise = jax.random.normal(second, batch["x"].shape)
        mixed = jnp.sqrt(1 - time) * batch["x"] + jnp.sqrt(time) * noise
        return jnp.mean((mlp(p, jnp.concatenate([mixed, time], -1)) - noise) ** 2)
    return descent(loss_of), (weights(5, 8, 4), jax.random.key(5)), {"x": numbers(8, 4)}


def raw_keys():
    """Keys as two numbers of uint32, of which another one is made by addition, as Keras does."""
    def train_step(state, batch):
        p, seed = state
        noise = 0.1 * jax.random.normal(seed, batch["x"].shape)
        loss, gradient = jax.value_and_grad(lambda p: jnp.mean((mlp(p, batch["x"] + noise) - batch["y"]) ** 2))(p)
        return ((jax.tree.map(lambda a, g: a - 0.05 * g, p, gradient), seed + jnp.array([0, 1], jnp.uint32)),
                {"loss": loss})
    return train_step, (weights(4, 8, 3), jnp.array([7, 2**31 + 5], jnp.uint32)), {
        "x": numbers(8, 4), "y": numbers(8, 3)}


def of_samples():
    """A key for each sample, a key of constants, keys in a scan, and Gumbel noise."""
    def loss_of(p, batch, key):
        own = jax.random.split(key, batch["x"].shape[0])
        noise = jax.vmap(lambda k: jax.random.uniform(k, (4,)))(own) - 0.5
        fixed = jax.random.normal(jax.random.key(11), (4,))
        _, more = jax.lax.scan(lambda c, k: (c, jax.random.gumbel(k, (3,))), 0, jax.random.split(key, 2))
        out = mlp(p, batch["x"] + noise + 0.1 * fixed) + 0.01 * jnp.sum(more, 0)
        return jnp.mean((out - batch["y"]) ** 2)
    return descent(loss_of), (weights(4, 8, 3), jax.random.key(9)), {"x": numbers(8, 4), "y": numbers(8, 3)}


def whole():
    """A step of a schedule for each sample, and rows that are drawn from a buffer."""
    scales, buffer = jnp.linspace(0.1, 1, 1000), jnp.asarray(numbers(40000, 4))

    def loss_of(p, batch, key):
        first, second = jax.random.split(key)
        at = jax.random.randint(first, (batch["x"].shape[0],), 0, 1000)
        rows = jax.random.randint(second, (5,), -20, 39980) + 20
        scale = scales[at][:, None]
        return jnp.mean((mlp(p, scale * batch["x"]) - batch["y"]) ** 2) + jnp.mean(mlp(p, buffer[rows]) ** 2)
    return descent(loss_of), (weights(4, 8, 3), jax.random.key(2)), {"x": numbers(8, 4), "y": numbers(8, 3)}


def concatenated():
    """A GAN whose second network has generated and real samples as one batch, with noise in the labels."""
    optimizer = optax.adam(1e-2)

    def entropy(logits, labels):
        return jnp.mean(optax.sigmoid_binary_cross_entropy(logits, labels))

    def train_step(state, batch):
        first, second, inner, key = state
        key, *keys = jax.random.split(key, 4)
        rows = batch["x"].shape[0]
        generated = mlp(second, jax.random.normal(keys[0], (rows, 2)))
        labels = jnp.concatenate([jnp.ones((rows, 1)), jnp.zeros((rows, 1))])
        labels = labels + 0.05 * jax.random.uniform(keys[1], labels.shape)

        def judged(p):
            logits = mlp(p, jnp.concatenate([generated, batch["x"]]))
            apart = jnp.mean(logits[:rows] * logits[rows:]) + jnp.mean(jnp.subtract(*jnp.split(logits, 2)) ** 2)
            return entropy(logits, labels) + 0.01 * apart

        def made(p):
            return entropy(mlp(first, mlp(p, jax.random.normal(keys[2], (rows, 2)))), jnp.zeros((rows, 1)))

        loss, gradient = jax.value_and_grad(judged)(first)
        updates, inner = optimizer.update(gradient, inner)
        first = optax.apply_updates(first, updates)
        other, gradient = jax.value_and_grad(made)(second)
        second = jax.tree.map(lambda p, g: p - 0.05 * g, second, gradient)
        return (first, second, inner, key), {"loss": loss, "other": other}

    first = weights(4, 8, 1)
    return train_step, (first, weights(2, 8, 4), optimizer.init(first), jax.random.key(5)), {"x": numbers(8, 4)}


def sometimes():
    """Keys that a branch passes on or splits."""
    def drawn(key):
        key, used = jax.random.split(key)
        return key, jax.random.normal(used, (4,))

    def train_step(state, batch):
        w, key, count = state
        key, noise = jax.lax.cond(count % 2 == 0, drawn, lambda key: (key, jnp.zeros(4)), key)
        loss, gradient = jax.value_and_grad(lambda w: jnp.mean(jnp.tanh(batch["x"] @ w + noise @ w)))(w)
        return (w - 0.1 * gradient, key, count + 1), {"loss": loss}
    return train_step, (np.ones(4, "f4"), jax.random.key(3), jnp.int32(0)), {"x": numbers(8, 4)}


CASES = {f.__name__: f for f in (whole, dropout, variational, diffusion, raw_keys, of_samples, concatenated,
                                     sometimes)}


@pytest.mark.parametrize("name", CASES)
def test_random_numbers_are_those_of_jax_on_any_number_of_devices(name):
    train_on_devices(*CASES[name](), STEPS, lambda mine, theirs: np.testing.assert_allclose(
        float(mine["loss"]), float(theirs["loss"]), rtol=1e-5))


def test_the_check_compares_random_steps(monkeypatch):
    from mtc.jax import _threefry
    right = _threefry._counts
    monkeypatch.setattr(_threefry, "_counts", lambda r, shape: _threefry.e.binary("add", right(r, shape), 1))
    function, state, batch = dropout()
    with pytest.raises(mtc.ModelError, match="the step differs from JAX"):
        mtc.jax.step(function, state, batch, verbose=0)


def scattered(p, batch, key):
    return jnp.mean(mlp(p, batch["x"]) * jax.random.uniform(key, (3, batch["x"].shape[0])).T)


def many(p, batch, key):
    return jnp.mean(mlp(p, batch["x"]) * jax.random.randint(key, (3,), 0, 50000))


def ordered(p, batch, key):
    return jnp.mean(mlp(p, batch["x"])[:, jax.random.permutation(key, 3)])


@pytest.mark.parametrize("loss_of, key, words", [
    (scattered, jax.random.key(0), "random numbers whose first axis is not the samples"),
    (many, jax.random.key(0), "whole random numbers of 50000 values, where MTC has up to 46340"),
    (ordered, jax.random.key(0), "sort"),
    (many, jax.random.key(0, impl="rbg"), "impl=.threefry2x32.*found key<rbg>")])
def test_what_is_refused(loss_of, key, words):
    with pytest.raises(mtc.ModelError, match=words):
        mtc.jax.step(descent(loss_of), (weights(4, 8, 3), key), {"x": numbers(8, 4)}, verbose=0)
