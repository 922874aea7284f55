# SPDX-License-Identifier: Apache-2.0
"""mtc.jax: values and gradients at infinities, at ties and where functions have poles, as JAX has them.

All functions of a table are one plan. Each has parameters of its own.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mtc.jax

INF = np.inf
special = jax.scipy.special
POINTS = np.array([0, -0.0, 1, -1, 0.5, 2, -2, 3, INF, -INF, 1e-30, -1e-30, 1e30], "f4")
NUMBERS = (0, 1, -1, 2.5, -2.5, INF, -INF)
PAIRS = np.array([[a, b] for a in NUMBERS for b in NUMBERS], "f4").T
NANS = np.array([np.nan, 0, 1], "f4")


@jax.custom_jvp
def steep(x, count):
    """A root with a slope that is infinite at 0, of integers besides."""
    return jnp.sqrt(jnp.abs(x)) * count, count + 1


@steep.defjvp
def _steep_jvp(primals, tangents):
    (x, count), (t, _) = primals, tangents
    made, more = steep(x, count)
    return (made, more), (t * jnp.where(x == 0, 2, 0.5 / jnp.sqrt(jnp.abs(x))) * count,
                          np.zeros(np.shape(more), jax.dtypes.float0))


@jax.custom_vjp
def picked(x, ids):
    return x[ids]


picked.defvjp(lambda x, ids: (x[ids], (x.shape, ids)),
              lambda kept, g: (3 * jnp.zeros(kept[0]).at[kept[1]].add(g), np.zeros(kept[1].shape, jax.dtypes.float0)))


@jax.custom_jvp
def pole(x):
    return jnp.abs(x)


pole.defjvps(lambda g, ans, x: g / x)
OF_ONE = {
    "power 0.0": lambda x: x**0.0, "power 0": lambda x: x**0, "power -2.0": lambda x: x**-2.0,
    "power -2": lambda x: x**-2, "power -3": lambda x: x**-3, "power -1": lambda x: x**-1,
    "power 0.5": lambda x: jnp.where(x == 0, 1, x) ** 0.5, "power 3": lambda x: x**3.0,
    "entr": special.entr, "logit": special.logit, "xlogx": lambda x: special.xlogy(x, x),
    "2 log x": lambda x: special.xlogy(2.0, x), "0 log x": lambda x: special.xlogy(0.0, x),
    "1 % x": lambda x: 1.0 % x, "x % 0.7": lambda x: jnp.where(jnp.abs(x) < 1e9, x, 1.7e9) % 0.7,
    "x % 0": lambda x: jax.lax.rem(x, jnp.float32(0)),
    **{name: getattr(jnp, name) for name in ("arctan", "arcsinh", "arccosh", "arctanh", "cbrt")},
    "sinh": lambda x: jnp.sinh(jnp.where(jnp.isinf(x), 1, x)),
    "cosh": lambda x: jnp.cosh(jnp.where(jnp.isinf(x), 1, x)),
    "arcsin": jnp.arcsin, "arccos": jnp.arccos,
    "lgamma": lambda x: jax.lax.lgamma(jnp.where(jnp.isinf(x), 1, x)),
    "digamma": lambda x: jax.lax.digamma(jnp.where(jnp.isinf(x), 1, jnp.abs(x) + 0.3)),
    "below 0": lambda x: jax.lax.digamma(jax.lax.stop_gradient(jnp.where(jnp.isinf(x), 1, x * 1.3))) * x,
    "product": lambda x: jnp.prod(jnp.where(jnp.isinf(x), 1.5, x).at[2:].mul(2)) * jnp.prod(x[2:7].reshape(1, 5), 1),
    **{name: getattr(jax.nn, name) for name in ("hard_silu", "hard_sigmoid", "hard_tanh", "softplus", "silu", "elu",
                                                "celu", "sparse_plus", "squareplus", "log_sigmoid", "relu6")},
}
OF_TWO = {
    "power": lambda a, b: jnp.where(b == -INF, 1, a ** jnp.where(b == -INF, 1, b)),
    "xlogy": special.xlogy, "xlog1py": special.xlog1py, "rel_entr": special.rel_entr, "kl_div": special.kl_div,
    "logaddexp": jnp.logaddexp, "logaddexp2": jnp.logaddexp2,
    "mod": lambda a, b: a % jnp.where(b == 0, 0.1, 4),
    "rem": jax.lax.rem,
    "clamp": lambda a, b: jax.lax.clamp(a, b, b[::-1]), "clamp of one": lambda a, b: jax.lax.clamp(a, b * 0.5, b),
    "maximum": jnp.maximum, "minimum": jnp.minimum,
    "atan2": lambda a, b: jnp.arctan2(a, jnp.where(jnp.isinf(b), 9, b)),
    "scan": lambda a, b: jnp.concatenate([jax.lax.cumlogsumexp(a[7:21:2]),
                                          jax.lax.cumlogsumexp(b[3:17], reverse=True)]),
}
OF_NAN = {
    "clip": lambda x: jnp.nan_to_num(jnp.clip(x, -1, 1)), "minimum": lambda x: jnp.nan_to_num(jnp.minimum(x, 2)),
    "cummax": lambda x: jnp.nan_to_num(jax.lax.cummax(x)),
    "clamp": lambda x: jnp.nan_to_num(jax.lax.clamp(-1.0, x, 1.0)),
}
RULES = {
    "integers beside": lambda x: steep(x, jnp.arange(3))[0] + steep(x, jnp.arange(3))[1],
    "float0": lambda x: picked(x, jnp.array([2, 0, 2])),
    "promised": lambda x: x.at[jnp.array([1, 5])].get(mode="promise_in_bounds"),
}


@pytest.mark.parametrize("table, points", [(OF_ONE, [POINTS]), (OF_TWO, list(PAIRS)), (OF_NAN, [NANS]),
                                           (RULES, [np.array([0, 1, 4], "f4")])], ids=["one", "two", "nan", "rules"])
def test_as_in_jax(table, points):
    params = {f"{name}/{i}": p for name in table for i, p in enumerate(points)}

    def each(params):
        return {name: f(*(params[f"{name}/{i}"] for i in range(len(points)))) for name, f in table.items()}

    def loss(params, batch):
        return 0 * jnp.mean(batch) + sum(jnp.sum(a * (1 + jnp.arange(a.size) % 7)) for a in each(params).values())

    def predict(params, batch):
        return {name: jnp.broadcast_to(a[None], (batch.shape[0], *a.shape)) + 0 * batch[:, None]
                for name, a in each(params).items()}

    batch = np.ones(1, "f4")
    wanted, values = jax.grad(loss)(params, batch), jax.jit(predict)(params, batch)
    with mtc.jax.compile(loss, params, batch, optimizer=mtc.jax.sgd(1.0, momentum=0.5), predict=predict, batch_size=1,
                         check=False, devices="cpu:1", verbose=0) as step:
        found = step.predict(batch)
        for name in table:
            np.testing.assert_allclose(found[name], values[name], rtol=1e-5, atol=1e-6, err_msg=name)
        step.train_on_batch(batch, allow_nan=True)
        for name, gradient in wanted.items():
            slot = f"sgd/{name.replace('/', '_')}_momentum"  # none: nothing depends on the parameter
            known = step.session.variables
            slope = known[slot] if slot in known else np.zeros_like(params[name])
            np.testing.assert_allclose(slope, gradient, rtol=2e-4, atol=1e-5, err_msg=name)


def test_a_rule_with_an_infinite_slope():
    """The value is a number, as in JAX; the gradient, which is infinite there, is at least none."""
    w, x = np.array([0, 2], "f4"), np.ones(1, "f4")
    with mtc.jax.compile(lambda w, x: jnp.sum(pole(w)) * x.mean(), w, x, optimizer="sgd", batch_size=1, check=False,
                         devices="cpu:1", verbose=0) as step:
        assert step.train_on_batch(x, allow_nan=True)["loss"] == 2
        assert np.isnan(step.params[0]) and step.params[1] == pytest.approx(1.995)


def test_rest_of_large_numbers():
    """As C's fmod has it, of quotients above 2^24 too."""
    random = np.random.default_rng(2)
    x = (10.0 ** random.uniform(0, 19, (4, 50))).astype("f4")
    w = random.uniform(0.3, 9, 50).astype("f4")
    with mtc.jax.compile(lambda w, x: jnp.mean(x / 1e20 * w), w, x, optimizer="sgd", batch_size=4, check=False,
                         predict=lambda w, x: jax.lax.rem(x, jnp.broadcast_to(w, x.shape)), devices="cpu:1",
                         verbose=0) as step:
        np.testing.assert_array_equal(step.predict(x), np.fmod(x, w))


