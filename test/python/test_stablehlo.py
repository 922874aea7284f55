# SPDX-License-Identifier: Apache-2.0
"""Functions of JAX in files of StableHLO: predictions and training beside JAX' own."""

import jax
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
