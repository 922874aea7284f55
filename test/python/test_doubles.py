# SPDX-License-Identifier: Apache-2.0
"""Precision f64: plans compute what JAX computes with x64, to one result on any number of devices."""

import hashlib
import math

import jax
import jax.numpy as jnp
import mtc.jax
import numpy as np
import optax
import pytest
from mtc import _compile, _options
from mtc._errors import ModelError
from mtc._plan import Plan
from scipy import special

ROWS, SHORT, STEPS = 16, 7, 5
NUMBERS = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def doubles():
    with jax.enable_x64(True):
        yield


def random(*shape, scale=1.0):
    return NUMBERS.standard_normal(shape) * scale


def dense(*sizes):
    return [{"w": random(m, n, scale=m ** -0.5), "b": np.zeros(n)} for m, n in zip(sizes, sizes[1:])]


def mlp(params, x):
    for layer in params[:-1]:
        x = jnp.tanh(x @ layer["w"] + layer["b"])
    return x @ params[-1]["w"] + params[-1]["b"]


def regression(params, batch):
    return jnp.mean((mlp(params, batch["x"])[:, 0] - batch["y"]) ** 2)


def equation(params, batch):
    def u(point):
        return mlp(params, point)[0]

    def residual(point):
        (u_t, u_x), u_xx = jax.grad(u)(point), jax.hessian(u)(point)[1, 1]
        return u_t + u(point) * u_x - 0.05 * u_xx

    start = batch["x"] * np.array([0.0, 1.0])
    error = jax.vmap(u)(start) + jnp.sin(np.pi * start[:, 1])
    return jnp.mean(jax.vmap(residual)(batch["x"]) ** 2) + jnp.mean(error ** 2)


def hamiltonian(params, batch):
    slope = jax.vmap(jax.grad(lambda state: mlp(params, state)[0]))(batch["x"])
    wanted = jnp.stack([batch["x"][:, 1], -jnp.sin(batch["x"][:, 0])], 1)
    return jnp.mean((slope @ np.array([[0.0, -1.0], [1.0, 0.0]]) - wanted) ** 2)


def operator(params, batch):
    x = batch["f"][..., None] @ params["lift"]
    spectrum = jnp.fft.rfft(x, axis=1)[:, :4]
    mixed = jnp.einsum("bki,kio->bko", spectrum, jax.lax.complex(params["re"], params["im"]))
    x = jax.nn.gelu(jnp.fft.irfft(mixed, n=x.shape[1], axis=1) + x @ params["skip"])
    return jnp.mean(((x @ params["project"])[..., 0] - batch["g"]) ** 2)


def constants(params, batch):
    """Factors of a mean, of squares and of the fill of a padding that float32 does not have."""
    x = jnp.pad(mlp(params, batch["x"]), ((0, 0), (1, 1)), constant_values=math.pi / 3)
    x = jax.nn.leaky_relu(x * 0.1 + math.pi, 1 / 7) ** 2
    return math.pi * jnp.mean(x) + 1 / 3 * jnp.sum(params[0]["w"] ** 2)


CASES = {
    "regression": (regression, dense(2, 8, 1), {"x": random(ROWS, 2), "y": random(ROWS)}, optax.sgd(0.1)),
    "constants": (constants, dense(2, 8, 1), {"x": random(ROWS, 2)}, optax.adam(1e-3 / 3)),
    "rate": (regression, dense(2, 8, 1), {"x": random(ROWS, 2), "y": random(ROWS)}, optax.adamw(1e-3)),
    "equation": (equation, dense(2, 8, 8, 1), {"x": random(ROWS, 2)}, optax.adam(1e-2)),
    "hamiltonian": (hamiltonian, dense(2, 8, 1), {"x": random(ROWS, 2)}, optax.adam(1e-2)),
    "operator": (operator, {"lift": random(1, 4), "re": random(4, 4, 4), "im": random(4, 4, 4), "skip": random(4, 4),
                            "project": random(4, 1)}, {"f": random(ROWS, 24), "g": random(ROWS, 24)},
                 optax.adam(1e-2)),
}


def trained(function, params, batches, optimizer):
    """The parameters and the last loss of JAX."""
    params = jax.tree.map(jnp.asarray, params)
    state = optimizer.init(params)
    for batch in batches:
        loss, gradients = jax.value_and_grad(function)(params, batch)
        updates, state = optimizer.update(gradients, state, params)
        params = optax.apply_updates(params, updates)
    return params, loss


