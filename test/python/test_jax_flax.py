# SPDX-License-Identifier: Apache-2.0
"""mtc.jax with Flax (linen and nnx), Equinox and optax."""

import equinox as eqx
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx

import mtc
import mtc.jax


def cross_entropy(optax, logits, labels):
    return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()


def train(loss, params, data, optimizer, **options):
    """Compiles with the check of all gradients, and trains for two epochs."""
    options = {"batch_size": 16, "devices": "cpu:1", **options}
    step = mtc.jax.compile(loss, params, jax.tree.map(lambda a: a[:4], data), optimizer=optimizer, **options)
    losses = step.fit(data, epochs=2, verbose=0)["loss"]
    assert losses[1] < losses[0]
    return step


def points(classes=3):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((32, 8)).astype("float32")
    return x, x[:, :classes].argmax(1).astype("int32")


def test_linen_resnet_with_batch_statistics():
    class Block(nn.Module):
        @nn.compact
        def __call__(self, x, train):
            y = nn.Conv(6, (3, 3), strides=(2, 2), use_bias=False)(x)
            y = nn.relu(nn.BatchNorm(use_running_average=not train, momentum=0.9)(y))
            return nn.relu(nn.Conv(6, (1, 1), strides=(2, 2))(x) + y)

    class Net(nn.Module):
        @nn.compact
        def __call__(self, x, train):
            x = nn.Dropout(0.2, deterministic=not train)(Block()(x, train).mean((1, 2)))
            return nn.Dense(2)(x)

    rng = np.random.default_rng(1)
    images, labels = rng.standard_normal((32, 8, 8, 2)).astype("float32"), rng.integers(0, 2, 32, "int32")
    images += labels[:, None, None, None]
    net = Net()
    start = net.init(jax.random.key(0), images[:1], False)

    def loss(params, state, batch, key, training):
        logits, new = net.apply({"params": params, "batch_stats": state}, batch[0], training, rngs={"dropout": key},
                                mutable=["batch_stats"])
        accuracy = jnp.mean(logits.argmax(-1) == batch[1])
        return cross_entropy(optax, logits, batch[1]), (new["batch_stats"], {"accuracy": accuracy})

    step = train(loss, start["params"], (images, labels), optax.sgd(0.1, 0.9, nesterov=True),
                 state=start["batch_stats"])
    variables = {"params": step.params, "batch_stats": step.state}
    theirs = cross_entropy(optax, net.apply(variables, images, False), labels)
    assert step.evaluate((images, labels))["loss"] == pytest.approx(float(theirs), rel=1e-4)
    assert "Net/Block_0/Conv_0" in step.text  # layers are the places of operations


def test_linen_gpt_with_clip_schedule_and_mask():
    class Net(nn.Module):
        @nn.compact
        def __call__(self, ids, train):
            embed = nn.Embed(11, 8)
            x = embed(ids) + nn.Embed(6, 8)(jnp.arange(6))
            mask = nn.make_causal_mask(ids)
            x = x + nn.MultiHeadDotProductAttention(2, dropout_rate=0.1, deterministic=not train)(
                nn.LayerNorm()(x), mask=mask)
            x = x + nn.Dense(8)(nn.gelu(nn.Dense(16)(nn.LayerNorm()(x))))
            return embed.attend(nn.LayerNorm()(x))

    text = np.random.default_rng(2).integers(0, 11, (32, 6), "int32")
    net = Net()
    params = net.init(jax.random.key(0), text[:1], False)["params"]

    def loss(params, batch, key, training):
        logits = net.apply({"params": params}, batch[0], training, rngs={"dropout": key})
        return cross_entropy(optax, logits, batch[1])

    rate = optax.warmup_cosine_decay_schedule(1e-3, 3e-2, 1, 20)
    decay = optax.adamw(rate, mask=lambda p: jax.tree.map(lambda a: a.ndim > 1, p))
    step = train(loss, params, (text, np.roll(text, -1, 1)), optax.chain(optax.clip_by_global_norm(1.0), decay))
    assert "mt.adamw rate(" in step.text and "global_clipnorm = 1.0" in step.text
    assert 'mt.variable "LayerNorm_0/scale" init(zeros) no_weight_decay' in step.text


