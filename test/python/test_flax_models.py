# SPDX-License-Identifier: Apache-2.0
"""Steps of the models of flax_models.py (Flax and Equinox) are JAX's, and JAX goes on from them.

Models of plain JAX are in test_jax.py, and the bits on several devices in test_bits.py. test_jax_flax.py has dropout,
all optimizers of optax, masks and metrics.
"""

import contextlib
import inspect
import os

import flax_models
import interpreter
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax_models import BATCH
from jax_float64 import errors_in_float64, in_double

import mtc.jax
from mtc.jax._program import Program

STEPS, MORE = 5, 2
# Training takes five to fifteen seconds for each: every second model, or all with MTC_ALL_MODELS=1.
TRAINED = flax_models.COMPARED if os.environ.get("MTC_ALL_MODELS") else flax_models.COMPARED[1::2]


def optax_step(model):
    """A function of a training (params, state, optimizer's state) and a batch: the loss, and the training after it."""
    extra = {"training": True} if "training" in inspect.signature(model.loss).parameters else {}

    def loss(params, state, batch):
        result = model.loss(*([params] if state is None else [params, state]), batch, **extra)
        loss, aux = result if isinstance(result, tuple) else (result, None)
        return loss, None if state is None else aux

    def step(training, batch):
        params, state, opt_state = training
        (value, state), gradients = jax.value_and_grad(loss, has_aux=True)(params, state, batch)
        updates, opt_state = model.optimizer.update(gradients, opt_state, params)
        return value, (optax.apply_updates(params, updates), state, opt_state)

    return jax.jit(step, compiler_options=flax_models.QUICK)


def in_jax(step, training, batches):
    """The losses of steps in JAX, and the training after them."""
    losses = []
    for batch in batches:
        value, training = step(training, batch)
        losses.append(float(value))
    return losses, training


def start(model):
    return model.params, model.state, model.optimizer.init(model.params)


def compiled(model, **options):
    options = {"batch_size": BATCH, "devices": "cpu:1", **options}
    return mtc.jax.compile(model.loss, model.params, model.batch(0), state=model.state, optimizer=model.optimizer,
                           **options)


def trained(step, batches):
    return [step.train_on_batch(batch)["loss"] for batch in batches]


def assert_like(found, expected, bound):
    """The same tree, whose elements differ by no more than a share of the largest of an array."""
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    for (path, mine), theirs in zip(jax.tree.leaves_with_path(found), jax.tree.leaves(expected), strict=True):
        assert mine.shape == theirs.shape and mine.dtype == theirs.dtype
        np.testing.assert_allclose(mine, theirs, rtol=0, atol=bound * (np.abs(theirs).max() + 1e-2),
                                   err_msg=jax.tree_util.keystr(path))


@pytest.mark.parametrize("make", TRAINED, ids=lambda make: make.__name__)
def test_steps_are_those_of_jax(make, capsys):
    """The check of all gradients passes; five steps have JAX's losses; two more in JAX are two more here."""
    model = make()
    step, other = compiled(model), optax_step(model)
    assert "checked against JAX: loss" in capsys.readouterr().err
    assert not model.layer or model.layer in step.text
    batches, more = ([model.batch(i) for i in places] for places in (range(STEPS), range(STEPS, STEPS + MORE)))
    losses, (params, state, _) = in_jax(other, start(model), batches)
    np.testing.assert_allclose(trained(step, batches), losses, rtol=1e-4)
    assert_like(step.params, params, 1e-3)
    if state is not None:
        assert_like(step.state, state, 1e-4)
    losses, (params, state, opt_state) = in_jax(other, (step.params, step.state, step.opt_state), more)
    np.testing.assert_allclose(trained(step, more), losses, rtol=1e-5)
    assert_like(step.params, params, 1e-4)
    assert_like(step.opt_state, opt_state, 1e-4)
    if state is not None:
        assert_like(step.state, state, 1e-5)


@pytest.mark.parametrize("make", [*flax_models.COMPARED, flax_models.noisy_vae, flax_models.discriminator,
                                  flax_models.generator], ids=lambda make: make.__name__)
def test_a_step_in_float64(make, tmp_path):
    """The loss, all gradients and the state after a step in the interpreter are those of JAX in float64."""
    model = make()

    def program(change):
        trees = (jax.tree.map(change, tree) for tree in (model.params, model.state, model.batch(0)))
        return Program.of(model.loss, *trees, None)

    errors = errors_in_float64(program(np.asarray), lambda: contextlib.nullcontext(program(in_double)),
                               tmp_path / "model.mlir")
    assert not {n: e for n, e in errors.items() if not e <= interpreter.TOLERANCE}


def test_one_network_has_equal_losses_in_linen_nnx_equinox_and_plain_jax():
    found = []
    for make in flax_models.MLPS:
        model = make()
        with compiled(model, check=False, verbose=0) as step:
            found.append(step.fit(model.data, epochs=2, verbose=0)["loss"])
    np.testing.assert_allclose(found[1:], [found[0]] * 3, rtol=1e-6)
    assert found[0] == found[1] == found[2]  # the kernels of Equinox are transposed


def test_vae_with_noise_of_the_step(capsys):
    """The check uses the same random numbers on both sides. Training draws others than JAX."""
    model = flax_models.noisy_vae()
    step = compiled(model)
    assert "checked against JAX: loss" in capsys.readouterr().err
    losses = step.fit(model.data, epochs=5, verbose=0)["loss"]
    assert losses[-1] < losses[0]
    assert jax.tree.structure(step.params) == jax.tree.structure(model.params)
    # Without noise the loss in JAX is near that of the last epoch.
    mean = float(flax_models.vae().loss(step.params, (model.data, jnp.zeros((len(model.data), 3)))))
    assert abs(mean - step.evaluate(model.data)["loss"]) < 0.5


def test_gan_with_a_plan_for_each_network(capsys):
    """In turn, a step of the discriminator on what the generator makes, and one of the generator."""
    players = flax_models.discriminator(), flax_models.generator()
    first, second = (compiled(model) for model in players)
    assert capsys.readouterr().err.count("checked against JAX: loss") == 2
    steps, trainings = [optax_step(model) for model in players], [start(model) for model in players]
    make = jax.jit(lambda params, noise: flax_models.Generator().apply({"params": params}, noise))
    for i in range(STEPS + MORE):
        if i == STEPS:  # JAX goes on from the parameters and the optimizers' states
            trainings = [(step.params, step.state, step.opt_state) for step in (first, second)]
        batch, noise = (model.batch(i) for model in players)
        found = first.train_on_batch({**batch, "made": make(second.params, noise)})
        second.state = {"discriminator": first.params}
        losses = [found["loss"], second.train_on_batch(noise)["loss"]]
        expected, trainings[0] = steps[0](trainings[0], {**batch, "made": make(trainings[1][0], noise)})
        other, trainings[1] = steps[1]((trainings[1][0], {"discriminator": trainings[0][0]}, trainings[1][2]), noise)
        np.testing.assert_allclose(losses, [float(expected), float(other)], rtol=1e-5 if i >= STEPS else 1e-4)
    for step, (params, _, opt_state) in zip((first, second), trainings):
        assert_like(step.params, params, 1e-4)
        assert_like(step.opt_state, opt_state, 1e-4)
    assert_like(second.state, {"discriminator": first.params}, 0)


def test_logits_of_zero():
    model = flax_models.zero_logits()
    step, other = compiled(model, check=False, verbose=0), optax_step(model)
    batches = [model.batch(i) for i in range(STEPS)]
    np.testing.assert_allclose(trained(step, batches), in_jax(other, start(model), batches)[0], rtol=1e-4)
