# SPDX-License-Identifier: Apache-2.0
"""Functions of JAX in files of StableHLO: predictions and training beside JAX' own."""

import subprocess

import jax
import jax.numpy as jnp
import mtc
import numpy as np
import pytest
import stablehlo_text as texts

N, STEPS, RATE = 8, 5, 0.05


def array(shape, seed):
    sizes = [N if not isinstance(n, int) else n for n in shape.shape]
    numbers = np.random.default_rng(seed)
    return (numbers.integers(0, 3, sizes).astype("int32") if shape.dtype == "int32"
            else (0.5 * numbers.standard_normal(sizes)).astype("float32"))


def filled(shapes, seed):
    leaves, tree = jax.tree.flatten(shapes)
    return jax.tree.unflatten(tree, [array(leaf, seed + i) for i, leaf in enumerate(leaves)])


def set_parameters(session, params):
    for path, value in jax.tree_util.tree_flatten_with_path(params)[0]:
        session.variables["params/" + "/".join(k.key for k in path)] = value


def step(loss, params, *data):
    value, gradients = jax.value_and_grad(loss)(params, *data)
    return float(value), jax.tree.map(lambda p, g: p - RATE * g, params, gradients)


@pytest.mark.parametrize("name", list(texts.FORWARD))
def test_forward(name, tmp_path):
    function, shapes, x_shape = texts.FORWARD[name]
    path = tmp_path / "model.stablehlo.mlir"
    path.write_text(texts.generic(function, shapes, x_shape))
    plan = mtc.compile(path, batch_size=N, loss="mse", optimizer=f"sgd,learning_rate={RATE}")
    params = filled(shapes, 10)

    def loss(params, x, y):
        return ((function(params, x) - y) ** 2).mean()

    with mtc.Session(plan, "cpu:1") as session:
        set_parameters(session, params)
        x = array(x_shape, 1)
        expected = np.asarray(function(params, x))
        assert np.abs(session.predict(x) - expected).max() <= 1e-5 * max(1, np.abs(expected).max())
        for i in range(STEPS):
            x = array(x_shape, 100 + i)
            y = np.random.default_rng(i).standard_normal(expected.shape).astype("float32")
            value, params = step(loss, params, x, y)
            assert abs(session.train_on_batch(x, y)["loss"] - value) <= 2e-5 * abs(value), f"step {i}"


@pytest.mark.parametrize("name", list(texts.LOSSES))
def test_loss(name, tmp_path):
    function, shapes, data_shapes = texts.LOSSES[name]
    path = tmp_path / "model.stablehlo.mlir"
    path.write_text(texts.generic(function, shapes, *data_shapes))
    plan = mtc.compile(path, batch_size=N, optimizer=f"sgd,learning_rate={RATE}")
    params = filled(shapes, 10)
    with mtc.Session(plan, "cpu:1") as session:
        set_parameters(session, params)
        for i in range(STEPS):
            data = [array(s, 100 + 10 * i + k) for k, s in enumerate(data_shapes)]
            value, params = step(function, params, *data)
            logs = session.train_step(data)
            assert abs(logs["loss"] - value) <= 2e-5 * abs(value), f"step {i}"


def counting(params, x):
    """A counter that is read as a place and as a number; rows are written backwards, to a part of a value."""
    def step(i, carry):
        h, rows, halves = carry
        h = jnp.tanh(x[:, i] @ params["w"] + h) * (1 + i / 10)
        rows = jax.lax.dynamic_update_slice_in_dim(rows, h[:, None], 4 - i, 1)
        return h, rows, jax.lax.dynamic_update_slice_in_dim(halves, h[:, None, :3], i, 1)

    h, rows, halves = jax.lax.fori_loop(0, 4, step, (jnp.zeros(x[:, 0].shape), 2 * x, x[:, :4, :3]))
    return h + rows[:, 0] + 2 * rows[:, 3] + jnp.concatenate([halves[:, 1], halves[:, 3]], 1)


def kinds(params, x):
    """Carries of booleans, of integers and without samples; two rows at a time; the inner loop has no counter."""
    def step(i, carry):
        h, on, count, w = carry
        new = jax.lax.fori_loop(0, 2, lambda j, v: jnp.tanh(v @ w), h) + x[:, i] * x[:, 4 - i]
        new += jax.lax.dynamic_slice_in_dim(x[:, 1], 2 * i, 2, 1).sum(-1, keepdims=True)
        return jnp.where(on, new, h), on & (new.sum(-1, keepdims=True) < 4), count + on, jnp.tanh(w)

    on = jnp.ones((x.shape[0], 1), bool)
    h, _, count, _ = jax.lax.fori_loop(0, 3, step, (x[:, 0], on, jnp.zeros(on.shape, "int32"), params["w"]))
    return h * count


def own_rows(params, x):
    """Each step reads what the one before it wrote, so all steps are made one after the other."""
    def step(i, rows):
        row = jax.lax.dynamic_slice_in_dim(rows, i, 1, 1)
        return jax.lax.dynamic_update_slice_in_dim(rows, jnp.tanh(row @ params["w"] + 1), i + 1, 1)

    return jax.lax.fori_loop(0, 4, step, jnp.asarray(x))[:, 3]


@pytest.mark.parametrize("function, scans", [(counting, 1), (kinds, 2), (own_rows, 0)])
def test_loops(function, scans, tmp_path):
    path = tmp_path / "model.stablehlo.mlir"
    shapes, x_shape = {"w": texts.shaped(6, 6)}, texts.shaped(texts.BATCH, 5, 6)
    path.write_text(texts.generic(function, shapes, x_shape))
    options = "--loss", "mse", "--optimizer", "sgd"
    done = subprocess.run(["mtc", "import", path, *options, "-o", "-"], capture_output=True, text=True, check=True)
    assert done.stdout.count("mt.scan") == scans
    plan = mtc.compile(path, batch_size=N, shards=8, loss="mse", optimizer=f"sgd,learning_rate={RATE}")
    params, x, y = filled(shapes, 10), array(x_shape, 1), array(texts.shaped(N, 6), 2)
    expected = np.asarray(function(params, jnp.asarray(x)))
    trained = []
    for devices in ("cpu:1", "cpu:2", "cpu:3", "cpu:8"):
        with mtc.Session(plan, devices) as session:
            set_parameters(session, params)
            np.testing.assert_allclose(session.predict(x), expected, rtol=1e-5, atol=1e-5)
            session.train_on_batch(x, y)
            trained.append(session.variables["params/w"])
    _, after = step(lambda params, x, y: ((function(params, jnp.asarray(x)) - y) ** 2).mean(), params, x, y)
    np.testing.assert_allclose(trained[0], after["w"], rtol=1e-5, atol=1e-6)
    assert len({np.asarray(w).tobytes() for w in trained}) == 1