def test_nnx():
    class Net(nnx.Module):
        def __init__(self, rngs):
            self.first = nnx.Linear(8, 16, rngs=rngs)
            self.norm = nnx.LayerNorm(16, rngs=rngs)
            self.last = nnx.Linear(16, 3, rngs=rngs)

        def __call__(self, x):
            return self.last(nnx.silu(self.norm(self.first(x))))

    definition, params = nnx.split(Net(nnx.Rngs(0)), nnx.Param)

    def loss(params, batch):
        return cross_entropy(optax, nnx.merge(definition, params)(batch[0]), batch[1])

    step = train(loss, params, points(), optax.lion(3e-3))
    assert {"first/kernel", "norm/scale", "last/bias"} <= {v.name for v in step.plan.variables}
    trained = nnx.merge(definition, step.params)
    theirs = cross_entropy(optax, trained(points()[0]), points()[1])
    assert step.evaluate(points())["loss"] == pytest.approx(float(theirs), rel=1e-4)


def test_equinox():
    model = eqx.nn.MLP(8, 3, 16, 2, activation=jax.nn.tanh, key=jax.random.key(0))

    def loss(model, batch):
        return cross_entropy(optax, jax.vmap(model)(batch[0]), batch[1])

    optimizer = optax.rmsprop(3e-3)
    step = train(loss, model, points(), optimizer)
    # Functions in the tree have no state.
    assert jax.tree.structure(step.opt_state) == jax.tree.structure(optimizer.init(eqx.filter(model, eqx.is_array)))
    theirs = cross_entropy(optax, jax.vmap(step.params)(points()[0]), points()[1])
    assert step.evaluate(points())["loss"] == pytest.approx(float(theirs), rel=1e-4)


OPTIMIZERS = {
    "sgd": lambda o: o.sgd(0.1), "momentum": lambda o: o.sgd(0.1, 0.9, nesterov=True),
    "scheduled": lambda o: o.sgd(lambda step: 0.1 / (1 + step), 0.9),
    "adam": lambda o: o.adam(1e-2, eps=1e-2), "adamw": lambda o: o.adamw(1e-2, weight_decay=0.1),
    "lion": lambda o: o.lion(1e-3), "rmsprop": lambda o: o.rmsprop(1e-2), "adagrad": lambda o: o.adagrad(0.1),
    "clip": lambda o: o.chain(o.clip(0.01), o.sgd(lambda step: 0.1 / (1 + step))),
    "masked": lambda o: o.chain(o.clip_by_global_norm(1.0), o.adamw(
        lambda step: 0.01 / (1 + step), eps=1e-2, weight_decay=0.1, mask={"w": True, "b": False})),
    "accumulated": lambda o: o.adagrad(0.1, initial_accumulator_value=0.7),
    "interpolated": lambda o: o.sgd(o.piecewise_interpolate_schedule("linear", 0.1, {1: 0.5, 3: 0.2})),
    "centered": lambda o: o.rmsprop(1e-2, eps=1e-2, centered=True),
}


def linear(name):
    """A linear model: its loss, parameters, data, the optimizer, and the compiled step."""
    optimizer = OPTIMIZERS[name](optax)
    x, _ = points()
    y = (x @ np.arange(16, dtype="float32").reshape(8, 2) / 8).astype("float32")

    def loss(params, batch):
        return jnp.mean((batch[0] @ params["w"] + params["b"] - batch[1]) ** 2)

    params = {"w": np.full((8, 2), 0.1, "float32"), "b": np.zeros(2, "float32")}
    step = mtc.jax.compile(loss, params, (x[:4], y[:4]), optimizer=optimizer, batch_size=32, devices="cpu:1",
                           check=False, verbose=0)
    return loss, params, (x, y), optimizer, step


def optax_steps(loss, params, data, optimizer, state, count):
    import optax
    for _ in range(count):
        updates, state = optimizer.update(jax.grad(loss)(params, data), state, params)
        params = optax.apply_updates(params, updates)
    return params, state