def hot(b, numbers=lambda x: x.astype("f4")):
    return numbers(b["ids"][:, None] == jnp.arange(3))


MASKED = {
    "a class": lambda p, b: (jnp.sqrt(p * hot(b)).sum(1), (p * hot(b)).sum(1) ** 0.7),
    "one hot": lambda p, b: jnp.sum(jax.nn.one_hot(b["ids"], 3) * p, 1) ** 0.7,
    "in front": lambda p, b: hot(b) * jnp.log(p),
    "data": lambda p, b: jnp.sum(p) + b["x"] * (b["x"] < 9).astype("f4"),
    "another shape": lambda p, b: (jnp.log(p)[None] * hot(b).reshape(1, -1, 3))[0],
    "a sample": lambda p, b: jax.vmap(lambda x, i: jnp.log(p) * (jnp.arange(3) == i).astype("f4"))(b["x"], b["ids"]),
    "for all": lambda p, b: jnp.log(p) * (jnp.sum(p) < 9).astype("f4") + 0 * b["x"][:, :1],
    "repeated": lambda p, b: jnp.log(p) * (b["ids"] == 0).astype("f4")[:, None],
    "repeated before": lambda p, b: jnp.log(p) * jnp.broadcast_to((b["ids"] == 0)[:, None], b["x"].shape).astype("f4"),
    "by integers": lambda p, b: jnp.log(p) * hot(b, lambda x: x.astype("i4").astype("f4")),
    "the rest": lambda p, b: jnp.log(p) * (1 - hot(b)),
}


