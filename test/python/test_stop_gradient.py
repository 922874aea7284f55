# SPDX-License-Identifier: Apache-2.0
"""What no gradient goes through, inside of a step that is differentiated: derivatives, losses, parameters."""

import os

os.environ["KERAS_BACKEND"] = "jax"

import jax
import jax.numpy as jnp
import keras
import mtc
import mtc.jax
import mtc.torch
import numpy as np
import pytest
import torch

_random = np.random.default_rng(0)
START = {"w": _random.standard_normal((4, 5)).astype("f4"), "v": _random.standard_normal((5, 1)).astype("f4")}
BATCHES = [(_random.standard_normal((n, 4)).astype("f4"), _random.standard_normal((n, 1)).astype("f4"))
           for n in (8, 8, 5, 8)]


def sgd(params, gradients, rate):
    return {name: p - rate * gradients[name] for name, p in params.items()}


def squared_by(tanh):
    """The loss of a perceptron, by a framework's function."""
    return staticmethod(lambda p, batch: ((tanh(batch[0] @ p["w"]) @ p["v"] - batch[1]) ** 2).mean())


class WithJax:
    """The functions that a loss needs, by JAX."""

    stop = staticmethod(jax.lax.stop_gradient)
    abs, maximum = staticmethod(jnp.abs), staticmethod(jnp.maximum)
    squared = squared_by(jnp.tanh)

    @staticmethod
    def both(loss, p, batch):
        return jax.value_and_grad(loss)(p, batch)


class WithTorch:
    """The same by torch.func."""

    stop = staticmethod(lambda x: x.detach())
    abs, maximum = staticmethod(torch.abs), staticmethod(torch.maximum)
    squared = squared_by(torch.tanh)

    @staticmethod
    def both(loss, p, batch):
        gradients, value = torch.func.grad_and_value(loss)(p, batch)
        return value, gradients


class WithAutograd(WithTorch):
    """The same by torch.autograd.grad, with one point for all derivatives by a parameter."""

    @staticmethod
    def both(loss, p, batch):
        value = loss(p, batch)
        return value, dict(zip(p, torch.autograd.grad(value, list(p.values()), create_graph=True)))


def first_order(of, p, batch):
    """A step of a model that learns to learn, without the second derivative."""
    gradients = of.both(of.squared, p, batch)[1]
    return of.squared(sgd(p, {name: of.stop(g) for name, g in gradients.items()}, 0.3), batch)


def scaled(of, p, batch):
    """Losses that are scaled by a norm of gradients, and by themselves; a slope of gradients that stay."""
    loss, gradients = of.both(of.squared, p, batch)
    norm = of.stop(sum((g * g).sum() for g in gradients.values()))
    return loss * of.stop(loss) + norm * loss + of.abs(of.stop(gradients["w"]) * p["w"]).sum()


def partly(of, p, batch):
    """A gradient that is differentiated beside the same one that is not; ties have the framework's slope."""
    gradients = of.both(of.squared, p, batch)[1]
    return sum((g * of.stop(g)).sum() + of.maximum(g, g * 1).sum() for g in gradients.values())


LOSSES = {f.__name__: f for f in (first_order, scaled, partly)}


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("of", [WithJax, WithTorch, WithAutograd])
def test_stopped_gradients_are_those_of_the_framework(of, name):
    def train_step(p, batch):
        if of is WithAutograd:
            p = {name: v.detach().requires_grad_() for name, v in p.items()}
        loss, gradients = of.both(lambda p, batch: LOSSES[name](of, p, batch), p, batch)
        return sgd(p, gradients, 0.02), {"loss": loss}

    make, whole = (jnp.asarray, mtc.jax.step) if of is WithJax else (torch.as_tensor, mtc.torch.step)
    theirs = {name: make(v) for name, v in START.items()}
    batches = [tuple(map(make, batch)) for batch in BATCHES]
    with whole(train_step, theirs, batches[0], devices="cpu:3", verbose=0, check=False) as step:
        mine = theirs
        for batch in batches:
            mine, metrics = step(mine, batch)
            theirs, wanted = train_step(theirs, batch)
            np.testing.assert_allclose(float(metrics["loss"]), float(wanted["loss"]), rtol=1e-5, atol=1e-6)
        for name in START:
            np.testing.assert_allclose(np.asarray(mine[name]), np.asarray(theirs[name].tolist(), "f4"), atol=1e-6)


class Stopping(keras.Model):
    """A model whose own step has a gradient in its loss, through which no gradient goes."""

    def __init__(self):
        super().__init__()
        self.inner, self.outer = keras.layers.Dense(5, activation="tanh"), keras.layers.Dense(1)

    def call(self, x):
        return self.outer(self.inner(x))

    def loss_and_updates(self, trainable, others, x, y):
        def squared(trainable):
            made, new = self.stateless_call(trainable, others, x)
            return ((made - y) ** 2).mean(), new

        (loss, new), gradients = jax.value_and_grad(squared, has_aux=True)(trainable)
        norm = jax.lax.stop_gradient(sum((g * g).sum() for g in gradients))
        return loss * (1 + norm) * jax.lax.stop_gradient(loss), new

    def train_step(self, state, data):
        trainable, others, inner, metrics = state
        loss_of = jax.value_and_grad(self.loss_and_updates, has_aux=True)
        (loss, others), gradients = loss_of(trainable, others, *data)
        trainable, inner = self.optimizer.stateless_apply(inner, gradients, trainable)
        return {"loss": loss}, (trainable, others, inner, metrics)


def test_stopped_gradients_in_a_train_step_of_keras():
    x, y = (np.concatenate(arrays) for arrays in zip(*BATCHES))
    found = []
    for fit in (mtc.fit, keras.Model.fit):
        keras.utils.set_random_seed(0)
        model = Stopping()
        model.compile(keras.optimizers.SGD(0.002))
        model(BATCHES[0][0])
        fit(model, x, y, batch_size=8, epochs=2, shuffle=False, verbose=0)
        found.append(model.get_weights())
    for mine, theirs in zip(*found):
        np.testing.assert_allclose(mine, theirs, atol=1e-6)