@pytest.mark.parametrize("name", CASES)
def test_jax(name):
    function, params, batch, optimizer = CASES[name]
    batches = [{n: a[:rows] for n, a in batch.items()} for rows in (ROWS, SHORT, ROWS, ROWS, ROWS)]
    found, whole = set(), {}
    with mtc.jax.compile(function, params, batch, optimizer=optimizer, batch_size=ROWS, shards=8, precision="f64",
                         verbose=0, devices="cpu:1") as step:
        assert all(v.dtype in ("float64", "int32") for v in step.plan.variables)
        for devices in ("cpu:1", "cpu:2", "cpu:3", "cpu:8"):
            with step.plan.session(devices) as session:
                for each in batches:
                    logs = session.train_step(each)
                whole = {n: np.asarray(session.variables[n]) for n in session.variables}
                found.add(hashlib.sha256(b"".join(whole[n].tobytes() for n in sorted(whole))).hexdigest())
        assert len(found) == 1
        for name, value in whole.items():
            step.session.variables[name] = value
        mine = step.params
    theirs, loss = trained(function, params, batches, optimizer)
    assert logs["loss"] == pytest.approx(float(loss), rel=1e-12)
    for a, b in zip(jax.tree.leaves(mine), jax.tree.leaves(theirs)):
        assert a.dtype == np.float64
        assert np.abs(a - b).max() <= 1e-12 * np.abs(b).max()


FUNCTIONS = {"exp": np.exp, "expm1": np.expm1, "log": np.log, "log1p": np.log1p, "tanh": np.tanh, "erf": special.erf,
             "sin": np.sin, "cos": np.cos, "sqrt": np.sqrt}


def test_functions():
    """Within 4 ulp of NumPy and SciPy, which have errors of about 1 of their own."""
    text = ('mt.model @f {\n%x = mt.input "x" : tensor<?x1xf32>\n'
            '%w = mt.variable "w" init(ones) : tensor<1xf32>\n'
            '%p = mt.mul %x, %w : tensor<?x1xf32>, tensor<1xf32>\nmt.loss "loss", %p : tensor<?x1xf32>\n')
    for name in FUNCTIONS:
        text += f'%{name} = mt.{name} %x : tensor<?x1xf32>\nmt.output "{name}", %{name} : tensor<?x1xf32>\n'
    text += "mt.sgd\n}\n"
    numbers = np.random.default_rng(0)
    x = np.concatenate([
        numbers.uniform(-30, 30, 4000), numbers.uniform(-1, 1, 4000), numbers.uniform(-740, 705, 1000),
        10.0 ** numbers.uniform(-300, 300, 2000), [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-310]])
    plan = Plan(_compile.plan_of_text(text, "f", _options.fields(len(x), {"precision": "f64", "shards": 1}), 0))
    with plan.session("cpu:1") as session, np.errstate(all="ignore"):
        made = session.predict({"x": x[:, None]})
        for name, function in FUNCTIONS.items():
            mine, right = made[name][:, 0], function(x)
            kept = np.abs(x) < 2.0**26 if name in ("sin", "cos") else x == x
            good = (mine == right) | (np.isnan(mine) & np.isnan(right)) | (
                np.abs(mine - right) <= 4 * np.spacing(np.maximum(np.abs(right), 1e-300)))
            assert good[kept].all(), (name, x[kept & ~good][:3], mine[kept & ~good][:3], right[kept & ~good][:3])


def test_refused():
    function, params, batch, optimizer = CASES["regression"]
    with pytest.raises(ModelError, match='compile with precision="f64"|expected a parameter of float32, found float64'):
        mtc.jax.compile(function, params, batch, optimizer=optimizer, batch_size=ROWS, verbose=0)
    narrow = jax.tree.map(lambda a: a.astype("f4"), params)
    with pytest.raises(ModelError, match="expected a parameter of float64, found float32"):
        mtc.jax.compile(function, narrow, batch, optimizer=optimizer, batch_size=ROWS, precision="f64", verbose=0)

    def rounds(params, batch):
        return regression(params, {**batch, "y": jnp.tanh(batch["y"].astype("float32")).astype("float64")})

    with pytest.raises(ModelError, match="numbers of float32 amid float64"):
        mtc.jax.compile(rounds, params, batch, optimizer=optimizer, batch_size=ROWS, precision="f64", verbose=0)
