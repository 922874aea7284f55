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


@pytest.mark.parametrize("devices", ("cpu:1", "cpu:3"))
def test_a_state_of_any_kind(devices):
    """The vectors of a spectral norm, and a mean of a batch without a variance."""
    x, y = points()
    numbers = np.random.default_rng(2)
    params = {"w": numbers.standard_normal((8, 3)).astype("f4")}
    state = {"u": numbers.standard_normal(8).astype("f4"), "mean": np.zeros(8, "f4")}

    def loss(params, state, batch):
        v = state["u"] @ params["w"]
        v = jax.lax.stop_gradient(v / jnp.linalg.norm(v))
        u = params["w"] @ v
        size = jax.lax.stop_gradient(u / jnp.linalg.norm(u)) @ params["w"] @ v
        new = {"u": u / jnp.linalg.norm(u), "mean": 0.9 * state["mean"] + 0.1 * batch[0].mean(0)}
        return cross_entropy(optax, (batch[0] - state["mean"]) @ (params["w"] / size), batch[1]), new

    optimizer = optax.adam(0.05)
    step = mtc.jax.compile(loss, params, (x, y), optimizer=optimizer, batch_size=32, state=state, devices=devices,
                           verbose=0)
    kept, wanted, before = optimizer.init(params), params, state
    for rows in (32, 32, 11):
        (_, before), gradients = jax.value_and_grad(loss, has_aux=True)(wanted, before, (x[:rows], y[:rows]))
        updates, kept = optimizer.update(gradients, kept, wanted)
        wanted = optax.apply_updates(wanted, updates)
        step.train_on_batch((x[:rows], y[:rows]))
    np.testing.assert_allclose(step.params["w"], wanted["w"], atol=1e-5)
    for name in state:
        np.testing.assert_allclose(step.state[name], before[name], atol=1e-5, err_msg=name)
    with pytest.raises(mtc.ModelError, match="expected an optimizer of optax for a state that is no moving average"):
        mtc.jax.compile(loss, params, (x, y), optimizer="adam", batch_size=32, state=state, verbose=0)


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
    assert "mt.update" in step.text and "optimizer/1/0/mu/" in step.text


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
    with pytest.raises(mtc.DataError, match=r"optimizer/0/count: expected the shape \[\], found \[2\]"):
        step.opt_state = jax.tree.map(lambda leaf: np.zeros((2, *np.shape(leaf)), leaf.dtype), step.opt_state)
    own = mtc.jax.compile(lambda p, b: jnp.mean(b @ p), np.ones(3, "float32"), np.ones((2, 3), "float32"),
                          optimizer="adam", check=False, verbose=0)
    with pytest.raises(mtc.ModelError, match="expected an optimizer of optax"):
        own.opt_state  # noqa: B018


def test_parameters_that_the_loss_does_not_depend_on():
    params = {"w": np.ones((4, 1), "f4"), "head": np.full((4, 2), 3, "f4"), "stopped": np.ones(1, "f4")}
    x, y = np.random.default_rng(0).normal(size=(2, 8, 4)).astype("f4")

    def loss(params, batch):
        return ((batch[0] @ params["w"] - batch[1][:, :1]) * jax.lax.stop_gradient(params["stopped"])).mean()

    for optimizer in (optax.adam(0.1), optax.adamw(0.1), optax.adamw(0.1, mask={"w": True, "head": False,
                                                                               "stopped": False})):
        step = mtc.jax.compile(loss, params, (x, y), optimizer=optimizer, batch_size=8, verbose=0)
        step.train_on_batch((x, y))
        updates, wanted = optimizer.update(jax.grad(loss)(params, (x, y)), optimizer.init(params), params)
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5), step.params,
                     optax.apply_updates(params, updates))
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5), step.opt_state, wanted)