@pytest.mark.parametrize("of", MASKED.values(), ids=MASKED)
def test_a_product_with_booleans(of):
    """XLA makes a select of it, so that what is infinite and masked is 0: where nothing is between cast and product."""
    def loss(p, b):
        return sum(jnp.sum(a) for a in jax.tree.leaves(of(p, b))) / b["x"].shape[0]

    p = np.array([0, 0.5, 2], "f4")
    batch = {"x": np.array([[1, np.inf, 0], [np.nan, 2, 3]], "f4"), "ids": np.array([0, 2], "i4")}
    value, gradient = jax.jit(jax.value_and_grad(loss))(p, batch)
    outputs = jax.tree.leaves(jax.jit(of)(p, batch))
    with mtc.jax.compile(loss, p, batch, optimizer=mtc.jax.sgd(1.0, momentum=0.5), predict=of, batch_size=2,
                         check=False, devices="cpu:1", verbose=0) as step:
        for found, wanted in zip(jax.tree.leaves(step.predict(batch)), outputs):
            np.testing.assert_allclose(found, wanted, rtol=1e-5)
        np.testing.assert_allclose(step.train_on_batch(batch, allow_nan=True)["loss"], value, rtol=1e-5)
        slot = next(a for n, a in step.session.variables.items() if n.endswith("momentum"))
        np.testing.assert_allclose(slot, gradient, rtol=1e-5)