def expect_close(found, expected):
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    for mine, theirs in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        assert np.asarray(mine).dtype == np.asarray(theirs).dtype
        np.testing.assert_allclose(mine, theirs, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("name", list(OPTIMIZERS))
def test_steps_are_those_of_optax(name):
    loss, params, data, optimizer, step = linear(name)
    for _ in range(3):
        step.train_on_batch(data)
    params, state = optax_steps(loss, params, data, optimizer, optimizer.init(params), 3)
    expect_close(step.params, params)
    expect_close(step.opt_state, state)
    # Optax goes on from MTC, and MTC from optax.
    further, _ = optax_steps(loss, step.params, data, optimizer, step.opt_state, 2)
    step.params, step.opt_state = optax_steps(loss, params, data, optimizer, state, 1)
    step.train_on_batch(data)
    expect_close(step.params, further)


def test_states_that_do_not_fit():
    _, params, _, _, step = linear("adam")
    with pytest.raises(mtc.DataError, match="another structure"):
        step.opt_state = optax.sgd(0.1, 0.9).init(params)
    with pytest.raises(mtc.ModelError, match="bias_correction"):
        mtc.jax.compile(lambda p, b: jnp.mean(b @ p), np.ones(3, "float32"), np.ones((2, 3), "float32"),
                        optimizer=optax.rmsprop(0.1, bias_correction=True), check=False)
    own = mtc.jax.compile(lambda p, b: jnp.mean(b @ p), np.ones(3, "float32"), np.ones((2, 3), "float32"),
                          optimizer="adam", check=False, verbose=0)
    with pytest.raises(mtc.ModelError, match="expected an optimizer of optax"):
        own.opt_state  # noqa: B018


def test_parameters_that_the_loss_does_not_depend_on():
    params = {"w": np.ones((4, 1), "f4"), "head": np.full((4, 2), 3, "f4"), "stopped": np.ones(1, "f4")}
    x, y = np.random.default_rng(0).normal(size=(2, 8, 4)).astype("f4")

    def loss(params, batch):
        return ((batch[0] @ params["w"] - batch[1][:, :1]) * jax.lax.stop_gradient(params["stopped"])).mean()

    optimizer = optax.adam(0.1)
    step = mtc.jax.compile(loss, params, (x, y), optimizer=optimizer, batch_size=8, verbose=0)
    state = step.opt_state
    step.train_on_batch((x, y))
    updates, wanted = optimizer.update(jax.grad(loss)(params, (x, y)), optimizer.init(params), params)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5), step.params,
                 optax.apply_updates(params, updates))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5), step.opt_state, wanted)
    step.opt_state = state
    with pytest.raises(mtc.DataError, match="head_momentum: expected the first state"):
        step.opt_state = jax.tree.map(lambda a: a + 1, state)
    with pytest.raises(mtc.ModelError, match="head: expected a parameter that the loss depends on.*\nstopped"):
        mtc.jax.compile(loss, params, (x, y), optimizer=optax.adamw(0.1), batch_size=8)
    masked = optax.adamw(0.1, mask={"w": True, "head": False, "stopped": False})
    mtc.jax.compile(loss, params, (x, y), optimizer=masked, batch_size=8, verbose=0)


REFUSED = {
    "mu_dtype=bfloat16": optax.adam(0.1, mu_dtype="bfloat16"), "eps_root=1.0": optax.adam(0.1, eps_root=1.0),
    "nesterov=True": optax.nadam(0.1), "initial_scale=1.0": optax.rmsprop(0.1, initial_scale=1.0),
    "optax.trace after another optimizer": optax.rmsprop(0.1, centered=True, momentum=0.9),
    "mode=smooth": optax.chain(optax.scale_by_lion(mode="smooth"), optax.scale(-0.1)),
    "accumulator_dtype=bfloat16": optax.sgd(0.1, 0.9, accumulator_dtype="bfloat16"),
    "after another scale": optax.chain(optax.scale(0.5), optax.sgd(0.1)),
    "in front of optax.trace": optax.chain(optax.add_decayed_weights(0.1), optax.sgd(0.1, 0.9)),
    "after another clip": optax.chain(optax.clip(1.0), optax.clip_by_global_norm(1.0), optax.sgd(0.1)),
    "found a function": optax.adamw(0.1, weight_decay=lambda step: 0.1),
    "found <lambda>": optax.GradientTransformation(lambda p: (), lambda u, s, p=None: (u, s)),
}


@pytest.mark.parametrize("text", REFUSED)
def test_arguments_of_optax_that_are_not_handled(text):
    with pytest.raises(mtc.ModelError, match=text):
        mtc.jax.compile(lambda p, b: jnp.mean(b @ p), np.ones(3, "float32"), np.ones((2, 3), "float32"),
                        optimizer=REFUSED[text], check=False)