RATE = 0.01
MANY = {
    **{name: (lambda name: lambda: getattr(optax, name)(RATE))(name) for name in (
        "adabelief adadelta adafactor adagrad adam adamax adamaxw adamw adan amsgrad fromage lamb lars lion nadam "
        "nadamw novograd optimistic_gradient_descent optimistic_adam_v2 radam rmsprop rprop sgd sign_sgd sm3 "
        "yogi").split()},
    **{name: (lambda name: lambda: getattr(optax.contrib, name)(RATE))(name) for name in (
        "acprop ademamix simplified_ademamix momo momo_adam muon schedule_free_adamw schedule_free_sgd").split()},
    **{name: (lambda name: lambda: getattr(optax.contrib, name)())(name) for name in (
        "cocob dadapt_adamw dog dowg prodigy").split()},
    "polyak_sgd": lambda: optax.polyak_sgd(),
    "mechanize": lambda: optax.contrib.mechanize(optax.sgd(RATE)),
    "sam": lambda: optax.contrib.sam(optax.sgd(RATE), optax.sgd(0.05), opaque_mode=False),
    "MultiSteps": lambda: optax.MultiSteps(optax.adam(RATE), 3),
    "multi_transform": lambda: optax.multi_transform({"a": optax.adam(RATE), "b": optax.sgd(RATE, 0.9)},
                                                     {"w": "a", "b": "b"}),
    "apply_if_finite": lambda: optax.apply_if_finite(optax.adam(RATE), 3),
    "inject_hyperparams": lambda: optax.inject_hyperparams(optax.adam)(learning_rate=RATE),
    "ema": lambda: optax.chain(optax.sgd(RATE), optax.ema(0.9)),
    "reduce_on_plateau": lambda: optax.chain(optax.adam(RATE), optax.contrib.reduce_on_plateau(patience=1)),
    "adaptive_grad_clip": lambda: optax.chain(optax.adaptive_grad_clip(0.01), optax.sgd(RATE)),
    "of its own": lambda: optax.GradientTransformation(
        lambda p: {"count": np.int32(0), "seen": jax.tree.map(jnp.zeros_like, p)},
        lambda u, s, p=None: (jax.tree.map(lambda g, old: -RATE * (g + old) / (1 + s["count"]), u, s["seen"]),
                              {"count": s["count"] + 1, "seen": u})),
}


@pytest.mark.parametrize("name", MANY)
def test_optimizers_are_traced(name):
    """Twenty steps are those of optax, and so is the state after them."""
    random = np.random.default_rng(0)
    params = {"w": random.normal(size=(4, 3)).astype("f4"), "b": np.zeros(3, "f4")}
    data = random.normal(size=(8, 4)).astype("f4"), random.normal(size=(8, 3)).astype("f4")

    def loss(p, batch):
        return jnp.mean((jnp.tanh(batch[0] @ p["w"] + p["b"]) - batch[1]) ** 2)

    optimizer = MANY[name]()
    step = mtc.jax.compile(loss, params, data, optimizer=optimizer, batch_size=8, check=False, verbose=0,
                           devices="cpu:1")
    state, wanted = optimizer.init(params), params
    takes_loss = name not in ("MultiSteps", "sam")
    asked = optax.with_extra_args_support(optimizer) if takes_loss else optimizer
    for _ in range(20):
        step.train_on_batch(data)
        value, gradient = jax.value_and_grad(loss)(wanted, data)
        extra = {} if not takes_loss else {"value": value, "grad": gradient}
        updates, state = asked.update(gradient, state, wanted, **extra)
        wanted = optax.apply_updates(wanted, updates)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=4e-5), step.params, wanted)
    assert jax.tree.structure(step.opt_state) == jax.tree.structure(state)
    for mine, theirs in zip(jax.tree.leaves(step.opt_state), jax.tree.leaves(state), strict=True):
        assert np.asarray(mine).dtype == np.asarray(theirs).dtype
        np.testing.assert_allclose(np.asarray(mine, "f8"), np.asarray(theirs, "f8"), rtol=2e-3, atol=1e-4)


REFUSED = {
    "optimizer/0/mu: expected a state of float32, int32 or bool, found bfloat16": lambda: optax.adam(
        0.1, mu_dtype="bfloat16"),
    "rng_key: expected a state of float32": lambda: optax.noisy_sgd(0.1, key=jax.random.key(0)),
    "missing 1 required keyword-only argument: 'value_fn'": optax.lbfgs,
    "expected a new state of the structure": lambda: optax.GradientTransformation(
        lambda p: (np.float32(0),), lambda u, s, p=None: (u, (s[0], s[0]))),
}


@pytest.mark.parametrize("text", REFUSED)
def test_optimizers_of_optax_that_are_refused(text):
    with pytest.raises(mtc.ModelError, match=text):
        mtc.jax.compile(lambda p, b: jnp.mean(b @ p), np.ones(3, "float32"), np.ones((2, 3), "float32"),
                        optimizer=REFUSED[text](), check=False)
