# SPDX-License-Identifier: Apache-2.0
"""The check of mtc.jax: three updates by the optimizer of optax."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from test_jax_check import PARAMS, compiled

import mtc
import mtc.jax


def matrices(tree):
    return jax.tree.map(lambda array: array.ndim > 1, tree)


OPTIMIZERS = {
    "sgd": lambda: optax.sgd(optax.exponential_decay(0.1, 1, 0.5), momentum=0.9, nesterov=True),
    "adam": lambda: optax.chain(optax.clip_by_global_norm(0.01), optax.adam(1e-2)),
    "adamw": lambda: optax.adamw(optax.linear_schedule(0.0, 1e-2, 2), weight_decay=0.1, mask=matrices),
    "lion": lambda: optax.lion(1e-2, weight_decay=0.1, mask={"w": True, "b": False}),
    "rmsprop": lambda: optax.rmsprop(1e-2, centered=True),
    "adagrad": lambda: optax.adagrad(1e-2),
}
# What is planted: another attribute, or another rate.
WRONG = {"sgd": "momentum", "adam": "global_clipnorm", "adamw": "weight_decay", "lion": "beta_2", "rmsprop": "rho",
         "adagrad": "initial_accumulator_value"}


def with_bias(p, b):
    return jnp.mean(jnp.tanh(b["x"] @ p["w"] + p["b"]) ** 2)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_the_updates_are_those_of_optax(name, capsys, monkeypatch):
    """And where a number of the optimizer or its rate is another, the check says so."""
    params = {**PARAMS, "b": np.zeros(2, "f4")}
    compiled(with_bias, params, optimizer=OPTIMIZERS[name](), verbose=1).close()
    assert f"; 3 updates of {name} are those of optax" in capsys.readouterr().err
    right = mtc.jax.resolve

    def attribute(given):
        made = right(given)
        return made.with_(**{WRONG[name]: 0.9 * made.attributes[WRONG[name]]})

    def rate(given):
        made = right(given)
        other = (lambda count: 1.01 * made.rate(count)) if callable(made.rate) else 1.01 * made.rate
        return dataclasses.replace(made, rate=other)

    for wrong in (attribute, rate):
        monkeypatch.setattr(mtc.jax, "resolve", wrong)
        with pytest.raises(mtc.ModelError, match=f"what {name} of optax makes of the same .*, found after [123]"):
            compiled(with_bias, params, optimizer=OPTIMIZERS[name]())


def test_updates_where_a_mask_goes_by_sizes_are_compared(capsys, monkeypatch):
    params = {"w": np.ones((6, 2), "f4"), "b": np.zeros(2, "f4")}
    batch = {"x": np.random.default_rng(0).standard_normal((4, 6)).astype("f4")}

    def optimizer():
        return optax.adamw(1e-2, weight_decay=0.1, mask=lambda tree: jax.tree.map(lambda a: a.size >= 12, tree))

    compiled(with_bias, params, batch, optimizer=optimizer(), verbose=1).close()
    assert "; 3 updates of adamw are those of optax" in capsys.readouterr().err
    right = mtc.jax.resolve
    monkeypatch.setattr(mtc.jax, "resolve", lambda given: right(given).with_(weight_decay=0.09))
    with pytest.raises(mtc.ModelError, match="what adamw of optax makes of the same .*, found after 1"):
        compiled(with_bias, params, batch, optimizer=optimizer())


def test_a_schedule_that_moves_on_too_early_is_found(monkeypatch):
    right = mtc.jax.resolve
    monkeypatch.setattr(mtc.jax, "resolve", lambda given: dataclasses.replace(
        right(given), rate=lambda count: right(given).rate(count + (count > 1))))
    with pytest.raises(mtc.ModelError, match="found after 3 of 3 updates"):
        compiled(with_bias, {**PARAMS, "b": np.zeros(2, "f4")}, optimizer=optax.sgd(optax.linear_schedule(1, 0, 5)))


def test_updates_of_gradients_that_are_too_large_to_be_squared_are_compared(capsys):
    """Inputs times 100 make gradients of 1e20 here, whose squares are infinite in float32."""
    def loss(p, b):
        return jnp.mean(b["x"] @ p["w"]) * 1e18

    compiled(loss, optimizer=optax.adam(1e-3), verbose=1).close()
    assert "; 3 updates of adam are those of optax" in capsys.readouterr().err
